"""Converted tables: one matrix in a file, and what its columns are."""

import json
import os
import pickle

import numpy as np
import polars as pl
import pytest

import kplus
from kplus import CRAFT, DataError, DPMeans, DPMixture
from kplus.data import convert as module
from kplus.data.converted import ConvertedRows

pytest.importorskip("pyarrow")


@pytest.fixture
def frame():
    """Numbers with gaps, categories of each kind, and names of rows."""
    rng = np.random.default_rng(0)
    n = 600
    group = rng.integers(0, 3, n)
    b = pl.Series(rng.normal(size=n) - group)
    return pl.DataFrame(
        {
            "id": [f"{i:05d}" for i in range(n)],
            "a": group * 5 + rng.normal(size=n),
            "b": pl.select(pl.when(b > 2).then(None).otherwise(b)).to_series(),
            "color": np.array(["red", "blue", "green"])[group],
            "good": group > 0,
            "room": rng.integers(9, 12, n),
        }
    )


@pytest.fixture
def data(frame, tmp_path):
    frame.write_parquet(tmp_path / "table.parquet", row_group_size=100)
    return tmp_path / "table.parquet"


def assert_same(model, other):
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(other, name))


# ------------------------------------------------------------------ equal fits


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    "model",
    [
        CRAFT(n_clusters=3, categorical_features=["room"], random_state=0),
        CRAFT(random_state=1),
        DPMixture("mixed", random_state=0),
    ],
)
def test_fits_with_categories_are_the_same(frame, tmp_path, model, kind):
    path = tmp_path / f"table.{kind}"
    frame = frame.drop("id")
    (frame.write_parquet if kind == "parquet" else frame.write_csv)(path)
    asked = getattr(model, "categorical_features", "from_dtype")
    kplus.convert(path, tmp_path / "rows", categorical=asked)
    one, other = (type(model)(**model.get_params()) for _ in range(2))
    one.fit(path)
    other.fit(tmp_path / "rows")
    assert_same(one, other)
    assert one.categories_ == other.categories_
    np.testing.assert_array_equal(one.predict(tmp_path / "rows"), one.labels_)
    np.testing.assert_array_equal(other.predict(frame), one.labels_)


def test_fits_with_numbers_are_the_same(frame, data, tmp_path):
    """Yes and no are 1 and 0 to those who take numbers."""
    columns = ["a", "good", "room"]
    kplus.convert(data, tmp_path / "rows", columns=columns)
    one = DPMeans(penalty=9.0, random_state=0)
    one.fit(kplus.open_files(data, columns=columns))
    other = DPMeans(penalty=9.0, random_state=0).fit(tmp_path / "rows")
    assert_same(one, other)
    assert list(other.feature_names_in_) == columns


def test_single_numbers_stay_so(frame, tmp_path):
    single = frame.select(pl.col("a").cast(pl.Float32), y=pl.col("a").cast(pl.Float32))
    single.write_parquet(tmp_path / "single.parquet")
    manifest = kplus.convert(tmp_path / "single.parquet", tmp_path / "rows")
    assert manifest["dtype"] == "float32"
    one = DPMeans(penalty=9.0, random_state=0).fit(tmp_path / "single.parquet")
    assert_same(one, DPMeans(penalty=9.0, random_state=0).fit(tmp_path / "rows"))


def test_matrices(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "0.npy", X[:30])
    np.save(tmp_path / "in" / "1.npy", X[30:])
    manifest = kplus.convert(tmp_path / "in", tmp_path / "rows")
    assert manifest["columns"] is None
    assert len(manifest["sources"]) == 2
    np.testing.assert_array_equal(np.load(tmp_path / "rows" / "rows.npy"), X)
    one, other = (DPMeans(penalty=3.0, random_state=0) for _ in range(2))
    assert_same(one.fit(X), other.fit(tmp_path / "rows"))


def test_many_blocks(frame, data, tmp_path, monkeypatch):
    kplus.convert(data, tmp_path / "whole", index="id", categorical=["room"])
    monkeypatch.setattr("kplus.data.blocks._BLOCK_BYTES", 32 * 8 * 5)
    monkeypatch.setattr("kplus.data.wrapped.CACHE_BYTES", 0)
    kplus.convert(data, tmp_path / "rows", index="id", categorical=["room"])
    for name in ("rows.npy", "manifest.json"):
        whole = (tmp_path / "whole" / name).read_bytes()
        assert (tmp_path / "rows" / name).read_bytes() == whole


