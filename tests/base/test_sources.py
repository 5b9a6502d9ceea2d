"""The same rows give the same fit, wherever they are kept and however many threads."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.utils import get_tags

import reference
from every_estimator import (
    DEFAULTS,
    assert_same_answers,
    assert_same_attributes,
    every_default,
    seeded,
)
from kplus import DPMeans, DPMixture, KFeatures, penalty_for, penalty_path

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

NAMES = ["a", "b", "c"]
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


HALVES = np.abs(some_rows())
nameless = pytest.mark.filterwarnings("ignore:X has feature names")


@cache
def fit_of_halves(model, named=False):
    return seeded(model).fit(pd.DataFrame(HALVES, columns=NAMES) if named else HALVES)


def _read_only(X, folder):
    X = X.copy()
    X.flags.writeable = False
    return X


def _memmap(X, folder):
    np.save(folder / "map.npy", X)
    return np.load(folder / "map.npy", mmap_mode="r")


def _npy(X, folder):
    np.save(folder / "X.npy", X)
    return folder / "X.npy"


def _npy_fortran(X, folder):
    np.save(folder / "F.npy", np.asfortranarray(X))
    return str(folder / "F.npy")


def _csv(X, folder):
    pl.DataFrame(X, schema=NAMES).write_csv(folder / "X.csv")
    return folder / "X.csv"


def _parquet(X, folder):
    table = pa.table(dict(zip(NAMES, X.T, strict=True)))
    pq.write_table(table, folder / "X.parquet", row_group_size=11)
    return str(folder / "X.parquet")


def _int_frame(X, folder):
    """Doubled, so that columns of whole numbers hold it."""
    return pd.DataFrame((2 * X).astype(np.int64), columns=NAMES)


def _nullable(X, folder):
    return pd.DataFrame(X, columns=NAMES).convert_dtypes()


SOURCES = {
    "list": lambda X, folder: X.tolist(),
    "float32": lambda X, folder: X.astype(np.float32),
    "float16": lambda X, folder: X.astype(np.float16),
    "longdouble": lambda X, folder: X.astype(np.longdouble),
    "big_endian": lambda X, folder: X.astype(">f8"),
    "fortran": lambda X, folder: np.asfortranarray(X),
    "fortran32": lambda X, folder: np.asfortranarray(X.astype(np.float32)),
    "strided": lambda X, folder: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X, folder: np.ascontiguousarray(X[::-1])[::-1],
    "read_only": _read_only,
    "memmap": _memmap,
    "csr_matrix": lambda X, folder: sp.csr_matrix(X),
    "csc_matrix": lambda X, folder: sp.csc_matrix(X),
    "csr_array": lambda X, folder: sp.csr_array(X),
    "csc_array": lambda X, folder: sp.csc_array(X),
    "coo_array": lambda X, folder: sp.coo_array(X),
    "csr_float32": lambda X, folder: sp.csr_array(X.astype(np.float32)),
    "pandas": lambda X, folder: pd.DataFrame(X, columns=NAMES),
    "pandas_index": lambda X, folder: pd.DataFrame(X, NAMES * 30, NAMES),
    "pandas_numbered": lambda X, folder: pd.DataFrame(X),
    "pandas_float32": lambda X, folder: pd.DataFrame(X.astype(np.float32)),
    "pandas_nullable": _nullable,
    "polars": lambda X, folder: pl.DataFrame(X, schema=NAMES),
    "pyarrow": lambda X, folder: pa.table(dict(zip(NAMES, X.T, strict=True))),
    "npy": _npy,
    "npy_fortran": _npy_fortran,
    "csv": _csv,
    "parquet": _parquet,
}
every_source = pytest.mark.parametrize("kind", SOURCES)


def same_fit(one, other):
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    np.testing.assert_array_equal(one.cluster_sizes_, other.cluster_sizes_)
    np.testing.assert_array_equal(one.objective_history_, other.objective_history_)
    assert one.penalty_ == other.penalty_


@every_source
def test_every_source_gives_the_same_bits(X, kind, tmp_path):
    """Blocks of 16 rows throughout; these numbers are exact in every type."""
    data = SOURCES[kind](X, tmp_path)
    model = DPMeans(40.0, batch_size=16).fit(data)
    plain = DPMeans(40.0, batch_size=16).fit(X)
    same_fit(plain, model)
    assert_same_answers(model, plain, data, X)
    assert model.n_features_in_ == 3


@nameless
@every_default
def test_every_estimator_can_be_asked_about_any_source(model, tmp_path):
    plain = fit_of_halves(model)
    for make in SOURCES.values():
        assert_same_answers(plain, plain, make(HALVES, tmp_path), HALVES)


WAYS = [DPMeans(n_clusters=2), DPMeans(1.0), KFeatures(2), DPMixture("mixed")]


@pytest.mark.parametrize(
    "kind", ["float32", "fortran", "csr_array", "polars", "csv", "parquet"]
)
@pytest.mark.parametrize("model", [*DEFAULTS, *WAYS], ids=repr)
def test_every_estimator_fits_any_source(model, kind, tmp_path):
    data = SOURCES[kind](HALVES, tmp_path)
    named = kind in ("polars", "csv", "parquet")
    again, plain = seeded(model).fit(data), fit_of_halves(model, named)
    assert_same_attributes(again, plain)
    table = pd.DataFrame(HALVES, columns=NAMES) if named else HALVES
    assert_same_answers(again, plain, data, table)


@every_default
def test_every_estimator_takes_whole_numbers(model):
    plain = seeded(model).fit(np.floor(HALVES))
    for dtype in (np.int64, np.uint8):
        again = seeded(model).fit(np.floor(HALVES).astype(dtype))
        assert_same_answers(again, plain, HALVES)
    if not get_tags(model).input_tags.categorical:  # flags are categories there
        flags = HALVES > 2.0
        again, plain = (seeded(model).fit(table) for table in (flags, 1.0 * flags))
        assert_same_answers(again, plain, HALVES)


@every_source
def test_every_source_has_the_same_penalties(X, kind, tmp_path):
    data = SOURCES[kind](X, tmp_path)
    assert penalty_for(data, 4) == penalty_for(X, 4)
    path, plain = penalty_path(DPMeans(), data), penalty_path(DPMeans(), X)
    np.testing.assert_array_equal(path.sse, plain.sse)


@every_source
def test_every_source_streams_the_same(X, kind, tmp_path):
    data = SOURCES[kind](X, tmp_path)
    plain = DPMeans(40.0, batch_size=16).partial_fit(X).partial_fit(X)
    model = DPMeans(40.0, batch_size=16).partial_fit(data).partial_fit(data)
    np.testing.assert_array_equal(model.cluster_centers_, plain.cluster_centers_)
    assert model.objective_ == plain.objective_


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "csv", "parquet"])
def test_names_are_noted(X, kind, tmp_path):
    model = DPMeans(40.0).fit(SOURCES[kind](X, tmp_path))
    assert model.feature_names_in_.tolist() == NAMES
    assert model.feature_names_in_.dtype == object


@pytest.mark.parametrize("kind", ["list", "csr_array", "npy", "pandas_numbered"])
def test_no_names_where_there_are_none(X, kind, tmp_path):
    model = DPMeans(40.0).fit(pd.DataFrame(X, columns=NAMES))
    model.fit(SOURCES[kind](X, tmp_path))
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("fitted", ["pandas", "polars", "pyarrow", "csv", "parquet"])
@pytest.mark.parametrize("asked", ["pandas", "polars", "pyarrow", "csv", "parquet"])
def test_named_sources_can_be_mixed(X, fitted, asked, tmp_path):
    model = DPMeans(40.0).fit(SOURCES[fitted](X, tmp_path))
    np.testing.assert_array_equal(
        model.predict(SOURCES[asked](X, tmp_path)), model.labels_
    )


def test_integers_and_booleans(X):
    whole = (2 * X).astype(np.int64)
    plain = DPMeans(16.0).fit(whole.astype(np.float64))
    for data in (whole, whole.astype(np.int16), whole.astype(np.int8)):
        same_fit(plain, DPMeans(16.0).fit(data))
    same_fit(plain, DPMeans(16.0).fit(_int_frame(X, None)))
    bits = X > 0
    same_fit(DPMeans(0.3).fit(bits.astype(np.float64)), DPMeans(0.3).fit(bits))
    frame = pd.DataFrame(bits, columns=NAMES)
    same_fit(DPMeans(0.3).fit(bits.astype(np.float64)), DPMeans(0.3).fit(frame))


def test_unsigned_integers_do_not_wrap():
    X = np.array([[0], [1], [250], [255]], dtype=np.uint8)
    model = DPMeans(100.0).fit(X)
    np.testing.assert_array_equal(model.labels_, [0, 0, 1, 1])
    assert model.objective_ == 0.5 + 12.5 + 100.0


def test_large_integers_keep_their_differences():
    X = np.array([[2**52], [2**52 + 2], [2**52 + 100], [2**52 + 102]])
    model = DPMeans(100.0).fit(X)
    np.testing.assert_array_equal(np.bincount(model.labels_), [2, 2])
    assert model.objective_ == 4.0 + 100.0


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
