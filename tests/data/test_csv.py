"""CSV files that are copied part by part, plain or compressed, as if read whole."""

import gc
import gzip

import numpy as np
import pytest

from kplus.core.errors import DataError
from kplus.core.reading import read_all
from kplus.data.files import open_files
from kplus.data.open import number_blocks
from kplus.engine.resources import resources

pa = pytest.importorskip("pyarrow")
from pyarrow.csv import open_csv  # noqa: E402

from kplus.data import arrow_files, csv  # noqa: E402


@pytest.fixture
def small_parts(monkeypatch):
    """All files count as long, and are read some hundred bytes at a time."""
    monkeypatch.setattr("kplus.data.csv._SMALL_BYTES", 0)
    monkeypatch.setattr("kplus.data.csv._PIECE_BYTES", 200)


def write(folder, header, rows, name="long.csv"):
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def both(path, monkeypatch, **settings):
    """The table copied, and read whole."""
    copied = open_files(path, **settings)
    with monkeypatch.context() as patch:
        patch.setattr("kplus.data.csv._SMALL_BYTES", 10**9)
        whole = open_files(path, **settings)
    assert len(copied.counts) > 1 == len(whole.counts)
    return copied, whole


# What a column turns out to hold after a hundred rows of something else.
LATE = {
    "decimals": (["1"] * 100, ["2.5"]),
    "text": (["1"] * 100, ["x"]),
    "text after decimals": (["1.5"] * 100, ["x"]),
    "text after none": ([""] * 100, ["x"]),
    "numbers after none": ([""] * 100, ["3"]),
    "decimals after none": ([""] * 100, ["3.5"]),
    "flags after none": ([""] * 100, ["true"]),
    "dates after none": ([""] * 100, ["2026-01-01"]),
    "text after flags": (["true"] * 100, ["maybe"]),
    "times after dates": (["2026-01-01"] * 100, ["2026-01-01 10:00:00"]),
    "text after times": (["10:00:00"] * 100, ["noon"]),
    "text after dates": (["2026-01-01"] * 100, ["soon"]),
    "zones after none": ([""] * 100, ["2026-01-01T10:00:00Z"]),
    "finer times": (["2026-01-01T10:00:00Z"] * 100, ["2026-01-01T10:00:00.5Z"]),
    "text after zones": (["2026-01-01T10:00:00Z"] * 100, ["2026-01-01"]),
    "flags after flags": (["1", "0"] * 50, ["true"]),
    "flags after numbers": (["5"] * 100, ["true"]),
    "flags after flags and numbers": (["1"] * 60 + ["5"] * 60, ["true"]),
    "quotes and line breaks": (["1"] * 100, ['"a ""b"",\nc"']),
    "times after days": (["2026-01-01"] * 100, ["10:00:00"]),
    "blanks around numbers": ([" 1"] * 100, [" 2.5 "]),
    "words for none": (["1", "NA"] * 50, ["2.5"]),
    "other digits": (["1"] * 100, ["0x1F"]),
    "other digits after decimals": (["1.5"] * 100, ["0x1F"]),
    "huge numbers": (["1"] * 100, ["99999999999999999999"]),
}


@pytest.mark.parametrize("late", LATE)
def test_types_are_those_of_the_whole(tmp_path, monkeypatch, small_parts, late):
    early, then = LATE[late]
    column = [*early, *then, *early[:3]]
    rows = [f"{i},{value}" for i, value in enumerate(column)]
    copied, whole = both(write(tmp_path, "i,x", rows), monkeypatch)
    assert copied.schema == whole.schema
    assert copied.read(["i", "x"]).equals(whole.read(["i", "x"]))


def test_a_file_is_read_three_times(tmp_path, monkeypatch, small_parts):
    """However many columns turn out to hold something else, one after the other."""
    read = []

    def counted(path, *args, **kwargs):
        read.append(path)
        return open_csv(path, *args, **kwargs)

    monkeypatch.setattr("kplus.data.csv.open_csv", counted)
    late = [then for _, [then] in LATE.values()]
    early = [first[0] for first, _ in LATE.values()]
    rows = [
        ",".join(late[:i] + early[i:]) for i in range(len(LATE) + 1) for _ in range(30)
    ]
    path = write(tmp_path, ",".join(f"c{j}" for j in range(len(LATE))), rows)
    copied, whole = both(path, monkeypatch)
    assert copied.schema == whole.schema
    assert copied.read(copied.names).equals(whole.read(whole.names))
    assert len(read) == 3


