"""Numbers that are written as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus.data.text_numbers import NumberFormat, is_blank, is_gap

pa = pytest.importorskip("pyarrow")
nan = np.nan

WRITTEN = {
    "currency before": (["€1,234.56", "€ 7", "-€0.50", "(€3)"], [1234.56, 7, -0.5, -3]),
    "currency behind": (["1.234,56 €", "7 €", "-0,50 €"], [1234.56, 7, -0.5]),
    "codes of currencies": (["EUR 12.5", "EUR 1,000"], [12.5, 1000]),
    "dollars": (["$1,234,567.8", "$2", "($2)"], [1234567.8, 2, -2]),
    "percent": (["12%", "7.5 %", "-3%", "0"], [12, 7.5, -3, 0]),
    "thousands": (["1,234", "12,345.5", "7"], [1234, 12345.5, 7]),
    "lakhs": (["12,34,567", "1,00,000"], [1234567, 100000]),
    "decimal commas": (["1,5", "2,25", "1.234,5"], [1.5, 2.25, 1234.5]),
    "apostrophes": (["1'234.5", "9'876'543.0"], [1234.5, 9876543]),
    "spaces": (["1 234,5", "12\u202f345,0", "7\u00a0000,25"], [1234.5, 12345, 7000.25]),
    "signs": (["+1.5", "−2.5", "3.5-", "(4.5)"], [1.5, -2.5, -3.5, -4.5]),
    "powers": (["1e3", "2.5E-2"], [1000, 0.025]),
    "blanks around": ([" 1.5 ", "2.5\t"], [1.5, 2.5]),
    "bare fractions": ([".5", "3."], [0.5, 3]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_cells_by_python_and_by_arrow(name):
    cells, numbers = WRITTEN[name]
    found = NumberFormat.of(cells)
    np.testing.assert_allclose(found.floats(cells), numbers)
    column = pa.chunked_array([pa.array(cells)])
    np.testing.assert_allclose(found.of_arrow(column).to_numpy(), numbers)


@pytest.mark.parametrize(
    "cells",
    [
        ["01067", "80331", "04109"],  # postcodes
        ["a", "b"],
        ["1.2.2026", "3.4.2026"],
        ["10:30", "11:45"],
        ["192.168.0.1", "10.0.0.7"],
        ["12 kg", "13 kg"],
        ["1/2", "3/4"],
        ["-", "n/a"],
        [],
        ["١٢", "٣٤"],  # digits that float() takes
        ["1-2", "3-4"],
    ],
)
def test_what_is_no_number(cells):
    assert NumberFormat.of(cells) is None


def test_a_few_cells_may_be_odd():
    cells = [f"{i}.5" for i in range(19)] + ["see note"]
    found = NumberFormat.of(cells)
    assert np.isnan(found.floats(cells)).tolist() == [False] * 19 + [True]
    assert NumberFormat.of(cells[:4] + ["see note"] * 2) is None


def test_amounts_in_another_currency_are_odd():
    cells = [f"${i}.5" for i in range(19)] + ["€7"]
    found = NumberFormat.of(cells)
    assert (found.unit, found.words) == ("$", "amounts in $")
    assert np.isnan(found.floats(cells)[-1])


def test_the_mark_that_a_file_has_decides_where_cells_leave_it_open():
    assert NumberFormat.of(["1,234", "5,678"]).floats(["1,234"]).tolist() == [1234]
    comma = NumberFormat.of(["1,234", "5,678"], decimal=",")
    assert comma.floats(["1,234"]).tolist() == [1.234]
    assert comma.words == "decimal commas"
    # what cells show counts more than the file
    assert NumberFormat.of(["1.5", "2.75"], decimal=",").decimal == "."


def test_numbers_among_text_stay():
    found = NumberFormat()
    np.testing.assert_array_equal(
        found.floats([1, 2.5, None, "3", "x"]), [1, 2.5, nan, 3, nan]
    )


def test_gaps_of_programs_and_of_people():
    for cell in ("", " ", "NA", "NaN", "null", "<NA>"):
        assert is_blank(cell)
        assert is_gap(cell)
    for cell in ("-", "n/a", "unknown", "?", "#DIV/0!"):
        assert is_gap(cell)
        assert not is_blank(cell)
    assert not (is_gap("x"))
    assert not (is_gap(None))
    assert not (is_gap(0))
    assert not (is_blank(None))


@pytest.mark.parametrize("wrong", [{"decimal": ";"}, {"unit": "x"}, {"unit": ".*"}])
def test_formats_that_there_are_not(wrong):
    with pytest.raises(ValueError, match="no format of numbers"):
        NumberFormat(**wrong)


CELLS = st.lists(
    st.from_regex(
        r"[(€$]{0,1}-?[0-9]{1,4}([.,' ][0-9]{1,3}){0,2}[ %€)]{0,2}", fullmatch=True
    )
    | st.sampled_from(["-", "x", "", "1.5", "2,5", "€3", "12%"])
    | st.floats(-1e6, 1e6).map("{:,.2f}".format),
    max_size=8,
)


@given(CELLS)
def test_python_and_arrow_agree(cells):
    found = NumberFormat.of(cells, share=0.0)
    if found is None:
        return
    column = pa.chunked_array([pa.array(cells, pa.string())])
    made = found.of_arrow(column).to_numpy(zero_copy_only=False)
    np.testing.assert_array_equal(found.floats(cells), made)


@given(st.lists(st.decimals(-(10**6), 10**6, places=2), min_size=1))
def test_what_people_write_comes_back(numbers):
    english = [f"${n:,.2f}" for n in numbers]
    german = [c[1:].translate(str.maketrans(",.", ".,")) + " €" for c in english]
    for cells in (english, german):
        found = NumberFormat.of(cells)
        assert found.floats(cells).tolist() == list(map(float, numbers))
