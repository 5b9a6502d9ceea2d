"""penalty_for and penalty_path."""

import numpy as np
import pytest

import reference
from kplus import DPMeans, penalty_for, penalty_path
from kplus.dp_means.penalty_path import PenaltyPath


@pytest.mark.parametrize("K", [1, 2, 3, 8, 20])
@pytest.mark.parametrize(("offset", "rel"), [(0.0, 1e-12), (100.0, 1e-12), (1e6, 1e-8)])
@pytest.mark.parametrize("weighted", [False, True])
def test_penalty_for_is_farthest_first(K, offset, rel, weighted):
    rng = np.random.default_rng(K)
    X = rng.normal(size=(60, 3)) + offset
    weights = rng.integers(0, 3, len(X)) if weighted else None
    penalty = penalty_for(X, K, sample_weight=weights)
    assert isinstance(penalty, float)
    expected = reference.farthest_first(X, K, weights)
    assert penalty == pytest.approx(expected, rel=rel)


def test_penalty_for_by_hand():
    """Mean 12; farthest 40 (784), then 0 (144), then 8 (16)."""
    X = [[0.0], [0.0], [8.0], [40.0]]
    assert [penalty_for(X, K) for K in (1, 2, 3)] == [784.0, 144.0, 16.0]


def test_penalty_for_with_weights():
    X = np.random.default_rng(0).normal(size=(40, 2))
    weights = np.random.default_rng(1).integers(0, 3, 40)
    copies = np.repeat(X, weights, axis=0)
    weighted = penalty_for(X, 4, sample_weight=weights)
    assert weighted == pytest.approx(penalty_for(copies, 4), rel=1e-12)


def test_penalty_for_falls_with_the_number():
    X = np.random.default_rng(0).normal(size=(50, 2))
    penalties = [penalty_for(X, K) for K in range(1, 50)]
    assert np.all(np.diff(penalties) <= 0.0)
    assert penalties[-1] > 0.0


def test_penalty_for_clear_groups_gives_them(blobs):
    assert DPMeans(penalty_for(blobs, 4)).fit(blobs).n_clusters_ == 4


def test_penalty_for_names_values_that_are_not_finite(blobs):
    X = blobs.copy()
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        penalty_for(X, 3)


# -------------------------------------------------------------------- penalty_path


def test_path_of_clear_groups(blobs):
    path = penalty_path(DPMeans(), blobs)
    assert isinstance(path, PenaltyPath)
    assert path.n_clusters[path.chosen] == 4
    assert path.n_clusters[0] == 1
    total = np.sum((blobs - blobs.mean(axis=0)) ** 2)
    assert path.sse[0] == pytest.approx(total, rel=1e-9)
    at = path.n_clusters.tolist().index(4)
    expected = DPMeans(n_clusters=4).fit(blobs).objective_
    assert path.sse[at] == pytest.approx(expected, rel=1e-3)


def test_path_is_that_of_an_automatic_fit(blobs):
    path, fitted = penalty_path(DPMeans(), blobs), DPMeans().fit(blobs).path_
    for name, value in vars(path).items():
        np.testing.assert_array_equal(value, getattr(fitted, name))


def test_path_goes_as_far_as_asked(blobs):
    for most in (1, 2, 3, 7):
        path = penalty_path(DPMeans(), blobs, max_clusters=most)
        assert path.n_clusters[-1] <= most
    far = penalty_path(DPMeans(), blobs)
    assert far.n_clusters[-1] <= 2 * np.sqrt(len(blobs))


@pytest.mark.parametrize("max_clusters", [1, 2, 3])
def test_max_clusters_caps_the_automatic_choice(blobs, max_clusters):
    assert DPMeans(max_clusters=max_clusters).fit(blobs).n_clusters_ <= max_clusters


def test_path_scales_with_the_data(blobs):
    one, four = penalty_path(DPMeans(), blobs), penalty_path(DPMeans(), 2.0 * blobs)
    np.testing.assert_array_equal(one.n_clusters, four.n_clusters)
    np.testing.assert_allclose(four.sse, 4.0 * one.sse, rtol=1e-12)
    np.testing.assert_allclose(four.penalty, 4.0 * one.penalty, rtol=1e-12)


def test_path_with_weights_equals_copies(blobs):
    weights = np.random.default_rng(0).integers(1, 3, len(blobs))
    copies = np.repeat(blobs, weights, axis=0)
    weighted = penalty_path(DPMeans(), blobs, sample_weight=weights, max_clusters=8)
    repeated = penalty_path(DPMeans(), copies, max_clusters=8)
    np.testing.assert_array_equal(weighted.n_clusters, repeated.n_clusters)
    np.testing.assert_allclose(weighted.sse, repeated.sse, rtol=1e-9)
    np.testing.assert_allclose(weighted.bic, repeated.bic, rtol=1e-9)


def test_the_estimator_is_left_alone(blobs):
    model = DPMeans(random_state=0)
    penalty_path(model, blobs)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("K", [2, 3, 5, 8])
@pytest.mark.parametrize("D", [2, 10])
def test_the_automatic_number_of_round_groups(K, D):
    rng = np.random.default_rng(10 * K + D)
    centers = 12.0 * rng.permutation(np.eye(max(K, D))[:K, :D] + np.arange(K)[:, None])
    sizes = rng.integers(40, 120, K)
    X = np.repeat(centers, sizes, axis=0) + rng.normal(size=(sizes.sum(), D))
    assert DPMeans().fit(X).n_clusters_ == K


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_paths_of_very_few_rows(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    path = penalty_path(DPMeans(), X)
    assert 1 <= path.n_clusters[path.chosen] <= n
    assert 0.0 < path.penalty < np.inf
    model = DPMeans().fit(X)
    assert np.isfinite(model.objective_)
