"""Births, merges and deletes: what they predict is what happens."""

from dataclasses import replace

import numpy as np
import pytest

import mixture_reference as mixture
from kplus.core.types import Position
from kplus.dp_mixture import moves
from kplus.dp_mixture.birth import BirthSettings
from kplus.dp_mixture.moves import (
    DeleteComponent,
    MergeComponents,
    MoveRecords,
    OrderComponents,
    choose_merges,
    pair_changes,
)
from kplus.dp_mixture.params import MixtureStats, Plan, pair_index
from mixture_reference import (
    CASES,
    DIAG,
    FLAT,
    THREE,
    Recording,
    blobs,
    labelled,
    one_pass,
    run,
    stats_of,
)

N_ROWS = 80
FEW = BirthSettings(n_new=8)


def setting(name="gaussian", K=5, seed=0, weighted=False, **settings):
    X = CASES[name].rows(N_ROWS, seed)
    model = CASES[name].model(X, **settings)
    weights = np.ones(N_ROWS)
    if weighted:
        weights = np.random.default_rng(seed).uniform(0.2, 3.0, N_ROWS)
    return model, X, weights, mixture.some_shares(N_ROWS, K, seed)


def propose(move, model, total, params=None, converged=True):
    if params is None:
        params = model.posterior(total.N.copy(), total.S.copy(), total.mass)
    updated = model.update(params, total)
    return move.propose(Position(model, params, total, updated, converged))


# ------------------------------------------------------------------------- merges


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_change_of_every_pair_is_exact(name, weighted):
    """Predicted = from the sums after merging = from merged responsibilities."""
    model, X, w, R = setting(name, weighted=weighted)
    total = stats_of(model, X, R, w)
    before, brute_before = model.best_bound(total), mixture.bound(model, X, R, w)
    pairs = np.column_stack(pair_index(5))
    changes = pair_changes(model, total, 1.0, pairs)
    for (a, b), change in zip(pairs, changes, strict=True):
        old_to_new = np.arange(5) - (np.arange(5) > b)
        old_to_new[b] = a
        after = model.best_bound(total.regroup(old_to_new, 4))
        merged = mixture.regrouped(R, old_to_new, 4)
        brute = mixture.bound(model, X, merged, w)
        slack = 1e-10 * abs(before)
        assert change == pytest.approx(after - before, abs=slack)
        assert change == pytest.approx(brute - brute_before, abs=slack)


def test_changes_with_a_learned_concentration():
    """Exact at the concentration given; a new one can only add to it."""
    model, X, w, R = setting(concentration=None)
    total = stats_of(model, X, R, w)
    alpha = model.posterior(total.N, total.S, total.mass).concentration
    pairs = np.column_stack(pair_index(5))
    changes = pair_changes(model, total, alpha, pairs)
    before = mixture.bound(model, X, R, w, concentration=alpha)
    for (a, b), change in zip(pairs, changes, strict=True):
        old_to_new = np.arange(5) - (np.arange(5) > b)
        old_to_new[b] = a
        merged = mixture.regrouped(R, old_to_new, 4)
        after = mixture.bound(model, X, merged, w, concentration=alpha)
        assert change == pytest.approx(after - before, abs=1e-8)
        gain = model.best_bound(total.regroup(old_to_new, 4)) - model.best_bound(total)
        assert gain >= change - 1e-8


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["gaussian", "mixed"])
def test_merges_at_once_raise_the_bound_as_brute_force_says(name, seed):
    model, X, w, R = setting(name, K=8, seed=seed)
    total, records = stats_of(model, X, R, w), MoveRecords()
    proposal = propose(MergeComponents(records), model, total)
    assert proposal.exact
    assert proposal.K < 8
    assert len(records.entries) == 8 - proposal.K
    merged = total.regroup(proposal.old_to_new, proposal.K)
    brute = mixture.bound(
        model, X, mixture.regrouped(R, proposal.old_to_new, proposal.K), w
    )
    after = model.best_bound(merged)
    assert after == pytest.approx(brute, rel=1e-10)
    assert after > model.best_bound(total)
    np.testing.assert_array_equal(proposal.params.N, merged.N)
    np.testing.assert_array_equal(proposal.params.S, merged.S)
    assert np.all(np.diff(merged.N) <= 0.0)
    assert np.bincount(proposal.old_to_new).max() <= 2
    for entry in records.entries:
        a, b = entry.target
        assert (entry.kind, entry.accepted) == ("merge", True)
        assert a < b
        assert entry.change > 0.0
        assert proposal.old_to_new[a] == proposal.old_to_new[b]


