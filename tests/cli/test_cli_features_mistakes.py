"""Mistakes with models of features: one clear line, exit code 2, nothing written."""

import pytest


@pytest.mark.parametrize("model", ["bp-means", "k-features"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--penalty", 0], ["--penalty", "positive"]),
        (["--penalty", 1, "--components", 2], ["--penalty or --components"]),
        (["--components", 0], ["--components", "at least 1"]),
        (["--components", 121], ["--components 121", "120 rows"]),
        (["--clusters", 2, "--max-clusters", 2], ["--components or --max-components"]),
        (["--max-components", 0], ["--max-components", "at least 1"]),
        (["--observations", "poisson"], ["--observations is for dp-mixture"]),
        (["--categorical", "a"], ["categories", "'a'", "dp-mixture"]),
    ],
)
def test_mistakes(kplus, data, out, model, options, words):
    done = kplus("fit", data, "--model", model, "-o", out, *options)
    done.refuses(*words)
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,city\n1,Rome\n2,Oslo\n", ["'city'", "'Rome'", "--drop"]),
        ("a,b\n1,2\n2,inf\n", ["'b' has 1 infinite value."]),
        ("a,b\n1,2\n1,1e200\n", ["'b'", "too large"]),
    ],
)
def test_unfit_values(kplus, tmp_path, out, content, words):
    (tmp_path / "x.csv").write_text(content)
    done = kplus("fit", tmp_path / "x.csv", "--model", "bp-means", "-o", out)
    assert done.code == 2
    for word in words:
        assert word in done.err
    assert not out.exists()


def test_index_called_as_a_feature(kplus, tmp_path, out):
    (tmp_path / "x.csv").write_text("feature 1,a\n1,2\n2,3\n")
    words = ["--model", "bp-means", "--index", "feature 1", "-o", out]
    done = kplus("fit", tmp_path / "x.csv", *words)
    assert done.code == 2
    assert "'feature 1'" in done.err
