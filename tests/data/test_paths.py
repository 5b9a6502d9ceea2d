"""Folders and patterns: rows in the order of names, and files that go together."""

import itertools
import pickle

import numpy as np
import pytest

from coded_tables import coding_of
from kplus.core.errors import DataError
from kplus.core.reading import read_all
from kplus.data.files import open_files
from kplus.data.open import has_columns, number_blocks
from kplus.data.paths import find_files

pa = pytest.importorskip("pyarrow")
import pyarrow.feather as feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

X = np.random.default_rng(0).normal(size=(57, 3))
CUTS = [0, 10, 11, 40, 57]


def write_parts(folder, kind, X=X):
    """The rows in four files, whose names are not in the order of letters."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (start, stop) in enumerate(itertools.pairwise(CUTS)):
        path = folder / f"part-{8 + number}{kind}"  # 8, 9, 10, 11
        part = X[start:stop]
        if kind == ".npy":
            np.save(path, part)
            continue
        table = pa.table(dict(zip("abc", part.T.copy(), strict=True)))
        if kind == ".parquet":
            pq.write_table(table, path, row_group_size=4)
        elif kind == ".feather":
            feather.write_feather(table, path, chunksize=4)
        else:
            lines = [",".join(map(repr, map(float, row))) for row in part]
            path.write_text("\n".join(["a,b,c", *lines]))


@pytest.mark.parametrize("kind", [".npy", ".parquet", ".feather", ".csv"])
class TestRows:
    @pytest.fixture
    def folder(self, tmp_path, kind):
        write_parts(tmp_path / "data", kind)
        return tmp_path / "data"

    @pytest.mark.parametrize("block_rows", [1, 7, 29, 1000, None])
    def test_of_a_folder_come_in_the_order_of_numbers(self, folder, block_rows):
        blocks = number_blocks(open_files(folder), block_rows)
        assert (blocks.n_rows, blocks.n_features) == X.shape
        np.testing.assert_array_equal(read_all(blocks), X)
        rows = np.array([0, 9, 10, 11, 39, 40, 56])
        np.testing.assert_array_equal(blocks.take(rows), X[rows])
        assert blocks.take(rows[:0]).shape == (0, 3)

    def test_of_a_pattern(self, folder, kind):
        pattern = folder / f"part-1*{kind}"
        np.testing.assert_array_equal(
            read_all(number_blocks(open_files(pattern))), X[11:]
        )
        deep = folder.parent / "**" / f"*{kind}"
        np.testing.assert_array_equal(read_all(number_blocks(open_files(deep))), X)

    def test_are_not_pickled(self, folder, kind):
        blocks = number_blocks(open_files(folder), 7)
        assert blocks.remote == (kind != ".csv")
        again = pickle.loads(pickle.dumps(blocks))
        np.testing.assert_array_equal(read_all(again), X)

    def test_may_be_cut_anew(self, folder):
        blocks = number_blocks(open_files(folder), 7)
        other = blocks.cut(5)
        assert (blocks.block_rows, other.block_rows) == (7, 5)
        assert blocks.cut(None) is blocks
        np.testing.assert_array_equal(read_all(other), X)

    def test_hidden_files_are_left_alone(self, folder):
        (folder / "_SUCCESS").touch()
        (folder / ".part.crc").touch()
        assert len(find_files(folder).paths) == 4


class TestColumns:
    def test_are_chosen(self, tmp_path):
        write_parts(tmp_path / "data", ".parquet")
        files = open_files(tmp_path / "data", columns=["c", "a"])
        blocks = number_blocks(files)
        assert blocks.feature_names == ["c", "a"]
        np.testing.assert_array_equal(read_all(blocks), X[:, [2, 0]])
        assert has_columns(files)
        assert not has_columns(blocks)

    def test_unknown_or_twice(self, tmp_path):
        write_parts(tmp_path / "data", ".parquet")
        with pytest.raises(DataError, match=r"no column 'cc'; did you mean 'c'\?"):
            open_files(tmp_path / "data", columns=["a", "cc"])
        with pytest.raises(DataError, match="2 columns called 'a'"):
            open_files(tmp_path / "data", columns=["a", "a"])

    def test_of_matrices_have_no_names(self, tmp_path):
        write_parts(tmp_path / "data", ".npy")
        with pytest.raises(DataError, match=r"no names of columns.*'a'"):
            open_files(tmp_path / "data", columns=["a"])

    def write(self, folder, *tables):
        for i, table in enumerate(tables):
            pq.write_table(pa.table(table), folder / f"{i}.parquet")
        return folder

    def test_may_be_in_another_order(self, tmp_path):
        folder = self.write(
            tmp_path, {"a": [1.0], "b": [2.0]}, {"b": [4.0], "a": [3.0]}
        )
        rows = read_all(number_blocks(open_files(folder)))
        np.testing.assert_array_equal(rows, [[1, 2], [3, 4]])

    def test_numbers_may_be_of_other_types(self, tmp_path):
        single = pa.array([2.5], pa.float32())
        folder = self.write(
            tmp_path, {"a": [1]}, {"a": single}, {"a": pa.nulls(1)}, {"a": [4.5]}
        )
        rows = read_all(number_blocks(open_files(folder)))
        np.testing.assert_array_equal(rows, [[1], [2.5], [np.nan], [4.5]])

    @pytest.mark.parametrize(
        ("types", "common"),
        [
            (["int32", "int64"], "int64"),
            (["int64", "int8", "uint32"], "int64"),
            (["uint8", "uint64"], "uint64"),
            (["uint64", "int64"], "float64"),  # no integer type holds both
            (["int32", "float32"], "float64"),
        ],
    )
    def test_integers_stay_integers(self, tmp_path, types, common):
        columns = [{"a": pa.array([1], dtype)} for dtype in types]
        files = open_files(self.write(tmp_path, *columns))
        assert files.schema.field("a").type == common
        rows = read_all(number_blocks(files))
        np.testing.assert_array_equal(rows, np.ones((len(types), 1)))

    def test_large_integers_keep_their_digits(self, tmp_path):
        large = 2**53 + 1  # no float64
        folder = self.write(
            tmp_path, {"id": pa.array([1], pa.int32())}, {"id": [large]}
        )
        files = open_files(folder)
        assert files.read(["id"])["id"].to_pylist() == [1, large]
        assert coding_of(files, ["id"]).categories == ((1, large),)

    def test_text_may_be_in_dictionaries(self, tmp_path):
        words = pa.array(["x", "y"])
        folder = self.write(
            tmp_path,
            {"a": words},
            {"a": words.dictionary_encode()},
            {"a": words.cast(pa.large_string())},
        )
        files = open_files(folder)
        assert files.read(["a"]).column(0).to_pylist() == ["x", "y"] * 3

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            ({"a": ["x"]}, "'a' holds int64 in .*0.parquet, but string in .*1.parquet"),
            ({"a": [True]}, "'a' holds int64 in .*, but bool"),
            ({"b": [1]}, "1.parquet has no column 'a'"),
            ({"a": [1], "b": [1]}, "0.parquet has no column 'b'"),
        ],
    )
    def test_must_be_alike(self, tmp_path, other, message):
        folder = self.write(tmp_path, {"a": [1]}, other)
        with pytest.raises(DataError, match=message):
            open_files(folder)


class TestMistakes:
    def test_no_match(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="matches no file"):
            open_files(tmp_path / "*.npy")

    def test_kinds_that_do_not_go_together(self, tmp_path):
        np.save(tmp_path / "a.npy", X)
        (tmp_path / "b.csv").write_text("a\n1\n")
        with pytest.raises(DataError, match=r"a\.npy and b\.csv"):
            open_files(tmp_path)

    def test_unknown_kind_inside(self, tmp_path):
        np.save(tmp_path / "a.npy", X)
        (tmp_path / "readme.txt").touch()
        with pytest.raises(DataError, match=r"readme\.txt"):
            open_files(tmp_path)

    def test_matrices_of_other_widths(self, tmp_path):
        np.save(tmp_path / "a.npy", X)
        np.save(tmp_path / "b.npy", X[:, :2])
        with pytest.raises(
            DataError, match=r"b\.npy has 2 columns, but .*a\.npy has 3"
        ):
            open_files(tmp_path)

    def test_a_file_name_with_a_bracket_is_a_file_name(self, tmp_path):
        np.save(tmp_path / "a[1].npy", X)
        assert open_files(tmp_path / "a[1].npy").n_rows == 57
