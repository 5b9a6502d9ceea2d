"""Folders in folders: whose rows are read, and whose names may hold columns."""

import pickle

import numpy as np
import pandas as pd
import pytest

from every_estimator import assert_same_attributes, mixed_rows
from kplus import CRAFT
from kplus.core.errors import DataError
from kplus.core.reading import read_all
from kplus.data.files import open_files
from kplus.data.open import number_blocks

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset as dataset  # noqa: E402
import pyarrow.feather as feather  # noqa: E402

from kplus.data.arrow import as_text  # noqa: E402

FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [4, 5, 6]})
WRITERS = {
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False),
    ".feather": lambda frame, path: feather.write_feather(frame, str(path)),
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
}


def write(path, frame=FRAME):
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[path.suffix](frame, path)


@pytest.mark.parametrize("kind", WRITERS)
class TestColumns:
    """Of all kinds of files that have columns."""

    @pytest.fixture
    def folder(self, tmp_path, kind):
        for month in (2, 10):
            for color in ("red", "blue"):
                inside = tmp_path / "t" / f"month={month}" / f"color={color}"
                write(inside / f"part-0{kind}", FRAME + month)
        return tmp_path / "t"

    def test_have_the_values_of_the_names(self, folder):
        files = open_files(folder)
        assert files.names == ["x", "y", "month", "color"]
        table = files.read(files.names).to_pydict()
        assert table["month"] == [2] * 6 + [10] * 6
        assert table["color"] == (["blue"] * 3 + ["red"] * 3) * 2
        assert table["x"] == [3.0, 4.0, 5.0] * 2 + [11.0, 12.0, 13.0] * 2

    def test_are_those_of_pyarrow(self, folder, kind):
        files, form = open_files(folder), kind[1:]
        whole = dataset.dataset(folder, format=form, partitioning="hive").to_table()
        assert files.names == whole.column_names
        order = [(name, "ascending") for name in ("month", "color", "x")]
        mine = files.read(files.names).cast(whole.schema).sort_by(order)
        assert mine.equals(whole.sort_by(order))

    def test_are_numbers_or_categories(self, folder):
        blocks = number_blocks(open_files(folder, columns=["month", "x"]), 5)
        assert read_all(blocks)[:, 0].tolist() == [2] * 6 + [10] * 6
        with pytest.raises(DataError, match=r"'color' .* holds string"):
            number_blocks(open_files(folder))
        files = as_text(open_files(folder), ["month"])
        assert files.column(0, "month", as_dictionary=True).to_pylist() == ["2"] * 3

    def test_are_read_elsewhere(self, folder, kind):
        files = open_files(folder)
        assert files.remote == (kind != ".csv")
        again = pickle.loads(pickle.dumps(files))
        assert again.read(files.names).equals(files.read(files.names))

    def test_are_none_of_a_pattern(self, folder, kind):
        files = open_files(folder / "**" / f"*{kind}")
        assert (files.names, files.n_rows) == (["x", "y"], 12)
        inside = open_files(folder / "month=2")
        assert inside.names == ["x", "y", "color"]


def test_a_long_csv_file_has_them(tmp_path, monkeypatch):
    monkeypatch.setattr("kplus.data.csv._SMALL_BYTES", 0)
    write(tmp_path / "plant=007" / "a.csv")
    write(tmp_path / "plant=010" / "a.csv")
    assert set(open_files(tmp_path).read(["plant"])["plant"].to_pylist()) == {7, 10}
    files = open_files(tmp_path, text=["plant"])
    assert files.read(["plant"])["plant"].to_pylist() == ["007"] * 3 + ["010"] * 3


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (["k=1", "k=__HIVE_DEFAULT_PARTITION__"], [1, None]),
        (["k=a", "k=__HIVE_DEFAULT_PARTITION__"], ["a", None]),
        (["k=1", "k=old"], ["1", "old"]),
        (["k=a%20b%2Fc", "k=ü"], ["a b/c", "ü"]),
        (["k=1=2", "k="], ["1=2", ""]),
        (["k=99999999999", "k=-5"], [99999999999, -5]),
    ],
)
def test_values(tmp_path, names, values):
    for name in names:
        write(tmp_path / name / "p.parquet", FRAME[:1])
    found = open_files(tmp_path).read(["k"])["k"].to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, values))


