"""Arrays have categories, too: the codes are those of the same table as a frame."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from coded_tables import coded, coding_of
from kplus.core.errors import DataError
from kplus.data.categories import Coding
from kplus.data.open import open_numbers

nan = np.nan
OBJECTS = np.array(
    [[1.5, "red", True, 7], [None, "blue", None, 9], [3, None, False, nan]],
    dtype=object,
)
CODED = [[1.5, 1, 1, 7], [nan, 0, nan, 9], [3, nan, 0, nan]]


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    """Blocks of small tables are kept, those of large ones made anew."""
    if request.param == "large":
        monkeypatch.setattr("kplus.data.wrapped.CACHE_BYTES", 0)


def numbers_of(X):
    return open_numbers(X).read(0)


def all_rows(blocks):
    n_blocks = -(-blocks.n_rows // blocks.block_rows)
    return np.concatenate([blocks.read(i) for i in range(n_blocks)])


# ---------------------------------------------------------------- objects and text


@pytest.mark.parametrize("block_rows", [1, 2, None])
def test_objects(block_rows, size):
    coding = coding_of(OBJECTS)
    assert coding.names == ("0", "1", "2", "3")
    assert coding.categories == (None, ("blue", "red"), (False, True), None)
    blocks = coded(OBJECTS, coding, block_rows)
    np.testing.assert_array_equal(all_rows(blocks), CODED)
    taken = blocks.take(np.array([0, 2]))
    np.testing.assert_array_equal(taken, np.array(CODED)[[0, 2]])
    assert blocks.read(0).dtype == np.float64
    assert blocks.read(0).flags.c_contiguous


def test_numbers_among_objects_are_categories_on_request():
    coding = coding_of(OBJECTS, [3])
    assert coding.categories[3] == (7, 9)
    codes = coded(OBJECTS, coding).read(0)
    np.testing.assert_array_equal(codes[:, 3], [0, 1, nan])


@pytest.mark.parametrize("nothing", [None, nan, np.float32(nan), pd.NA, pd.NaT])
def test_what_counts_as_missing(nothing):
    X = np.array([["a", 1.0], [nothing, nothing]], dtype=object)
    coding = coding_of(X)
    assert coding.categories == (("a",), None)
    np.testing.assert_array_equal(coded(X, coding).read(0), [[0, 1], [nan] * 2])


@pytest.mark.parametrize("dtype", ["U", object, np.dtypes.StringDType()])
def test_text(dtype):
    X = np.array([["b", "1"], ["a", "2"]]).astype(dtype)
    coding = coding_of(X)
    assert coding.categories == (("a", "b"), ("1", "2"))
    assert {type(value) for value in coding.categories[0]} == {str}
    np.testing.assert_array_equal(coded(X, coding).read(0), [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        (["a", 1], "numbers and text"),
        (["a", True], "booleans and text"),
        ([1, True], "booleans and numbers"),
        (["a"] * 200 + [nan, 1.5], "numbers and text"),
    ],
)
def test_a_column_of_several_kinds(values, kinds):
    X = np.array([[0.0, value] for value in values], dtype=object)
    with pytest.raises(DataError, match=f"Column 1 mixes {kinds}"):
        coding_of(X)


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2024, 1, 1),
        np.datetime64("2024"),
        [1],
        {"a": 1},
        b"a",
        1j,
        object(),
    ],
)
def test_what_is_neither_number_nor_category(value):
    X = np.empty((2, 2), dtype=object)
    X[:] = 1.0
    X[1, 1] = value
    name = type(value).__name__
    with pytest.raises(DataError, match=f"Column 1 holds values of type {name}"):
        coding_of(X)
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        coded(X, Coding(("0", "1"), (None, ("a",))))


@pytest.mark.parametrize("nothing", [None, nan])
def test_a_column_without_a_value(nothing):
    X = np.array([[1, nothing], [2, nothing]], dtype=object)
    with pytest.raises(DataError, match="Column 1 holds no values"):
        coding_of(X)
    blocks = coded(X, Coding(("0", "1"), (None, ("a",))))
    np.testing.assert_array_equal(blocks.read(0), [[1, nan], [2, nan]])


def test_objects_that_are_numbers():
    X = np.array([[1, None], [np.float32(0.5), Decimal("2.5")]], dtype=object)
    assert coding_of(X).categories == (None, None)
    np.testing.assert_array_equal(numbers_of(X), [[1, nan], [0.5, 2.5]])
    with pytest.raises(DataError, match="Column 1 holds numbers and text, not numbers"):
        numbers_of(np.array([[1, 2], [3, "x"]], dtype=object))


# ---------------------------------------------------------------- arrays of numbers


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int64, np.uint64, np.float32, np.float64]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_as_categories(dtype, order, size):
    X = np.array([[3, 70], [1, 90], [2, 70], [3, 80]], dtype=dtype, order=order)
    coding = coding_of(X, [1])
    assert coding.categories == (None, (70, 80, 90))
    assert {type(value) for value in coding.categories[1]} == {int}
    blocks = coded(X, coding, 3)
    np.testing.assert_array_equal(all_rows(blocks), [[3, 0], [1, 2], [2, 0], [3, 1]])
    np.testing.assert_array_equal(blocks.take(np.array([1, 3])), [[1, 2], [3, 1]])
    assert blocks.read(0).dtype == np.float64


def test_fractions_and_gaps(size):
    X = np.array([[0.5, nan], [nan, 2.0], [-0.25, 1.0]])
    coding = coding_of(X, [True, True])
    assert coding.categories == ((-0.25, 0.5), (1, 2))
    codes = coded(X, coding).read(0)
    np.testing.assert_array_equal(codes, [[1, nan], [nan, 1], [0, 0]])


def test_booleans():
    X = np.array([[True], [True]])
    coding = coding_of(X)
    assert coding.categories == ((False, True),)
    np.testing.assert_array_equal(coded(X, coding).read(0), [[1], [1]])
    later = coded(np.array([[1.0], [0.0], [nan]]), coding)
    np.testing.assert_array_equal(later.read(0), [[1], [0], [nan]])


def test_numbers_without_a_request_have_no_categories():
    assert coding_of(np.zeros((3, 2))).categories == (None, None)


def test_an_empty_column_of_numbers():
    with pytest.raises(DataError, match="Column 1 holds no values"):
        coding_of(np.array([[1.0, nan], [2.0, nan]]), [1])


def test_memory_maps(tmp_path, size):
    X = np.random.default_rng(0).integers(0, 9, size=(1000, 3))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    coding = coding_of(mapped, [0, 2])
    assert coding == coding_of(X, [0, 2])
    np.testing.assert_array_equal(all_rows(coded(mapped, coding, 64)), X)


@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 9), st.just(2)),
        elements=st.sampled_from([nan, -1.5, 0.0, -0.0, 1.0, 2.0, 1e300, np.inf]),
    ).filter(lambda X: not np.isnan(X).all(axis=0).any()),
)
def test_codes_are_those_of_a_frame(X):
    frame = pd.DataFrame(X)
    of_frame = coding_of(frame, [0])
    for same in (X, X.astype(object)):
        coding = coding_of(same, [0])
        assert coding == of_frame
        np.testing.assert_array_equal(
            coded(same, coding).read(0),
            coded(frame, of_frame).read(0),
        )


# ---------------------------------------------------------------- later arrays


LATER = np.array([[9.0, 70], [9.0, 75], [9.0, 80]])


@pytest.mark.parametrize("X", [LATER, LATER.astype(int), LATER.astype(object)])
def test_unknown_categories(X):
    coding = Coding(("0", "1"), (None, (90, 80, 70)))
    words = r"Column 1 holds 75(\.0)? \(row 1\), which is none of .*\(90, 80, 70\)"
    with pytest.raises(DataError, match=words):
        coded(X, coding, 1)
    codes = coded(X, coding, 1, unknown="missing").take(np.arange(3))
    np.testing.assert_array_equal(codes, [[9, 2], [9, nan], [9, 1]])


def test_unknown_categories_of_large_arrays(monkeypatch):
    monkeypatch.setattr("kplus.data.wrapped.CACHE_BYTES", 0)
    coding = Coding(("0", "1"), (None, (70, 80)))
    blocks = coded(LATER, coding, 1)
    np.testing.assert_array_equal(blocks.read(0), [[9, 0]])
    for look in (blocks.check, lambda: blocks.take(np.array([0, 1]))):
        with pytest.raises(DataError, match=r"Column 1 holds 75.0 \(row 1\)"):
            look()
    coded(LATER, coding, 1, unknown="missing").check()


def test_numbers_where_the_fit_had_text():
    coding = Coding(("0",), (("a", "b"),))
    with pytest.raises(DataError, match=r"Column 0 holds 1.0 \(row 0\)"):
        coded(np.ones((2, 1)), coding)
    blocks = coded(np.ones((2, 1)), coding, unknown="missing")
    assert np.isnan(blocks.read(0)).all()


def test_text_where_the_fit_had_numbers():
    coding = Coding(("0", "1"), (None, ("a",)))
    X = np.array([["x", "a"]], dtype=object)
    with pytest.raises(DataError, match=r"Column 0 holds text.*held numbers"):
        coded(X, coding, unknown="missing")


def test_arrays_with_more_columns_than_the_fit():
    coding = Coding(("0", "1"), (None, (70, 80)))
    with pytest.raises(DataError, match="X has 3 columns, but the fit had 2"):
        coded(np.ones((2, 3)), coding)


def test_small_tables_are_kept_and_cannot_be_changed():
    blocks = coded(LATER, Coding(("0", "1"), (None, (70, 75, 80))), 2)
    assert blocks.read(0).base is blocks.read(1).base
    assert not blocks.read(0).flags.writeable
