"""Categories become codes, the same ones whichever library keeps the table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coded_tables import coded, coding_of
from kplus.core.decoding import Decoder
from kplus.core.encoding import Encoder
from kplus.core.errors import DataError
from kplus.core.storable import RECORDS
from kplus.data.blocks import FrameBlocks
from kplus.data.categories import Coding
from kplus.data.text_numbers import is_blank

pa = pytest.importorskip("pyarrow")
nan = np.nan
SIZES = [1.5, None, 3.0, 4.0, 5.0]
COLORS = ["red", "blue", None, "red", "green"]
WARM = [True, None, False, True, True]
ROOMS = [7, 7, None, 10, 8]
CODING = Coding(
    ("size", "color", "warm", "room"),
    (None, ("blue", "green", "red"), (False, True), (7, 8, 10)),
)
CODES = np.array(
    [[1.5, 2, 1, 0], [nan, 0, nan, 0], [3, nan, 0, nan], [4, 2, 1, 2], [5, 1, 1, 1]]
)


def frame_of(make, colors=COLORS, warm=WARM, rooms=ROOMS):
    return make({"size": SIZES, "color": colors, "warm": warm, "room": rooms})


def pandas_objects(columns):
    frame = pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in columns.items()})
    return frame.astype({"size": float, "room": float})


def pandas_nullable(columns):
    frame = pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in columns.items()})
    return frame.astype(
        {"size": "Float64", "color": "string", "warm": "boolean", "room": "Int64"}
    )


def pandas_integers(columns):
    return pd.DataFrame({k: pd.array(v, dtype="Int64") for k, v in columns.items()})


def arrow_views(columns):
    return pa.table(columns | {"color": pa.array(columns["color"], pa.string_view())})


MAKERS = {
    "pandas": pd.DataFrame,
    "pandas objects": pandas_objects,
    "pandas nullable": pandas_nullable,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "arrow views": arrow_views,
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    """Blocks of small tables are kept, those of large ones made anew."""
    if request.param == "large":
        monkeypatch.setattr("kplus.data.wrapped.CACHE_BYTES", 0)


# ---------------------------------------------------------------- what the codes are


@every_maker
def test_coding_is_the_same_whatever_keeps_the_table(make):
    assert coding_of(frame_of(make), ["room"]) == CODING


@every_maker
@pytest.mark.parametrize("block_rows", [1, 2, 5, 100, None])
def test_blocks_put_together_are_the_codes(make, block_rows, size):
    blocks = coded(frame_of(make), CODING, block_rows)
    assert (blocks.n_rows, blocks.n_features) == CODES.shape
    assert blocks.feature_names == list(CODING.names)
    parts = [blocks.read(i) for i in range(-(-5 // blocks.block_rows))]
    np.testing.assert_array_equal(np.concatenate(parts), CODES)
    for part in parts:
        assert part.flags.c_contiguous
        assert part.dtype == np.float64


@every_maker
@pytest.mark.parametrize("rows", [[], [0], [4], [1, 2], [0, 2, 4]])
def test_take(make, rows, size):
    rows = np.array(rows, dtype=np.int64)
    taken = coded(frame_of(make), CODING, 2).take(rows)
    np.testing.assert_array_equal(taken, CODES[rows])
    assert taken.shape == (len(rows), 4)
    assert taken.flags.c_contiguous


def test_levels_and_names_of_text():
    assert CODING.levels == (None, 3, 2, 3)
    assert CODING.has_categories
    assert CODING.text_names == ["color"]
    assert not Coding(("size",), (None,)).has_categories


@pytest.mark.parametrize(
    "values",
    [
        pd.Categorical(["b", None, "a"], categories=["c", "b", "a"]),
        pd.Categorical(["b", None, "a"], categories=["c", "b", "a"], ordered=True),
        pl.Series(["b", None, "a"], dtype=pl.Enum(["c", "b", "a"])),
        pa.DictionaryArray.from_arrays(pa.array([1, None, 2]), pa.array(list("cba"))),
    ],
    ids=["pandas", "pandas ordered", "polars", "arrow"],
)
def test_declared_categories_keep_their_order_and_the_unused(values):
    make = {pd.Categorical: pd.DataFrame, pl.Series: pl.DataFrame}
    frame = make.get(type(values), pa.table)({"x": values})
    coding = coding_of(frame)
    assert coding.categories == (("c", "b", "a"),)
    codes = coded(frame, coding).read(0)
    np.testing.assert_array_equal(codes, [[1], [nan], [2]])


def test_polars_categorical_does_not_depend_on_what_came_before():
    pl.Series(["z", "b"], dtype=pl.Categorical)
    frame = pl.DataFrame({"x": pl.Series(["b", None, "a"], dtype=pl.Categorical)})
    coding = coding_of(frame)
    assert coding.categories == (("a", "b"),)
    codes = coded(frame, coding).read(0)
    np.testing.assert_array_equal(codes, [[1], [nan], [0]])


def test_arrow_dictionaries_that_differ_between_chunks_or_hold_a_null():
    parts = [pa.array(["b", "a"]), pa.array(["c", "b"])]
    chunked = pa.chunked_array([part.dictionary_encode() for part in parts])
    with_null = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 2]), pa.array(["x", None, "y"])
    )
    frame = pa.table({"x": chunked, "y": with_null})
    coding = coding_of(frame)
    assert coding.categories == (("b", "a", "c"), ("x", "y"))
    codes = coded(frame, coding).read(0)
    np.testing.assert_array_equal(codes, [[0, 0], [1, nan], [2, nan], [0, 1]])


def test_arrow_dictionaries_inside_pandas():
    dtype = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    frame = pd.DataFrame({"x": pd.array(["b", None, "a"], dtype=dtype)})
    assert coding_of(frame).categories == (("a", "b"),)


def test_values_are_plain():
    frame = pd.DataFrame(
        {
            "text": pd.Series([np.str_("a"), "b"], dtype=object),
            "declared": pd.Categorical(np.array([5, 3], dtype=np.int16)),
            "floats": np.array([0.5, 2.0], dtype=np.float32),
            "whole": np.array([2.0, nan]),
        }
    )
    coding = coding_of(frame, ["floats", "whole"])
    assert coding.categories == (("a", "b"), (3, 5), (0.5, 2.0), (2,))
    types = [[type(value) for value in values] for values in coding.categories]
    assert types == [[str, str], [int, int], [float, float], [int]]


def test_floats_and_integers_of_one_value_are_one_category():
    coding = coding_of(pd.DataFrame({"x": [1, 2, 1]}), ["x"])
    codes = coded(pd.DataFrame({"x": [2.0, nan, 1.0]}), coding).read(0)
    np.testing.assert_array_equal(codes, [[1], [nan], [0]])


def test_booleans_have_both_levels_though_one_is_met():
    frame = pl.DataFrame({"x": [True, True]})
    assert coding_of(frame).categories == ((False, True),)
    objects = pd.DataFrame({"x": pd.Series([True, None], dtype=object)})
    assert coding_of(objects).categories == ((False, True),)


def test_names_need_not_be_text():
    frame = pd.DataFrame({0: ["a", "b"], 1: [1.0, 2.0]})
    coding = coding_of(frame)
    assert coding.names == ("0", "1")
    np.testing.assert_array_equal(coded(frame, coding).read(0), [[0, 1], [1, 2]])


texts = st.lists(
    st.none() | st.sampled_from(["a", "b", "", " NA", "c d", "é"]), min_size=1
).filter(lambda values: not all(value is None or is_blank(value) for value in values))


@given(values=texts, block_rows=st.integers(1, 7))
def test_codes_lead_back_to_the_values(values, block_rows):
    frame = pl.DataFrame({"x": values}, schema={"x": pl.String})
    coding = coding_of(frame)
    blocks = coded(frame, coding, block_rows)
    parts = [blocks.read(i) for i in range(-(-len(values) // block_rows))]
    codes = np.concatenate(parts).ravel()
    (names,) = coding.categories
    again = [None if np.isnan(code) else names[int(code)] for code in codes]
    assert again == [None if is_blank(value) else value for value in values]
    assert list(names) == sorted(names)


def test_more_rows_than_are_looked_at_in_one_go():
    values = np.array(["b", "a", None, "c"], dtype=object)[np.arange(150_000) % 4]
    frame = pd.DataFrame({"x": values})
    coding = coding_of(frame)
    assert coding.categories == (("a", "b", "c"),)
    rows = np.array([0, 65_535, 65_536, 131_074, 149_999])
    codes = coded(frame, coding).take(rows)
    np.testing.assert_array_equal(codes.ravel(), [1, 2, 1, nan, 2])


def test_frames_of_numbers_have_the_blocks_they_always_had():
    frame = pl.DataFrame({"a": [1, 2, None], "b": [0.5, nan, 2.0]})
    coding = coding_of(frame)
    assert coding.categories == (None, None)
    np.testing.assert_array_equal(
        coded(frame, coding).read(0), FrameBlocks(frame).read(0)
    )


# ---------------------------------------------------------------- later tables


@every_maker
@pytest.mark.parametrize("choice", [["room"], [3], [False, False, False, True]])
def test_categorical_by_name_number_or_mask(make, choice):
    assert coding_of(frame_of(make), choice) == CODING


@every_maker
def test_unknown_categories_are_named(make):
    frame = frame_of(make, colors=["red", "blue", None, "pink", "green"])
    message = r"'color' holds 'pink' \(row 3\).*\('blue', 'green', 'red'\).*as missing"
    with pytest.raises(DataError, match=message):
        coded(frame, CODING)
    frame = frame_of(make, rooms=[7, 7, None, 10, 9])
    with pytest.raises(DataError, match=r"'room' holds 9(\.0)? \(row 4\)"):
        coded(frame, CODING)


@every_maker
def test_unknown_categories_may_count_as_missing(make):
    colors = ["red", "lilac", None, "pink", "green"]
    frame = frame_of(make, colors=colors, rooms=[7, 9, None, 10, 8])
    codes = coded(frame, CODING, unknown="missing").read(0)
    np.testing.assert_array_equal(codes[:, 1], [2, nan, nan, nan, 1])
    np.testing.assert_array_equal(codes[:, 3], [0, nan, nan, 2, 1])
    np.testing.assert_array_equal(codes[:, [0, 2]], CODES[:, [0, 2]])


@pytest.mark.parametrize(
    "values",
    [
        pd.Categorical(["b", None, "z"], categories=["z", "b", "q"]),
        pl.Series(["b", None, "z"], dtype=pl.Enum(["z", "b", "q"])),
        pl.Series(["b", None, "z"], dtype=pl.Categorical),
        pa.array(["b", None, "z"]).dictionary_encode(),
    ],
    ids=["pandas", "polars enum", "polars", "arrow"],
)
def test_unknown_declared_categories_matter_where_they_occur(values):
    make = {pd.Categorical: pd.DataFrame, pl.Series: pl.DataFrame}
    frame = make.get(type(values), pa.table)({"x": values})
    codes = coded(frame, Coding(("x",), (("a", "b", "z"),))).read(0)
    np.testing.assert_array_equal(codes, [[1], [nan], [2]])
    fewer = Coding(("x",), (("a", "b"),))
    with pytest.raises(DataError, match=r"'x' holds 'z' \(row 2\)"):
        coded(frame, fewer)
    codes = coded(frame, fewer, unknown="missing").read(0)
    np.testing.assert_array_equal(codes, [[1], [nan], [nan]])


@pytest.mark.parametrize("n", [126, 127, 128, 129, 33_000])
def test_any_number_of_categories(n):
    frame = pl.DataFrame({"x": [None, *range(n)]})
    coding = coding_of(frame, [0])
    assert coding.levels == (n,)
    codes = coded(frame, coding).read(0).ravel()
    np.testing.assert_array_equal(codes, [nan, *range(n)])


@pytest.mark.parametrize("make", [pandas_integers, pl.DataFrame, pa.table])
def test_large_integers_with_gaps_stay_apart(make):
    large = 2**53
    frame = make({"x": [large, None, large + 1]})
    coding = coding_of(frame, ["x"])
    assert coding.categories == ((large, large + 1),)
    codes = coded(frame, coding).read(0)
    np.testing.assert_array_equal(codes, [[0], [nan], [1]])


def test_a_declared_category_is_known_though_the_fit_did_not_meet_it():
    declared = pd.CategoricalDtype(["a", "b", "c"])
    coding = coding_of(pd.DataFrame({"x": ["a", "b"]}).astype(declared))
    codes = coded(pl.DataFrame({"x": ["c", "a"]}), coding).read(0)
    np.testing.assert_array_equal(codes, [[2], [0]])


def test_columns_must_be_those_of_the_coding():
    coding = Coding(("x", "y"), (("a",), None))
    for names in [["y", "x"], ["x"], ["x", "y", "z"]]:
        frame = pd.DataFrame([["a"] * len(names)], columns=names)
        with pytest.raises(DataError, match="not those of the fit"):
            coded(frame, coding)


def test_number_columns_must_hold_numbers():
    coding = Coding(("x", "y"), (("a",), None))
    frame = pl.DataFrame({"x": ["a"], "y": ["1"]})
    with pytest.raises(DataError, match="Column 'y' holds String, but held numbers"):
        coded(frame, coding)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_after_the_fit_columns_may_be_missing_altogether(make):
    coding = Coding(("x", "y"), (("a",), None))
    blocks = coded(make({"x": [None, None], "y": [None, None]}), coding)
    assert np.isnan(blocks.read(0)).all()


# ---------------------------------------------------------------- model files


def test_a_coding_can_be_stored():
    coding = Coding(("x", "y", "z"), (None, ("a", 1, 2.5), (False, True)))
    outline = Encoder("a file", RECORDS).encode(coding, "coding_")
    again = Decoder({}.pop, RECORDS).decode(outline)
    assert again == coding
    assert [type(value) for value in again.categories[1]] == [str, int, float]


@pytest.mark.parametrize("nothing", [None, nan, pd.NA])
def test_objects_of_polars_may_be_missing(nothing):
    frame = pl.DataFrame([pl.Series("x", ["b", nothing, "a"], dtype=pl.Object)])
    coding = coding_of(frame)
    assert coding.categories == (("a", "b"),)
    np.testing.assert_array_equal(coded(frame, coding).read(0), [[1], [nan], [0]])
