"""What cannot be a category is refused, by the name of its column."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from coded_tables import coded, coding_of
from kplus.core.errors import DataError
from kplus.data.blocks import ArrayBlocks, FrameBlocks
from kplus.data.categories import Coding, count_levels

pa = pytest.importorskip("pyarrow")

nan = np.nan
DAY = datetime.date(2024, 1, 1)
NO_CATEGORIES = {
    "pandas dates": (pd.DataFrame({"x": pd.to_datetime(["2024"])}), "Datetime"),
    "pandas periods": (
        pd.DataFrame({"x": pd.period_range("2024", periods=1, freq="D")}),
        "neither numbers nor categories",
    ),
    "polars dates": (pl.DataFrame({"x": [DAY]}), "Date, neither numbers"),
    "polars lists": (pl.DataFrame({"x": [[1]]}), "List"),
    "arrow times": (pa.table({"x": pa.array([1], pa.duration("s"))}), "Duration"),
    "arrow bytes": (pa.table({"x": [b"a"]}), "Binary"),
    "date objects": (pd.DataFrame({"x": pd.Series([DAY], dtype=object)}), "type date"),
    "list objects": (pd.DataFrame({"x": [["a"], ["b"]]}), "type list"),
    "intervals": (pd.DataFrame({"x": pd.cut([1, 2], 2)}), "type Interval"),
}


@pytest.mark.parametrize(("frame", "what"), NO_CATEGORIES.values(), ids=NO_CATEGORIES)
def test_what_is_neither_number_nor_category(frame, what):
    with pytest.raises(DataError, match=f"Column 'x' holds .*{what}"):
        coding_of(frame)
    with pytest.raises(DataError, match=f"Column 'x' holds .*{what}"):
        coding_of(frame, ["x"])


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        (["a", 1], "numbers and text"),
        ([True, "a"], "booleans and text"),
        ([1, True], "booleans and numbers"),
        (["a"] * 200 + [1.5], "numbers and text"),  # beyond what a glance would show
    ],
)
def test_objects_of_several_types(values, kinds):
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    with pytest.raises(DataError, match=f"Column 'x' mixes {kinds}"):
        coding_of(frame)


def test_numbers_kept_as_objects_are_not_guessed_at():
    frame = pd.DataFrame({"x": pd.Series([1, None, 3], dtype=object)})
    with pytest.raises(DataError, match=r"'x' holds numbers kept as objects.*astype"):
        coding_of(frame)
    assert coding_of(frame, ["x"]).categories == ((1, 3),)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": pd.Series([None, None], dtype=object)}),
        pd.DataFrame({"x": pd.Categorical([None, None])}),
        pl.DataFrame({"x": [None, None]}),
        pl.DataFrame({"x": [None, None]}, schema={"x": pl.String}),
        pa.table({"x": pa.nulls(2)}),
    ],
)
def test_columns_without_a_value(frame):
    with pytest.raises(DataError, match="Column 'x' holds no values"):
        coding_of(frame)


def test_categorical_must_name_columns():
    with pytest.raises(
        DataError, match=r"categorical_features.*no column 'y'.*\['x'\]"
    ):
        coding_of(pl.DataFrame({"x": [1]}), ["y"])


def test_unknown_things_without_a_hash():
    coding = Coding(("x",), (("a",),))
    with pytest.raises(DataError, match="Column 'x' holds values of type list"):
        coded(pd.DataFrame({"x": [["a"], ["b"]]}), coding)


@pytest.mark.parametrize("frame", [pl.DataFrame({"x": [DAY]}), pa.table({"x": [[1]]})])
@pytest.mark.parametrize("unknown", ["error", "missing"])
def test_dates_and_lists_are_not_taken_for_unknown_categories(frame, unknown):
    with pytest.raises(DataError, match=r"'x' holds .*neither numbers"):
        coded(frame, Coding(("x",), (("a",),)), unknown=unknown)


# ---------------------------------------------------------------- arrays of codes


def test_count_levels():
    X = np.array([[0.0, 3, nan], [nan, 1, nan], [1, 0, nan]])
    for block_rows in (1, 2, 100):
        assert count_levels(ArrayBlocks(X, block_rows)) == (2, 4, 1)
    assert count_levels(ArrayBlocks(X[:, :2].astype(np.float32))) == (2, 4)


@pytest.mark.parametrize("bad", [-1.0, 0.5, np.inf, -np.inf])
def test_count_levels_refuses_what_is_no_code(bad):
    X = np.zeros((5, 2))
    X[3, 1] = bad
    with pytest.raises(DataError, match=rf"Column 1 holds {bad:g} \(row 3\)"):
        count_levels(ArrayBlocks(X, 2))
    with pytest.raises(DataError, match=rf"Column 'b' holds {bad:g} \(row 3\)"):
        count_levels(FrameBlocks(pd.DataFrame(X, columns=["a", "b"]), 2))
