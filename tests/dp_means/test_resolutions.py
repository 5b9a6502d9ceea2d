"""The automatic choice: number and shape, and whether it is clear."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from kplus import DPMeans
from kplus.datasets import make_spherical_mixture
from kplus.dp_means.resolutions import _rand


def moons(n=600):
    rng = np.random.default_rng(0)
    angle = rng.uniform(0.0, np.pi, n)
    one = np.column_stack([np.cos(angle), np.sin(angle)])
    one += rng.normal(0.0, 0.08, (n, 2))
    return np.concatenate([one, [1.0, 0.4] - one]), np.repeat([0, 1], n)


def auto(X, **settings):
    return DPMeans(random_state=0, **settings).fit(X)


@pytest.mark.parametrize(("K", "D"), [(2, 1), (5, 2), (20, 2), (6, 10)])
def test_round_groups_are_clear(K, D):
    X, y = make_spherical_mixture(100 * K, D, K, separation=8, random_state=1)
    model = auto(X)
    assert model.n_clusters_ == K
    assert model.path_.is_clear
    assert not hasattr(model, "cell_centers_")
    assert adjusted_rand_score(y, model.labels_) > 0.98
    assert model.path_.n_clusters[model.path_.chosen] == K
    assert K not in model.path_.runners_up


def test_other_shapes_are_made_of_cells():
    X, y = moons()
    model = auto(X)
    assert adjusted_rand_score(y, model.labels_) > 0.98
    assert hasattr(model, "cell_centers_")
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert not hasattr(auto(X, cells=None), "cell_centers_")
    assert not hasattr(auto(X, n_clusters=2), "cell_centers_")


def test_a_stream_begins_with_round_clusters():
    X, _ = moons(300)
    stream = DPMeans(random_state=0).partial_fit(X).partial_fit(X)
    assert stream.cluster_sizes_.sum() == 2 * len(X)
    with pytest.raises(ValueError, match="cells=None"):
        auto(X).partial_fit(X)


@pytest.mark.parametrize("D", [1, 2, 5])
def test_one_group(D):
    X = np.random.default_rng(0).normal(size=(600, D))
    assert auto(X).n_clusters_ == 1
    assert auto(np.round(30 * X)).n_clusters_ == 1


def test_what_overlaps_is_not_clear():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    X[:400] = 1.7 * X[:400] + [3.2, 2.6]
    model = auto(X)
    assert not model.path_.is_clear
    assert len(model.path_.runners_up)
    assert {1, 2} <= {model.n_clusters_, *model.path_.runners_up.tolist()}


def test_a_cap_and_few_rows():
    X, _ = make_spherical_mixture(300, 2, 6, separation=8, random_state=0)
    assert auto(X, max_clusters=3).n_clusters_ <= 3
    for n in range(1, 12):
        model = auto(X[:n])
        assert 1 <= model.n_clusters_ <= n
        np.testing.assert_array_equal(model.predict(X[:n]), model.labels_)
    assert auto(np.ones((50, 2))).n_clusters_ == 1


def test_the_index_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for K in (1, 2, 7):
        (a, b), ones = rng.integers(0, K, (2, 60)), np.ones(60)
        assert _rand(a, b, ones) == pytest.approx(adjusted_rand_score(a, b))
        assert _rand(a, a, ones) == 1.0
        counts = rng.integers(1, 5, 60)
        copies = adjusted_rand_score(np.repeat(a, counts), np.repeat(b, counts))
        assert _rand(a, b, counts.astype(float)) == pytest.approx(copies)
