"""The same rows give the same fit, wherever they are kept."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.utils import get_tags

from every_estimator import (
    DEFAULTS,
    assert_same_answers,
    assert_same_attributes,
    every_default,
    seeded,
)
from kplus import CRAFT, MEIBP, DPMeans, DPMixture, KFeatures, penalty_for, penalty_path

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

NAMES = ["a", "b", "c"]


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


# Other ways to open a table than that of DPMeans.
OPENINGS = [KFeatures(2), CRAFT(), DPMixture("mixed"), MEIBP()]


@nameless
@pytest.mark.parametrize("model", OPENINGS, ids=repr)
def test_answers_about_any_source(model, tmp_path):
    plain = fit_of_halves(model)
    for make in SOURCES.values():
        assert_same_answers(plain, plain, make(HALVES, tmp_path), HALVES)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        *product(DEFAULTS, ["float32", "fortran", "csr_array"]),
        *product(OPENINGS, ["polars", "csv", "parquet"]),
    ],
    ids=str,
)
def test_every_estimator_fits_any_source(model, kind, tmp_path):
    """Numbers of any type and order; where columns have names, each way to open."""
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


@pytest.mark.parametrize("kind", ["float32", "csr_array", "pandas", "csv", "npy"])
def test_sources_have_the_same_penalties(X, kind, tmp_path):
    data = SOURCES[kind](X, tmp_path)
    assert penalty_for(data, 4) == penalty_for(X, 4)
    path, plain = penalty_path(DPMeans(), data), penalty_path(DPMeans(), X)
    np.testing.assert_array_equal(path.sse, plain.sse)


@pytest.mark.parametrize("kind", ["float32", "csr_array", "pandas", "csv", "npy"])
def test_sources_stream_the_same(X, kind, tmp_path):
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


@pytest.mark.parametrize(
    ("fitted", "asked"),
    [
        ("pandas", "csv"),
        ("csv", "polars"),
        ("polars", "parquet"),
        ("parquet", "pyarrow"),
        ("pyarrow", "pandas"),
    ],
)
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
