"""Streams whose earlier rows fade."""

import numpy as np
import pytest

from kplus import DPMeans, load, save


def batches(n=6, seed=0):
    """Two groups; one moves, the other ends after the third batch."""
    rng = np.random.default_rng(seed)
    for t in range(n):
        moving = rng.normal([2.0 * t, 0.0], size=(50, 2))
        rest = rng.normal([0.0, 60.0], size=(30 if t < 3 else 0, 2))
        yield np.concatenate([moving, rest])


def test_sizes_and_centres_by_their_definition():
    """Every row counts 2^(-rows since / half-life); each group is one cluster."""
    model = DPMeans(n_clusters=2, half_life=70.0, random_state=0)
    rows, weights = np.empty((0, 2)), np.empty(0)
    for X in batches():
        model.partial_fit(X)
        left = 2.0 ** (-len(X) / 70.0)
        rows = np.concatenate([rows, X])
        weights = np.concatenate([weights * left, np.ones(len(X))])
        far = rows[:, 1] > 30.0
        for group in (far, ~far):
            mean = weights[group] @ rows[group] / weights[group].sum()
            k = int(np.argmin(np.sum((model.cluster_centers_ - mean) ** 2, axis=1)))
            np.testing.assert_allclose(model.cluster_centers_[k], mean, atol=1e-3)
            np.testing.assert_allclose(model.cluster_sizes_[k], weights[group].sum())
        apart = rows - model.cluster_centers_[model.predict(rows)]
        error = float(weights @ np.sum(apart**2, axis=1))
        assert model.objective_ == pytest.approx(error, rel=1e-3)


def test_clusters_that_lost_their_rows_go():
    settings = {"penalty": 150.0, "algorithm": "rows", "random_state": 0}
    fading, kept = DPMeans(half_life=30.0, **settings), DPMeans(**settings)
    for X in batches(9):
        fading.partial_fit(X)
        kept.partial_fit(X)
        np.testing.assert_array_equal(fading.predict(X), fading.labels_)
    assert np.all(fading.cluster_centers_[:, 1] < 30.0)
    assert np.any(kept.cluster_centers_[:, 1] > 30.0)
    assert fading.cluster_sizes_.sum() < kept.cluster_sizes_.sum() == 9 * 50 + 90
    expected = fading.objective_ - 150.0 * (fading.n_clusters_ - 1)
    assert 0.0 <= expected == pytest.approx(fading._cluster_errors.sum(), rel=0.2)


def test_a_fixed_number_stays():
    model = DPMeans(n_clusters=2, half_life=1.0, random_state=0)
    for X in batches(6):
        model.partial_fit(X)
    assert model.n_clusters_ == 2


def test_weights_are_rows():
    first, second = list(batches(2))
    one = DPMeans(n_clusters=2, half_life=40.0, random_state=0).partial_fit(first)
    two = DPMeans(n_clusters=2, half_life=40.0, random_state=0).partial_fit(first)
    one.partial_fit(second, sample_weight=np.full(len(second), 2.0))
    two.partial_fit(np.repeat(second, 2, axis=0))
    np.testing.assert_allclose(one.cluster_sizes_, two.cluster_sizes_)
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_)


def test_model_files_continue(tmp_path):
    model = DPMeans(150.0, half_life=30.0, random_state=0)
    first, *others = batches()
    save(model.partial_fit(first), tmp_path / "model.kplus")
    again = load(tmp_path / "model.kplus")
    for X in others:
        model.partial_fit(X)
        again.partial_fit(X)
        np.testing.assert_array_equal(again.labels_, model.labels_)
        np.testing.assert_array_equal(again.cluster_sizes_, model.cluster_sizes_)


def test_a_fit_takes_no_notice():
    X = np.concatenate(list(batches(3)))
    plain = DPMeans(n_clusters=2, random_state=0).fit(X)
    fading = DPMeans(n_clusters=2, half_life=1.0, random_state=0).fit(X)
    np.testing.assert_array_equal(plain.cluster_sizes_, fading.cluster_sizes_)


@pytest.mark.parametrize("half_life", [0, -1.0, "soon"])
def test_mistakes(half_life):
    with pytest.raises(ValueError, match="half_life"):
        DPMeans(half_life=half_life).fit([[0.0], [1.0]])
