"""``kplus impute`` by mixtures and CRAFT, saved or fitted on the spot."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kplus as library


@pytest.fixture
def table():
    """A number, a whole number and a category that go together, and an identifier."""
    rng = np.random.default_rng(0)
    n = 150
    z = rng.integers(0, 2, n)
    frame = pl.DataFrame(
        {
            "id": [f"r{i:04d}" for i in range(n)],
            "size": rng.normal(6 * z, 1),
            "age": rng.normal(30 + 20 * z, 2).astype(int),
            "pet": np.array(["cat", "dog, large"])[z],
            "code": np.array(["01", "02"])[z],
        }
    )
    for name in ("size", "age", "pet", "code"):
        frame = frame.with_columns(
            pl.when(pl.Series(rng.random(n) < 0.1)).then(None).otherwise(pl.col(name))
            .alias(name)
        )  # fmt: skip
    return frame


COLUMNS = ["size", "age", "pet", "code"]
KINDS = {"csv": pl.DataFrame.write_csv, "parquet": pl.DataFrame.write_parquet}


@pytest.fixture(params=KINDS)
def path(request, table, tmp_path):
    KINDS[request.param](table, tmp_path / f"x.{request.param}")
    return tmp_path / f"x.{request.param}"


@pytest.fixture
def csv(table, tmp_path):
    table.write_csv(tmp_path / "x.csv")
    return tmp_path / "x.csv"


def read(path):
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    return pl.read_csv(path, schema_overrides={"id": pl.String, "code": pl.String})


def fit(kplus, path, out, *words):
    options = ["--index", "id", "--categorical", "code", "-o", out, "--quiet"]
    done = kplus("fit", path, *options, *words)
    assert done.code == 0, done.err
    return out / "model.kplus"


@pytest.mark.parametrize("model", ["dp-mixture", "craft"])
@pytest.mark.parametrize("kind", KINDS)
def test_mixed_tables(kplus, path, table, tmp_path, out, model, kind):
    saved = fit(kplus, path, out, "--model", model)
    target = tmp_path / f"filled.{kind}"
    done = kplus("impute", saved, path, "-o", target)
    n_gaps = table.null_count().sum_horizontal().item()
    assert f"Filled {n_gaps} values in 4 columns." in done.err
    filled = read(target)
    assert filled.schema == table.schema
    assert filled.null_count().sum_horizontal().item() == 0
    for name in table.columns:
        seen = table[name].is_not_null()
        assert filled[name].filter(seen).equals(table[name].filter(seen))
    by_library = library.load(saved).impute(table.select(COLUMNS))
    assert filled.select(COLUMNS).equals(by_library)
    large = filled.filter(table["size"].is_null() & (table["age"] > 40))
    assert large["size"].min() > 4


def test_parts(kplus, table, tmp_path, out, monkeypatch):
    """Neither parts nor pieces of files matter."""
    path = tmp_path / "x.parquet"
    table.write_parquet(path, row_group_size=37)
    saved = fit(kplus, path, out)
    whole = kplus("impute", saved, path, "--quiet").out
    monkeypatch.setattr("kplus.base.answers.PART_ROWS", 16)
    monkeypatch.setattr("kplus.data.blocks._BLOCK_BYTES", 1)
    assert kplus("impute", saved, path, "--quiet").out == whole
    assert whole.count("\n") == 151
    assert '"dog, large"' in whole


def test_json(kplus, csv, table, out):
    saved = fit(kplus, csv, out)
    result = kplus("impute", saved, csv, "--json").json
    assert result["n_rows"] == 150
    assert result["n_filled"] == len(result["values"])
    assert result["columns"] == {n: table[n].null_count() for n in COLUMNS}
    by_library = library.load(saved).impute(table.select(COLUMNS))
    for entry in result["values"]:
        assert by_library[entry["column"]][entry["row"]] == entry["value"]


def test_draws(kplus, csv, table, tmp_path, out):
    saved = fit(kplus, csv, out)
    target = tmp_path / "filled.csv"
    done = kplus("impute", saved, csv, "--draws", 3, "--seed", 1, "-o", target)
    assert ", 3 times." in done.err
    drawn = read(target)
    assert drawn.columns == ["draw", *table.columns]
    assert drawn["draw"].to_list() == np.repeat([0, 1, 2], 150).tolist()
    assert drawn.null_count().sum_horizontal().item() == 0
    gaps = table["size"].is_null().to_numpy()
    sizes = drawn["size"].to_numpy().reshape(3, 150)
    assert np.array_equal(sizes[0, ~gaps], sizes[1, ~gaps])
    assert np.all(sizes[0, gaps] != sizes[1, gaps])
    words = ["--seed", 1, "-o", target, "--force", "--quiet"]
    kplus("impute", saved, csv, "--draws", 3, *words)
    assert read(target).equals(drawn)
    values = kplus("impute", saved, csv, "--draws", 2, "--json").json["values"]
    assert {entry["draw"] for entry in values} == {0, 1}


def test_fitted_on_the_spot(kplus, csv, table, tmp_path):
    target = tmp_path / "filled.csv"
    words = ["--index", "id", "--categorical", "code"]
    done = kplus("impute", csv, "-o", target, *words)
    assert done.code == 0, done.err
    filled = read(target)
    assert filled.null_count().sum_horizontal().item() == 0
    assert filled["id"].to_list() == table["id"].to_list()
    model = library.DPMixture("mixed", random_state=0).fit(table.select(COLUMNS))
    assert filled.select(COLUMNS).equals(model.impute(table.select(COLUMNS)))
    again = kplus("impute", csv, "--quiet", *words)
    assert again.out == target.read_text()


def test_columns_that_are_left_out_stay(kplus, csv, table, tmp_path):
    target = tmp_path / "filled.parquet"
    done = kplus("impute", csv, "--columns", "size,pet", "-o", target)
    assert "in 2 columns." in done.err
    filled = pl.read_parquet(target)
    assert filled["code"].null_count() == table["code"].null_count()
    assert filled["size"].null_count() == 0
    assert filled.columns == table.columns


def test_scaled_model(kplus, csv, table, out):
    plain = fit(kplus, csv, out)
    words = ["--drop", "pet", "--drop", "code", "--observations", "diag_gaussian"]
    saved = out.parent / "scaled"
    options = ["--index", "id", "--scale", "-o", saved, "--quiet"]
    assert kplus("fit", csv, *options, *words).code == 0
    result = kplus("impute", saved / "model.kplus", csv, "--json").json
    sizes = [e["value"] for e in result["values"] if e["column"] == "size"]
    assert -3 < min(sizes) < 1
    assert 4 < max(sizes) < 9
    ages = [e["value"] for e in result["values"] if e["column"] == "age"]
    assert all(isinstance(age, int) and 20 < age < 60 for age in ages)
    saved = out.parent / "mixed"
    options = ["--index", "id", "--scale", "--categorical", "code", "--quiet"]
    assert kplus("fit", csv, *options, "-o", saved).code == 0
    one = kplus("impute", saved / "model.kplus", csv, "--json").json["values"]
    other = kplus("impute", plain, csv, "--json").json["values"]
    for a, b in zip(one, other, strict=True):
        if a["column"] in ("size", "age"):
            assert a["value"] == pytest.approx(b["value"], abs=1.0)
        else:
            assert a["value"] == b["value"]


def test_converted_tables(kplus, csv, table, tmp_path, out):
    rows = tmp_path / "rows"
    words = ["--index", "id", "--categorical", "code"]
    assert kplus("convert", csv, *words, "-o", rows).code == 0
    saved = fit(kplus, csv, out)
    done = kplus("impute", saved, rows, "-o", tmp_path / "filled.csv")
    assert done.code == 0, done.err
    filled = read(tmp_path / "filled.csv")
    assert filled.columns == ["id", *COLUMNS]
    whole = pd.read_csv(csv, dtype={"id": str, "code": str})
    expected = library.load(saved).impute(whole[COLUMNS])
    for name in COLUMNS:
        assert filled[name].to_list() == expected[name].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_are_categories(kplus, table, tmp_path, kind):
    whole = table.select("size", room=pl.col("code").cast(pl.Int64) + 6)
    KINDS[kind](whole, tmp_path / f"rooms.{kind}")
    target = tmp_path / "filled.parquet"
    words = ["--categorical", "room", "-o", target]
    done = kplus("impute", tmp_path / f"rooms.{kind}", *words)
    assert done.code == 0, done.err
    rooms = pl.read_parquet(target)["room"].cast(pl.Int64)
    assert set(rooms) == {7, 8}
    seen = whole["room"].is_not_null()
    assert rooms.filter(seen).equals(whole["room"].filter(seen))


def test_arrays(kplus, tmp_path, X):
    X[::9, 1] = np.nan
    np.save(tmp_path / "x.npy", X)
    target = tmp_path / "filled.parquet"
    done = kplus("impute", tmp_path / "x.npy", "-o", target)
    assert done.code == 0, done.err
    model = library.DPMixture(random_state=0).fit(X)
    assert np.array_equal(pl.read_parquet(target).to_numpy(), model.impute(X))


def test_nothing_missing(kplus, data, tmp_path):
    target = tmp_path / "filled.csv"
    done = kplus("impute", data, "-o", target)
    assert "No value was missing." in done.err
    assert pl.read_csv(target).equals(pl.read_csv(data))


def test_unseen_categories_are_kept(kplus, csv, out, tmp_path):
    model = library.CRAFT(handle_unknown="missing", random_state=0)
    frame = pl.read_csv(csv, schema_overrides={"code": pl.String}).select(COLUMNS)
    library.save(model.fit(frame), tmp_path / "model.kplus")
    (tmp_path / "new.csv").write_text("size,age,pet,code\n,50,cow,02\n6.1,,,\n")
    done = kplus("impute", tmp_path / "model.kplus", tmp_path / "new.csv", "--quiet")
    (tmp_path / "out.csv").write_text(done.out)
    filled = read(tmp_path / "out.csv")
    assert filled["pet"].to_list() == ["cow", "dog, large"]
    assert filled["code"].to_list() == ["02", "02"]
    result = kplus(
        "impute", tmp_path / "model.kplus", tmp_path / "new.csv", "--json"
    ).json
    assert result["n_filled"] == 4


def test_help(kplus):
    text = kplus("impute", "--help").out
    assert "left out, a mixture is fitted to DATA first" in text
    for words in ("--draws", "--seed", "Fill the gaps of a table"):
        assert words in text


def test_mistakes(kplus, csv, table, data, tmp_path, out):
    saved = fit(kplus, csv, out)
    kplus("impute", tmp_path / "no.kplus", csv).refuses("no.kplus")
    kplus("impute", csv, csv).refuses("x.csv")
    kplus("impute", saved).refuses("is a model; name the table, too")
    kplus("impute", tmp_path / "no.csv").refuses("no.csv")
    kplus("impute", saved, data).refuses("no column 'pet'", "The model needs")
    kplus("impute", saved, csv, "--draws", 0).refuses("--draws must be at least 1")
    kplus("impute", saved, csv, "--drop", "age").refuses("--drop is for a table")
    kplus("impute", saved, csv, "-o", csv).refuses("is there already; --force")
    table.rename({"id": "draw"}).write_csv(tmp_path / "draw.csv")
    done = kplus("impute", saved, tmp_path / "draw.csv", "--draws", 2)
    done.refuses("--draws adds a column 'draw'")
    table.with_columns(pet=pl.lit("cow")).write_csv(tmp_path / "cow.csv")
    kplus("impute", saved, tmp_path / "cow.csv").refuses("'pet'", "'cow'")


def test_models_that_do_not_draw_or_fill(kplus, data, out):
    words = ["--clusters", 3, "--model", "dp-means", "-o", out, "--quiet"]
    assert kplus("fit", data, *words).code == 0
    done = kplus("impute", out / "model.kplus", data)
    done.refuses("DPMeans, which does not fill gaps", "dp-mixture, craft, meibp")
    words = ["--model", "meibp", "--prior", "gaussian", "-o", out, "--quiet"]
    assert kplus("fit", data, *words, "--force").code == 0
    done = kplus("impute", out / "model.kplus", data, "--draws", 2)
    done.refuses("--draws is for models of dp-mixture and craft; a MEIBP")