def test_a_file_that_goes_on_as_it_began_is_read_once(
    tmp_path, monkeypatch, small_parts
):
    monkeypatch.delattr("kplus.data.csv._Copier._wider")
    open_files(write(tmp_path, "a,b", ["1,x", "2,"] * 100))


def test_text_stays_as_it_is_written(tmp_path, monkeypatch, small_parts):
    rows = [f"r{i},{i:04d},{i}" for i in range(200)]
    path = write(tmp_path, ",id, x ", rows)
    copied, whole = both(path, monkeypatch, text=["id"])
    assert copied.index_names == [""]
    assert copied.names == ["id", "x"]
    assert copied.read(["", "id", "x"]).equals(whole.read(["", "id", "x"]))
    assert copied.read(["id"]).column(0)[7].as_py() == "0007"


def test_numbers_as_blocks(tmp_path, small_parts):
    X = np.random.default_rng(0).normal(size=(300, 4))
    lines = [",".join(map(repr, map(float, row))) for row in X]
    files = open_files(write(tmp_path, "a,b,c,d", lines))
    np.testing.assert_array_equal(read_all(number_blocks(files, 17)), X)
    assert not number_blocks(files).remote


def test_copies_are_gone_with_the_table(tmp_path, monkeypatch, small_parts):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    files = open_files(write(tmp_path, "a,b", ["1,2"] * 100))
    part = files.select(["b"])
    del files
    gc.collect()
    assert part.read(["b"]).num_rows == 100
    assert list((tmp_path / "scratch").iterdir())
    del part
    gc.collect()
    assert not list((tmp_path / "scratch").iterdir())


def test_copies_are_in_the_scratch_folder(tmp_path, monkeypatch, small_parts):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    path = write(tmp_path, "a,b", ["1,2"] * 100)
    with resources(scratch=tmp_path / "scratch"):
        files = open_files(path)
    assert len(list((tmp_path / "scratch").rglob("*.arrow"))) == 1
    assert files.read(["b"]).num_rows == 100
    del files
    gc.collect()
    assert not list((tmp_path / "scratch").iterdir())
    with pytest.raises(OSError, match="scratch"):
        open_files(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["1,2"] * 100 + ["3"], r"Line 102 of .*long\.csv: 2 fields expected"),
        ([], "no rows"),
    ],
)
def test_errors_name_file_and_line(tmp_path, small_parts, rows, message):
    with pytest.raises(DataError, match=message):
        open_files(write(tmp_path, "a,b", rows))


def test_errors_name_the_file_not_the_copy(tmp_path, small_parts):
    files = open_files(write(tmp_path, "a,b", ["1,x"] * 100))
    with pytest.raises(DataError, match=r"'b' of .*long\.csv holds string"):
        number_blocks(files)


# ------------------------------------------------------------------ compressed


def compressed(path, n_rows):
    """Lines that compress by a factor of hundreds."""
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n" + b"0,12345678\n" * n_rows)
    return path


def test_compressed_files_are_not_judged_by_their_size(tmp_path, monkeypatch):
    path = compressed(tmp_path / "X.csv.gz", 20_000)
    assert path.stat().st_size < 2_000
    assert isinstance(open_files(path), arrow_files.InMemory)
    monkeypatch.setattr(csv, "_SMALL_BYTES", 100_000)
    table = open_files(path)
    assert isinstance(table, arrow_files.ArrowFiles)
    expected = np.tile([0.0, 12345678.0], (20_000, 1))
    np.testing.assert_array_equal(read_all(number_blocks(table)), expected)


def test_several_compressed_files(tmp_path, monkeypatch):
    for name in "ab":
        compressed(tmp_path / f"{name}.csv.gz", 1_000)
    assert isinstance(open_files(tmp_path), arrow_files.InMemory)
    monkeypatch.setattr(csv, "_SMALL_BYTES", 15_000)  # less than both, more than one
    assert isinstance(open_files(tmp_path), arrow_files.ArrowFiles)
    assert isinstance(open_files(tmp_path / "a.csv.gz"), arrow_files.InMemory)


def test_a_damaged_stream(tmp_path):
    path = compressed(tmp_path / "X.csv.gz", 1_000)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataError, match=r"X\.csv\.gz is damaged or cut short"):
        open_files(path)
