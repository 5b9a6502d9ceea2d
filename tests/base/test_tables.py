"""Tables with categories reach an estimator as codes; tables of numbers as ever."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from kplus import CRAFT, ColumnsWarning, DPMeans, DPMixture
from kplus.base.tables import open_mixed_table, open_table
from kplus.core.errors import DataError
from kplus.data.blocks import ArrayBlocks, FrameBlocks, SparseBlocks
from kplus.data.categories import Coding

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from kplus.data.coded_blocks import ColumnBlocks, NumberBlocks  # noqa: E402

nan = np.nan
COLUMNS = {"size": [1.5, None, 3.0], "color": ["red", None, "blue"], "room": [7, 9, 7]}
CODING = Coding(("size", "color", "room"), (None, ("blue", "red"), None))
CODES = [[1.5, 1, 7], [nan, nan, 9], [3, 0, 7]]


class Mixed(BaseEstimator):
    """Stands for any estimator that takes categories."""


def pandas_frame(columns, folder):
    return pd.DataFrame(columns)


def polars_frame(columns, folder):
    return pl.DataFrame(columns)


def arrow_table(columns, folder):
    return pa.table(columns)


def csv_file(columns, folder):
    pl.DataFrame(columns).write_csv(folder / "table.csv")
    return folder / "table.csv"


def parquet_file(columns, folder):
    pq.write_table(pa.table(columns), folder / "table.parquet")
    return str(folder / "table.parquet")


every_source = pytest.mark.parametrize(
    "make", [pandas_frame, polars_frame, arrow_table, csv_file, parquet_file]
)
every_file = pytest.mark.parametrize("make", [csv_file, parquet_file])


def fitted(X, **settings):
    estimator = Mixed()
    blocks, coding = open_mixed_table(estimator, X, reset=True, **settings)
    return estimator, blocks, coding


@every_source
def test_fit_finds_the_categories_and_predict_uses_them(make, tmp_path):
    estimator, blocks, coding = fitted(make(COLUMNS, tmp_path))
    assert coding == CODING
    assert estimator.n_features_in_ == 3
    assert list(estimator.feature_names_in_) == list(COLUMNS)
    np.testing.assert_array_equal(blocks.read(0), CODES)
    # Other rows, in which one category does not occur: the codes stay.
    again, same = open_mixed_table(
        estimator,
        make({"size": [1, 2], "color": ["red", "red"], "room": [0, 1]}, tmp_path),
        reset=False,
        coding=coding,
    )
    assert same is coding
    np.testing.assert_array_equal(again.read(0), [[1, 1, 0], [2, 1, 1]])


@every_source
def test_integers_are_categories_on_request(make, tmp_path):
    _, blocks, coding = fitted(make(COLUMNS, tmp_path), categorical=["room"])
    assert coding.categories[2] == (7, 9)
    np.testing.assert_array_equal(blocks.read(0)[:, 2], [0, 1, 0])
    numbers = {"size": COLUMNS["size"], "room": COLUMNS["room"]}
    _, blocks, coding = fitted(make(numbers, tmp_path), categorical=["room"])
    assert coding.categories == (None, (7, 9))


@every_source
@pytest.mark.parametrize("choice", [["room"], [2], [False, False, True]])
def test_categorical_by_name_number_or_mask(make, choice, tmp_path):
    _, _, coding = fitted(make(COLUMNS, tmp_path), categorical=choice)
    assert coding.categories == (None, ("blue", "red"), (7, 9))


@every_source
@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (["rooms"], "no column 'rooms'.*'size', 'color', 'room'"),
        ([3], "no column 3.*'size', 'color', 'room'"),
        ([True], "mask of 1 entries.*'size', 'color', 'room'"),
        (["room", 1], "mixture of names and numbers"),
        ("room", "must be 'from_dtype'"),
    ],
)
def test_categorical_must_be_columns_that_are_there(make, choice, words, tmp_path):
    with pytest.raises(DataError, match=f"categorical_features.*{words}"):
        fitted(make(COLUMNS, tmp_path), categorical=choice)


@every_source
def test_unknown_categories_are_refused(make, tmp_path):
    estimator, _, coding = fitted(make(COLUMNS, tmp_path))
    X = make({**COLUMNS, "color": ["red", "pink", "blue"]}, tmp_path)
    with pytest.raises(DataError, match=r"'color' holds 'pink' \(row 1\)"):
        open_mixed_table(estimator, X, reset=False, coding=coding)
    blocks, _ = open_mixed_table(
        estimator, X, reset=False, coding=coding, unknown="missing"
    )
    np.testing.assert_array_equal(blocks.read(0)[:, 1], [1, nan, 0])


@every_source
def test_columns_are_those_of_the_fit(make, tmp_path):
    estimator, _, coding = fitted(make(COLUMNS, tmp_path))
    turned = {name: COLUMNS[name] for name in ("color", "size", "room")}
    fewer = {name: COLUMNS[name] for name in ("size", "color")}
    for columns in (turned, fewer):
        X = make(columns, tmp_path)
        with pytest.raises(ValueError, match=r"feature names|not those of the fit"):
            open_mixed_table(estimator, X, reset=False, coding=coding)


@every_source
def test_block_rows(make, tmp_path):
    _, blocks, _ = fitted(make(COLUMNS, tmp_path), block_rows=2)
    assert [len(blocks.read(i)) for i in range(2)] == [2, 1]


@pytest.mark.parametrize("make", [pandas_frame, polars_frame, arrow_table])
def test_frames_without_rows(make, tmp_path):
    frame = make(COLUMNS, tmp_path)
    with pytest.raises(DataError, match=r"0 sample\(s\)"):
        fitted(frame[:0])


# ---------------------------------------------------------------- numbers only


@every_source
def test_numbers_only_are_opened_as_ever(make, tmp_path):
    columns = {"a": [1.0, None, 3.0], "b": [1, 2, 3]}
    X = make(columns, tmp_path)
    estimator, blocks, coding = fitted(X)
    plain = Mixed()
    expected = open_table(plain, X, reset=True)
    assert coding is None
    assert type(blocks) is type(expected)
    assert vars(estimator).keys() == vars(plain).keys()
    np.testing.assert_array_equal(blocks.read(0), expected.read(0))


def test_arrays_and_matrices_are_opened_as_ever(tmp_path):
    X = np.array([[0.0, 1.0], [2.0, nan]])
    np.save(tmp_path / "X.npy", X)
    for source, cls in [
        (X, ArrayBlocks),
        (X.tolist(), ArrayBlocks),
        (sp.csr_array(X), SparseBlocks),
        (tmp_path / "X.npy", ArrayBlocks),
    ]:
        estimator, blocks, coding = fitted(source)
        assert coding is None
        assert isinstance(blocks, cls)
        assert estimator.n_features_in_ == 2
        np.testing.assert_array_equal(blocks.read(0), X)


def test_large_parquet_files_stay_on_disk(tmp_path, monkeypatch):
    path = parquet_file({"a": [1.0, 2.0], "b": [1, 2]}, tmp_path)
    assert isinstance(fitted(path)[1], NumberBlocks)
    monkeypatch.setattr("kplus.data.wrapped.CACHE_BYTES", 0)
    _, blocks, coding = fitted(path, categorical=[1])
    assert isinstance(blocks, ColumnBlocks)
    np.testing.assert_array_equal(blocks.read(0), [[1, 0], [2, 1]])
    later = parquet_file({"a": [1.0, 2.0], "b": [1, 3]}, tmp_path)
    with pytest.raises(DataError, match=r"'b' holds 3 \(row 1\)"):
        open_mixed_table(Mixed(), later, reset=True, coding=coding)


def test_booleans_are_categories():
    _, _, coding = fitted(pl.DataFrame({"a": [1.0, 2.0], "b": [True, None]}))
    assert coding.categories == (None, (False, True))


@every_source
def test_after_a_fit_on_numbers_text_is_refused(make, tmp_path):
    estimator, _, coding = fitted(make({"a": [1.0, 2.0]}, tmp_path))
    X = make({"a": ["x", "y"]}, tmp_path)
    with pytest.raises(DataError, match=r"'a'.* not numbers"):
        open_mixed_table(estimator, X, reset=False, coding=coding)


def test_after_a_fit_on_numbers_booleans_count_as_numbers():
    estimator, _, _ = fitted(pl.DataFrame({"a": [1.0, 0.0]}))
    X = pl.DataFrame({"a": [True, False]})
    blocks, coding = open_mixed_table(estimator, X, reset=False)
    assert coding is None
    assert isinstance(blocks, FrameBlocks)


# ---------------------------------------------------------------- after coded fits


def test_arrays_of_codes_are_refused_after_a_fit_with_categories(tmp_path):
    estimator, _, coding = fitted(pd.DataFrame(COLUMNS))
    X = np.zeros((2, 3))
    np.save(tmp_path / "X.npy", X)
    for source in (X, sp.csr_array(X), tmp_path / "X.npy"):
        with pytest.raises(DataError, match=r"no column names.*'size', 'color'"):
            open_mixed_table(estimator, source, reset=False, coding=coding)


def test_csv_text_that_looks_like_numbers_is_matched_as_text(tmp_path):
    estimator, _, coding = fitted(pd.DataFrame({"zip": ["01", "02", "x"]}))
    (tmp_path / "more.csv").write_text("zip\n02\n01\n")
    blocks, _ = open_mixed_table(
        estimator, tmp_path / "more.csv", reset=False, coding=coding
    )
    np.testing.assert_array_equal(blocks.read(0), [[1], [0]])


def test_csv_columns_may_be_empty_after_the_fit(tmp_path):
    estimator, _, coding = fitted(csv_file(COLUMNS, tmp_path))
    (tmp_path / "more.csv").write_text("size,color,room\n,,\n,,\n")
    blocks, _ = open_mixed_table(
        estimator, tmp_path / "more.csv", reset=False, coding=coding
    )
    assert np.isnan(blocks.read(0)).all()


@every_file
def test_files_give_the_blocks_of_the_frame(make, tmp_path):
    path = make(COLUMNS, tmp_path)
    np.testing.assert_array_equal(
        fitted(path)[1].read(0), fitted(pd.DataFrame(COLUMNS))[1].read(0)
    )


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        fitted(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError):
        open_mixed_table(Mixed(), tmp_path / "none.csv", reset=False, coding=CODING)


def test_dates_in_files_are_left_out_by_name(tmp_path):
    (tmp_path / "dates.csv").write_text("day,x\n2024-01-01,1\n")
    with pytest.warns(ColumnsWarning, match="left out: dates: day"):
        _, blocks, _ = fitted(tmp_path / "dates.csv")
    assert blocks.feature_names == ["x"]


# ---------------------------------------------------------------- arrays


OBJECTS = np.array([[1.5, "red", 7], [None, None, 9], [3.0, "blue", 7]], dtype=object)


@pytest.mark.parametrize("X", [OBJECTS, OBJECTS.tolist()], ids=["array", "lists"])
def test_arrays_of_text_and_numbers(X):
    estimator, blocks, coding = fitted(X)
    assert coding == Coding(("0", "1", "2"), CODING.categories)
    assert estimator.n_features_in_ == 3
    assert not hasattr(estimator, "feature_names_in_")
    np.testing.assert_array_equal(blocks.read(0), CODES)
    again, same = open_mixed_table(
        estimator, [[0, "blue", 1]], reset=False, coding=coding
    )
    assert same is coding
    np.testing.assert_array_equal(again.read(0), [[0, 0, 1]])
    later = [[0, "pink", 1]]
    with pytest.raises(DataError, match=r"Column 1 holds 'pink' \(row 0\)"):
        open_mixed_table(estimator, later, reset=False, coding=coding)
    blocks, _ = open_mixed_table(
        estimator, later, reset=False, coding=coding, unknown="missing"
    )
    np.testing.assert_array_equal(blocks.read(0), [[0, nan, 1]])


@pytest.mark.parametrize("choice", [[1], [False, True]])
def test_arrays_with_categories_on_request(choice, tmp_path):
    X = np.array([[1, 70], [2, 90], [3, 70]])
    np.save(tmp_path / "X.npy", X)
    for source in (X, X.astype(object), X.tolist(), tmp_path / "X.npy"):
        _, blocks, coding = fitted(source, categorical=choice)
        assert coding.categories == (None, (70, 90))
        np.testing.assert_array_equal(blocks.read(0), [[1, 0], [2, 1], [3, 0]])


def test_mistaken_requests_for_arrays(tmp_path):
    X = np.zeros((3, 2))
    np.save(tmp_path / "X.npy", X)
    for source in (X, X.astype(object), tmp_path / "X.npy", sp.csr_array(X)):
        for choice in (["a"], [2], [True], [True, 1]):
            with pytest.raises(DataError, match="categorical_features"):
                fitted(source, categorical=choice)


def test_sparse_matrices_have_no_categories():
    X = sp.csr_array(np.eye(3))
    with pytest.raises(DataError, match=r"sparse.*categorical_features.*dense"):
        fitted(X, categorical=[0])
    estimator, _, coding = fitted(np.eye(3), categorical=[0])
    with pytest.raises(DataError, match=r"sparse.*dense"):
        open_mixed_table(estimator, X, reset=False, coding=coding)


def test_objects_that_are_numbers_are_numbers():
    X = np.array([[1.0, nan], [2.0, 3.0]])
    estimator, blocks, coding = fitted(X.astype(object))
    assert coding is None
    assert isinstance(blocks, ArrayBlocks)
    np.testing.assert_array_equal(blocks.read(0), X)
    text = np.array([[1.0, "a"]], dtype=object)
    with pytest.raises(DataError, match="Column 1 holds text, not numbers"):
        open_mixed_table(estimator, text, reset=False)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.array([["2024"]], dtype="datetime64"), "X holds datetime64.*neither"),
        (np.array([[b"a"]]), r"X holds \|S1, neither"),
        (np.array([[1j]]), "[Cc]omplex"),
        (np.array(["a", "b"], dtype=object), "1D array|2D array"),
        ([[1, "a"], [2]], "inhomogeneous"),
        (np.array([["a", 1], [2, 1]], dtype=object), "Column 0 mixes numbers and text"),
    ],
)
def test_arrays_of_no_use(X, words):
    with pytest.raises(ValueError, match=words):
        fitted(X)


@every_source
def test_tables_with_names_after_an_array(make, tmp_path):
    estimator, _, coding = fitted(OBJECTS)
    X = make(COLUMNS, tmp_path)
    if make in (pandas_frame, polars_frame, arrow_table):
        with pytest.warns(UserWarning, match="fitted without feature names"):
            blocks, same = open_mixed_table(estimator, X, reset=False, coding=coding)
    else:
        blocks, same = open_mixed_table(estimator, X, reset=False, coding=coding)
    assert same is coding
    np.testing.assert_array_equal(blocks.read(0), CODES)


@pytest.mark.parametrize("model", [DPMeans(), DPMixture(), CRAFT()], ids=repr)
def test_what_is_constant_in_a_first_batch_may_vary_in_the_next(model):
    rng = np.random.default_rng(0)
    first = pd.DataFrame({"x": rng.normal(size=60), "errors": 0.0})
    model.set_params(random_state=0).partial_fit(first)
    later = first.assign(errors=rng.normal(9.0, 1.0, 60))
    model.partial_fit(later)
    assert list(model.feature_names_in_) == ["x", "errors"]
    assert not model._streaming
    with pytest.warns(ColumnsWarning, match="constant: errors"):
        model.fit(first)
