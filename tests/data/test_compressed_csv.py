"""Small files that hold much are not taken for small tables."""

import gzip

import numpy as np
import pytest

from kplus.core.errors import DataError
from kplus.core.reading import read_all
from kplus.data.files import open_files
from kplus.data.open import number_blocks

arrow = pytest.importorskip("kplus.data.arrow")
csv = pytest.importorskip("kplus.data.csv")


def compressed(path, n_rows):
    """Lines that compress by a factor of hundreds."""
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n" + b"0,12345678\n" * n_rows)
    return path


def test_compressed_files_are_not_judged_by_their_size(tmp_path, monkeypatch):
    path = compressed(tmp_path / "X.csv.gz", 20_000)
    assert path.stat().st_size < 2_000
    assert isinstance(open_files(path), arrow.InMemory)
    monkeypatch.setattr(csv, "_SMALL_BYTES", 100_000)
    table = open_files(path)
    assert isinstance(table, arrow.ArrowFiles)
    expected = np.tile([0.0, 12345678.0], (20_000, 1))
    np.testing.assert_array_equal(read_all(number_blocks(table)), expected)


def test_several_compressed_files(tmp_path, monkeypatch):
    for name in "ab":
        compressed(tmp_path / f"{name}.csv.gz", 1_000)
    assert isinstance(open_files(tmp_path), arrow.InMemory)
    monkeypatch.setattr(csv, "_SMALL_BYTES", 15_000)  # less than both, more than one
    assert isinstance(open_files(tmp_path), arrow.ArrowFiles)
    assert isinstance(open_files(tmp_path / "a.csv.gz"), arrow.InMemory)


def test_a_damaged_stream(tmp_path):
    path = compressed(tmp_path / "X.csv.gz", 1_000)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataError, match=r"X\.csv\.gz is damaged or cut short"):
        open_files(path)
