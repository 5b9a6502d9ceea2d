"""Mistakes of the user: one clear line, exit code 2, nothing left behind."""

import os

import numpy as np
import pytest


def expect(done, *words):
    assert done.code == 2, (done.code, done.out, done.err)
    assert done.out == ""
    assert done.err.startswith("Error: ")
    assert done.err.count("\n") <= 2
    for word in words:
        assert word in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "dp-means", "--penalty", 0], ["--penalty", "above 0", "not 0.0"]),
        (["--penalty", -1], ["--penalty"]),
        (["--model", "dp-means", "--penalty", "nan"], ["--penalty", "above 0"]),
        (["--model", "dp-means", "--penalty", "inf"], ["--penalty", "above 0"]),
        (["--penalty", "much"], ["--penalty"]),
        (["--clusters", 0], ["--clusters", "at least 1"]),
        (["--clusters", -3], ["--clusters"]),
        (["--clusters", 2.5], ["--clusters"]),
        (["--clusters", 121], ["--clusters", "120 rows"]),
        (["--penalty", 1, "--clusters", 2], ["--penalty or --clusters"]),
        (["--model", "k-means"], ["'k-means'", "dp-means"]),
        (
            ["--model", "dp-means", "--categorical", "a"],
            ["categories", "'a'", "dp-mixture"],
        ),
        (["--categorical", "A"], ["no column 'A'", "'a'"]),
        (["--categorical", "a", "--drop", "a"], ["--categorical names 'a'"]),
        (["--penalty", 1], ["--penalty is for --model dp-means"]),
        (["--observations", "normal"], ["'normal'", "diag_gaussian"]),
        (
            ["--model", "dp-means", "--observations", "poisson"],
            ["--observations is for --model dp-mixture"],
        ),
        (
            ["--observations", "poisson", "--categorical", "a"],
            ["poisson takes numbers", "mixed"],
        ),
        (["--observations", "poisson", "--scale"], ["--scale", "poisson"]),
        (["--observations", "poisson"], ["'a' holds"]),
        (["--max-clusters", 0], ["--max-clusters", "at least 1"]),
        (["--clusters", 2, "--max-clusters", 3], ["--clusters or --max-clusters"]),
        (["--format", "xlsx"], ["--format", "csv or parquet"]),
        (["--restarts", 0], ["--restarts"]),
        (["--max-iter", 0], ["--max-iter"]),
        (["--jobs", 0], ["--jobs"]),
        (["--seed", -1], ["--seed"]),
        (["--index", "A"], ["no column 'A'", "'a'"]),
        (["--columns", "a,zz"], ["no column 'zz'"]),
        (["--columns", "a,a"], ["'a' is asked for twice"]),
        (["--columns", "a,b", "--index", "a"], ["'a' is asked for twice"]),
        (["--drop", "a", "--drop", "b", "--drop", "c"], ["No column"]),
        (["--drop", "q"], ["no column 'q'"]),
        (["--frobnicate"], ["--frobnicate", "kplus fit --help"]),
        (["extra.csv"], ["extra.csv"]),
    ],
)
def test_options(kplus, data, out, options, words):
    expect(kplus("fit", data, "-o", out, *options), *words)
    assert not out.exists()


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        ("bp-means", ["--penalty", 0], ["--penalty", "above 0"]),
        (
            "bp-means",
            ["--penalty", 1, "--components", 2],
            ["--penalty or --components"],
        ),
        ("bp-means", ["--components", 0], ["--components", "at least 1"]),
        ("bp-means", ["--components", 121], ["--components 121", "120 rows"]),
        (
            "bp-means",
            ["--clusters", 2, "--max-clusters", 2],
            ["--components or --max-components"],
        ),
        ("bp-means", ["--max-components", 0], ["--max-components", "at least 1"]),
        (
            "bp-means",
            ["--observations", "poisson"],
            ["--observations is for --model dp-mixture"],
        ),
        ("bp-means", ["--categorical", "a"], ["categories", "'a'", "dp-mixture"]),
        ("craft", ["--observations", "mixed"], ["--observations", "has --numeric"]),
        ("craft", ["--scale"], ["--scale", "any units", "leave it out"]),
        ("craft", ["--feature-fraction", 0], ["--feature-fraction", "above 0"]),
        ("craft", ["--feature-fraction", 1.5], ["--feature-fraction", "1.5"]),
        ("craft", ["--sharing", -0.1], ["--sharing", "-0.1"]),
        ("craft", ["--sharing", "nan"], ["--sharing", "nan"]),
        ("craft", ["--numeric", "log"], ["--numeric", "yeo-johnson", "'log'"]),
        ("craft", ["--penalty", -1], ["--penalty", "at least 0"]),
        ("craft", ["--penalty", 3, "--clusters", 2], ["--penalty or --clusters"]),
        ("craft", ["--clusters", 121], ["--clusters 121", "120 rows"]),
        (
            "meibp",
            [],
            ["Negative values", "--negative shift", "--prior gaussian", "column"],
        ),
        (
            "meibp",
            ["--negative", "drop"],
            ["--negative must be one of error, noise, shift"],
        ),
        (
            "meibp",
            ["--prior", "cauchy"],
            ["--prior must be one of gaussian, nonnegative"],
        ),
        ("meibp", ["--noise-scale", 0], ["--noise-scale", "at least 1e-100"]),
        ("meibp", ["--max-components", 0], ["--max-components", "at least 1"]),
        ("meibp", ["--components", 3], ["--components", "--max-components"]),
        ("meibp", ["--penalty", 3], ["--penalty", "--max-components"]),
        ("meibp", ["--scale"], ["(standardised)", "--negative shift"]),
        ("meibp", ["--sweeps", 3], ["--sweeps is for --model ibp-gibbs"]),
        ("meibp", ["--categorical", "a"], ["categories"]),
        ("meibp", ["--observations", "poisson"], ["--observations is for"]),
        ("meibp", ["--sharing", 0.5], ["--sharing is for --model craft"]),
        (
            "meibp",
            ["--prior", "gaussian", "--negative", "shift"],
            ["--negative is for features that are not negative"],
        ),
        ("ibp-variational", ["--prior", "gaussian"], ["of either sign"]),
        ("ibp-variational", ["--negative", "shift"], ["--negative"]),
        ("ibp-variational", ["--burn-in", 3], ["--burn-in is for"]),
        ("ibp-gibbs", ["--sweeps", 0], ["--sweeps", "at least 1"]),
        ("ibp-gibbs", ["--burn-in", -1], ["--burn-in", "at least 0"]),
        ("ibp-gibbs", ["--max-iter", 9], ["--max-iter", "--sweeps"]),
        ("ibp-gibbs", ["--restarts", 2], ["--restarts", "--seed"]),
        ("ibp-gibbs", ["--jobs", 2], ["--jobs", "one chain"]),
        (
            "ibp-gibbs",
            ["--prior", "nonnegative"],
            ["Negative values", "--negative noise"],
        ),
        ("bp-means", ["--negative", "shift"], ["--negative is for --model meibp"]),
        ("dp-means", ["--sweeps", 9], ["--sweeps is for --model ibp-gibbs"]),
    ],
)
def test_options_of_models(kplus, data, out, model, options, words):
    kplus("fit", data, "--model", model, "-o", out, *options).refuses(*words)
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["frob"], "frob"),
        (["--frob"], "--frob"),
        (["fit"], "DATA"),
        (["fit", "gone.csv"], "gone.csv"),
        (["convert", "data.csv"], "-o"),
        (["predict"], "MODEL"),
        (["predict", "x.kplus"], "DATA"),
        (["inspect", "gone.kplus"], "gone.kplus"),
        (["predict", "gone.kplus", "data.csv"], "gone.kplus"),
        (["inspect", "."], "folder"),
    ],
)
def test_commands(kplus, words, expected):
    expect(kplus(*words), expected)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.csv", b"", ["empty"]),
        ("x.csv", b"a,b\n", ["no rows"]),
        ("x.csv", b"a,b\n1,2\n3\n", ["Line 3", "2 fields", "1 found"]),
        ("x.csv", b"a,b\n1,2\n3,4,5\n", ["Line 3", "3 found"]),
        ("x.csv", b"day,at\n2024-01-01,10:00:00\n", ["No column", "dates: day, at"]),
        ("x.csv", b"a,b\n1,2\n2,inf\n", ["'b' has 1 infinite value."]),
        ("x.csv", b"a,b\n1,2\n1,1e200\n", ["'b'", "too large"]),
        ("x.npy", b"", ["empty"]),
        ("x.npy", b"\x93NUMPY\x01\x00", ["x.npy"]),
        ("x.parquet", b"PAR1", ["Parquet"]),
        ("x.xlsx", b"PK", ["x.xlsx", "Excel", "damaged"]),
        ("x.json", b"[1, 2]", ["x.json", "JSON", "object per line"]),
        ("x.jsonl", b"{", ["x.jsonl", "JSON"]),
        ("x.sav", b"PK", [".npy, .parquet, .pq", ".csv"]),
        ("x", b"", [".csv"]),
    ],
)
def test_files(kplus, tmp_path, out, name, content, words):
    (tmp_path / name).write_bytes(content)
    expect(kplus("fit", tmp_path / name, "-o", out), *words)
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,b\n1,2\n,3\n,4\n", "'a' has 2 missing values"),
        (b"a,b\n1,2\nNaN,4\n", "'a' has 1 missing value."),
    ],
)
def test_gaps_where_none_may_be(kplus, tmp_path, out, content, words):
    (tmp_path / "x.csv").write_bytes(content)
    expect(kplus("fit", tmp_path / "x.csv", "--model", "dp-means", "-o", out), words)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(4), ["1 dimensions"]),
        (np.array([[1.0, -np.inf]]), ["'column 1' has 1 infinite"]),
        (np.array([["a"]]), ["not real numbers"]),
    ],
)
def test_arrays(kplus, tmp_path, out, array, words):
    np.save(tmp_path / "x.npy", array)
    expect(kplus("fit", tmp_path / "x.npy", "-o", out), *words)