def test_what_is_written(frame, data, tmp_path):
    manifest = kplus.convert(
        data, tmp_path / "rows", index="id", drop=["good"], categorical=["room"]
    )
    assert manifest == json.loads((tmp_path / "rows" / "manifest.json").read_text())
    assert manifest["format"] == "kplus-rows"
    assert manifest["columns"] == ["a", "b", "color", "room"]
    assert manifest["categories"][2:] == [["blue", "green", "red"], [9, 10, 11]]
    assert manifest["index"] == "id"
    (source,) = manifest["sources"]
    assert source == {"path": str(data), "bytes": data.stat().st_size}
    rows = np.load(tmp_path / "rows" / "rows.npy")
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows[:, 0], frame["a"])
    np.testing.assert_array_equal(np.isnan(rows[:, 1]), frame["b"].is_null())
    np.testing.assert_array_equal(rows[:, 3] + 9, frame["room"])
    index = pl.read_parquet(tmp_path / "rows" / "index.parquet")
    assert index["id"].equals(frame["id"])


def test_float32(data, frame, tmp_path):
    kplus.convert(data, tmp_path / "rows", index="id", dtype="float32")
    rows = np.load(tmp_path / "rows" / "rows.npy")
    assert rows.dtype == np.float32
    one = CRAFT(n_clusters=3, random_state=0).fit(tmp_path / "rows")
    blocks = kplus.open_files(tmp_path / "rows")
    assert blocks.read(0).dtype == np.float64
    assert one.n_clusters_ == 3
    huge = pl.when(pl.int_range(len(frame)) < 5).then(1e300).otherwise("a")
    frame.with_columns(a=huge).write_parquet(data)
    with pytest.raises(
        DataError, match=r"'a' holds 1e\+300 \(row 0\).*dtype='float64'"
    ):
        kplus.convert(data, tmp_path / "new", index="id", dtype="float32")
    assert not (tmp_path / "new").exists()


def test_a_converted_table_can_be_converted(data, tmp_path):
    kplus.convert(data, tmp_path / "one", index="id")
    kplus.convert(tmp_path / "one", tmp_path / "two")
    for name in ("rows.npy", "index.parquet"):
        one = (tmp_path / "one" / name).read_bytes()
        assert (tmp_path / "two" / name).read_bytes() == one
    with pytest.raises(DataError, match="none can be chosen"):
        kplus.convert(tmp_path / "one", tmp_path / "three", drop=["a"])


def test_blocks_of_ones_own(tmp_path):
    class Own:
        n_rows, n_features, block_rows, feature_names = 50, 2, 20, ["x", "y"]

        def read(self, index):
            return X[index * 20 : (index + 1) * 20]

    X = np.random.default_rng(0).normal(size=(50, 2))
    manifest = kplus.convert(Own(), tmp_path / "rows")
    assert manifest["columns"] == ["x", "y"]
    assert manifest["sources"] == []
    np.testing.assert_array_equal(np.load(tmp_path / "rows" / "rows.npy"), X)
    with pytest.raises(DataError, match="not a ndarray"):
        kplus.convert(X, tmp_path / "more")


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    X = np.random.default_rng(0).normal(size=(50, 2))
    zarr.create_array(str(tmp_path / "x.zarr"), data=X, chunks=(20, 2))
    manifest = kplus.convert(tmp_path / "x.zarr", tmp_path / "rows")
    assert manifest["sources"][0]["bytes"] > 300
    np.testing.assert_array_equal(np.load(tmp_path / "rows" / "rows.npy"), X)


@pytest.mark.dask
def test_dask(frame, data, tmp_path):
    frames = pytest.importorskip("dask.dataframe")
    kplus.convert(data, tmp_path / "one", drop=["id"])
    parts = frames.from_pandas(frame.drop("id").to_pandas(), npartitions=3)
    kplus.convert(parts, tmp_path / "two")
    rows = (tmp_path / "one" / "rows.npy").read_bytes()
    assert (tmp_path / "two" / "rows.npy").read_bytes() == rows


# ----------------------------------------------------------------- other codes


def test_other_codes_are_told_by_values(frame, data, tmp_path):
    """The second table has categories in other places of the list."""
    model = CRAFT(n_clusters=3, random_state=0).fit(frame.drop("id"))
    later = frame.drop("id").filter(pl.col("color") != "blue")
    later.write_parquet(tmp_path / "later.parquet")
    kplus.convert(tmp_path / "later.parquet", tmp_path / "rows")
    expected = model.predict(later)
    np.testing.assert_array_equal(model.predict(tmp_path / "rows"), expected)
    blocks = kplus.open_files(tmp_path / "rows")
    np.testing.assert_array_equal(model.predict(blocks.cut(32)), expected)