@pytest.mark.parametrize("few", [40, 0])
def test_likely_partners_are_enough_to_merge_halves(few, monkeypatch):
    """Twelve groups cut in two each; with few=0 most pairs are left out at first."""
    monkeypatch.setattr(moves, "_FEW", few)
    rng = np.random.default_rng(0)
    X = blobs(1, rng.uniform(-60.0, 60.0, size=(12, 2)), n=20)
    model = FLAT.model(X)
    total = stats_of(model, X, labelled(np.repeat(np.arange(24), 10)))
    proposal = propose(MergeComponents(MoveRecords()), model, total, converged=False)
    assert proposal.K == 12
    np.testing.assert_array_equal(proposal.old_to_new[::2], proposal.old_to_new[1::2])


def test_no_merge_where_none_pays():
    X = blobs(0, THREE)
    model = FLAT.model(X)
    total = stats_of(model, X, labelled(np.repeat(np.arange(3), 60)))
    records = MoveRecords()
    assert propose(MergeComponents(records), model, total) is None
    one = stats_of(model, X, np.ones((180, 1)))
    assert propose(MergeComponents(records), model, one) is None
    assert not records.entries


def test_components_are_brought_in_order_of_size():
    X = blobs(0, THREE)[40:]
    model = FLAT.model(X)
    labels = np.repeat(np.arange(3), [20, 60, 60])
    total = stats_of(model, X, labelled(labels))
    proposal = propose(MergeComponents(MoveRecords()), model, total)
    np.testing.assert_array_equal(proposal.old_to_new, [2, 0, 1])
    assert model.best_bound(total.regroup(proposal.old_to_new, 3)) > model.best_bound(
        total
    )


@pytest.mark.parametrize("where", [0, 1, 3])
def test_empty_components_go(where):
    X = blobs(0, THREE)
    model = FLAT.model(X)
    R = np.insert(labelled(np.repeat(np.arange(3), 60)), where, 0.0, axis=1)
    total = stats_of(model, X, R)
    proposal = propose(MergeComponents(MoveRecords()), model, total)
    assert proposal.K == 3
    gain = model.best_bound(total.regroup(proposal.old_to_new, 3)) - model.best_bound(
        total
    )
    assert gain >= -1e-9


def test_several_empty_components_go_in_the_end():
    X = blobs(0, THREE)
    model = FLAT.model(X)
    R = np.hstack([labelled(np.repeat(np.arange(3), 60)), np.zeros((180, 9))])
    total = stats_of(model, X, R)
    for _ in range(6):
        proposal = propose(MergeComponents(MoveRecords()), model, total)
        if proposal is None:
            break
        total = total.regroup(proposal.old_to_new, proposal.K)
    assert total.K == 3


def test_a_component_merges_at_most_once():
    total = MixtureStats.zeros(4, 1)
    total.N[:] = 10.0
    pairs = np.column_stack(pair_index(4))
    changes = np.array([5.0, 9.0, 1.0, 8.0, 7.0, 2.0])  # 01 02 03 12 13 23
    chosen = pairs[choose_merges(total, pairs, changes, 1e-9)]
    np.testing.assert_array_equal(chosen, [[0, 2], [1, 3]])
    assert len(choose_merges(total, pairs, -changes, 1e-9)) == 0


def test_what_was_tried_follows_the_larger_part():
    model, X, w, R = setting(K=3)
    total = stats_of(model, X, R, w)
    params = model.posterior(total.N, total.S, total.mass)
    params = replace(
        params, tried=np.array([7.0, 8.0, 9.0]), waited=np.array([1, 2, 3]), visits=4
    )
    old_to_new = np.array([0, 1, 0])
    new = moves.regrouped_params(
        model, params, total.regroup(old_to_new, 2), old_to_new
    )
    larger = 0 if total.N[0] > total.N[2] else 2
    np.testing.assert_array_equal(new.tried, [params.tried[larger], 8.0])
    np.testing.assert_array_equal(new.waited, [params.waited[larger], 2])
    assert new.visits == 4


# ------------------------------------------------------------------------ deletes