def test_names_may_be_encoded(tmp_path):
    write(tmp_path / "a%20b=1" / "=2" / "p.parquet")
    assert open_files(tmp_path).names == ["x", "y", "a b"]


def test_what_pandas_partitions_is_fitted_as_the_frame(tmp_path):
    frame, _ = mixed_rows(80)
    group = pd.Series(np.arange(len(frame)) % 3).map({0: "a", 1: "b", 2: "c"})
    frame = frame.assign(group=group).sort_values("group", kind="stable")
    frame.to_parquet(tmp_path, partition_cols=["group"], index=False)
    model = CRAFT(random_state=0, batch_size=32).fit(tmp_path)
    other = CRAFT(random_state=0, batch_size=32).fit(frame)
    assert_same_attributes(model, other)


class TestRows:
    def test_of_folders_inside_are_read(self, tmp_path):
        write(tmp_path / "b" / "2" / "p.parquet", FRAME + 2)
        write(tmp_path / "b" / "10" / "p.parquet", FRAME + 3)
        write(tmp_path / "a.parquet", FRAME + 1)
        write(tmp_path / "_temporary" / "p.parquet")
        write(tmp_path / ".hidden" / "p.parquet")
        rows = read_all(number_blocks(open_files(tmp_path)))
        expected = np.concatenate([FRAME + i for i in (1, 2, 3)])
        np.testing.assert_array_equal(rows, expected)

    def test_of_matrices(self, tmp_path):
        for i in (2, 10):
            (tmp_path / f"{i}").mkdir()
            np.save(tmp_path / f"{i}" / "x.npy", np.full((2, 3), float(i)))
        rows = read_all(number_blocks(open_files(tmp_path)))
        assert rows[:, 0].tolist() == [2, 2, 10, 10]


class TestMistakes:
    def test_a_file_without_the_column(self, tmp_path):
        write(tmp_path / "year=2026" / "p.parquet")
        write(tmp_path / "q.parquet")
        with pytest.raises(DataError, match=r"q\.parquet has no column 'year'"):
            open_files(tmp_path)

    def test_a_column_that_files_have_too(self, tmp_path):
        write(tmp_path / "y=1" / "p.parquet")
        with pytest.raises(DataError, match=r"p\.parquet has 2 columns called 'y'"):
            open_files(tmp_path)

    def test_columns_of_matrices(self, tmp_path):
        (tmp_path / "year=2026").mkdir()
        np.save(tmp_path / "year=2026" / "x.npy", np.zeros((2, 3)))
        with pytest.raises(DataError, match=r"year=2026.*pattern.*\*\*/\*\.npy"):
            open_files(tmp_path)
        assert open_files(tmp_path / "**" / "*.npy").n_rows == 2

    def test_other_kinds_inside(self, tmp_path):
        write(tmp_path / "a.parquet")
        write(tmp_path / "b" / "c.csv")
        with pytest.raises(DataError, match=r"a\.parquet and c\.csv"):
            open_files(tmp_path)

    def test_damage_inside(self, tmp_path):
        write(tmp_path / "year=1" / "p.parquet")
        (tmp_path / "year=2").mkdir()
        (tmp_path / "year=2" / "p.parquet").write_bytes(b"PAR1")
        with pytest.raises(DataError, match=r"year=2.p\.parquet cannot be read"):
            open_files(tmp_path)

    def test_only_empty_folders(self, tmp_path):
        (tmp_path / "year=2026").mkdir()
        with pytest.raises(DataError, match="empty folder"):
            open_files(tmp_path)

    def test_a_circle(self, tmp_path):
        write(tmp_path / "a" / "p.parquet")
        (tmp_path / "a" / "b").symlink_to(tmp_path, target_is_directory=True)
        with pytest.raises(DataError, match="leads back"):
            open_files(tmp_path)
