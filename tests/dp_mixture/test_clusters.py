"""Components into clusters: sums against brute force, numbers, files, streams."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import kplus
from jobs import make_job
from kplus import DPMixture
from kplus.core.runs import sums_of
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture.axes import PairAxes
from kplus.dp_mixture.clusters import BorderModel
from kplus.dp_mixture.model import DPMixtureModel
from kplus.observations import Gaussian
from kplus.tree.borders import N_BINS


def ring_and_disc(seed=0, n=1200):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    ring = 5 * np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.concatenate([ring, np.zeros((n // 3, 2))])
    return X + rng.normal(0, 0.3, X.shape), np.repeat([0, 1], [n, n // 3])


@pytest.fixture(scope="module")
def rows():
    return ring_and_disc()


@pytest.fixture(scope="module")
def model(rows):
    return DPMixture(random_state=0).fit(rows[0])


def test_a_ring_is_one_cluster(rows, model):
    X, truth = rows
    assert model.n_components_ > 4
    assert model.n_clusters_ == model.cluster_tree_.n_clusters == 2
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    cluster = model.cluster_of_component_
    np.testing.assert_array_equal(cluster[model.component_labels_], model.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict_components(X), model.component_labels_)
    shares = model.predict_component_proba(X)
    summed = np.stack([shares[:, cluster == c].sum(axis=1) for c in (0, 1)], axis=1)
    np.testing.assert_allclose(model.predict_proba(X), summed)


@pytest.mark.parametrize("n_clusters", [1, 3, 5])
def test_a_number_is_met_exactly(rows, n_clusters):
    found = DPMixture(n_clusters=n_clusters, random_state=0).fit(rows[0])
    assert found.n_clusters_ == n_clusters
    assert found.n_components_ >= n_clusters
    assert set(found.cluster_of_component_) == set(range(n_clusters))


def test_without_clusters_every_component_is_one(rows, model):
    plain = DPMixture(n_clusters=None, random_state=0).fit(rows[0])
    assert plain.n_clusters_ == plain.n_components_ == model.n_components_
    np.testing.assert_array_equal(plain.labels_, model.component_labels_)
    assert not hasattr(plain, "cluster_tree_")


@pytest.mark.parametrize("gap", [6.0, 12.0])
@pytest.mark.parametrize("name", ["gaussian", "diag_gaussian", "spherical_gaussian"])
def test_two_groups_are_two_clusters_and_one_is_one(name, gap):
    rng = np.random.default_rng(1)
    X = rng.normal(0, 1, (400, 3))
    assert DPMixture(name, random_state=0).fit(X).n_clusters_ == 1
    X[:150, 1] += gap
    assert DPMixture(name, random_state=0).fit(X).n_clusters_ == 2


def test_one_gaussian_in_many_components_is_one_cluster():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    split = DPMixture(
        Gaussian(variance_share=0.2), n_components=4, moves=(), tol=1e-4, random_state=0
    ).fit(X)
    counts = np.bincount(split.component_labels_, minlength=4)
    assert np.sum(counts > 20) >= 2
    assert np.bincount(split.labels_).max() > 1990


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_rows(rows, model, weighted):
    X, q = rows[0], model._params
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X)) if weighted else None
    w = np.ones(len(X)) if weights is None else weights
    pairs = np.array([[0, 1], [1, 2], [0, 3]])
    along = PairAxes.of(q, pairs)
    job = make_job(ArrayBlocks(X, 333), weights, np.random.default_rng(0))
    mixture = DPMixtureModel(model.observations_)
    found = sums_of(job, BorderModel(mixture, along), q)
    R, labels = model.predict_component_proba(X), model.component_labels_
    for j in range(q.K):
        mine = labels == j
        expected = w[mine] @ R[mine]
        np.testing.assert_allclose(found.overlap[:, j], expected, atol=1e-6)
    for p, (a, b) in enumerate(pairs):
        pooled = 0.5 * (model.covariances_[a] + model.covariances_[b])
        axis = np.linalg.solve(pooled, model.means_[b] - model.means_[a])
        scaling = model.observations_.scaling
        value = scaling.transform(X) @ (axis / scaling.inv)
        mine = np.isin(labels, [a, b])
        edges = np.linspace(along.axes.low[p], along.axes.high[p], N_BINS + 1)
        expected = np.histogram(value[mine], edges, weights=w[mine])[0]
        np.testing.assert_allclose(found.counts[p].sum(), expected.sum(), rtol=0.01)
        assert np.abs(found.counts[p] - expected).sum() < 0.02 * expected.sum()


@pytest.mark.parametrize("change", [{"n_jobs": 2}, {"n_jobs": 3}])
def test_threads_do_not_matter(rows, model, change):
    again = DPMixture(random_state=0, **change).fit(rows[0])
    assert (
        again.cluster_tree_.heights.tobytes() == model.cluster_tree_.heights.tobytes()
    )
    np.testing.assert_array_equal(again.labels_, model.labels_)


def test_a_file_keeps_clusters(rows, model, tmp_path):
    kplus.save(model, tmp_path / "m.kplus")
    again = kplus.load(tmp_path / "m.kplus")
    np.testing.assert_array_equal(again.predict(rows[0]), model.labels_)
    for n in range(1, model.n_components_ + 1):
        np.testing.assert_array_equal(
            again.cluster_tree_.cut(n), model.cluster_tree_.cut(n)
        )


def test_a_stream_has_a_tree_after_every_batch():
    rng = np.random.default_rng(0)
    stream = DPMixture(random_state=0)
    for _ in range(4):
        z = rng.integers(0, 3, 300)
        X = rng.normal(0, 1, (300, 2)) + 9.0 * np.array([[0, 0], [1, 0], [0, 1]])[z]
        stream.partial_fit(X)
        assert stream.cluster_tree_.n_leaves == stream.n_components_
        assert stream.n_clusters_ == 3
        assert adjusted_rand_score(z, stream.labels_) == 1.0
    stream.set_params(n_clusters=2).partial_fit(X)
    assert stream.n_clusters_ == 2
    with pytest.warns(UserWarning, match="so far"):
        stream.set_params(n_clusters=50).partial_fit(X)


def test_numbers_that_cannot_be_met_are_refused(rows):
    X = rows[0]
    with pytest.raises(ValueError, match="max_components=2 should be >= n_clusters=3"):
        DPMixture(n_clusters=3, max_components=2).fit(X)
    with pytest.raises(ValueError, match="n_samples=4 should be >= n_clusters=5"):
        DPMixture(n_clusters=5).fit(X[:4])


def test_more_clusters_than_components_are_met_by_another_fit(rows):
    X = np.random.default_rng(0).uniform(size=(500, 2)) * [4.0, 1.0]
    found = DPMixture(max_components=3, n_clusters=3, random_state=0).fit(X)
    assert found.n_clusters_ == 3
    with pytest.warns(UserWarning, match="n_clusters=90, but only"):
        found = DPMixture(n_clusters=90, random_state=0).fit(rows[0])
    assert found.n_clusters_ == 90
