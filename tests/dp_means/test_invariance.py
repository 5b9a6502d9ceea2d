"""Fits of DPMeans that must agree: threads, blocks, starts, offsets and scales."""

import numpy as np
import pytest

import reference
from kplus import DPMeans

MODES = [{"penalty": 40.0}, {"penalty": 9.0, "max_clusters": 3}, {"n_clusters": 5}, {}]
every_mode = pytest.mark.parametrize(
    "how", MODES, ids=["penalty", "capped", "number", "auto"]
)


def some_rows():
    """Halves of small integers, some zero, so that every type holds them exactly."""
    rng = np.random.default_rng(0)
    centers = rng.integers(-12, 13, (6, 3))
    X = centers[rng.integers(0, 6, 90)] + rng.integers(-4, 5, (90, 3)) / 2.0
    X[rng.random(X.shape) < 0.2] = 0.0
    return X


@pytest.fixture(scope="module")
def X():
    return some_rows()


def same_fit(one, other):
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    np.testing.assert_array_equal(one.cluster_sizes_, other.cluster_sizes_)
    np.testing.assert_array_equal(one.objective_history_, other.objective_history_)
    assert one.penalty_ == other.penalty_


# ---------------------------------------------------------- threads and blocks


@pytest.fixture(scope="module")
def many():
    """4,000 rows, enough that a fit by penalty starts on samples."""
    rng = np.random.default_rng(1)
    centers = rng.normal(scale=8.0, size=(9, 4))
    return centers[rng.integers(0, 9, 4000)] + rng.normal(size=(4000, 4))


@every_mode
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_give_the_same_bits(many, how, weighted):
    weights = np.random.default_rng(0).uniform(0, 2, len(many)) if weighted else None
    how = how | {"penalty": 60.0} if "penalty" in how else how
    fits = [
        DPMeans(**how, batch_size=128, n_jobs=n, random_state=0).fit(
            many, sample_weight=weights
        )
        for n in (1, 3)
    ]
    same_fit(*fits)
    np.testing.assert_array_equal(fits[1].predict(many), fits[0].labels_)


@every_mode
@pytest.mark.parametrize("block_rows", [1, 7, 64, 1000])
def test_blocks_give_the_same_clusters(how, block_rows):
    X = np.random.default_rng(2).normal(scale=3.0, size=(200, 3))
    whole = DPMeans(**how).fit(X)
    model = DPMeans(**how, batch_size=block_rows).fit(X)
    np.testing.assert_array_equal(model.labels_, whole.labels_)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-10)


@every_mode
def test_restarts_side_by_side_equal_one_after_the_other(how):
    X = np.random.default_rng(2).normal(scale=3.0, size=(300, 3))
    same_fit(
        *(DPMeans(**how, n_init=5, n_jobs=n, random_state=0).fit(X) for n in (1, 3))
    )


@pytest.mark.parametrize("n_jobs", [-1, -2, None, 64])
def test_any_number_of_jobs(X, n_jobs):
    one = DPMeans(40.0, batch_size=8, n_jobs=1).fit(X)
    same_fit(one, DPMeans(40.0, batch_size=8, n_jobs=n_jobs).fit(X))


@pytest.mark.parametrize("n_init", [1, 6])
def test_blas_threads_are_given_back(X, n_init):
    from threadpoolctl import threadpool_info

    def blas():
        return [
            pool["num_threads"]
            for pool in threadpool_info()
            if pool["user_api"] == "blas"
        ]

    before = blas()
    for _ in range(5):
        DPMeans(40.0, n_init=n_init, n_jobs=3, random_state=0).fit(X)
    assert blas() == before


# ---------------------------------------------------------------- offset and scale


@every_mode
@pytest.mark.parametrize("offset", [1e3, 1e8, -1e8])
def test_an_offset_changes_nothing(X, how, offset):
    plain, model = DPMeans(**how).fit(X), DPMeans(**how).fit(X + offset)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_allclose(
        model.cluster_centers_ - offset, plain.cluster_centers_, atol=1e-6
    )
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    np.testing.assert_array_equal(model.predict(X + offset), plain.labels_)
    np.testing.assert_allclose(
        model.transform(X + offset), plain.transform(X), rtol=1e-6, atol=1e-6
    )


@every_mode
@pytest.mark.parametrize("power", [-400, -40, 40, 400])
def test_a_power_of_two_changes_no_bit(X, how, power):
    how = dict(how)
    if "penalty" in how:
        how["penalty"] = how["penalty"] * 4.0**power
    penalty = {"penalty": how["penalty"] / 4.0**power} if "penalty" in how else {}
    plain = DPMeans(**(how | penalty)).fit(X)
    model = DPMeans(**how).fit(X * 2.0**power)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(
        model.cluster_centers_, plain.cluster_centers_ * 2.0**power
    )
    assert model.objective_ == plain.objective_ * 4.0**power
    np.testing.assert_array_equal(model.predict(X * 2.0**power), plain.labels_)


def test_columns_of_very_different_scale():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60) * 1e-6, np.repeat([0.0, 1e6], 30)])
    model = DPMeans(n_clusters=2).fit(X)
    np.testing.assert_array_equal(model.labels_, np.repeat([0, 1], 30))
    far = DPMeans(n_clusters=4).fit(X)
    assert far.n_clusters_ == 4
    np.testing.assert_array_equal(far.predict(X), far.labels_)


def with_far_row(far):
    rng = np.random.default_rng(0)
    two = np.vstack([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 12])
    return np.vstack([two, [[far, far]]])


@pytest.mark.parametrize("far", [1e2, 1e3, 1e4, 1e6, 1e8])
def test_one_far_row_does_not_blur_the_objective(far):
    """Sums about a place far from where the rows are would cancel badly."""
    X = with_far_row(far)
    model = DPMeans(60.0, tol=0.0).fit(X)
    C, labels = model.cluster_centers_, model.labels_
    np.testing.assert_array_equal(labels, reference.nearest(X, C)[0])
    objective = reference.objective(X, labels, C, 60.0)
    assert model.objective_ == pytest.approx(objective, rel=1e-10)
    history = model.objective_history_
    assert np.all(np.diff(history) <= 1e-12 * history[:-1])


@pytest.mark.parametrize("far", [1e2, 1e3, 1e4, 1e6])
def test_one_far_row_does_not_hide_a_removal(far):
    X = with_far_row(far)
    model = DPMeans(60.0, tol=0.0).fit(X)
    costs = reference.removal_costs(X, model.cluster_centers_)
    assert costs.min() >= 60.0 * (1 - 1e-9)
