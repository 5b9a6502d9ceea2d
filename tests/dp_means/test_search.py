"""The searches under DPMeans: samples, seeds, splits, swaps, restarts, streams."""

from dataclasses import replace

import numpy as np
import pytest

import reference
from jobs import make_job
from kplus.core.errors import NotFiniteError
from kplus.core.job import Sample, best_of, draw
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means import search
from kplus.dp_means.params import Scaling
from kplus.dp_means.search import Fitted, plus_plus
from kplus.dp_means.splits import grow, swap

PLAIN = Scaling(np.zeros(2), 1.0)


def rows(seed=0, n=150, D=2):
    return np.random.default_rng(seed).normal(scale=3.0, size=(n, D))


def job(X, weights=None, seed=0, **more):
    source = ArrayBlocks(X, 32)
    return make_job(source, weights, np.random.default_rng(seed), **more)


def seen(X, weights=None):
    """All rows as a sample in scaled units."""
    return Sample(Scaling.fit(X).transform(X), weights, 1.0)


# ----------------------------------------------------------------------- samples


def test_few_rows_are_all_taken():
    X, weights = rows(n=20), np.arange(1.0, 21.0)
    sample = draw(ArrayBlocks(X, 8), weights, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(sample.rows, X)
    np.testing.assert_array_equal(sample.weights, weights)
    assert sample.share == 1.0


def test_a_sample_is_rows_in_order_each_once():
    X = np.arange(1000.0)[:, None]
    weights = X[:, 0] + 1.0
    sample = draw(ArrayBlocks(X, 64), weights, 100, np.random.default_rng(0))
    assert sample.n_rows == 100
    assert sample.share == 0.1
    assert np.all(np.diff(sample.rows[:, 0]) > 0)
    np.testing.assert_array_equal(sample.weights, sample.rows[:, 0] + 1.0)
    again = draw(ArrayBlocks(X, 7), weights, 100, np.random.default_rng(0))
    np.testing.assert_array_equal(sample.rows, again.rows)


def test_rows_of_no_weight_are_not_drawn():
    X = np.arange(1000.0)[:, None]
    weights = (X[:, 0] >= 900).astype(float)
    for size, share in ((50, 0.5), (100, 1.0), (500, 1.0)):
        sample = draw(ArrayBlocks(X, 64), weights, size, np.random.default_rng(0))
        assert sample.n_rows == min(size, 100)
        assert sample.rows.min() >= 900
        assert sample.share == share


def test_samples_are_even():
    X = np.arange(200.0)[:, None]
    hits = np.zeros(200)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        hits[draw(ArrayBlocks(X), None, 50, rng).rows[:, 0].astype(int)] += 1
    assert abs(hits / 300 - 0.25).max() < 0.12


# ------------------------------------------------------------------------- seeds


def test_seeds_are_rows_with_weight_each_once():
    X, weights = rows(), np.repeat([1.0, 0.0], 75)
    C = plus_plus(seen(X, weights), np.random.default_rng(0), 75)
    assert len(np.unique(C, axis=0)) == 75
    expected = seen(X, weights).rows[:75]
    np.testing.assert_array_equal(np.unique(C, axis=0), np.unique(expected, axis=0))


def test_seeds_stop_where_no_row_costs_more_than_the_penalty():
    sample = seen(rows())
    for penalty in (0.01, 0.1, 1.0):
        C = plus_plus(sample, np.random.default_rng(1), 1000, penalty)
        assert reference.nearest(sample.rows, C)[1].max() <= penalty
        gaps = reference.square_distances(C, C) + np.diag([np.inf] * len(C))
        assert len(C) == 1 or gaps.min() > penalty


def test_seeds_run_out_of_distinct_rows():
    sample = seen(np.repeat(rows(n=4), 5, axis=0))
    assert len(plus_plus(sample, np.random.default_rng(0), 10)) == 4


# ---------------------------------------------------------------- splits and swaps


@pytest.mark.parametrize("weighted", [False, True])
def test_growth_passes_through_every_number(weighted):
    X = rows(n=90)
    weights = np.random.default_rng(0).uniform(0.1, 2.0, 90) if weighted else None
    sample = seen(X, weights)
    path = grow(sample, 12, lambda K: 1, 1e-6)
    np.testing.assert_array_equal(path.K, np.arange(1, 13))
    assert np.all(np.diff(path.sse) < 0.0)
    labels, d2 = reference.nearest(sample.rows, path.centers)
    w = sample.weight()
    assert path.sse[-1] == pytest.approx(np.sum(w * d2), rel=1e-9)
    shares = np.bincount(labels, weights=w) / w.sum()
    entropy = -w.sum() * np.sum(shares * np.log(shares))
    assert path.entropy[-1] == pytest.approx(entropy, rel=1e-9)
    whole = reference.squared_error(
        sample.rows, 0 * labels, reference.means(sample.rows, 0 * labels, 1, w), w
    )
    assert path.sse[0] == pytest.approx(whole, rel=1e-9)


def test_growth_stops_at_distinct_rows():
    path = grow(seen(np.repeat(rows(n=3), 7, axis=0)), 10, lambda K: 1, 1e-6)
    assert path.K[-1] == 3
    assert path.sse[-1] <= 1e-25


@pytest.mark.parametrize("seed", range(4))
def test_swaps_never_make_it_worse(seed):
    sample = seen(rows(seed, 200))
    C = plus_plus(sample, np.random.default_rng(seed), 12)
    after = swap(sample, C, 1e-6)
    assert after.shape == C.shape
    before = reference.nearest(sample.rows, C)[1].sum()
    assert reference.nearest(sample.rows, after)[1].sum() <= before


def test_swaps_mend_a_bad_start():
    """Three groups, two centres in one of them and one between the others."""
    rng = np.random.default_rng(0)
    groups = np.repeat([[0.0, 0.0], [20.0, 0.0], [20.0, 20.0]], 30, axis=0)
    sample = seen(groups + rng.normal(size=(90, 2)))
    bad = np.array([sample.rows[0], sample.rows[1], sample.rows[30:].mean(axis=0)])
    after = swap(sample, bad, 1e-6)
    labels = reference.nearest(sample.rows, after)[0].reshape(3, 30)
    assert [len(set(part)) for part in labels] == [1, 1, 1]
    assert len(set(labels[:, 0])) == 3


# ------------------------------------------------------------------------ searches


@pytest.mark.parametrize("n", [1, 2, 30, 150, 2500])
@pytest.mark.parametrize("random_start", [False, True])
def test_by_penalty_converges(n, random_start):
    X = rows(n=n)
    fit = search.by_penalty(job(X, tol=0.0), random_start, penalty=4.0)
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
    fit = replace(fake(0.6), centers=np.zeros((3, 1)), history=np.array([5.0, 0.6]))
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
    shown = search.assign(job, scaling, C)
    expected, d2 = reference.nearest(X, C)
    np.testing.assert_array_equal(shown.labels, expected)
    w = reference.weights_or_ones(X, weights)
    assert shown.objective == pytest.approx(np.sum(w * d2), rel=1e-9)
    counts = np.bincount(expected, weights=w, minlength=len(C))
    np.testing.assert_allclose(shown.counts, counts, atol=1e-12)
    means = reference.means(X, expected, len(C), w)
    np.testing.assert_allclose(shown.means[counts > 0], means[counts > 0], rtol=1e-9)
    np.testing.assert_allclose(
        search.distances(ArrayBlocks(X, 32), C),
        np.sqrt(reference.square_distances(X, C)),
        rtol=1e-8,
    )


def test_path_of_a_sample_speaks_of_all_rows():
    """40,000 rows: the path comes from 20,000 of them, its SSE is that of all."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0], [30, 0], [0, 30]])
    X = centers[rng.integers(0, 3, 40_000)] + rng.normal(size=(40_000, 2))
    path = search.find_path(job(X), 6)
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
        lambda: search.by_penalty(job(X), penalty=1.0),
        lambda: search.by_number(job(X), n_clusters=3),
        lambda: search.find_path(job(X)),
    ):
        with pytest.raises(NotFiniteError):
            call()


# ------------------------------------------------------------------------ restarts


def fake(objective):
    empty = np.zeros(0)
    return Fitted(
        PLAIN, empty, empty, empty, empty, empty, 0.0, np.array([objective]), True
    )


@pytest.mark.parametrize("threads", [1, 3])
def test_the_best_start_wins_and_the_first_among_equals(threads):
    fits = [fake(value) for value in (3.0, 1.0, 2.0, 1.0)]
    calls = []

    def fit(part, again):
        calls.append((again, part.n_threads, part.callback))
        return fits[int(part.rng.bit_generator.seed_seq.spawn_key[-1])]

    whole = job(rows(), n_threads=threads, callback=lambda info: False)
    assert best_of(4, whole, fit) is fits[1]
    assert [again for again, *_ in sorted(calls, key=lambda c: c[0])] == [
        False,
        *[True] * 3,
    ]
    assert all(n == 1 for _, n, _ in calls)
    assert sum(callback is whole.callback for *_, callback in calls) == 1


def test_a_single_start_uses_all_threads():
    whole = job(rows(), n_threads=3)
    assert best_of(1, whole, lambda part, again: (part, again)) == (whole, False)
