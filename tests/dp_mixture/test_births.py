"""Births: what is created and adopted, what stays as it was, and when births end."""

from dataclasses import replace

import numpy as np
import pytest

import mixture_reference as mixture
from kplus.core.types import Position
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture import birth
from kplus.dp_mixture.birth import BirthSettings, BornComponents
from kplus.dp_mixture.fresh import create, seeded
from kplus.dp_mixture.moves import MergeComponents, MoveRecords
from kplus.dp_mixture.params import Collected
from mixture_reference import (
    DIAG,
    FLAT,
    THREE,
    blobs,
    labelled,
    one_pass,
    run,
    stats_of,
)

FEW = BirthSettings(n_new=8)


def given(model):
    """The same with a prior that stays as it is."""
    return replace(model, family=replace(model.family, learns=()))


def born(X, records=None, settings=FEW, seed=0, weights=None):
    return BornComponents(
        ArrayBlocks(X, 20), weights, np.random.default_rng(seed),
        records or MoveRecords(), settings,
    )  # fmt: skip


def asked(model, X, R, move, weights=None):
    """Parameters that ask for rows, and the sums of the pass that notes them."""
    params = move.planned(mixture.components(model, X, R, weights)).params
    return params, one_pass(model, X, params, weights)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("case", [FLAT, DIAG])
@pytest.mark.parametrize("rows_each", [1.0, 20.0])
def test_nothing_is_born_of_one_group(case, seed, rows_each):
    X = blobs(seed, [[3.0, -40.0]], n=300) * [1.0, 5.0]
    model, rng = case.model(X), np.random.default_rng(seed)
    assert create(model, X, np.ones(300), rows_each, 10, 20, rng).K == 1


def after_learning(model, stats):
    """The bound of these responsibilities when the prior has been learned from them."""
    for _ in range(50):
        model = model.learning(stats.N, stats.S)
    return model.best_bound(stats)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", [FLAT, DIAG])
@pytest.mark.parametrize("rows_each", [1.0, 20.0])
@pytest.mark.parametrize("learns", [False, True], ids=["fixed", "learned"])
def test_three_groups_are_born_of_three(case, seed, rows_each, learns):
    X = blobs(seed, THREE)
    model, rng = case.model(X, learns=learns), np.random.default_rng(seed)
    stats = create(model, X, np.ones(180), rows_each, 10, 20, rng)
    if learns and stats.K != 3:  # a row far out may be worth a component
        three = stats_of(model, X, labelled(np.repeat(np.arange(3), 60)))
        assert after_learning(model, stats) > after_learning(model, three)
        return
    np.testing.assert_allclose(stats.N, 60.0 * rows_each, rtol=0.02)
    means = model.family.attributes(stats.N, stats.S)["means_"]
    for center in THREE:
        assert np.min(np.sum((means - center) ** 2, axis=1)) < 1.0


def test_nothing_is_born_of_equal_rows():
    X = np.repeat([[1.0, 2.0], [5.0, 5.0]], 30, axis=0)
    model, rng = FLAT.model(X), np.random.default_rng(0)
    assert create(model, X[:30], np.ones(30), 1.0, 8, 20, rng).K == 1


def test_seeds_share_out_all_rows():
    X, w = blobs(0, THREE), np.random.default_rng(0).uniform(0.0, 2.0, 180)
    model = FLAT.model(X)
    stats = seeded(model, X, w, 7, np.random.default_rng(1))
    assert stats.K == 7
    assert np.all(stats.N > 0.0)
    assert stats.N.sum() == pytest.approx(w.sum())
    assert stats.mass == pytest.approx(w.sum())
    whole = w @ model.family.features(X)
    np.testing.assert_allclose(stats.S.sum(axis=0), whole, atol=1e-9)
    few = seeded(model, X[[0, 0, 90]], np.ones(3), 7, np.random.default_rng(1))
    assert few.K == 2


@pytest.mark.parametrize("learns", [False, True], ids=["fixed", "learned"])
def test_a_birth_leaves_all_that_is_old(learns):
    """MO-6: q(φ) of old components, their sums; the new come last, with their own.

    A prior that is learned becomes what suits all of them; q(φ) of old components
    follows from it and from their sums.
    """
    X = blobs(0, THREE)
    model = FLAT.model(X, learns=learns)
    records = MoveRecords()
    move = born(X, records)
    params, total = asked(model, X, np.ones((180, 1)), move)
    updated = model.update(params, total)
    proposal = move.propose(Position(model, params, total, updated, False))
    K, new = proposal.K, proposal.params
    assert K == 1 + 3
    assert not proposal.exact
    np.testing.assert_array_equal(proposal.old_to_new, [0])
    np.testing.assert_array_equal(new.N[:1], total.N)
    np.testing.assert_array_equal(new.S[:1], total.S)
    old = updated.expected
    if learns:
        old = new.family.expect(total.N, total.S)
    for field in ("const", "means", "whiten"):
        one, other = getattr(new.expected, field), getattr(old, field)
        np.testing.assert_array_equal(one[:1], other)
    np.testing.assert_array_equal(proposal.provisional.N, [0.0, *new.N[1:]])
    np.testing.assert_array_equal(proposal.provisional.S[1:], new.S[1:])
    assert proposal.provisional.N.sum() == pytest.approx(180.0)
    np.testing.assert_array_equal(new.tried, [180.0, 0.0, 0.0, 0.0])
    assert new.plan.everyone
    assert new.plan.targets is None
    assert not records.entries
    move.on_outcome(proposal.note, -5.0, True)
    entry = records.entries[0]
    assert (entry.kind, entry.target, entry.accepted) == ("birth", (0,), True)
    assert entry.change == 5.0


