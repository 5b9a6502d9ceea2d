"""The searches of DP-means: seeds, by penalty, by number, by path, streams."""

import numpy as np
import pytest

import reference
from jobs import make_job
from kplus.core.errors import NotFiniteError
from kplus.core.job import Sample
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means import search
from kplus.dp_means.params import Scaling
from kplus.dp_means.resolutions import choose
from kplus.dp_means.search import Fitted, plus_plus

PLAIN = Scaling(np.zeros(2), 1.0)


def rows(seed=0, n=150, D=2):
    return np.random.default_rng(seed).normal(scale=3.0, size=(n, D))


def job(X, weights=None, seed=0, **more):
    source = ArrayBlocks(X, 32)
    return make_job(source, weights, np.random.default_rng(seed), **more)


def scaled_sample(X, weights=None):
    """All rows as a sample in scaled units."""
    return Sample(Scaling.fit(X).transform(X), weights, 1.0)


# ------------------------------------------------------------------------- seeds


def test_seeds_are_rows_with_weight_each_once():
    X, weights = rows(), np.repeat([1.0, 0.0], 75)
    C = plus_plus(scaled_sample(X, weights), np.random.default_rng(0), 75)
    assert len(np.unique(C, axis=0)) == 75
    expected = scaled_sample(X, weights).rows[:75]
    np.testing.assert_array_equal(np.unique(C, axis=0), np.unique(expected, axis=0))


def test_seeds_stop_where_no_row_costs_more_than_the_penalty():
    sample = scaled_sample(rows())
    for penalty in (0.01, 0.1, 1.0):
        C = plus_plus(sample, np.random.default_rng(1), 1000, penalty)
        assert reference.nearest(sample.rows, C)[1].max() <= penalty
        gaps = reference.square_distances(C, C) + np.diag([np.inf] * len(C))
        assert len(C) == 1 or gaps.min() > penalty


def test_seeds_run_out_of_distinct_rows():
    sample = scaled_sample(np.repeat(rows(n=4), 5, axis=0))
    assert len(plus_plus(sample, np.random.default_rng(0), 10)) == 4


# ------------------------------------------------------------------------ searches


@pytest.mark.parametrize("n", [1, 2, 30, 150, 2500])
@pytest.mark.parametrize("random_start", [False, True])
def test_by_penalty_converges(n, random_start):
    X = rows(n=n)
    fit = search.by_rows(job(X, tol=0.0), random_start, penalty=4.0)
    assert fit.converged
    np.testing.assert_array_equal(fit.labels, reference.nearest(X, fit.centers)[0])
    assert not reference.wants_cluster(X, fit.centers, 4.0 + 1e-9).any()
    objective = reference.objective(X, fit.labels, fit.centers, 4.0)
    assert fit.objective == pytest.approx(objective, rel=1e-10)
    assert fit.counts.sum() == n
    assert fit.errors.sum() == pytest.approx(objective - 4.0 * (len(fit.centers) - 1))


@pytest.mark.parametrize("random_start", [False, True])
@pytest.mark.parametrize("K", [1, 2, 7, 30])
def test_by_number_has_that_number(K, random_start):
    X = rows(n=150)
    fit = search.by_number(job(X, tol=0.0), random_start, n_clusters=K)
    assert fit.centers.shape == (K, 2)
    assert np.all(np.bincount(fit.labels, minlength=K) == fit.counts)
    assert np.all(fit.counts > 0)
    error = reference.squared_error(X, fit.labels, fit.centers)
    assert fit.objective == pytest.approx(error, rel=1e-10)


def test_a_start_is_where_the_fit_begins():
    X = rows()
    fit = search.by_number(job(X, tol=0.0), n_clusters=5)
    again = search.by_number(job(X, tol=0.0), n_clusters=5, start=fit.centers)
    np.testing.assert_array_equal(again.labels, fit.labels)
    np.testing.assert_allclose(again.centers, fit.centers, rtol=1e-12)
    assert len(again.history) <= 4


def test_fitted_at_another_penalty():
    none, history = np.zeros(0), np.array([5.0, 0.6])
    fit = Fitted(
        PLAIN, np.zeros((3, 1)), none, none, none, none, 0.0, history, converged=True
    )
    charged = fit.at_penalty(10.0)
    np.testing.assert_array_equal(charged.history, [25.0, 20.6])
    assert (charged.objective, charged.penalty) == (20.6, 10.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("threads", [1, 2])
def test_assign_and_distances(seed, threads):
    rng = np.random.default_rng(seed)
    X, C = rows(seed) + 1e6, rows(seed + 50, int(rng.integers(1, 40))) + 1e6
    weights = [None, rng.uniform(0, 2, len(X))][seed % 2]
    scaling = Scaling.fit(X)
    job = make_job(ArrayBlocks(X, 32), weights, rng, threads)
    assigned = search.assign(job, scaling, C)
    expected, d2 = reference.nearest(X, C)
    np.testing.assert_array_equal(assigned.labels, expected)
    w = reference.weights_or_ones(X, weights)
    assert assigned.objective == pytest.approx(np.sum(w * d2), rel=1e-9)
    counts = np.bincount(expected, weights=w, minlength=len(C))
    np.testing.assert_allclose(assigned.counts, counts, atol=1e-12)
    means = reference.means(X, expected, len(C), w)
    np.testing.assert_allclose(assigned.means[counts > 0], means[counts > 0], rtol=1e-9)
    np.testing.assert_allclose(
        search.distances(ArrayBlocks(X, 32), C, np.arange(len(C))),
        np.sqrt(reference.square_distances(X, C)),
        rtol=1e-8,
    )


def test_path_of_a_sample_speaks_of_all_rows():
    """40,000 rows: the path comes from 20,000 of them, its SSE is that of all."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0], [30, 0], [0, 30]])
    X = centers[rng.integers(0, 3, 40_000)] + rng.normal(size=(40_000, 2))
    path = choose(job(X), 6).path
    assert path.n_clusters[path.chosen] == 3
    total = np.sum((X - X.mean(axis=0)) ** 2)
    assert path.sse[0] == pytest.approx(total, rel=0.02)


def test_a_stream_counts_earlier_rows_at_their_means():
    X = rows(1, 40)
    means, mass = np.array([[0.0, 0.0], [8.0, 8.0]]), np.array([30.0, 10.0])
    centers = means + 0.3
    fit = search.stream(job(X, tol=0.0), np.inf, np.inf, PLAIN, centers, means, mass)
    old = np.repeat(means, [30, 10], axis=0)
    both = np.vstack([old, X])
    labels = np.concatenate([np.repeat([0, 1], [30, 10]), fit.labels])
    np.testing.assert_allclose(fit.centers, reference.means(both, labels, 2), rtol=1e-9)
    error = reference.squared_error(both, labels, fit.centers)
    assert fit.errors.sum() == pytest.approx(error, rel=1e-9)


def test_bad_values_are_found_in_samples():
    X = rows()
    X[7, 1] = np.nan
    for call in (
        lambda: search.by_rows(job(X), penalty=1.0),
        lambda: search.by_number(job(X), n_clusters=3),
        lambda: choose(job(X)),
    ):
        with pytest.raises(NotFiniteError):
            call()
