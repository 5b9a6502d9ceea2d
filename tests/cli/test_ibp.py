"""Models with an Indian buffet process prior on the command line."""

import numpy as np
import polars as pl
import pytest

import kplus as library
from kplus.base.progress import PassReport
from kplus.cli.console import PassProgress

NAMES = ["a", "b", "c", "d", "e"]
A = np.array([[5.0, 5.0, 0.0, 0.0, 1.0], [0.0, 0.0, 4.0, 4.0, 0.0]])
NOISE = 0.2


@pytest.fixture
def Z():
    return (np.random.default_rng(0).random((90, 2)) < [0.5, 0.35]).astype(int)


@pytest.fixture
def X(Z):
    """Two features, and noise that goes below zero."""
    return Z @ A + np.random.default_rng(1).normal(0, NOISE, (90, 5))


@pytest.fixture
def data(tmp_path, X):
    pl.DataFrame(X, schema=NAMES).write_csv(tmp_path / "data.csv")
    return tmp_path / "data.csv"


@pytest.fixture
def gaps(tmp_path, X):
    """The same with empty fields, identifiers and text."""
    rows = X.round(3).astype(object)
    rows[np.random.default_rng(2).random(rows.shape) < 0.1] = None
    frame = pl.DataFrame(rows.tolist(), schema=NAMES, orient="row")
    ids = pl.Series("id", [f"{i:03d}" for i in range(90)])
    frame = frame.insert_column(0, ids).with_columns(town=pl.lit("Rome, Lazio"))
    frame.write_csv(tmp_path / "gaps.csv")
    return tmp_path / "gaps.csv"


@pytest.fixture
def fit(kplus, data, out):
    def call(*words, path=data, model="meibp"):
        if model == "meibp" and "--prior" not in words:
            words = ("--negative", "noise", *words)
        done = kplus("fit", path, "-o", out, "--model", model, *words)
        assert done.code == 0, done.err
        return done

    return call


def read_bits(folder):
    table = pl.read_csv(folder / "features.csv")
    return table.select(c for c in table.columns if c.startswith("feature")).to_numpy()


def read_components(folder):
    table = pl.read_csv(folder / "components.csv")
    return table, table.drop("feature", "rows", "share").to_numpy()