def two_halves(model, X):
    """A start with one group cut in two."""
    labels = np.where(np.arange(180) < 60, np.arange(180) % 2, np.arange(180) // 60 + 1)
    return mixture.components(model, X, labelled(labels))


def test_a_delete_that_pays_is_kept():
    """With the prior fixed: one learned from the halves makes both of them dear."""
    X = blobs(0, THREE)
    model, records = DIAG.model(X, Recording, learns=False), MoveRecords()
    start, move = two_halves(model, X), DeleteComponent(records)
    plain, _ = run(model, X, start, step=0.02)
    assert plain.params.K == 4
    result, labels = run(model, X, start, move, step=0.02)
    assert result.params.K == 3
    assert result.history[-1] < plain.history[-1]
    assert np.all(np.diff(result.history) <= 1e-9)
    assert labels.max() == 2
    kept = [entry for entry in records.entries if entry.accepted]
    assert [(entry.kind, entry.target[0] in (0, 1)) for entry in kept] == [
        ("delete", True)
    ]
    after = result.history[kept[0].iteration]
    before = result.history[kept[0].iteration - 1]
    assert kept[0].change == pytest.approx(before - after, rel=1e-9)
    assert after < before
    brute = mixture.bound(model, X, model.R)
    assert -result.history[-1] == pytest.approx(brute, rel=1e-10)


@pytest.mark.parametrize(("n_active", "n_groups"), [(None, 3), (1, 9)])
def test_a_delete_that_does_not_pay_is_taken_back(monkeypatch, n_active, n_groups):
    """Every component is put on trial once, and the fit ends as if none had been."""
    centers = np.array([[12.0 * (k % 3), 12.0 * (k // 3)] for k in range(n_groups)])
    X, groups = blobs(0, centers, n=30), np.repeat(np.arange(n_groups), 30)
    model, records = FLAT.model(X, n_active=n_active), MoveRecords()
    assert model.is_sparse(n_groups - 1) == (n_active is not None)
    start = mixture.components(model, X, labelled(groups[::-1]))
    plain, labels = run(model, X, start)
    monkeypatch.setattr(moves, "removal_gains", lambda N, alpha: np.full(len(N), 1e12))
    result, again = run(model, X, start, Shameless(DeleteComponent(records)))
    assert len(result.params.N) == n_groups
    assert result.converged
    assert len(records.entries) >= 1
    assert not any(entry.accepted for entry in records.entries)
    assert all(entry.change < 0.0 for entry in records.entries)
    assert result.history[-1] == plain.history[-1]
    np.testing.assert_array_equal(labels, again)
    for field in ("N", "S", "entropy", "pairs"):
        one, other = getattr(result.total, field), getattr(plain.total, field)
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(result.params.N, plain.params.N)
    np.testing.assert_array_equal(result.params.S, plain.params.S)


class Shameless:
    """Hides from a move what rows would lose."""

    def __init__(self, move):
        self.move, self.on_outcome = move, move.on_outcome

    def propose(self, at):
        bare = replace(at.total, removal_cost=np.zeros(at.total.K))
        return self.move.propose(replace(at, total=bare))


def test_nothing_is_deleted_where_every_component_is_needed():
    X = blobs(0, THREE)
    model, records = FLAT.model(X), MoveRecords()
    start = mixture.components(model, X, labelled(np.repeat(np.arange(3), 60)))
    result, _ = run(model, X, start, DeleteComponent(records))
    assert result.params.K == 3
    assert not records.entries
    total = one_pass(model, X, start)
    assert propose(DeleteComponent(records), model, total, converged=False) is None
    one = stats_of(model, X, np.ones((180, 1)))
    assert propose(DeleteComponent(records), model, one) is None


def test_components_with_rows_of_earlier_stay():
    """In a stream these rows are known by their sums, and cannot go elsewhere."""
    X = blobs(0, THREE)
    model = DIAG.model(X)
    total = one_pass(model, X, two_halves(model, X))
    total.removal_cost[:2] = 0.0  # as if the halves were the same
    proposal = propose(DeleteComponent(MoveRecords()), model, total)
    target = int(np.flatnonzero(proposal.old_to_new < 0)[0])
    assert target in (0, 1)
    total.seen[target] -= 1.0
    proposal = propose(DeleteComponent(MoveRecords()), model, total)
    assert int(np.flatnonzero(proposal.old_to_new < 0)[0]) == 1 - target
    total.seen[1 - target] = 0.0
    assert propose(DeleteComponent(MoveRecords()), model, total) is None


def test_rows_without_weight_do_not_keep_a_component_alive():
    """A row far from all but one component would lose much, but it does not count."""
    X = np.vstack([blobs(0, THREE), [[500.0, 500.0]]])
    weights = np.ones(181)
    weights[-1] = 0.0
    model = FLAT.model(X[:180])
    labels = np.append(np.arange(180) // 60, 2)
    labels[:60] = np.arange(60) % 2 * 3
    start = mixture.components(model, X, labelled(labels), weights)
    total = one_pass(model, X, replace(start, plan=Plan()), weights)
    assert not np.any(np.isnan(total.removal_cost))


# ------------------------------------------------------------------------- present


def test_components_are_presented_by_size_and_without_empty_ones():
    X = blobs(0, THREE)
    model = FLAT.model(X)
    R = labelled(np.repeat([1, 3, 4], 60), 5)
    R[:10] = np.eye(5)[3]
    total = stats_of(model, X, R)
    params = model.posterior(total.N, total.S, total.mass)
    proposal = OrderComponents(True).propose(
        Position(model, params, total, params, True)
    )
    assert proposal.K == 3
    np.testing.assert_array_equal(proposal.old_to_new, [-1, 2, -1, 0, 1])
    np.testing.assert_array_equal(proposal.params.N, [70.0, 60.0, 50.0])
    assert proposal.params.plan.frozen
    assert proposal.params.plan.everyone
    kept = OrderComponents(False).propose(Position(model, params, total, params, True))
    np.testing.assert_array_equal(kept.old_to_new, [3, 2, 4, 0, 1])
    assert kept.K == 5
