"""Dates: recognised in text, and made numbers."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kplus
from kplus.data.blocks import FrameBlocks
from kplus.data.dates import DateFormat, DateNumbers
from kplus.data.recognise import recognised
from kplus.data.roles import Wishes

WRITTEN = {
    "iso": (["2026-02-01", "2025-12-31"], "ymd", "2026-02-01T00:00:00"),
    "zone": (["2026-02-01T17:05:09+02:00"], "ymd", "2026-02-01T17:05:09"),
    "Z": (["2026-02-01 17:05:09.123Z"], "ymd", "2026-02-01T17:05:09"),
    "german": (["1.2.2026", "31.12.2025 17:05"], "dmy", "2026-02-01T00:00:00"),
    "american": (["2/1/2026", "12/31/2025"], "mdy", "2026-02-01T00:00:00"),
    "british": (["1/2/2026", "31/12/2025"], "dmy", "2026-02-01T00:00:00"),
    "two digits": (["1.2.26", "31.12.99"], "dmy", "2026-02-01T00:00:00"),
    "names": (["1 Feb 2026", "31 Dec 2025"], "dby", "2026-02-01T00:00:00"),
    "weekdays": (["Sun, 1 Feb 2026 17:05", "Sat 7 Mar 2026"], "dby", None),
    "month first": (["February 1, 2026 5:05 pm"], "bdy", "2026-02-01T17:05:00"),
    "other languages": (["1. März 2026", "2. Dez. 2025"], "dby", "2026-03-01T00:00:00"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_orders(name):
    cells, order, first = WRITTEN[name]
    found = DateFormat.of([*cells, "?"])
    assert found.order == order
    dates = found.dates(cells)
    assert not np.isnat(dates).any()
    assert first is None or str(dates[0]) == first


@pytest.mark.parametrize(
    "cells",
    [["1.5", "2.5"], ["2026", "2025"], ["a", "b"], ["17:05"], ["32.1.2026"], ["?"], []],
)
def test_what_is_no_date(cells):
    assert DateFormat.of(cells) is None


def test_a_few_cells_may_be_odd():
    cells = [f"2026-01-{d:02d}" for d in range(1, 20)] + ["soon"]
    found = DateFormat.of(cells)
    assert np.isnat(found.dates(cells)).tolist() == [False] * 19 + [True]
    assert np.isnat(found.dates([None, 3])).all()
    with pytest.raises(ValueError, match="no order"):
        DateFormat("xyz")


DAYS = [datetime.datetime(2026, 1, 5) + datetime.timedelta(days=i) for i in range(100)]


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("as_text", [True, False])
def test_parts_and_ages_of_frames(library, as_text):
    days = [str(day.date()) for day in DAYS] if as_text else DAYS
    frame = library.DataFrame({"x": range(100), "day": days})
    parts = kplus.date_parts(frame)
    assert list(parts.columns) == ["x", "day month", "day weekday"]
    assert list(parts["day weekday"])[:2] == ["Mon", "Tue"]
    assert list(parts["day month"])[-1] == "Apr"
    ages = kplus.date_parts(frame, "age")
    assert list(ages["day age (days)"]) == list(range(99, -1, -1))
    turning = kplus.date_parts(frame, cyclic=True)
    assert all(turning[name].dtype != object for name in turning.columns)
    assert len(list(turning.columns)) == 5


@pytest.mark.parametrize("kind", ["duration", "time", "zone"])
def test_other_types(kind):
    made = {
        "duration": [datetime.timedelta(hours=12 * i) for i in range(20)],
        "time": [datetime.time(i) for i in range(20)],
        "zone": pd.date_range("2026-01-01", periods=20, freq="h", tz="Europe/Berlin"),
    }
    frame = pd.DataFrame({"x": range(20), "t": made[kind]})
    table = recognised(FrameBlocks(frame), Wishes(dates="parts", numbers_only=True))
    assert "t" not in table.feature_names
    rows = table.read(0)
    assert np.isfinite(rows).all()
    assert np.ptp(rows[:, -1]) > 0


def test_what_can_be_made():
    for what, how in [("week", ""), ("year", "tan")]:
        with pytest.raises(ValueError, match=r"."):
            DateNumbers(what, how)


def test_mistakes_in_date_parts():
    frame = pd.DataFrame({"x": [1, 2]})
    with pytest.raises(ValueError, match="how must be"):
        kplus.date_parts(frame, "ages")
    with pytest.raises(kplus.DataError, match="data frame"):
        kplus.date_parts(np.ones((2, 2)))
    assert kplus.date_parts(frame) is frame or list(kplus.date_parts(frame).x) == [1, 2]
