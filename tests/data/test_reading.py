"""How tables are read, and that nothing is lost on the way."""

import pickle
import string
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus import DataError
from kplus.data.blocks import FrameBlocks
from kplus.data.dates import DateNumbers
from kplus.data.files import open_files
from kplus.data.open import as_read, open_data
from kplus.data.reading import Odd, Reading, YesNo, odd_words
from kplus.data.recognise import recognised
from kplus.data.roles import Wishes
from kplus.data.text_numbers import NumberFormat, is_blank

pa = pytest.importorskip("pyarrow")
import pyarrow.csv as pacsv  # noqa: E402

nan = np.nan
N = 40
COLUMNS = {
    "id": [f"C{i}" for i in range(N)],
    "paid": [*[f"€{i % 7}.50" for i in range(N - 2)], "see note", "-"],
    "rate": [f"{i % 5}%" for i in range(N)],
    "since": [*[f"2026-01-{i % 28 + 1:02d}" for i in range(N - 1)], "soon"],
    "again": ["yes", "no", "n/a", "YES"] * (N // 4),
    "size": [i % 6 + 0.5 for i in range(N)],
    "note": [*[str(i % 9) for i in range(N - 10)], *["a", "b"] * 5],
    "kind": ["a", "b", "NA", "a"] * (N // 4),
    "none": [None] * N,
}


def in_file(folder, columns, name="t.csv"):
    table = pa.table(
        {k: pa.array(map(_text, v), pa.string()) for k, v in columns.items()}
    )
    pacsv.write_csv(table, folder / name)
    return open_files(folder / name)


def _text(value):
    return None if value is None else str(value)


MAKERS = {
    "pandas": lambda folder, columns: FrameBlocks(pd.DataFrame(columns)),
    "polars": lambda folder, columns: FrameBlocks(pl.DataFrame(columns)),
    "arrow": lambda folder, columns: FrameBlocks(pa.table(columns)),
    "file": in_file,
}


@pytest.fixture(params=MAKERS)
def opened(request, tmp_path):
    return lambda columns: MAKERS[request.param](tmp_path, columns)


def columns_of(table):
    """The columns of a table as it is read, as lists."""
    if isinstance(table, FrameBlocks):
        return {str(c.name): c.to_list() for c in table.frame.iter_columns()}
    return table.read(table.names).to_pydict()


def floats(values):
    return np.array([nan if v is None else v for v in values], float)


def test_what_is_recognised(opened):
    read = recognised(opened(COLUMNS), Wishes())
    reading = read.reading
    assert reading.left_out == {"id": "ids", "since": "dates", "none": "empty"}
    assert reading.made == {
        "paid": {"paid": NumberFormat(".", "€")},
        "rate": {"rate": NumberFormat(".", "%")},
    }
    assert reading.odd == {"paid": Odd(38, 2, ("-", "see note"))}
    assert reading.notes == {"note": "30 of 40 are numbers"}
    assert reading.blanks == {"kind": "NA"}
    columns = columns_of(read)
    assert list(columns) == ["paid", "rate", "again", "size", "note", "kind"]
    expected = [*[i % 7 + 0.5 for i in range(38)], nan, nan]
    np.testing.assert_array_equal(floats(columns["paid"]), expected)


def test_for_models_of_numbers(opened):
    read = recognised(opened(COLUMNS), Wishes(numbers_only=True, dates="age"))
    columns = columns_of(read)
    again = floats(columns["again"])
    np.testing.assert_array_equal(again[:4], [1, 0, nan, 1])
    ages = floats(columns["since age (days)"])
    assert np.isnan(ages).sum() == 1
    assert np.nanmin(ages) == 0
    assert read.reading.odd == {
        "paid": Odd(38, 2, ("-", "see note")),
        "since": Odd(39, 1, ("soon",)),
        "again": Odd(30, 10, ("n/a",)),
    }


def test_words(opened):
    reading = recognised(opened(COLUMNS), Wishes()).reading
    told = reading.told()
    for words in (
        "Columns left out: ids: id; dates: since; empty: none.",
        "Read as numbers: paid (amounts in €; 38 of 40 cells, the others count as "
        "missing: '-', 'see note'), rate (percent).",
        "'NA' counts as missing: kind.",
        "Taken as categories: 'note': 30 of 40 are numbers;",
    ):
        assert words in told
    assert Reading().told() == ""
    assert odd_words({}) == ""
    many = Reading(left_out={f"d{i}": "dates" for i in range(10)})
    assert many.left_out_words() == "dates: d0, d1, d2, d3, d4, d5, d6, d7 and 2 more"
    ids = Reading(left_out={f"d{i}": "ids" for i in range(10)})  # numbers may be lost
    assert ids.left_out_words().endswith("d7, d8, d9")


def test_later_tables_are_read_alike(opened):
    wishes = Wishes(numbers_only=True, dates="parts")
    reading = recognised(opened(COLUMNS), wishes).reading
    later = {name: values[:3] for name, values in COLUMNS.items()}
    later |= {"paid": ["€1.5", "x", None], "none": [1, 2, 3], "again": ["no", "?", "x"]}
    read = as_read(opened(later), reading)
    columns = columns_of(read)
    assert list(columns) == reading.names(list(COLUMNS))
    np.testing.assert_array_equal(floats(columns["paid"]), [1.5, nan, nan])
    np.testing.assert_array_equal(floats(columns["again"]), [0, nan, nan])
    assert read.odd_cells()["paid"] == Odd(1, 1, ("x",))
    assert read.reading is reading
    # ... also where what was text holds numbers now
    numbers = as_read(opened(later | {"paid": [1.5, 2.5, 3.5]}), reading)
    np.testing.assert_array_equal(floats(columns_of(numbers)["paid"]), [1.5, 2.5, 3.5])


def test_later_tables_keep_their_columns(opened):
    """Ids, constants and empty columns are those of the fit."""
    fit = {"x": [1.0, 2.0] * 20, "y": [i % 7 for i in range(N)], "k": [3, 4] * 20}
    reading = recognised(opened(fit), Wishes()).reading
    later = {"x": [1.0] * N, "y": list(range(N)), "k": [None] * N}
    assert list(columns_of(as_read(opened(later), reading))) == ["x", "y", "k"]


def test_odd_cells_of_later_tables(opened):
    """In columns that held numbers throughout in the fit."""
    later = {
        "x": ["1.5", "2.5", "see note", "-"],
        "y": ["a", "b", "c", "d"],
        "z": [1] * 4,
    }
    read = as_read(opened(later), Reading(), numbers=["x", "y", "z"])
    columns = columns_of(read)
    np.testing.assert_array_equal(floats(columns["x"]), [1.5, 2.5, nan, nan])
    assert columns["y"] == ["a", "b", "c", "d"]  # which is refused then
    assert odd_words(read.odd_cells()) == (
        "Read as numbers: x (2 of 4 cells, the others count as missing: '-', "
        "'see note')."
    )


def test_names_that_are_no_text():
    frame = pd.DataFrame({0: np.arange(N) % 7 / 2, 1: 1.0, 2: range(N)})
    read = recognised(FrameBlocks(frame), Wishes())
    assert read.feature_names == ["0"]
    assert read.read(0).shape == (N, 1)


def test_rows_keep_their_names():
    frame = pd.DataFrame(COLUMNS, index=[f"r{i}" for i in range(N)])
    read = recognised(FrameBlocks(frame), Wishes(dates="parts")).frame.to_native()
    assert read.index.equals(frame.index)
    assert read["paid"].iloc[3] == 3.5


def test_where_nothing_would_be_left(opened):
    only = {"id": COLUMNS["id"], "none": [None] * N}
    with pytest.raises(DataError, match="No column is left to use; there are ids: id"):
        recognised(opened(only), Wishes())
    constant = recognised(opened({"x": [1.5] * N, "y": [2] * N}), Wishes())
    assert list(columns_of(constant)) == ["x", "y"]  # rather than nothing


def test_two_columns_of_one_name():
    for frame in (
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.table([[1], [2]], names=["a", "a"]),
    ):
        with pytest.raises(DataError, match="2 columns called 'a'; rename them"):
            open_data(frame)


def test_files_of_json_keep_it(opened):
    reading = recognised(
        opened(COLUMNS), Wishes(numbers_only=True, dates="age")
    ).reading
    assert Reading.from_json(reading.to_json()) == reading
    with pytest.raises(ValueError, match=r"."):
        Reading.from_json({"a": 1})
    with pytest.raises(ValueError, match="makes no column"):
        Reading(made={"x": {"x": 3}})
    assert Reading(made={"x": {"x": YesNo(), "y": DateNumbers("year")}})


def test_files_in_parts(tmp_path, monkeypatch):
    """Numbers made of text are kept in files for scratch where they are many."""
    once = recognised(in_file(tmp_path, COLUMNS), Wishes())
    monkeypatch.setattr("kplus.data.read_columns.CACHE_BYTES", 0)
    monkeypatch.setattr("kplus.data.csv._SMALL_BYTES", 0)
    monkeypatch.setattr("kplus.data.csv._PIECE_BYTES", 400)
    table = in_file(tmp_path, COLUMNS, "again.csv")
    assert len(table.counts) > 2
    parts = recognised(table, Wishes())
    assert parts.reading == once.reading
    for _ in range(2):
        assert columns_of(parts) == columns_of(once)
    assert columns_of(pickle.loads(pickle.dumps(parts))) == columns_of(once)


# ------------------------------------------------------------------ whatever comes

ODD = ["-", "n/a", "?", "see note", "12 or 13", "€5", "7%", "1,5", "1.234,5", "", "NA"]
CELL = (
    st.none() | st.sampled_from(ODD) | st.integers(-99, 10**6).map(str)
    | st.floats(-1e4, 1e4).map("{:.2f}".format)
    | st.dates().map(str) | st.sampled_from(["yes", "no", "a", "b", "007"])
    | st.text(string.printable, max_size=5)
)  # fmt: skip
PLAIN = st.floats(-1e4, 1e4).map("{:.2f}".format)


@st.composite
def tables(draw):
    n = draw(st.integers(1, 30))
    names = draw(
        st.lists(
            st.text(string.ascii_letters, min_size=1),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    columns = {}
    for name in names:
        cells = draw(
            st.lists(draw(st.sampled_from([CELL, PLAIN])), min_size=n, max_size=n)
        )
        for i in draw(st.lists(st.integers(0, n - 1), max_size=2)):
            cells[i] = draw(CELL)
        columns[name] = cells
    return columns


@given(tables(), st.booleans(), st.sampled_from(["ignore", "parts", "age"]))
def test_nothing_is_lost_silently(columns, numbers_only, dates):
    """Each cell is used, blank, in a column that is named, or counted as odd."""
    wishes = Wishes(numbers_only=numbers_only, dates=dates)
    for frame in (pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)),
                  pd.DataFrame(columns, dtype=object)):  # fmt: skip
        refusal, read = "", None
        try:
            read = recognised(FrameBlocks(frame), wishes)
        except DataError as error:
            refusal = str(error)
        if read is None:
            assert any(name in refusal for name in columns)
            continue
        reading = read.reading
        after = columns_of(read)
        assert list(after) == reading.names(list(columns))
        told = reading.told()
        for name, cells in columns.items():
            if name in reading.left_out:
                assert name in told
                continue
            there = sum(not (c is None or is_blank(c)) for c in cells)
            first = next(iter(reading.made.get(name, {name: None})))
            values = after[first]
            used = sum(not (v is None or v != v or is_blank(v)) for v in values)
            odd = reading.odd.get(name)
            assert used + (0 if odd is None else odd.odd) == there
            if odd is not None:
                assert odd.numbers == used
                assert name in told
            if reading.made.get(name) and "NumberFormat" in str(reading.made[name]):
                lost = [
                    c for c, v in zip(cells, values, strict=True) if v is None or v != v
                ]
                assert not any(_is_plain(cell) for cell in lost)
        again = columns_of(as_read(FrameBlocks(frame), reading))
        assert str(again) == str(after)


def _is_plain(cell):
    try:
        return cell is not None and "," not in cell and np.isfinite(float(cell))
    except ValueError:
        return False


@given(tables())
def test_files_are_read_as_frames(tmp_path_factory, columns):
    folder = tmp_path_factory.mktemp("fuzz")
    text = {
        k: [None if c is None else c.replace("\x00", "") for c in v]
        for k, v in columns.items()
    }
    frame = pd.DataFrame(text)
    frame.to_csv(folder / "t.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            table = open_files(folder / "t.csv")
            read = recognised(table, Wishes())
        except DataError:
            return
    assert read.n_rows <= len(frame)
    assert list(columns_of(read)) == read.reading.names(table.names)
    assert set(read.reading.names(table.names)) | set(read.reading.left_out) | set(
        read.reading.made
    ) == set(table.names)
