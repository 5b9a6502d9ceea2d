"""CSV files as spreadsheets of all countries write them."""

import gzip

import numpy as np
import pytest

from kplus.data.dialect import Dialect
from kplus.data.files import open_files

pytest.importorskip("pyarrow")

EXPECTED = {"a": [1.5, 2.5], "b": [2, 3]}
FILES = {
    "semicolons": (b"a;b\n1.5;2\n2.5;3\n", "semicolons between columns"),
    "tabs": (b"a\tb\n1.5\t2\n2.5\t3\n", "tabs between columns"),
    "bars": (b"a|b\n1.5|2\n2.5|3\n", "bars between columns"),
    "decimal commas": (b"a;b\n1,5;2\n2,5;3\n", "columns, decimal commas"),
    "quoted decimals": (b'a,b\n"1,5",2\n"2,5",3\n', "decimal commas"),
    "UTF-16": ("a,b\n1.5,2\n2.5,3\n".encode("utf-16"), "UTF-16"),
    "mark of UTF-8": (b"\xef\xbb\xbfa,b\n1.5,2\n2.5,3\n", None),
    "plain": (b"a,b\n1.5,2\n2.5,3\n", None),
}


def read(folder, content, name="x.csv"):
    (folder / name).write_bytes(content)
    files = open_files(folder / name)
    return files.read(files.names).to_pydict(), Dialect.of(folder / name)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("small", [True, False])
def test_files(tmp_path, monkeypatch, name, small):
    if not small:
        monkeypatch.setattr("kplus.data.csv._SMALL_BYTES", 0)
    content, words = FILES[name]
    table, dialect = read(tmp_path, content)
    assert table == EXPECTED
    assert dialect.words == words or words in dialect.words
    if not name.startswith("UTF"):
        again, _ = read(tmp_path, gzip.compress(content), "x.csv.gz")
        assert again == EXPECTED


def test_titles_are_left_out(tmp_path):
    rows = "a,b,c\n1.5,2,x\n2.5,3,y\n3.5,4,z\n4.5,5,w\n"
    for above in ["Sales\n", "Sales 2026\n\n", "\nSales\nby region\n\n"]:
        table, dialect = read(tmp_path, (above + rows).encode())
        assert table["a"] == [1.5, 2.5, 3.5, 4.5]
        assert "above the names of columns (left out)" in dialect.words


def test_a_line_of_numbers_is_no_line_of_names(tmp_path):
    table, dialect = read(tmp_path, b"1,2\n3,4\n")
    assert table == {"column 0": [1, 3], "column 1": [2, 4]}
    assert dialect.words == "no names of columns (called column 0 to column 1)"


def test_letters_of_windows(tmp_path):
    table, dialect = read(tmp_path, "größe,preis\n1,2€\n2,3\n".encode("cp1252"))
    assert table == {"größe": [1, 2], "preis": ["2€", "3"]}
    assert dialect.encoding == "cp1252"


@pytest.mark.parametrize("small", [True, False])
def test_marks_for_nothing_in_a_column_of_numbers(tmp_path, monkeypatch, small):
    if not small:
        monkeypatch.setattr("kplus.data.csv._SMALL_BYTES", 0)
    table, _ = read(tmp_path, b"a,b,c\n1.5,NA,1\nNaN,x,2\nnull,?,n/a\nNA,y,3\n")
    assert np.isnan(np.array(table["a"][1:], float)).all()
    assert table["b"] == ["NA", "x", "?", "y"]  # in text they may mean something
    assert table["c"] == ["1", "2", "n/a", "3"]  # a word of people's, to be counted


@pytest.mark.parametrize(
    "content",
    [
        b"notes\nhello; world\nbye\n",  # one column
        b'a,b\n"1,234",2\n"5,678",3\n',  # thousands
        b'a,b\n"x;y;z",2\n"u;v;w",3\n',
        b"a,b\n",
        b"",
    ],
)
def test_files_with_commas_stay_so(tmp_path, content):
    (tmp_path / "x.csv").write_bytes(content)
    assert Dialect.of(tmp_path / "x.csv") == Dialect()


def test_dp_means_of_a_european_spreadsheet(tmp_path):
    from kplus import DPMeans

    (tmp_path / "x.csv").write_bytes(b"h\xf6he;wert\n1,5;2\n1,6;2\n9,5;8\n9,6;8\n")
    model = DPMeans(n_clusters=2, random_state=0).fit(tmp_path / "x.csv")
    assert model.feature_names_in_.tolist() == ["höhe", "wert"]
    assert model.labels_.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