def test_unknown_categories(frame, tmp_path):
    later = frame.drop("id").with_columns(
        color=pl.when(pl.col("a") > 9).then(pl.lit("pink")).otherwise(pl.col("color"))
    )
    later.write_parquet(tmp_path / "later.parquet")
    kplus.convert(tmp_path / "later.parquet", tmp_path / "rows")
    row = int(np.argmax(later["color"] == "pink"))
    model = CRAFT(n_clusters=3, random_state=0).fit(frame.drop("id"))
    with pytest.raises(DataError, match=rf"'color' holds 'pink' \(row {row}\)"):
        model.predict(tmp_path / "rows")
    model = CRAFT(n_clusters=3, handle_unknown="missing", random_state=0)
    model.fit(frame.drop("id"))
    labels = model.predict(tmp_path / "rows")
    np.testing.assert_array_equal(labels, model.predict(later))


def test_numbers_in_place_of_categories(frame, data, tmp_path):
    kplus.convert(data, tmp_path / "rows", index="id")
    model = CRAFT(n_clusters=3, categorical_features=["room"], random_state=0)
    with pytest.raises(DataError, match="'room' was converted as numbers"):
        model.fit(tmp_path / "rows")
    model.fit(frame.drop("id"))
    with pytest.raises(DataError, match="'room' holds numbers, but held categories"):
        model.predict(tmp_path / "rows")
    numbers = CRAFT(n_clusters=3, random_state=0).fit(frame.select("a", "room"))
    kplus.convert(data, tmp_path / "two", columns=["a", "room"], categorical=["room"])
    with pytest.raises(DataError, match="'room' holds categories"):
        numbers.predict(tmp_path / "two")


@pytest.mark.parametrize("model", [DPMeans(), DPMixture("gaussian"), kplus.KFeatures()])
def test_models_of_numbers_name_the_column(data, tmp_path, model):
    kplus.convert(data, tmp_path / "rows", index="id")
    with pytest.raises(
        DataError, match=r"'color' holds categories .*, not numbers.*drop=\['color'\]"
    ):
        model.fit(tmp_path / "rows")


def test_columns_are_chosen_when_converting(data, tmp_path):
    kplus.convert(data, tmp_path / "rows", index="id")
    with pytest.raises(DataError, match="choose columns when converting"):
        kplus.open_files(tmp_path / "rows", columns=["a"])
    with pytest.raises(DataError, match="not those of the fit"):
        CRAFT(n_clusters=2).fit(tmp_path / "rows").predict(
            kplus.convert(data, tmp_path / "two", columns=["a", "color"])
            and tmp_path / "two"
        )


def test_columns_of_an_open_table(data, tmp_path):
    table = kplus.open_files(data, columns=["b", "a"])
    assert kplus.convert(table, tmp_path / "rows")["columns"] == ["b", "a"]


def test_blocks_travel(data, tmp_path):
    kplus.convert(data, tmp_path / "rows", index="id")
    blocks = kplus.open_files(tmp_path / "rows")
    assert isinstance(blocks, ConvertedRows)
    assert blocks.remote
    text = pickle.dumps(blocks)
    assert len(text) < 4000
    np.testing.assert_array_equal(pickle.loads(text).read(0), blocks.read(0))


# -------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"index": "di"}, "has no column 'di'"),
        ({"drop": ["x"], "index": "id"}, "has no column 'x'"),
        ({"columns": ["x"]}, "has no column 'x'"),
        ({"columns": ["a", "id"], "index": "id"}, "'id' is asked for twice"),
        ({"columns": ["a"], "drop": ["a"]}, "No column"),
        ({"index": "id", "categorical": ["x"]}, "no column 'x'"),
    ],
)
def test_bad_choices(data, tmp_path, options, words):
    with pytest.raises(DataError, match=words):
        kplus.convert(data, tmp_path / "rows", **options)
    assert os.listdir(tmp_path) == [data.name]


def test_names_of_rows_with_gaps(data, frame, tmp_path):
    names = pl.when(pl.int_range(len(frame)) % 9 != 0).then("id")
    frame.with_columns(id=names).write_parquet(data)
    with pytest.warns(kplus.ColumnsWarning, match="left out: ids: id"):
        manifest = kplus.convert(data, tmp_path / "rows")
    assert "id" not in manifest["columns"]
    kept = kplus.convert(data, tmp_path / "all", keep=["id"])
    assert "id" in kept["columns"]


def test_bad_type(data, tmp_path):
    with pytest.raises(ValueError, match="float16"):
        kplus.convert(data, tmp_path / "rows", dtype="float16")