def test_rows_without_weight_take_no_part_in_births():
    X = blobs(0, THREE)
    weights = np.repeat([1.0, 2.0, 0.0], 60)
    model = FLAT.model(X)
    move = born(X, weights=weights)
    params, total = asked(model, X, np.ones((180, 1)), move, weights)
    updated = model.update(params, total)
    proposal = move.propose(Position(model, params, total, updated, False))
    assert proposal.K == 1 + 2
    np.testing.assert_allclose(
        np.sort(proposal.provisional.N[1:]), [60.0, 120.0], rtol=0.02
    )


@pytest.mark.parametrize(("cap", "K"), [(4, 4), (3, 3), (2, 2)])
def test_no_more_are_born_than_the_cap_allows(cap, K):
    X = blobs(0, THREE)
    model = FLAT.model(X)
    move = born(X, settings=replace(FEW, max_components=cap))
    params, total = asked(model, X, np.ones((180, 1)), move)
    updated = model.update(params, total)
    proposal = move.propose(Position(model, params, total, updated, False))
    assert proposal.K == K
    assert (move.planned(proposal.params) is None) == (cap == K)


def test_targets_are_tried_again_only_when_they_have_changed():
    """With a prior that is given; one that is learned may have changed meanwhile."""
    X = blobs(0, THREE)
    model, move = given(FLAT.model(X)), born(X)
    params = mixture.components(model, X, labelled(np.repeat(np.arange(3), 60)))
    np.testing.assert_array_equal(move.planned(params).params.plan.targets, [0, 1, 2])
    assert move.planned(params).exact
    tried = replace(params, tried=np.array([60.0, 55.0, 60.0]))
    assert move.planned(tried) is None
    grown = replace(params, tried=np.array([60.0, 20.0, 100.0]))
    np.testing.assert_array_equal(move.planned(grown).params.plan.targets, [1, 2])
    few = born(X, settings=replace(FEW, n_targets=1))
    assert len(few.planned(params).params.plan.targets) == 1


def test_every_target_is_in_the_records():
    """One component holds two groups, which are born; the other one is left alone."""
    X = blobs(0, THREE)
    model, records = FLAT.model(X), MoveRecords()
    move = born(X, records)
    R = labelled(np.repeat([0, 1, 1], 60))
    params, total = asked(model, X, R, move)
    proposal = move.propose(
        Position(model, params, total, model.update(params, total), False)
    )
    assert proposal.K == 2 + 2
    move.on_outcome(proposal.note, -1.0, True)
    found = {(entry.target, entry.accepted) for entry in records.entries}
    assert found == {((0,), False), ((1,), True)}


def test_a_birth_that_fails_is_in_the_records():
    X = blobs(0, [[0.0, 0.0]], n=200)
    model, records = given(FLAT.model(X)), MoveRecords()
    move = born(X, records)
    params, total = asked(model, X, np.ones((200, 1)), move)
    proposal = move.propose(
        Position(model, params, total, model.update(params, total), False)
    )
    assert proposal is None
    assert [(e.kind, e.target, e.accepted) for e in records.entries] == [
        ("birth", (0,), False)
    ]


@pytest.mark.parametrize(("center", "K"), [(THREE[1], 2), (THREE[0], None)])
def test_later_rows_of_a_stream_are_born_where_they_stand_apart(center, K):
    """One group each, so that the fresh fit alone would leave them as they are."""
    first, second = blobs(0, THREE[:1]), blobs(1, [center])
    model, records = FLAT.model(np.vstack([first, second])), MoveRecords()
    earlier = mixture.stats_of(model, first, np.ones((60, 1)))
    earlier.begin_pass()
    move = born(second, records)
    start = model.posterior(earlier.N, earlier.S, earlier.mass)
    params = move.planned(start).params
    total = one_pass(model, second, params)
    assert create(model, second, np.ones(60), 1.0, 8, 20, move.rng).K == 1
    total += earlier
    proposal = move.propose(
        Position(model, params, total, model.update(params, total), False)
    )
    if K is None:
        assert [entry.accepted for entry in records.entries] == [False]
        # The component has grown, so that it may be tried again, but not born.
        assert proposal is None or proposal.provisional is None
        return
    assert proposal.K == K
    np.testing.assert_allclose(proposal.provisional.N, [0.0, 60.0])
    whole = model.family.features(second).sum(axis=0)
    np.testing.assert_allclose(proposal.provisional.S[1], whole, rtol=1e-9)


