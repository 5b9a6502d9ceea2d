"""Last rows that are none."""

import pandas as pd
import pytest

from kplus.data.coded_blocks import MemoryColumns
from kplus.data.ends import odd_end

ROWS = {"name": list("abcdefgh"), "n": range(1, 9), "x": [2.5] * 8, "y": [1.0] * 8}


def ended(*last):
    frame = pd.DataFrame(ROWS)
    frame.loc[len(frame)] = list(last)
    return odd_end(MemoryColumns(frame))


@pytest.mark.parametrize("word", ["Total", "TOTALS", "Summe", "Grand total:", "Gesamt"])
def test_totals_that_say_so(word):
    assert ended(word, 9, 9, 9) == (
        f"The last row looks like totals, as it says {word!r}."
    )


def test_totals_that_do_not():
    assert "has the sums of 'n', 'x', 'y'" in ended("zz", 36, 20.0, 8.0)
    assert ended("zz", 36, 1.0, 3.0) == ""


def test_notes():
    assert "looks like a note" in ended("source: the office", None, None, None)


@pytest.mark.parametrize("word", ["Totalitarian", "summer", "b", None])
def test_usual_rows(word):
    assert ended(word, 9, 2.0, 1.0) == ""


def test_a_word_that_other_rows_have_is_none():
    frame = pd.DataFrame({"name": ["Total", "b"] * 4, "x": range(8)})
    assert odd_end(MemoryColumns(frame[::-1])) == ""


def test_tiny_tables_and_mixed_columns():
    assert odd_end(MemoryColumns(pd.DataFrame({"name": ["a", "Total"]}))) == ""
    assert odd_end(MemoryColumns(pd.DataFrame({"m": ["a", 1] * 5}))) == ""