def test_what_is_there_is_replaced_if_asked(data, tmp_path):
    rows = tmp_path / "rows"
    kplus.convert(data, rows, index="id")
    with pytest.raises(FileExistsError, match="there already"):
        kplus.convert(data, rows, columns=["a"])
    kplus.convert(data, rows, columns=["a"], force=True)
    assert sorted(os.listdir(rows)) == ["manifest.json", "rows.npy"]
    assert sorted(os.listdir(tmp_path)) == ["rows", data.name]
    (rows / "mine.txt").touch()
    with pytest.raises(FileExistsError, match="is not replaced"):
        kplus.convert(data, rows, columns=["a"], force=True)
    with pytest.raises(FileExistsError, match="is a file"):
        kplus.convert(data, data, columns=["a"], force=True)


def test_a_failure_leaves_what_was_there(data, tmp_path, monkeypatch):
    rows = tmp_path / "rows"
    kplus.convert(data, rows, index="id")
    before = {path.name: path.read_bytes() for path in rows.iterdir()}

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_write_manifest", fail)
    with pytest.raises(OSError, match="No space"):
        kplus.convert(data, rows, columns=["a"], force=True)
    assert {path.name: path.read_bytes() for path in rows.iterdir()} == before
    assert sorted(os.listdir(tmp_path)) == ["rows", data.name]


# ---------------------------------------------------------------------- damage


def change(**entries):
    def edit(text):
        return json.dumps(json.loads(text) | entries)

    return edit


def drop(key):
    def edit(text):
        plain = json.loads(text)
        del plain[key]
        return json.dumps(plain)

    return edit


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda text: text[:50], "cannot be read as JSON"),
        (lambda text: "", "cannot be read as JSON"),
        (lambda text: "[" * 100_000, "cannot be read as JSON"),
        (lambda text: "[]", "is not one of kplus convert"),
        (change(format="other"), "is not one of kplus convert"),
        (change(version=2), "has version '2'"),
        (change(n_rows=7), r"shape is \(600, 3\), but manifest.json says \(7, 3\)"),
        (change(n_rows=True), "n_rows"),
        (change(n_rows="600"), "n_rows"),
        (change(columns=["a", "a", "color"]), "different names"),
        (change(columns=["a", "color"]), "different names"),
        (change(columns=["a", 1, "color"]), "different names"),
        (change(columns=None), "without names have categories"),
        (change(categories=[None, None]), "different names"),
        (change(categories={}), "categories is no list"),
        (change(categories=[None, None, []]), "no list of different values"),
        (change(categories=[None, None, ["x", "x"]]), "no list of different values"),
        (change(categories=[None, None, [None]]), "no list of different values"),
        (change(categories=[None, None, [["x"]]]), "no list of different values"),
        (change(categories=[None, None, "red"]), "no list of different values"),
        (change(index=3), "index is no name"),
        (drop("categories"), "lacks 'categories'"),
        (drop("index"), "lacks 'index'"),
    ],
)
def test_bad_manifests(data, tmp_path, edit, words):
    kplus.convert(data, tmp_path / "rows", columns=["a", "b", "color"], index="id")
    path = tmp_path / "rows" / "manifest.json"
    path.write_text(edit(path.read_text()))
    with pytest.raises(DataError, match=words) as caught:
        CRAFT().fit(tmp_path / "rows")
    assert str(tmp_path / "rows") in str(caught.value)


@pytest.mark.parametrize("value", [3.0, -1.0, 0.5, np.inf])
def test_codes_that_mean_nothing(data, tmp_path, value):
    kplus.convert(data, tmp_path / "rows", columns=["a", "color"])
    rows = np.load(tmp_path / "rows" / "rows.npy", mmap_mode="r+")
    rows[7, 1] = value
    rows.flush()
    with pytest.raises(DataError, match=r"rows.npy is damaged .*'color' holds"):
        CRAFT(n_clusters=2).fit(tmp_path / "rows")


def test_bad_rows(data, tmp_path):
    kplus.convert(data, tmp_path / "rows", columns=["a", "color"])
    path = tmp_path / "rows" / "rows.npy"
    X = np.load(path)
    np.save(path, np.asfortranarray(X))
    with pytest.raises(DataError, match=r"rows.npy is damaged .*by rows"):
        kplus.open_files(tmp_path / "rows")
    np.save(path, X.astype(int))
    with pytest.raises(DataError, match=r"rows.npy is damaged"):
        kplus.open_files(tmp_path / "rows")
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"rows.npy cannot be read"):
        kplus.open_files(tmp_path / "rows")
    path.unlink()
    with pytest.raises(DataError, match=r"rows.npy is damaged .*not there"):
        kplus.open_files(tmp_path / "rows")


def test_files_that_change_under_way(data, tmp_path):
    kplus.convert(data, tmp_path / "rows", columns=["a"])
    blocks = kplus.open_files(tmp_path / "rows")
    os.utime(tmp_path / "rows" / "rows.npy", ns=(1, 1))
    with pytest.raises(DataError, match=r"rows.npy has changed"):
        DPMeans(penalty=3.0).fit(blocks)
