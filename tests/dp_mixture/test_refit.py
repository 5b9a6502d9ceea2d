"""Refits: their gains are exact, trials keep the bound, and what only they find."""

from dataclasses import replace

import numpy as np
import pytest

import mixture_reference as mixture
from jobs import make_job
from kplus.core.types import Position
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture import refit
from kplus.dp_mixture.birth import BirthSettings
from kplus.dp_mixture.moves import MergeComponents, MoveRecords
from kplus.dp_mixture.refit import RefitComponents
from kplus.dp_mixture.search import Spec, fit
from mixture_reference import CASES, FLAT, THREE, blobs, labelled, one_pass, run

ALL = ("birth", "merge", "delete")


def refits(X, kinds=ALL, seed=0, weights=None, records=None, **settings):
    return RefitComponents(
        ArrayBlocks(X, 20), weights, np.random.default_rng(seed),
        records or MoveRecords(), BirthSettings(**settings), kinds,
    )  # fmt: skip


def propose(move, model, X, params, weights=None, converged=True):
    total = one_pass(model, X, params, weights)
    updated = model.update(params, total)
    return total, move.propose(Position(model, params, total, updated, converged))


def extra_component():
    """Three groups, the first of which two components share."""
    X = blobs(0, THREE)
    labels = np.repeat([0, 2, 3], 60)
    labels[:60] = X[:60, 0] > 0.0
    return X, labelled(labels)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_gain_of_a_refit_is_that_of_the_bound(name, weighted, monkeypatch):
    """Against the bound of all responsibilities, before and after."""
    monkeypatch.setattr(refit, "_SHARE", 0.0)
    X = CASES[name].rows(80)
    model = CASES[name].model(X)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 80) if weighted else np.ones(80)
    params = mixture.components(model, X, mixture.some_shares(80, 5), w)
    move = refits(X, weights=w)
    region = move._region(model, params)
    old = np.array([3, 1, 4])
    local = refit._Local(region, old)
    N, S = region.N[old], region.S[old]
    stats, R = local.step(local.model, N, S)
    before = region.R.copy()
    after = before.copy()
    shares = before[:, old].sum(axis=1, keepdims=True)
    after[np.ix_(local.rows, old)] = R * shares[local.rows]
    order = np.argsort(-(w @ before), kind="stable")
    again = np.argsort(-(w @ after), kind="stable")
    first = mixture.stats_of(model, X, before, w)
    own = refit.MixtureStats.zeros(3, first.S.shape[1])
    own.N, own.S = first.N[old], first.S[old]
    inside = before[:, old] / np.maximum(shares, 1e-300)
    logs = np.log(np.maximum(inside, 1e-300))
    own.entropy = -np.sum((w[:, None] * shares) * inside * logs, axis=0)
    # each with the prior that is learned from all components as they are then
    fitting, fitted = (local.model.learning(at.N, at.S) for at in (stats, own))
    gain = local.bound(fitting, stats) - local.bound(fitted, own)
    new, last = (replace(model, family=at.family) for at in (fitting, fitted))
    brute = mixture.bound(new, X, after[:, again], w)
    brute -= mixture.bound(last, X, before[:, order], w)
    assert gain == pytest.approx(brute, abs=1e-6)


def test_a_component_too_many_is_deleted():
    X, R = extra_component()
    model = FLAT.model(X)
    params = mixture.components(model, X, R)
    _, proposal = propose(refits(X, ("delete",)), model, X, params)
    assert proposal.K == 3
    assert proposal.trial
    np.testing.assert_allclose(np.sort(proposal.params.N), 60.0, rtol=0.05)
    assert np.all(np.diff(proposal.params.N) <= 0.0)
    assert proposal.note[1][0][0] == "delete"


def test_small_groups_in_one_component_are_split():
    """Births alone leave them: the parent stays beside its children, and all merge."""
    for seed in range(6):
        X = blobs(seed, [[0.0, 0.0], [8.5, 0.0]], n=8)
        model = FLAT.model(X)
        job = make_job(ArrayBlocks(X, 20), None, np.random.default_rng(seed))
        fitted = fit(job, Spec(model, n_batches=1))
        start = mixture.components(model, X, labelled(np.repeat([0, 1], 8)))
        known, _ = run(model, X, start)
        assert fitted.history[-1] >= -known.history[-1] - 1e-3


