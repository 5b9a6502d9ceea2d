"""Filled tables are of the kind that was passed, and the same where it had values."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from kplus.data.blocks import ArrayBlocks
from kplus.data.categories import Coding
from kplus.data.filling import Gaps, filled
from kplus.data.open import Coder, open_numbers


def fill(X, values, categorical="from_dtype"):
    """Fill gaps with values by column: numbers, or codes of categories."""
    blocks, coding = Coder(categorical=categorical).open(X)
    rows = blocks.read(0)
    where = np.nonzero(np.isnan(rows))
    gaps = Gaps(*where, np.array([values[j] for j in where[1]], dtype=np.float64))
    return filled(X, blocks, coding, gaps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_arrays_keep_their_type_and_bits(dtype):
    X = np.array([[1 / 3, np.nan], [-0.0, 2 / 3]], dtype=dtype)
    X.flags.writeable = False
    before = X.copy()
    out = filled(
        X, open_numbers(X), None, Gaps(np.array([0]), np.array([1]), np.array([0.1]))
    )
    assert out.dtype == dtype
    assert out[0, 1] == dtype(0.1)
    assert np.array_equal(np.signbit(out), [[False, False], [True, False]])
    assert out[1].tobytes() == X[1].tobytes()
    assert X.tobytes() == before.tobytes()


def test_arrays_without_gaps_are_copied():
    X = np.array([[1, 2], [3, 4]])
    none = Gaps(np.empty(0, int), np.empty(0, int), np.empty(0))
    out = filled(X, open_numbers(X), None, none)
    assert out.dtype == X.dtype
    assert out is not X
    assert np.array_equal(out, X)


def test_lists_and_objects_give_arrays():
    gap = Gaps(np.array([1]), np.array([0]), np.array([7.0]))
    X = [[1.0, 2.0], [None, 4.0]]
    out = filled(X, ArrayBlocks(np.zeros((2, 2))), None, gap)
    assert out.dtype == np.float64
    assert out.tolist() == [[1, 2], [7, 4]]
    X = np.array([["a", 1.5], [None, 2.5], ["b", float("nan")]], dtype=object)
    out = fill(X, {0: 1, 1: 0.25})
    assert out.tolist() == [["a", 1.5], ["b", 2.5], ["b", 0.25]]


def test_arrays_of_numbers_that_are_categories():
    X = np.array([[7.0, 1.0], [np.nan, 2.0], [9.0, np.nan]])
    assert fill(X, {0: 1, 1: 0.5}, [0]).tolist() == [[7, 1], [9, 2], [9, 0.5]]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_sparse(kind, make):
    X = make(np.array([[0, np.nan, 3], [np.nan, 0, 0], [1, 0, np.nan]])).asformat(kind)
    where = np.nonzero(np.isnan(X.toarray()))
    gaps = Gaps(*where, np.array([0.1, 0.2, 0.3]))
    out = filled(X, open_numbers(X), None, gaps)
    assert type(out) is type(X)
    assert out.toarray().tolist() == [[0, 0.1, 3], [0.2, 0, 0], [1, 0, 0.3]]
    assert np.isnan(X.toarray()).sum() == 3


PANDAS = {
    "float32": pd.Series([0.1, None, 2.5], dtype="float32"),
    "float64": pd.Series([0.1, None, 2.5]),
    "Float64": pd.Series([0.1, None, 2.5], dtype="Float64"),
    "Int64": pd.Series([1, None, 3], dtype="Int64"),
    "UInt8": pd.Series([1, None, 3], dtype="UInt8"),
    "arrow": pd.Series([0.1, None, 2.5], dtype="double[pyarrow]"),
    "arrow_int": pd.Series([1, None, 3], dtype="int32[pyarrow]"),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
    "bool_objects": pd.Series([True, None, False], dtype=object),
    "objects": pd.Series(["b", None, "a"], dtype=object),
    "nan_objects": pd.Series(["b", np.nan, "a"], dtype=object),
    "string": pd.Series(["b", pd.NA, "a"], dtype="string"),
    "str": pd.Series(["b", None, "a"]),
    "category": pd.Series(["b", None, "a"], dtype=pd.CategoricalDtype(["a", "b", "c"])),
    "ordered": pd.Series(
        ["b", None, "a"], dtype=pd.CategoricalDtype(["a", "b"], ordered=True)
    ),
    "numbers": pd.Series(pd.Categorical([7, None, 5])),
}
POLARS = {
    "float32": pl.Series([0.1, None, 2.5], dtype=pl.Float32),
    "nan": pl.Series([0.1, float("nan"), 2.5]),
    "int8": pl.Series([1, None, 3], dtype=pl.Int8),
    "decimal": pl.Series(["1.5", None, "2"]).cast(pl.Decimal(10, 2)),
    "boolean": pl.Series([True, None, False]),
    "string": pl.Series(["b", None, "a"]),
    "categorical": pl.Series(["b", None, "a"], dtype=pl.Categorical),
    "enum": pl.Series(["b", None, "a"], dtype=pl.Enum(["a", "b", "c"])),
}
ARROW = {
    "float": pa.array([0.1, None, 2.5], pa.float32()),
    "int": pa.array([1, None, 3], pa.int16()),
    "boolean": pa.array([True, None, False]),
    "string": pa.array(["b", None, "a"]),
    "large_string": pa.array(["b", None, "a"], pa.large_string()),
    "dictionary": pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0], pa.int8()), ["a", "b"]
    ),
}
CODE = 1  # the second of the sorted categories
FILLED = {
    "Float64": 1.4, "float64": 1.4, "arrow": 1.4, "nan": 1.4, "Int64": 1, "UInt8": 1,
    "arrow_int": 1, "int8": 1, "int": 1, "boolean": True, "bool_objects": True,
    "numbers": 7,
}  # fmt: skip


def expected(name, value):
    if name.startswith("float3") or name == "float":
        return value == np.float32(1.4)
    if name == "decimal":
        return float(value) == 1.4
    return value == FILLED.get(name, "b")


def value_for(name):
    numbers = "loat", "nt", "arrow", "nan", "decimal"
    return 1.4 if any(part in name for part in numbers) and "obj" not in name else CODE


@pytest.mark.parametrize("name", PANDAS)
def test_pandas(name):
    series = PANDAS[name]
    frame = pd.DataFrame({"x": series, "y": [1, 2, 3]}, index=[5, 5, 9])
    frame["x"] = series.array
    before = frame.copy(deep=True)
    out = fill(frame, {0: value_for(name)})
    assert out.dtypes.equals(frame.dtypes)
    assert out.index.equals(frame.index)
    assert list(out.columns) == ["x", "y"]
    assert expected(name, out["x"].iloc[1])
    pd.testing.assert_frame_equal(out.iloc[[0, 2]], before.iloc[[0, 2]])
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("name", POLARS)
def test_polars(name):
    frame = pl.DataFrame({"x": POLARS[name], "y": [1, 2, 3]})
    out = fill(frame, {0: value_for(name)})
    assert out.schema == frame.schema
    assert expected(name, out["x"][1])
    assert out[[0, 2]].equals(frame[[0, 2]])


@pytest.mark.parametrize("name", ARROW)
def test_arrow(name):
    table = pa.table({"x": ARROW[name], "y": [1, 2, 3]})
    out = fill(table, {0: value_for(name)})
    assert out.schema == table.schema
    assert expected(name, out["x"][1].as_py())
    assert out.take([0, 2]).equals(table.take([0, 2]))


def test_whole_numbers_stay_in_their_range():
    frame = pl.DataFrame({"x": pl.Series([1, None, 3], dtype=pl.UInt8)})
    assert fill(frame, {0: -0.8})["x"].to_list() == [1, 0, 3]
    assert fill(frame, {0: 300.0})["x"].to_list() == [1, 255, 3]


def test_names_of_pandas_columns_may_be_numbers():
    frame = pd.DataFrame(np.array([[1.0, np.nan], [2.0, 3.0]]))
    out = fill(frame, {1: 5.0})
    assert out.columns.equals(frame.columns)
    assert out.to_numpy().tolist() == [[1, 5], [2, 3]]


def test_a_category_that_a_later_table_does_not_declare():
    coding = Coding(("x",), (("a", "b"),))
    gap = Gaps(np.array([1]), np.array([0]), np.array([1.0]))
    frames = [
        pd.DataFrame({"x": pd.Categorical(["a", None])}),
        pl.DataFrame({"x": pl.Series(["a", None], dtype=pl.Enum(["a"]))}),
        pa.table({"x": pa.array(["a", None]).dictionary_encode()}),
    ]
    for frame in frames:
        blocks, _ = Coder(reset=False, coding=coding).open(frame)
        out = filled(frame, blocks, coding, gap)
        assert pd.Series(out["x"].to_numpy()).tolist() == ["a", "b"]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_unseen_categories_are_no_gaps(library):
    coding = Coding(("x",), (("a", "b"),))
    frame = library({"x": ["new", "a", None]})
    blocks, _ = Coder(reset=False, coding=coding, unknown="missing").open(frame)
    gaps = Gaps(np.array([0, 2]), np.array([0, 0]), np.array([1.0, 1.0]))
    assert list(filled(frame, blocks, coding, gaps)["x"]) == ["new", "a", "b"]
    X = np.array([["new"], ["a"], [None]], dtype=object)
    by_place = Coding(("0",), (("a", "b"),))
    assert filled(X, blocks, by_place, gaps)[:, 0].tolist() == ["new", "a", "b"]


@pytest.mark.parametrize("kind", ["x", "y"])
def test_columns_without_any_value(kind):
    frame = pl.DataFrame({"x": [None, None], "y": [1.0, 2.0]})
    coding = Coding(("x", "y"), ((None if kind == "x" else ("a", "b")), None))
    blocks, _ = Coder(reset=False, coding=coding).open(frame)
    gaps = Gaps(np.array([0, 1]), np.array([0, 0]), np.array([1.0, 0.0]))
    values = [1.0, 0.0] if kind == "x" else ["b", "a"]
    assert filled(frame, blocks, coding, gaps)["x"].to_list() == values
    table = filled(frame.to_arrow(), blocks, coding, gaps)
    assert table["x"].to_pylist() == values


def test_files(tmp_path):
    frame = pd.DataFrame({"x": [1.5, None, 2.0], "pet": ["cat", None, "dog"]})
    frame.to_parquet(tmp_path / "x.parquet")
    out = fill(tmp_path / "x.parquet", {0: 9.0, 1: 1})
    assert isinstance(out, pd.DataFrame)
    assert out["x"].tolist() == [1.5, 9.0, 2.0]
    assert out["pet"].tolist() == ["cat", "dog", "dog"]
    X = np.array([[1.5, np.nan]], dtype=np.float32)
    np.save(tmp_path / "x.npy", X)
    out = fill(tmp_path / "x.npy", {1: 0.5})
    assert out.dtype == np.float32
    assert out.tolist() == [[1.5, 0.5]]