def test_planned_targets_count_as_tried():
    """Also if merges then leave none of their rows."""
    X = blobs(0, THREE)
    model, move = FLAT.model(X), born(X, settings=replace(FEW, n_targets=2))
    params = mixture.components(model, X, labelled(np.repeat(np.arange(3), 60)))
    params = replace(params, waited=np.array([4, 5, 6]))
    asked = move.planned(params).params
    targets = asked.plan.targets
    other = np.setdiff1d(np.arange(3), targets)
    np.testing.assert_array_equal(asked.tried[targets], params.N[targets])
    np.testing.assert_array_equal(asked.waited[targets], 0)
    np.testing.assert_array_equal(asked.tried[other], 0.0)
    np.testing.assert_array_equal(asked.waited[other], params.waited[other])
    np.testing.assert_array_equal(params.tried, 0.0)  # a proposal changes nothing
    np.testing.assert_array_equal(move.planned(asked).params.plan.targets, other)


def test_rows_of_merged_targets_are_taken_once(monkeypatch):
    """A row may be noted for both of two components that then merge."""
    taken = []
    real = birth.create

    def watched(model, X, *rest):
        taken.append(X)
        return real(model, X, *rest)

    monkeypatch.setattr(birth, "create", watched)
    X = blobs(0, THREE)
    model, move = FLAT.model(X), born(X)
    params, total = asked(model, X, np.full((180, 2), 0.5), move)
    assert len(Collected.joined(total.collected).rows) == 360
    total = total.regroup(np.array([0, 0]), 1)
    params = model.posterior(total.N, total.S, total.mass)
    move.propose(Position(model, params, total, model.update(params, total), False))
    assert len(taken) == 1
    assert len(taken[0]) == len(np.unique(taken[0], axis=0)) == 180


def test_targets_without_rows_are_not_asked_for_again():
    """Twelve equal components: none has a tenth of any row. Else no fit would rest."""
    X = blobs(0, [[0.0, 0.0]], n=200)
    model, move = FLAT.model(X), born(X)
    params, total = asked(model, X, np.full((200, 12), 1.0 / 12.0), move)
    assert len(Collected.joined(total.collected).rows) == 0
    asked_for = set(params.plan.targets)
    for _ in range(4):
        updated = model.update(params, total)
        proposal = move.propose(Position(model, params, total, updated, False))
        if proposal is None:
            break
        params = proposal.params
        assert not asked_for & set(params.plan.targets)
        asked_for |= set(params.plan.targets)
    assert proposal is None


def births(X, settings, seed=0, learns=True):
    """A fit from one component; K and the births that were adopted."""
    model, records = DIAG.model(X, learns=learns), MoveRecords()
    rng = np.random.default_rng(seed)
    moves = (
        MergeComponents(records),
        BornComponents(ArrayBlocks(X, 20), None, rng, records, settings),
    )
    start = mixture.components(model, X, np.ones((len(X), 1)))
    result, _ = run(model, X, start, *moves)
    kinds = [(entry.kind, entry.accepted) for entry in records.entries]
    return result.params.K, kinds.count(("birth", True))


@pytest.mark.parametrize("patience", [1, 2, 4])
def test_births_end_after_failures(patience, monkeypatch):
    """Halves of one group, which the next pass merges again: the bound never rises."""

    def halves(model, X, weights, *_):
        return stats_of(model, X, labelled(np.arange(len(X)) % 2), weights)

    monkeypatch.setattr(birth, "create", halves)
    X = blobs(0, [[0.0, 0.0]], n=100)
    settings = BirthSettings(n_rounds=50, patience=patience)
    assert births(X, settings) == (1, patience)


@pytest.mark.parametrize("seed", range(3))
def test_births_that_raise_the_bound_are_not_counted(seed):
    """Corners of a square, two at a time; each halving gains under a nat per row.

    The prior is fixed: with a learned one a row far out may be worth a component.
    """
    X = blobs(seed, [[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]], n=60)
    K, adopted = births(X, BirthSettings(n_new=2, patience=1), seed, learns=False)
    assert K == 4
    assert adopted > 1


@pytest.mark.parametrize("seed", range(5))
def test_seeds_of_a_row_twice_are_those_of_weight_2(seed):
    X = blobs(seed, THREE, n=20)
    weights = np.random.default_rng(seed).integers(1, 4, 60)
    model = FLAT.model(X)
    weighted = seeded(model, X, weights.astype(float), 6, np.random.default_rng(seed))
    copies = np.repeat(X, weights, axis=0)
    ones = np.ones(len(copies))
    repeated = seeded(model, copies, ones, 6, np.random.default_rng(seed))
    np.testing.assert_allclose(weighted.N, repeated.N)
    np.testing.assert_allclose(weighted.S, repeated.S, atol=1e-9)


def test_seeds_are_drawn_by_weight():
    """Of two equal groups far off the heavy one comes next, almost always."""
    X = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    weights = np.array([1e6, 1.0, 1e-6])
    model = FLAT.model(X)
    for seed in range(5):
        stats = seeded(model, X, weights, 2, np.random.default_rng(seed))
        assert sorted(stats.N) == pytest.approx([1.0, 1e6], rel=1e-5)
