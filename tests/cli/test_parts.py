"""What ``kplus fit`` says of features, added up part by part: the same as at once."""

import tracemalloc

import numpy as np
import polars as pl
import pytest

from kplus.base import answers
from kplus.cli.features import FeatureTally

MODELS = {
    "bp-means": [],
    "k-features": ["--components", 3],
    "meibp": ["--prior", "gaussian"],
    "ibp-variational": ["--max-components", 4],
    "ibp-gibbs": ["--sweeps", 5, "--burn-in", 5],
    "dp-means": ["--clusters", 3],
}


@pytest.fixture
def rows(X):
    """More rows than a block has, with gaps."""
    Z = np.random.default_rng(1).random((300, 3)) < [0.5, 0.4, 0.2]
    rows = Z @ X[::50] + np.random.default_rng(2).normal(0, 0.1, (300, 3)) + 20.0
    rows[::11, 1] = np.nan
    return rows


def tables(folder):
    others = (".kplus", ".html")
    return {path.name: path for path in folder.iterdir() if path.suffix not in others}


def told(done):
    result = done.json
    return {key: result[key] for key in result if key not in ("seconds", "files")}


@pytest.mark.parametrize("kind", ["npy", "csv"])
@pytest.mark.parametrize("model", MODELS)
def test_parts_change_nothing(kplus, rows, tmp_path, monkeypatch, model, kind):
    monkeypatch.setattr("kplus.data.blocks._BLOCK_BYTES", 1)  # blocks of 32 rows
    if model in ("bp-means", "k-features", "dp-means"):
        rows = np.nan_to_num(rows, nan=20.0)
    path = tmp_path / f"x.{kind}"
    if kind == "npy":
        np.save(path, rows)
    else:
        pl.DataFrame(rows, schema=["a", "b", "c"]).fill_nan(None).write_csv(path)
    words = ["fit", path, "--model", model, *MODELS[model], "--scale", "--json"]
    whole = kplus(*words, "-o", tmp_path / "whole")
    assert whole.code == 0, whole.err
    monkeypatch.setattr(answers, "PART_ROWS", 64)
    parts = kplus(*words, "-o", tmp_path / "parts")
    assert parts.code == 0, parts.err
    assert told(parts) == told(whole)
    expected = tables(tmp_path / "whole")
    assert expected.keys() == tables(tmp_path / "parts").keys() != set()
    for name, file in tables(tmp_path / "parts").items():
        assert file.read_bytes() == expected[name].read_bytes(), name


def test_parquet_in_parts(kplus, rows, tmp_path, monkeypatch):
    monkeypatch.setattr("kplus.data.blocks._BLOCK_BYTES", 1)
    np.save(tmp_path / "x.npy", rows)
    words = ["fit", tmp_path / "x.npy", "--model", "meibp", "--prior", "gaussian"]
    words += ["--scale", "--format", "parquet", "-o"]
    assert kplus(*words, tmp_path / "whole").code == 0
    monkeypatch.setattr(answers, "PART_ROWS", 64)
    assert kplus(*words, tmp_path / "parts").code == 0
    whole, parts = (
        pl.read_parquet(tmp_path / name / "features.parquet")
        for name in ("whole", "parts")
    )
    assert parts.equals(whole)


# ------------------------------------------------------------------ the tally


def brute_force(Z):
    """Combinations by the number of their rows, then by their first row."""
    found = {}
    for i, z in enumerate(map(tuple, Z.tolist())):
        first, number = found.get(z, (i, 0))
        found[z] = first, number + 1
    order = sorted(found, key=lambda z: (-found[z][1], found[z][0]))
    return [list(z) for z in order], [found[z][1] for z in order]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("K", [0, 1, 3, 8, 9, 64, 65, 130])
def test_combinations_are_those_of_all_rows(K, size):
    rng = np.random.default_rng(K)
    Z = (rng.random((200, K)) < rng.random(K)).astype(np.uint8)
    Z[50:] = Z[rng.integers(0, 50, 150)]
    tally = FeatureTally(K)
    for start in range(0, len(Z), size):
        tally.add(Z[start : start + size])
    patterns, counts = tally.combinations()
    assert (patterns.tolist(), counts.tolist()) == brute_force(Z)
    assert tally.n_rows == 200
    np.testing.assert_array_equal(tally.counts, Z.sum(axis=0))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_base_is_in_all_rows_that_have_a_value(size):
    Z = np.array([[1, 1], [0, 1], [0, 0], [1, 1], [0, 1]], dtype=np.uint8)
    rows = np.ones((5, 2))
    rows[1, 0] = np.nan
    for missing, base in ((True, 1), (False, None)):
        rows[2] = np.nan if missing else 1.0
        tally = FeatureTally(2)
        for i in range(0, 5, size):
            tally.add_values(rows[i : i + size], Z[i : i + size])
        assert tally.base == base


def test_memory_does_not_grow_with_the_rows():
    tally = FeatureTally(10)
    Z = np.random.default_rng(0).integers(0, 2, (4096, 10), dtype=np.uint8)
    tally.add(Z)
    tracemalloc.start()
    for _ in range(200):
        tally.add(Z)
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert now < 10 * Z.nbytes
    assert tally.combinations()[1].sum() == tally.n_rows == 201 * 4096
