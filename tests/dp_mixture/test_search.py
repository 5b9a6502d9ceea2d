"""The search for mixtures: starts, batches, streams, and what is asked of a fit."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

import mixture_reference as mixture
from jobs import make_job
from kplus import DPMixture
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture.search import (
    Spec,
    fit,
    log_densities,
    log_responsibilities,
    prior_sample,
    stream,
)
from kplus.dp_mixture.sticks import mean_weights
from mixture_reference import CASES, DIAG, FLAT, THREE, blobs, labelled


def job_of(X, seed=0, block_rows=20, weights=None, **more):
    blocks = ArrayBlocks(X, block_rows)
    return make_job(blocks, weights, np.random.default_rng(seed), **more)


def alike(labels, groups):
    """Whether two labellings are the same but for names."""
    pairs = set(zip(labels, groups, strict=True))
    return len(pairs) == len(set(labels)) == len(set(groups))


GROUPS = np.repeat(np.arange(3), 60)


@pytest.mark.parametrize("case", [FLAT, DIAG])
@pytest.mark.parametrize("n_batches", [1, 4])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("learns", [False, True], ids=["fixed", "learned"])
def test_groups_are_found_from_one_component(case, n_batches, seed, learns):
    X = blobs(seed, THREE)
    model = case.model(X, learns=learns)
    fitted = fit(job_of(X, seed), Spec(model, n_batches=n_batches))
    assert fitted.converged
    if learns and fitted.params.K != 3:  # a row far out may be worth a component
        start = mixture.components(model, X, labelled(GROUPS))
        three = mixture.run(model, X, start, max_iter=500)[0]
        assert fitted.history[-1] > -three.history[-1]
        return
    assert fitted.params.K == 3
    assert alike(fitted.labels, GROUPS)
    assert fitted.total.N.sum() == pytest.approx(180.0, rel=1e-12)
    assert np.all(np.isfinite(fitted.history))


def test_the_bound_is_that_of_the_responsibilities_at_the_end():
    X = CASES["gaussian"].rows(200)
    model = CASES["gaussian"].model(X)
    fitted = fit(job_of(X), Spec(model, n_batches=5))
    logs = log_responsibilities(ArrayBlocks(X, 30), fitted.params)
    R = np.exp(np.vstack(list(logs)))
    np.testing.assert_allclose(R.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(np.argmax(R, axis=1), fitted.labels)
    expected = mixture.stats_of(model, X, R)
    np.testing.assert_allclose(fitted.total.N, expected.N, rtol=1e-9)
    assert fitted.history[-1] == model.bound(fitted.params, fitted.total)
    model = model.at(fitted.params)
    brute = mixture.bound(model, X, R)
    assert model.best_bound(fitted.total) == pytest.approx(brute, rel=1e-10)
    assert np.all(np.diff(fitted.params.N) <= 0.0)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_give_the_same_bits(threads):
    X = CASES["gaussian"].rows(300)
    model = CASES["gaussian"].model(X)
    one, other = (
        fit(job_of(X, n_threads=n, block_rows=30), Spec(model, n_batches=3))
        for n in (1, threads)
    )
    np.testing.assert_array_equal(one.history, other.history)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.params.S, other.params.S)
    assert one.records == other.records


def test_the_same_seed_gives_the_same_fit():
    X = CASES["diag_gaussian"].rows(150)
    model = CASES["diag_gaussian"].model(X)
    one, other = (fit(job_of(X, 5), Spec(model)) for _ in range(2))
    np.testing.assert_array_equal(one.history, other.history)


def test_whole_weights_are_rows_repeated():
    X = blobs(0, THREE)
    weights = np.tile([1.0, 2.0, 0.0], 60)
    copies = np.repeat(np.arange(180), weights.astype(int))
    model = FLAT.model(X[copies])
    start = mixture.components(model, X[copies], labelled(GROUPS[copies]))
    spec = Spec(model, kinds=("merge",), n_batches=1)
    one = fit(job_of(X, weights=weights), spec, start)
    other = fit(job_of(X[copies]), spec, start)
    assert one.history[-1] == pytest.approx(other.history[-1], rel=1e-10)
    np.testing.assert_array_equal(one.labels[copies], other.labels)


@pytest.mark.parametrize("name", ["gaussian", "categorical"])
def test_one_row(name):
    X = CASES[name].rows(30)
    model = CASES[name].model(X)
    fitted = fit(job_of(X[:1]), Spec(model))
    assert fitted.params.K == 1
    np.testing.assert_array_equal(fitted.labels, [0])
    assert np.isfinite(fitted.history[-1])


def test_equal_rows():
    X = np.tile([[3.0, 4.0]], (40, 1))
    model = FLAT.model(X)
    fitted = fit(job_of(X), Spec(model))
    assert fitted.params.K == 1
    assert fitted.converged


def test_a_start_of_several_components():
    X = blobs(0, THREE)
    spec = Spec(FLAT.model(X), n_components=6, kinds=())
    fitted = fit(job_of(X, max_iter=3), spec)
    assert fitted.params.K == 6
    assert len(fitted.history) == 3
    assert not fitted.records


def test_callbacks_receive_bounds():
    X, bounds = blobs(0, THREE), []

    def callback(info):
        bounds.append(info.objective)
        return len(bounds) == 4

    fitted = fit(job_of(X, callback=callback), Spec(FLAT.model(X)))
    assert len(bounds) == 4
    np.testing.assert_array_equal(fitted.history[:3], bounds[:3])
    assert not fitted.converged


def test_every_move_is_in_the_records():
    X = CASES["gaussian"].rows(300)
    model = CASES["gaussian"].model(X)
    fitted = fit(job_of(X), Spec(model, n_components=8))
    kinds = {entry.kind for entry in fitted.records}
    assert kinds <= {"birth", "merge", "delete", "refit"}
    assert "merge" in kinds
    passes = [entry.iteration for entry in fitted.records]
    assert min(passes) >= 1
    assert max(passes) <= len(fitted.history)
    assert all(np.isfinite(entry.change) for entry in fitted.records)


# ------------------------------------------------------------------------- streams


def in_place(model, params):
    """Components in an order that does not depend on their numbers."""
    means = model.family.attributes(params.N, params.S)["means_"]
    return np.argsort(means @ [1.0, 2.0])


def test_a_stream_is_exact_on_all_that_was_seen():
    """Batches that come one by one; the bound is that of all responsibilities."""
    X = blobs(0, THREE)[np.random.default_rng(0).permutation(180)]
    model = replace(FLAT.model(X), learns=False)
    spec = Spec(model, kinds=(), n_batches=3)
    start = mixture.components(model, X[:60], mixture.some_shares(60, 3))
    first = fit(job_of(X[:60]), spec, start)
    later = stream(job_of(X[60:]), spec, first.params, first.total)
    assert later.total.mass == 180.0
    assert later.total.N.sum() == pytest.approx(180.0, rel=1e-12)
    R = np.zeros((180, 3))
    parts = (slice(60), first.params), (slice(60, 180), later.params)
    for rows, params in parts:
        logs = log_responsibilities(ArrayBlocks(X[rows]), params)
        R[rows] = np.exp(np.vstack(list(logs)))[:, in_place(model, params)]
    best = model.best_bound(later.total)
    moved = later.total.regroup(np.argsort(in_place(model, later.params)), 3)
    brute = mixture.bound(model, X, R)
    assert model.best_bound(moved) == pytest.approx(brute, rel=1e-9)
    assert best >= model.best_bound(moved)
    assert len(later.labels) == 120


@pytest.mark.parametrize("seed", range(3))
def test_births_keep_working_in_a_stream(seed):
    """The second batch brings two groups besides that of the first."""
    first, second = blobs(seed, THREE[:1]), blobs(seed + 9, THREE)
    model = FLAT.model(np.vstack([first, second]))
    fitted = fit(job_of(first), Spec(model, n_batches=2))
    assert fitted.params.K == 1
    spec = Spec(model, n_batches=2)
    fitted = stream(job_of(second, seed), spec, fitted.params, fitted.total)
    np.testing.assert_allclose(fitted.params.N, [120.0, 60.0, 60.0], atol=1.0)


def test_groups_that_come_one_by_one_are_born():
    """Each batch is a group of its own, which the component so far does not suit."""
    parts = [blobs(k, [center]) for k, center in enumerate(THREE)]
    model = FLAT.model(np.vstack(parts))
    spec = Spec(model, n_batches=2)
    fitted = fit(job_of(parts[0]), spec)
    for seen, part in enumerate(parts[1:], start=1):
        fitted = stream(job_of(part, seen), spec, fitted.params, fitted.total)
        np.testing.assert_allclose(fitted.params.N, np.full(seen + 1, 60.0), atol=1.0)


# ------------------------------------------------------------------- what is asked


def test_densities_are_mixtures_of_predictives():
    X = CASES["gaussian"].rows(120)
    model = CASES["gaussian"].model(X)
    fitted = fit(job_of(X), Spec(model))
    N, S = fitted.total.N, fitted.total.S
    found = log_densities(ArrayBlocks(X, 25), model.family, N, S, 1.0)
    weights = mean_weights(N, 1.0) / mean_weights(N, 1.0).sum()
    parts = model.family.log_predictive(N, S, X)
    np.testing.assert_allclose(found, logsumexp(parts, b=weights, axis=1), rtol=1e-12)


def test_the_prior_is_resolved_on_the_rows():
    case = CASES["gaussian"]
    X, columns = case.rows(100), mixture.Columns("abc", case.levels)

    def resolved(job):
        sample = prior_sample(job)
        return case.likelihood.resolve(sample.rows, sample.weights, columns)

    np.testing.assert_allclose(resolved(job_of(X)).origin, X.mean(axis=0), rtol=1e-12)
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 100)
    weighted = resolved(job_of(X, weights=weights))
    expected = np.average(X, axis=0, weights=weights)
    np.testing.assert_allclose(weighted.origin, expected, rtol=1e-12)


@pytest.mark.parametrize("n_active", [2, 4])
def test_sparse_fits_find_the_same_groups(n_active):
    centers = np.random.default_rng(0).uniform(-40.0, 40.0, size=(12, 2))
    X = blobs(1, centers, n=40)
    model = FLAT.model(X)
    groups = np.repeat(np.arange(12), 40)
    start = mixture.components(model, X, 0.99 * labelled(groups) + 0.01 / 12)
    spec = Spec(model, kinds=(), n_batches=6)
    dense = fit(job_of(X), spec, start)
    sparse = fit(
        job_of(X), replace(spec, model=replace(model, n_active=n_active)), start
    )
    assert alike(sparse.labels, dense.labels)
    assert sparse.history[-1] <= dense.history[-1] + 1e-6
    assert sparse.history[-1] == pytest.approx(dense.history[-1], rel=0.02)


def test_a_group_that_one_column_tells_is_found_though_one_component_learns_a_prior():
    """Where all rows make one component, its prior soon forbids to split it."""
    rng = np.random.default_rng(101)
    y = rng.integers(0, 2, 3000)
    X = rng.normal(size=(3000, 100))
    X[:, 50] += 10.0 * y
    found = DPMixture(random_state=1).fit(X)
    assert found.n_components_ == 2
    assert np.mean(found.labels_ == y) in (0.0, 1.0)