def test_array_has_no_names_to_pick(kplus, tmp_path, out):
    np.save(tmp_path / "x.npy", np.eye(3))
    expect(kplus("fit", tmp_path / "x.npy", "-o", out, "--drop", "a"), "'a'")


def test_missing_file(kplus, tmp_path, out):
    expect(kplus("fit", tmp_path / "gone.csv", "-o", out), "gone.csv", "not exist")


def test_folder_as_data(kplus, tmp_path, out):
    expect(kplus("fit", tmp_path, "-o", out), "folder")


def test_file_as_folder(kplus, data):
    expect(kplus("fit", data, "-o", data), "is a file")


def test_file_as_parent_of_the_folder(kplus, data):
    expect(kplus("fit", data, "-o", data / "out"), "data.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may do all")
class TestPermissions:
    def test_folder(self, kplus, data, tmp_path):
        (tmp_path / "locked").mkdir(mode=0o500)
        expect(kplus("fit", data, "-o", tmp_path / "locked" / "out"), "ermission")
        expect(kplus("fit", data, "-o", tmp_path / "locked"), "ermission")

    @pytest.mark.parametrize("kind", ["csv", "npy", "parquet"])
    def test_data(self, kplus, tmp_path, out, kind):
        (tmp_path / f"x.{kind}").touch(mode=0o000)
        expect(kplus("fit", tmp_path / f"x.{kind}", "-o", out))


@pytest.mark.parametrize(
    ("model", "name"), [("dp-mixture", "cluster"), ("bp-means", "feature 1")]
)
def test_index_called_as_a_column_of_the_output(kplus, tmp_path, out, model, name):
    (tmp_path / "x.csv").write_text(f"{name},a\n1,2\n2,3\n")
    words = ["--model", model, "--index", name, "-o", out]
    expect(kplus("fit", tmp_path / "x.csv", *words), f"'{name}'")
    assert not out.exists()


@pytest.mark.parametrize("output", ["x.xlsx", "x", "."])
def test_output_of_predict(kplus, data, tmp_path, output):
    expect(kplus("predict", "m.kplus", data, "-o", tmp_path / output), "-o needs")


def test_missing_packages(kplus, data, out, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    expect(kplus("fit", data, "-o", out, "--plot"), "kplus[plot]")


def test_other_import_errors_are_not_hidden(monkeypatch):
    from kplus.cli.console import report_missing

    with pytest.raises(ImportError, match="broken"):
        report_missing(ImportError("broken; see kplus[parquet]", name="scipy"))
