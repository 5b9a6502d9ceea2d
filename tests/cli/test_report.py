"""``kplus report``: the page of a model, with rows of the fit or others, or without."""

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def fitted(kplus, named, out):
    words = ["fit", named, "--index", "id", "--model", "dp-means", "--no-report", "-q"]
    done = kplus(*words, "--stability", 0, "-o", out)
    assert done.code == 0, done.err
    return out / "model.kplus"


def page_of(path):
    return path.read_text(encoding="utf-8")


def test_with_rows(kplus, fitted, named):
    page = fitted.parent / "report.html"
    done = kplus("report", fitted, named, "--index", "id", "--title", "Three <groups>")
    assert done.code == 0, done.err
    assert f"Wrote {page}" in done.err
    written = page_of(page)
    assert "Three &lt;groups&gt;" in written
    assert "0007" in written  # a row by its name
    assert "The map" in written
    kplus("report", fitted, named).refuses("is there already", "--force")
    again = kplus("report", fitted, named, "--force", "--stability", 3, "--json")
    assert again.json == {"files": {"report": str(page)}}
    assert "Do they come back?" in page_of(page)
    assert "not tried" not in page_of(page)


def test_without_rows(kplus, fitted, tmp_path):
    page = tmp_path / "page.html"
    assert kplus("report", fitted, "-o", page).code == 0
    assert "The map" not in page_of(page)


def test_lines_at_the_ends_are_left_out(kplus, fitted, named, tmp_path):
    text = named.read_text()
    noted = tmp_path / "noted.csv"
    noted.write_text(f"Of last year\n{text}These are all\n")
    kplus("report", fitted, noted, "--index", "id").refuses("noted.csv")
    ends = ["--skip-first", 1, "--skip-last", 1]
    done = kplus("report", fitted, noted, "--index", "id", *ends)
    assert done.code == 0, done.err


def test_pictures(kplus, tmp_path, out):
    X = np.random.default_rng(0).random((60, 12)) < 0.5
    np.save(tmp_path / "x.npy", X.astype(float))
    words = ["fit", tmp_path / "x.npy", "--model", "bp-means", "--components", 2]
    assert kplus(*words, "-q", "--no-report", "-o", out).code == 0
    model, rows = out / "model.kplus", tmp_path / "x.npy"
    assert kplus("report", model, rows, "--image-shape", "3x4").code == 0
    kplus("report", model, rows, "--force", "--image-shape", "3").refuses("28x28")
    wrong = kplus("report", model, rows, "--force", "--image-shape", "5x5")
    wrong.refuses("12")


def test_mistakes(kplus, fitted, tmp_path):
    kplus("report", fitted, "--stability", 3).refuses("--stability needs DATA")
    kplus("report", fitted, "-o", tmp_path).refuses("is a folder")
    other = tmp_path / "other.csv"
    pl.DataFrame({"a": [1.0], "z": [2.0]}).write_csv(other)
    kplus("report", fitted, other).refuses("The model needs")
    kplus("report", fitted, tmp_path / "none.csv").refuses("none.csv")