class TestFit:
    def test_writes_bits_components_and_model(self, fit, out, Z):
        fit("--plot")
        assert sorted(p.name for p in out.iterdir()) == [
            "components.csv",
            "features.csv",
            "features.png",
            "model.kplus",
            "report.html",
        ]
        np.testing.assert_array_equal(read_bits(out), Z)
        table, values = read_components(out)
        assert table["rows"].to_list() == Z.sum(axis=0).tolist()
        np.testing.assert_allclose(values, A, atol=0.2)

    def test_json(self, fit, out, X, Z):
        result = fit("--json").json
        model = library.load(out / "model.kplus")
        assert (result["model"], result["n_components"]) == ("meibp", 2)
        assert result["lower_bound"] == model.lower_bound_
        assert result["noise_scale"] == pytest.approx(NOISE, rel=0.1)
        assert result["factor_scale"] == model.factor_scale_
        assert result["alpha"] == model.alpha_
        error = np.square(X - Z @ model.components_).sum()
        total = np.square(X - X.mean(axis=0)).sum()
        assert result["explained_variance"] == pytest.approx(1 - error / total)
        assert {"objective", "penalty"}.isdisjoint(result)
        assert [f["rows"] for f in result["features"]] == Z.sum(axis=0).tolist()
        assert sum(c["rows"] for c in result["combinations"]) == 90
        assert result["offset"] is None

    def test_prints(self, fit):
        done = fit()
        assert "meibp: 2 features of 90 rows, 5 columns" in done.out
        for words in ("variance explained", "noise scale 0.", "alpha", "lower bound"):
            assert words in done.out
        assert "0 + 1" in done.out

    @pytest.mark.parametrize("prior", ["gaussian", "nonnegative"])
    def test_options_reach_the_model(self, kplus, data, out, prior):
        words = ["--prior", prior, "--max-components", 7, "--restarts", 2]
        words += ["--seed", 5, "--max-iter", 20, "--jobs", 1, "--noise-scale", 0.3]
        if prior == "nonnegative":
            words += ["--negative", "shift"]
        done = kplus("fit", data, "--model", "meibp", "-o", out, *words)
        assert done.code == 0, done.err
        params = library.load(out / "model.kplus").get_params()
        expected = {"prior": prior, "max_components": 7, "n_init": 2}
        expected |= {"max_iter": 20, "n_jobs": 1, "random_state": 5, "noise_scale": 0.3}
        assert expected.items() <= params.items()

    @pytest.mark.parametrize(
        "options", [["--negative", "shift"], ["--negative", "shift", "--scale"], []]
    )
    def test_components_make_up_the_rows(self, fit, out, X, options):
        if not options:
            options = ["--prior", "gaussian", "--scale"]
        result = fit("--json", *options).json
        offset = result["offset"]
        offset = 0.0 if offset is None else [offset[name] for name in NAMES]
        rows = offset + read_bits(out) @ read_components(out)[1]
        np.testing.assert_allclose(rows, X, atol=1.5)
        unit = X.std(axis=0) if "--scale" in options else 1.0
        error = np.square((X - rows) / unit).sum()
        total = np.square((X - X.mean(axis=0)) / unit).sum()
        assert result["explained_variance"] == pytest.approx(1 - error / total)

    def test_taken_off_is_told(self, fit, tmp_path, Z, out):
        path = tmp_path / "below.csv"
        pl.DataFrame(Z @ A - 3.0, schema=NAMES).write_csv(path)
        words = ["--negative", "shift", "--noise-scale", 0.1]
        result = fit(*words, "--json", path=path).json
        assert result["offset"] == dict.fromkeys(NAMES, -3.0)
        np.testing.assert_allclose(read_components(out)[1], A, atol=0.1)
        done = fit(*words, "--force", path=path)
        assert "No feature is in all rows" in done.err

    def test_hint_says_what_scale_needs(self, kplus, tmp_path, X, out):
        X = np.abs(X) * [1, 1, 1, 1, 1e4]
        pl.DataFrame(X, schema=NAMES).write_csv(tmp_path / "x.csv")
        done = kplus("fit", tmp_path / "x.csv", "--model", "meibp", "-o", out)
        assert (
            "--scale gives all columns the same say. Use --negative shift" in done.err
        )

    def test_gaps(self, kplus, fit, gaps, out, Z):
        result = fit("--index", "id", "--drop", "town", "--json", path=gaps).json
        assert result["n_components"] == 2
        assert np.mean(read_bits(out) == Z) > 0.95
        done = kplus("predict", out / "model.kplus", gaps, "--index", "id")
        assert done.out == (out / "features.csv").read_text(), done.err

    def test_nothing_found(self, kplus, tmp_path, out):
        zeros = pl.DataFrame(np.zeros((20, 3)), schema=["a", "b", "c"])
        zeros.write_csv(tmp_path / "x.csv")
        words = ["--model", "meibp", "--plot", "-o", out]
        done = kplus("fit", tmp_path / "x.csv", *words)
        assert done.code == 0, done.err
        assert "0 features of 20 rows" in done.out
        assert "no feature that is worth having" in done.err
        assert "There is no picture" in done.err
        result = kplus("fit", tmp_path / "x.csv", *words, "--force", "--json").json
        assert result["features"] == []
        done = kplus("impute", out / "model.kplus", tmp_path / "x.csv")
        assert done.code == 0, done.err


