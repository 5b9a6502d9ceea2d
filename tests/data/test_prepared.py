"""What a user says of columns before a fit."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kplus
from kplus import DataError

pytest.importorskip("pyarrow")
N = 40
FRAME = pd.DataFrame(
    {
        "id": range(N),
        "x": np.repeat([0.0, 9.0], N // 2) + np.arange(N) % 3,
        "code": np.arange(N) % 3 + 100,
        "paid": ["12", "x", "30", "y"] * (N // 4),
        "day": [f"2026-01-{i % 28 + 1:02d}" for i in range(N)],
        "same": 1.0,
    }
)
SOURCES = ["pandas", "polars", "csv", "parquet"]


@pytest.fixture(params=SOURCES)
def source(request, tmp_path):
    if request.param == "csv":
        FRAME.to_csv(tmp_path / "t.csv", index=False)
        return tmp_path / "t.csv"
    if request.param == "parquet":
        FRAME.to_parquet(tmp_path / "t.parquet")
        return tmp_path / "t.parquet"
    return FRAME if request.param == "pandas" else pl.from_pandas(FRAME)


def names_of(table):
    return list(getattr(table, "names", None) or table.feature_names)


def test_by_itself(source):
    table = kplus.read_table(source)
    assert names_of(table) == ["x", "code", "paid"]
    assert table.reading.left_out == {"id": "ids", "day": "dates", "same": "constant"}


def test_wishes(source):
    table = kplus.read_table(
        source, keep=["id", "same"], drop=["x"], numbers=["paid"], dates="age"
    )
    assert names_of(table) == ["id", "code", "paid", "day age (days)", "same"]
    assert table.reading.odd["paid"].odd == N // 2
    parts = kplus.read_table(source, keep=["day"])  # dates that are asked for
    assert names_of(parts) == ["x", "code", "paid", "day weekday"]


def test_numbers_as_categories(source):
    model = kplus.CRAFT(n_clusters=2, random_state=0)
    table = kplus.read_table(source, categorical=["code"], drop=["paid", "day", "id"])
    model.fit(table)
    assert dict(zip(model.feature_names_in_, model.categories_, strict=True)) == {
        "x": None, "code": ("100", "101", "102"),
    }  # fmt: skip


def test_lines_at_the_ends(tmp_path):
    rows = "".join(f"{i % 7},{i % 5}\n" for i in range(30))
    (tmp_path / "t.csv").write_text(f"title\na,b\n{rows}Total,9\n")
    table = kplus.read_table(tmp_path / "t.csv", skip_first=1, skip_last=1)
    assert (table.n_rows, names_of(table)) == (30, ["a", "b"])
    with pytest.raises(DataError, match="slice"):
        kplus.read_table(FRAME, skip_last=1)


def test_mistakes(source):
    for option in ("keep", "drop", "categorical", "numbers"):
        with pytest.raises(DataError, match="'cod'; did you mean 'code'"):
            kplus.read_table(source, **{option: ["cod"]})
    with pytest.raises(ValueError, match="dates must be"):
        kplus.read_table(source, dates="part")
    with pytest.raises(DataError, match="names of columns"):
        kplus.read_table(np.ones((3, 2)))
    with pytest.raises(DataError, match="No column is left"):
        kplus.read_table(source, drop=["x", "code", "paid", "same"])
