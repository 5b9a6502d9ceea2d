"""The commands on folders, patterns, Arrow files and Zarr arrays."""

import pickle

import numpy as np
import polars as pl
import pytest
from pyarrow import feather

import kplus as library
from kplus.cli.scaling import ScaledBlocks
from kplus.data.files import open_files
from kplus.data.open import number_blocks

CUTS = {"part-2": slice(0, 50), "part-9": slice(50, 60), "part-10": slice(60, 120)}
WRITERS = {
    "csv": pl.DataFrame.write_csv,
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
    "feather": lambda frame, path: feather.write_feather(frame.to_arrow(), path),
}


@pytest.fixture
def folder(tmp_path, frame):
    """Write rows to three files of a kind, whose names have to be sorted by numbers."""

    def make(kind):
        folder = tmp_path / f"{kind}s"
        folder.mkdir()
        for name, rows in CUTS.items():
            WRITERS[kind](frame[rows], folder / f"{name}.{kind}")
        return folder

    return make


@pytest.fixture
def matrices(tmp_path, X):
    folder = tmp_path / "matrices"
    folder.mkdir()
    for name, rows in CUTS.items():
        np.save(folder / f"{name}.npy", X[rows])
    return folder


@pytest.fixture
def zarr_array(tmp_path, X):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=X.shape, chunks=(50, 3), dtype="f8"
    )
    array[:] = X
    return tmp_path / "x.zarr"


@pytest.mark.parametrize("pattern", [False, True])
@pytest.mark.parametrize("kind", WRITERS)
def test_several_files_with_names_of_rows(
    kplus, folder, named, tmp_path, out, kind, pattern
):
    """As one file: same labels, names and order."""
    words = ["--model", "dp-means", "--clusters", 3, "--index", "id", "--scale"]
    assert kplus("fit", named, *words, "-o", tmp_path / "one").code == 0
    data = folder(kind)
    data = data / f"part-*.{kind}" if pattern else data
    done = kplus("fit", data, *words, "-o", out)
    assert done.code == 0, done.err
    labels = (out / "labels.csv").read_text()
    assert labels == (tmp_path / "one" / "labels.csv").read_text()
    again = kplus("predict", out / "model.kplus", data, "--index", "id")
    assert (again.code, again.out) == (0, labels)


def test_several_files_with_categories(kplus, folder, frame, tmp_path, out):
    kinds = pl.Series("kind", ["x, y", "z"]).gather(np.arange(120) % 2)
    for name, rows in CUTS.items():
        frame.with_columns(kinds)[rows].write_ipc(tmp_path / f"{name}.arrow")
    frame.with_columns(kinds).write_csv(tmp_path / "one.csv")
    words = ["--model", "craft", "--clusters", 3, "--index", "id"]
    assert kplus("fit", tmp_path / "one.csv", *words, "-o", tmp_path / "one").code == 0
    done = kplus("fit", tmp_path / "*.arrow", *words, "-o", out)
    assert done.code == 0, done.err
    for name in ("labels.csv", "description.csv"):
        assert (out / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


@pytest.mark.parametrize("model", ["dp-means", "k-features"])
def test_matrices(kplus, matrices, zarr_array, X, tmp_path, model):
    np.save(tmp_path / "x.npy", X)
    words = ["--model", model, "--clusters", 3, "--scale", "--quiet", "-o"]
    file = "labels.csv" if model == "dp-means" else "features.csv"
    printed = set()
    for number, data in enumerate(
        [tmp_path / "x.npy", matrices, matrices / "*.npy", zarr_array]
    ):
        out = tmp_path / f"out{number}"
        done = kplus("fit", data, *words, out)
        assert done.code == 0, done.err
        printed |= {(out / file).read_text()}
        for other in (matrices, zarr_array):
            again = kplus("predict", out / "model.kplus", other)
            printed |= {again.out}
    assert len(printed) == 1


def test_a_model_with_names_takes_matrices(kplus, data, out, matrices, zarr_array):
    assert kplus("fit", data, "-o", out).code == 0
    for other in (matrices, zarr_array):
        done = kplus("predict", out / "model.kplus", other)
        assert done.out == (out / "labels.csv").read_text()


@pytest.mark.parametrize("kind", WRITERS)
def test_impute_several_files(kplus, folder, frame, tmp_path, out, kind):
    data = folder(kind)
    gap = frame[50:60].with_columns(
        a=pl.when(pl.col("id") == "0052").then(None).otherwise(pl.col("a"))
    )
    WRITERS[kind](gap, data / f"part-9.{kind}")
    words = ["--model", "meibp", "--prior", "gaussian", "--index", "id", "-o", out]
    assert kplus("fit", data, *words).code == 0
    target = tmp_path / "filled.csv"
    done = kplus("impute", out / "model.kplus", data, "-o", target)
    assert "Filled 1 value in 1 column." in done.err
    filled = pl.read_csv(target, schema_overrides={"id": pl.String})
    assert filled["id"].to_list() == frame["id"].to_list()
    assert filled["b"].to_list() == frame["b"].to_list()
    rows = frame.select("a", "b", "c").to_numpy(writable=True)
    rows[52, 0] = np.nan
    expected = library.load(out / "model.kplus").impute(
        pl.DataFrame(rows, ["a", *"bc"])
    )
    assert filled["a"][52] == expected[52, 0]


def test_impute_matrices(kplus, matrices, zarr_array, X, out):
    words = ["--model", "meibp", "--prior", "gaussian", "-o", out]
    assert kplus("fit", matrices, *words).code == 0
    done = kplus("impute", out / "model.kplus", zarr_array)
    rows = np.loadtxt(done.out.splitlines()[1:], delimiter=",")
    np.testing.assert_array_equal(rows, X)


def test_nothing_matches(kplus, tmp_path, out):
    kplus("fit", tmp_path / "*.csv", "-o", out).refuses("matches no file")


def test_scaled_blocks_travel(folder):
    source = number_blocks(open_files(folder("parquet"), ["a", "b"]))
    scaled = ScaledBlocks(source, np.array([1.0, 2]), np.array([2.0, 4]), ["a", "b"])
    assert scaled.remote
    again = pickle.loads(pickle.dumps(scaled))
    np.testing.assert_array_equal(again.read(0), scaled.read(0))
    assert again.feature_names == ["a (standardised)", "b (standardised)"]
    np.testing.assert_array_equal(again.cut(32).read(3), scaled.read(0)[96:])


def test_a_european_spreadsheet(kplus, tmp_path, out):
    path = tmp_path / "umsatz.csv"
    path.write_bytes("größe;wert\n1,5;2\n1,6;2\n9,5;-\n9,6;8\n".encode("cp1252"))
    done = kplus("fit", path, "-o", out, "--clusters", 2)
    assert done.code == 0, done.err
    assert "umsatz.csv: 4 rows, 2 columns of numbers used. The file has" in done.err
    assert done.err.count("CP1252") == 1
    quiet = kplus("fit", path, "-o", out, "--clusters", 2, "--quiet", "--force")
    assert (quiet.code, quiet.err) == (0, "")