@pytest.mark.parametrize("n_batches", [1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_trials_never_lower_the_bound(n_batches, seed):
    X = CASES["gaussian"].rows(240, seed)
    model, records = CASES["gaussian"].model(X), MoveRecords()
    start = mixture.components(model, X, mixture.some_shares(240, 6, seed))
    moves = (MergeComponents(records), refits(X, records=records, seed=seed))
    result, _ = run(model, X, start, *moves, block_rows=240 // n_batches, step=1e-3)
    falls = np.diff(-np.array(result.history))
    kept = [entry for entry in records.entries if entry.kind != "merge"]
    assert all(entry.change >= 0.0 for entry in kept if entry.accepted)
    assert falls.min() >= -1e-6 * abs(result.history[-1])


def test_nothing_is_refitted_before_convergence_nor_twice(monkeypatch):
    """As it is with rows of which a sample is refitted."""
    monkeypatch.setattr(RefitComponents, "replace_births", lambda *_: False)
    monkeypatch.setattr(RefitComponents, "_shakes", lambda *_: False)
    X, R = extra_component()
    model, move = FLAT.model(X), refits(X)
    params = mixture.components(model, X, R)
    assert propose(move, model, X, params, converged=False)[1] is None
    assert propose(move, model, X, params)[1] is not None
    assert propose(move, model, X, params)[1] is None


def test_few_rows_are_refitted_at_once_and_shattered_at_last():
    X, R = extra_component()
    model, move = FLAT.model(X), refits(X)
    params = mixture.components(model, X, R)
    _, first = propose(move, model, X, params, converged=False)
    assert {kind for kind, _ in first.note[1]} == {"delete"}
    propose(move, model, X, params)
    _, third = propose(move, model, X, params)
    assert {kind for kind, _ in third.note[1]} == {"refit"}
    assert propose(move, model, X, params)[1] is None  # the bound has not risen


def test_pieces_join_where_no_split_or_delete_alone_pays():
    """One component holds two groups, two others share the third."""
    X = blobs(0, THREE)
    labels = np.repeat([0, 0, 1], 60)
    labels[120:] = 1 + (X[120:, 1] > 0.0)
    model = FLAT.model(X)
    params = mixture.components(model, X, labelled(labels))
    move = refits(X)
    region = move._region(model, params)
    found = [move._shattered(region, k) for k in range(3) for _ in range(4)]
    best = max((each for each in found if each), key=lambda each: each.gain)
    assert best.gain > 10.0
    np.testing.assert_allclose(np.sort(best.stats.N), 60.0, atol=2.0)


def test_components_of_one_size_are_known_by_their_place():
    N, S = np.array([50.0, 50.0, 50.1]), np.array([[1.0, 2.0], [9.0, 1.0], [1.0, 2.0]])
    marks = refit._marks(N, S)
    known = refit._known(marks, marks[:1].tolist())
    assert known.tolist() == [True, False, True]
    assert not refit._known(marks, []).any()


def test_only_what_the_user_allows_is_tried():
    X, R = extra_component()
    model = FLAT.model(X)
    params = mixture.components(model, X, R)
    assert propose(refits(X, ("birth",)), model, X, params)[1] is None
    X = blobs(0, THREE)
    params = mixture.components(model, X, np.ones((180, 1)))
    found = propose(refits(X, ("birth",)), model, X, params)[1]
    assert found.K == 3
    capped = refits(X, ("birth",), max_components=2)
    assert propose(capped, model, X, params)[1].K == 2
    capped = refits(X, ("birth",), max_components=1)
    assert propose(capped, model, X, params)[1] is None


def test_rows_of_a_stream_stay_where_they_are():
    X, R = extra_component()
    model, move = FLAT.model(X), refits(X)
    params = mixture.components(model, X, R)
    total = one_pass(model, X, params)
    total.seen[0] -= 1.0
    updated = model.update(params, total)
    assert move.propose(Position(model, params, total, updated, True)) is None


def test_trials_end_after_failures():
    X, R = extra_component()
    model, move = FLAT.model(X), refits(X)
    note = (1, (("delete", 0),))
    for _ in range(3):
        move.on_outcome(note, 1.0, False)
    params = mixture.components(model, X, R)
    assert propose(move, model, X, params)[1] is None
    move.on_outcome(note, -1.0, True)
    assert propose(move, model, X, params)[1] is not None
    kinds = [(entry.kind, entry.accepted) for entry in move.records.entries]
    assert kinds == [("delete", False)] * 3 + [("delete", True)]


def test_deletes_are_found_on_samples(monkeypatch):
    """Of many rows some are looked at; the pass over all of them decides."""
    monkeypatch.setattr(refit, "_MOST_ROWS", 300)
    X = blobs(0, THREE, n=400)
    labels = np.repeat([0, 2, 3], 400)
    labels[:400] = X[:400, 0] > 0.0
    model, records = FLAT.model(X), MoveRecords()
    start = mixture.components(model, X, labelled(labels))
    move = refits(X, ("delete",), records=records)
    result, _ = run(model, X, start, move, block_rows=200, step=1.0)
    assert result.params.K == 3
    assert [(entry.kind, entry.accepted) for entry in records.entries] == [
        ("delete", True)
    ]
