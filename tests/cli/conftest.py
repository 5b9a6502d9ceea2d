"""Running the command line inside the test process, and data to run it on."""

import json

import numpy as np
import polars as pl
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from kplus.cli.app import run


class Outcome:
    """Exit code and output of a command."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    def refuses(self, *words):
        """Checks that one line says what is wrong, in these words."""
        assert (self.code, self.out) == (2, "")
        assert self.err.count("\n") == 1
        for word in words:
            assert word in self.err


@pytest.fixture
def kplus(capfd, monkeypatch):
    """Run a command line; the words of it may be of any type."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*words):
        capfd.readouterr()
        code = run([str(word) for word in words])
        return Outcome(code, *capfd.readouterr())

    return call


@pytest.fixture
def X():
    """Three round groups of 40 rows in three columns."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0, 0], [10, 0, 5], [0, 10, -5]])
    return np.repeat(centers, 40, axis=0) + rng.normal(size=(120, 3))


@pytest.fixture
def frame(X):
    ids = [f"{i:04d}" for i in range(len(X))]
    return pl.DataFrame(X, schema=["a", "b", "c"]).insert_column(
        0, pl.Series("id", ids)
    )


@pytest.fixture
def data(tmp_path, frame):
    """A CSV file with number columns a, b, c."""
    frame.drop("id").write_csv(tmp_path / "data.csv")
    return tmp_path / "data.csv"


@pytest.fixture
def named(tmp_path, frame):
    """The same with a column of identifiers that begin with zeros."""
    frame.write_csv(tmp_path / "named.csv")
    return tmp_path / "named.csv"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"
