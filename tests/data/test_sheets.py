"""Excel sheets and JSON records."""

import datetime
import json

import pytest

from kplus.core.errors import DataError
from kplus.data.files import open_files

pytest.importorskip("pyarrow")


def read(path, **options):
    files = open_files(path, **options)
    return files.read(files.names).to_pydict()


@pytest.fixture
def sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")

    def write(rows, name="x.xlsx"):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(tmp_path / name)
        return tmp_path / name

    return write


ROWS = [
    ["a", "b", "when"],
    *([i, f"v{i % 2}", datetime.date(2026, 1, i + 1)] for i in range(6)),
]


def test_a_sheet(sheet):
    table = read(sheet(ROWS))
    assert table["a"] == list(range(6))
    assert table["b"] == ["v0", "v1"] * 3
    assert table["when"][0] == datetime.datetime(2026, 1, 1)


def test_titles_totals_and_empty_columns_of_sheets(sheet):
    rows = [["Sales 2026"], [], *([*row, None] for row in ROWS), ["Total", 15]]
    table = read(sheet(rows), skip_last=1)
    assert list(table) == ["a", "b", "when"]
    assert table["a"] == list(range(6))
    assert read(sheet(rows), skip_first=1, skip_last=1) == table


def test_cells_of_several_types(sheet):
    rows = [
        ["a", "b", "c"],
        [1, 1.5, True],
        ["x", 2, False],
        [None, None, None],
        [2.0, 3, True],
    ]
    table = read(sheet(rows))
    assert table == {"a": ["1", "x", "2"], "b": [1.5, 2, 3], "c": [True, False, True]}


def test_bad_sheets(sheet, tmp_path):
    for rows, words in [
        ([], "is empty"),
        ([["a", "b"]], "no rows"),
        ([["a", "a"], [1, 2]], "2 columns called 'a'"),
        ([["a", None, "c"], [1, 2, 3], [4, 5, 6]], "Column 2 of .* has no name"),
    ]:
        with pytest.raises(DataError, match=words):
            read(sheet(rows))
    (tmp_path / "bad.xlsx").write_bytes(b"no sheet")
    with pytest.raises(DataError, match="damaged, protected or of another format"):
        read(tmp_path / "bad.xlsx")
    (tmp_path / "old.xls").write_bytes(b"")
    with pytest.raises(DataError, match=r"save the sheet as \.xlsx or \.csv"):
        read(tmp_path / "old.xls")


RECORDS = [{"a": i, "b": "x", "c": {"d": i / 2}} for i in range(3)]


def test_objects_per_line(tmp_path):
    for name in ("x.jsonl", "x.ndjson", "x.json"):
        (tmp_path / name).write_text("\n".join(map(json.dumps, RECORDS)))
        assert read(tmp_path / name) == {
            "a": [0, 1, 2], "b": ["x"] * 3, "c.d": [0, 0.5, 1],
        }  # fmt: skip


def test_lists_of_objects(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(RECORDS))
    assert read(path)["c.d"] == [0, 0.5, 1]
    path.write_text(json.dumps([{"a": 1}, {"a": "x", "b": 2}]))
    assert read(path) == {"a": ["1", "x"], "b": [None, 2]}


@pytest.mark.parametrize("text", ["[1, 2]", "{", "[]", "", "[{}]", "7", "[[1]]"])
def test_bad_json(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DataError, match=r"x\.json"):
        read(tmp_path / "x.json")
