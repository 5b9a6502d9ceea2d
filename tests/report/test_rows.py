"""Which rows a report shows."""

import numpy as np
import pandas as pd
import pytest

from kplus import CRAFT, DPMeans
from kplus.base.portrait import portray
from kplus.report import rows
from kplus.report.rows import Units, column_names, draw, groups_of


@pytest.fixture
def small(monkeypatch):
    """As though 500 rows were all that a report may look at."""
    monkeypatch.setattr(rows, "_MOST_ROWS", 500)


def table():
    """4,000 rows in float32: a large group and one of 20."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3)).astype(np.float32)
    X[100:120] += 50.0
    return X


def test_small_tables_are_drawn_as_a_whole():
    X = table()[:200]
    model = DPMeans(n_clusters=2, random_state=0).fit(X)
    drawn = draw(model, X, model.labels_)
    assert drawn.is_all
    assert drawn.fair.all()
    np.testing.assert_allclose(drawn.values, X)
    assert drawn.called([3]) == ["row 3"]


def test_of_large_tables_some_and_all_of_small_groups(small):
    X = table()
    model = DPMeans(n_clusters=2, random_state=0).fit(X)
    drawn = draw(model, X, model.labels_)
    assert not drawn.is_all
    assert drawn.fair.sum() == 500
    assert set(range(100, 120)) <= set(drawn.numbers.tolist())
    assert (np.diff(drawn.numbers) > 0).all()
    np.testing.assert_allclose(drawn.values, X[drawn.numbers])
    again = draw(model, X, model.labels_)
    np.testing.assert_array_equal(drawn.numbers, again.numbers)


def test_the_whole_table_is_told_by_rows_drawn_fairly(small):
    """More rows of a small group do not count twice."""
    X = table()
    model = DPMeans(n_clusters=2, random_state=0).fit(X)
    drawn = draw(model, X, model.labels_)
    own = model.labels_[drawn.numbers]
    found = drawn.portrait(model, own)
    usual = drawn.fair & (own == 0)  # the others are too few to count there
    np.testing.assert_allclose(
        found.means[-1], drawn.values[usual].mean(axis=0), atol=1e-9
    )
    np.testing.assert_allclose(found.means[1], X[100:120].mean(axis=0), rtol=1e-5)


def test_portraits_of_all_rows_are_those_of_the_model():
    frame = pd.DataFrame({"x": np.arange(40.0) ** 2, "c": ["a", "b"] * 20})
    model = CRAFT(n_clusters=2, random_state=0).fit(frame)
    drawn = draw(model, frame, model.labels_)
    found, expected = drawn.portrait(model, model.labels_), portray(model, frame)
    np.testing.assert_allclose(found.means, expected.means)
    np.testing.assert_allclose(found.shares[0], expected.shares[0])


def test_groups_of_all_rows():
    X = table()
    model = DPMeans(n_clusters=2, random_state=0).fit(X)
    np.testing.assert_array_equal(groups_of(model, X), model.predict(X))


def test_names_of_rows():
    X = table()[:50]
    model = DPMeans(n_clusters=2, random_state=0).fit(X)
    drawn = draw(model, X, model.labels_, lambda numbers: [f"<{i}>" for i in numbers])
    assert drawn.called([2, 0]) == ["<2>", "<0>"]


def test_units_of_the_file():
    model = DPMeans(n_clusters=2, random_state=0).fit(table()[:100])
    X = np.ones((2, 3))
    np.testing.assert_array_equal(Units.of(model).values(X), X)
    model.scaling_ = {"mean": [1.0, 2, 3], "scale": [2.0, 2, 2], "columns": list("abc")}
    np.testing.assert_array_equal(Units.of(model).values(X), [[3.0, 4, 5]] * 2)
    assert column_names(model) == ["a", "b", "c"]


def test_columns_without_names_are_numbered():
    model = DPMeans(n_clusters=2, random_state=0).fit(table()[:100])
    assert column_names(model) == ["column 0", "column 1", "column 2"]


def test_pages_of_many_rows_stay_small(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 4)) + 9.0 * rng.integers(0, 4, (1_000_000, 1))
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    model = DPMeans(n_clusters=4, random_state=0).fit(tmp_path / "x.npy")
    page = model.report(tmp_path / "page.html", tmp_path / "x.npy")
    assert page.stat().st_size < 3_000_000