class TestImpute:
    @pytest.fixture
    def model(self, fit, data, out):
        fit("--quiet")
        return out / "model.kplus"

    def test_fills_gaps_and_keeps_the_rest(self, kplus, model, gaps, tmp_path, X):
        target = tmp_path / "filled.csv"
        done = kplus("impute", model, gaps, "--output", target)
        assert (done.code, done.out) == (0, "")
        before = pl.read_csv(gaps, schema_overrides={"id": pl.String})
        after = pl.read_csv(target, schema_overrides={"id": pl.String})
        assert after.columns == before.columns
        for name in ("id", "town"):
            assert after[name].to_list() == before[name].to_list()
        seen, filled = (t.select(NAMES).to_numpy() for t in (before, after))
        missing = np.isnan(seen)
        np.testing.assert_array_equal(filled[~missing], seen[~missing])
        assert np.median(np.abs(filled - X)[missing]) < 2 * NOISE
        assert f"Filled {missing.sum()} values in 5 columns." in done.err

    def test_equals_the_library(self, kplus, model, gaps):
        rows = pl.read_csv(gaps).select(NAMES)
        expected = library.load(model).impute(rows)
        result = kplus("impute", model, gaps, "--json").json
        missing = np.isnan(rows.to_numpy())
        assert result["n_filled"] == missing.sum() == len(result["values"])
        assert result["columns"] == dict(zip(NAMES, missing.sum(axis=0), strict=True))
        for entry in result["values"]:
            j = NAMES.index(entry["column"])
            assert missing[entry["row"], j]
            assert entry["value"] == expected[entry["row"], j]

    def test_prints_csv(self, kplus, model, gaps):
        done = kplus("impute", model, gaps, "--quiet")
        assert done.out.startswith("id,a,b,c,d,e,town\n")
        assert done.out.count("\n") == 91
        assert done.err == ""

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_column_without_any_value(self, kplus, model, tmp_path, X, Z, kind):
        frame = pl.DataFrame(X, schema=NAMES).with_columns(b=pl.lit(None))
        path = tmp_path / f"x.{kind}"
        frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
        target = tmp_path / "filled.parquet"
        done = kplus("impute", model, path, "-o", target)
        assert done.code == 0, done.err
        filled = pl.read_parquet(target)["b"].to_numpy()
        np.testing.assert_allclose(filled, Z @ A[:, 1], atol=0.5)

    def test_row_without_any_value(self, kplus, model, tmp_path):
        (tmp_path / "x.csv").write_text("a,b,c,d,e\n,,,,\n5,5,,0,1\n")
        done = kplus("impute", model, tmp_path / "x.csv", "--quiet")
        assert done.code == 0, done.err
        assert done.out.splitlines()[2].startswith("5,5,")

    def test_scaled_model(self, kplus, fit, gaps, out, X):
        fit("--scale", "--prior", "gaussian")
        result = kplus("impute", out / "model.kplus", gaps, "--json").json
        errors = [
            entry["value"] - X[entry["row"], NAMES.index(entry["column"])]
            for entry in result["values"]
        ]
        assert np.median(np.abs(errors)) < 2 * NOISE

    def test_arrays(self, kplus, model, tmp_path, X):
        np.save(tmp_path / "x.npy", np.where(X > 5.3, np.nan, X))
        target = tmp_path / "filled.parquet"
        done = kplus("impute", model, tmp_path / "x.npy", "-o", target)
        assert done.code == 0, done.err
        filled = pl.read_parquet(target)
        assert filled.columns == [f"column {j}" for j in range(5)]
        assert filled.null_count().sum_horizontal().item() == 0

    def test_nothing_missing(self, kplus, model, data, tmp_path):
        target = tmp_path / "filled.csv"
        done = kplus("impute", model, data, "-o", target)
        assert "No value was missing." in done.err
        assert pl.read_csv(target).equals(pl.read_csv(data))
        result = kplus("impute", model, data, "-o", target, "--force", "--json").json
        expected = {"n_rows": 90, "n_filled": 0, "columns": {}}
        assert result == expected | {"files": {"table": str(target)}}

    def test_other_models(self, kplus, data, out):
        kplus("fit", data, "--model", "bp-means", "--components", 2, "-o", out)
        done = kplus("impute", out / "model.kplus", data)
        done.refuses("BPMeans, which does not fill gaps", "meibp")

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("a,b,c,d\n1,2,3,4\n", ["'e'", "The model needs"]),
            ("a,b,c,d,e\n1,2,3,4,Rome\n", ["'e'", "'Rome'"]),
            ("a,b,c,d,e\n1,2,3,4,inf\n", ["'e' has 1 infinite value"]),
        ],
    )
    def test_unfit_tables(self, kplus, model, tmp_path, content, words):
        (tmp_path / "x.csv").write_text(content)
        done = kplus("impute", model, tmp_path / "x.csv")
        done.refuses(*words)

    def test_files_are_not_replaced(self, kplus, model, data, tmp_path):
        target = tmp_path / "there.csv"
        target.write_text("x")
        done = kplus("impute", model, data, "-o", target)
        assert done.code == 2
        assert "--force" in done.err
        done = kplus("impute", model, data, "-o", tmp_path / "x.txt")
        assert "-o needs a name in .csv" in done.err


