"""Eq. 3 at a given penalty, against all partitions of a few rows and other fits."""

import numpy as np
import pytest

import reference
from kplus import DPMeans
from kplus.datasets import make_spherical_mixture
from kplus.dp_means.moves import cheap_pairs


def lowest(X, penalty, most=np.inf):
    """Eq. 3 (12) by trying every partition."""
    best = np.inf
    for labels in reference.partitions(len(X)):
        groups = [X[labels == k] for k in np.unique(labels)]
        if len(groups) <= most:
            error = sum(np.sum((rows - rows.mean(axis=0)) ** 2) for rows in groups)
            best = min(best, error + penalty * (len(groups) - 1))
    return best


def tiny(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(6, 2)), float(np.exp(rng.uniform(-2, 2)))


def test_tiny_tables_by_all_partitions():
    """A search of single changes need not find the best, but nearly always does."""
    found = 0
    for seed in range(25):
        X, penalty = tiny(seed)
        model = DPMeans(penalty, random_state=0).fit(X)
        best = lowest(X, penalty)
        assert model.objective_ >= best * (1.0 - 1e-12)
        found += model.objective_ <= best * (1.0 + 1e-9)
    assert found >= 22


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_cap_on_tiny_tables(most):
    found = 0
    for seed in range(8):
        X, penalty = tiny(seed)
        model = DPMeans(penalty, max_clusters=most, random_state=0).fit(X)
        assert model.n_clusters_ <= most
        best = lowest(X, penalty, most)
        assert model.objective_ >= best * (1.0 - 1e-12)
        found += model.objective_ <= best * (1.0 + 1e-9)
    assert found >= 6


@pytest.mark.parametrize("penalty", [0.5, 5.0, 49.0, 1e5])
def test_below_the_row_rule_and_every_number_nearby(penalty):
    X, _ = make_spherical_mixture(1200, 3, 6, separation=6, random_state=0)
    model = DPMeans(penalty, random_state=0).fit(X)
    rows = DPMeans(penalty, algorithm="rows", random_state=0).fit(X)
    assert model.objective_ <= rows.objective_ * (1.0 + 1e-9)
    assert np.all(np.diff(model.objective_history_) <= 1e-12 * model.objective_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    for K in {max(1, model.n_clusters_ - 2), model.n_clusters_ + 2}:
        given = DPMeans(penalty, n_clusters=K, random_state=0).fit(X)
        assert model.objective_ <= given.objective_ * 1.002


def test_the_objective_is_that_of_its_labels():
    X, _ = make_spherical_mixture(500, 2, 5, separation=5, random_state=1)
    model = DPMeans(20.0, random_state=0).fit(X)
    error = sum(
        np.sum((X[model.labels_ == k] - model.cluster_centers_[k]) ** 2)
        for k in range(model.n_clusters_)
    )
    expected = error + 20.0 * (model.n_clusters_ - 1)
    assert model.objective_ == pytest.approx(expected, rel=1e-9)


def test_penalty_of_the_path_gives_its_number():
    """One meaning of a penalty: that of the path can be given."""
    X, _ = make_spherical_mixture(2000, 2, 8, separation=8, random_state=1)
    auto = DPMeans(random_state=0).fit(X)
    assert DPMeans(auto.penalty_, random_state=0).fit(X).n_clusters_ == auto.n_clusters_


def test_many_rows_split_by_rows_that_were_held_out():
    """Rows of a sample are far apart; a split of chance would not pay for others."""
    X, _ = make_spherical_mixture(45_000, 20, 4, separation=12, random_state=0)
    model = DPMeans(30_000.0, random_state=0).fit(X)
    assert model.n_clusters_ == 4
    fine = DPMeans(1000.0, random_state=0).fit(X[:41_000])
    given = DPMeans(1000.0, n_clusters=4, random_state=0).fit(X[:41_000])
    assert fine.objective_ < given.objective_


def test_duplicates_and_weights():
    X, _ = make_spherical_mixture(60, 2, 3, separation=8, random_state=0)
    twice = DPMeans(12.0, random_state=0).fit(np.repeat(X, 2, axis=0))
    weighed = DPMeans(12.0, random_state=0).fit(X, sample_weight=np.full(60, 2.0))
    assert twice.n_clusters_ == weighed.n_clusters_
    assert twice.objective_ == pytest.approx(weighed.objective_, rel=1e-9)
    same = DPMeans(1e-9).fit(np.ones((5, 2)))
    assert (same.n_clusters_, same.objective_) == (1, 0.0)


def test_cheap_pairs_are_disjoint_and_exact():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    labels = np.arange(40) % 8
    centers = np.array([rows[labels == k].mean(axis=0) for k in range(8)])
    pairs = cheap_pairs(centers, np.full(8, 5.0), 2.0)
    assert len(set(pairs.ravel().tolist())) == pairs.size > 0
    for a, b in pairs:
        both = rows[(labels == a) | (labels == b)]
        apart = sum(np.sum((rows[labels == k] - centers[k]) ** 2) for k in (a, b))
        assert np.sum((both - both.mean(axis=0)) ** 2) - apart < 2.0