SOFT = {
    "ibp-gibbs": ["--sweeps", 20, "--burn-in", 20, "--seed", 1],
    "ibp-variational": ["--max-components", 4],
}


@pytest.mark.parametrize("model", SOFT)
class TestProbabilities:
    def test_fit_and_predict(self, kplus, fit, gaps, out, Z, model):
        words = ["--index", "id", "--drop", "town", "--plot", "--json", *SOFT[model]]
        result = fit(*words, path=gaps, model=model).json
        table = pl.read_csv(out / "features.csv")
        K = result["n_components"]
        names = [f"{kind} {k}" for kind in ("feature", "probability") for k in range(K)]
        assert table.columns == ["id", *names]
        bits = table.select(names[:K]).to_numpy()
        shares = table.select(names[K:]).to_numpy()
        np.testing.assert_array_equal(bits, shares > 0.5)
        assert [f["rows"] for f in result["features"]] == bits.sum(axis=0).tolist()
        assert result["noise_scale"] == pytest.approx(NOISE, rel=0.3)
        measure = "log_joint" if model == "ibp-gibbs" else "lower_bound"
        fitted = library.load(out / "model.kplus")
        assert result[measure] == getattr(fitted, f"{measure}_")
        words = ["predict", out / "model.kplus", gaps, "--index", "id"]
        assert kplus(*words, "--proba").out == (out / "features.csv").read_text()
        plain = pl.read_csv(kplus(*words).out.encode())
        assert plain.columns == ["id", *names[:K]]

    def test_impute_and_words(self, kplus, fit, data, gaps, out, X, model):
        done = fit(*SOFT[model], model=model)
        assert f"{model}: " in done.out
        measure = "log joint" if model == "ibp-gibbs" else "lower bound"
        assert f"{measure} " in done.out
        result = kplus("impute", out / "model.kplus", gaps, "--json").json
        errors = [
            entry["value"] - X[entry["row"], NAMES.index(entry["column"])]
            for entry in result["values"]
        ]
        assert np.median(np.abs(errors)) < 2 * NOISE
        info = kplus("inspect", out / "model.kplus", "--json").json
        assert info["class_name"] == type(library.load(out / "model.kplus")).__name__

    def test_scaled(self, fit, out, X, model):
        result = fit("--scale", "--json", *SOFT[model], model=model).json
        offset = result["offset"]
        offset = 0.0 if offset is None else [offset[name] for name in NAMES]
        rows = offset + read_bits(out) @ read_components(out)[1]
        # Short chains are not exact, and some bits are in doubt.
        assert np.quantile(np.abs(rows - X), 0.9) < 1.0
        assert result["explained_variance"] > 0.9


def test_options_of_the_sampler(kplus, data, out):
    words = ["--model", "ibp-gibbs", "--sweeps", 3, "--burn-in", 2, "--seed", 4]
    words += ["--prior", "nonnegative", "--negative", "shift"]
    done = kplus("fit", data, "-o", out, *words, "--max-components", 5)
    assert done.code == 0, done.err
    model = library.load(out / "model.kplus")
    expected = {"n_samples": 3, "burn_in": 2, "random_state": 4, "max_components": 5}
    expected |= {"prior": "nonnegative", "sampler": "uncollapsed", "negative": "shift"}
    assert expected.items() <= model.get_params().items()
    assert model.n_iter_ == 5


def test_progress_tells_the_time_left():
    lines = []
    progress = PassProgress(lines.append, "Finding features")
    for left in (63.2, None):
        report = PassReport(2, 3, "features", -1.5, "log joint", 0.0, left)
        progress.on_fit_task_end(None, None, metadata={"report": report})
    progress.on_fit_task_end(None, None)  # the whole fit
    words = "3 features, log joint -1.5"
    assert lines == [
        f"Finding features: pass 2, 1:03 left, {words}",
        f"Finding features: pass 2, {words}",
    ]
