"""The tail of a Gaussian against scipy's and against numbers of many digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from kplus.ibp.kernels_factors import erfcx, excess
from meibp_reference import BEYOND

GRID = np.concatenate([[0.0], np.logspace(-300, 0, 50), np.linspace(0, 40, 4001),
                       np.logspace(1, 150, 200)])  # fmt: skip


def test_erfcx_on_a_grid():
    found = np.array([erfcx(x) for x in GRID])
    np.testing.assert_allclose(found, special.erfcx(GRID), rtol=3e-15)


@given(st.floats(0.0, 1e10))
def test_erfcx_anywhere(x):
    assert erfcx(x) == pytest.approx(special.erfcx(x), rel=3e-15)


def test_erfcx_at_its_ends():
    assert erfcx(0.0) == pytest.approx(1.0, rel=1e-15)
    assert erfcx(1e300) == pytest.approx(1.0 / (np.sqrt(np.pi) * 1e300), rel=1e-14)


@pytest.mark.parametrize(("t", "mean"), [row[:2] for row in BEYOND])
def test_excess_to_many_digits(t, mean):
    """The difference of hazard and t loses up to t² of the digits."""
    assert excess(t) == pytest.approx(mean, rel=1e-15 * max(t * t if t < 50 else 1, 4))


@given(st.floats(-1e6, 40.0))
def test_excess_anywhere(t):
    hazard = np.sqrt(2.0 / np.pi) / special.erfcx(t / np.sqrt(2.0))
    assert excess(t) == pytest.approx(hazard - t, rel=1e-12)


@given(st.floats(0.0, 1e8))
def test_excess_keeps_its_bounds(t):
    """Those of Birnbaum and Sampford on the hazard, less t."""
    lower, upper = (2.0 / (np.hypot(t, root) + t) for root in (np.sqrt(8.0), 2.0))
    assert lower * (1 - 1e-12) <= excess(t) <= upper * (1 + 1e-12)
    assert excess(-t) >= t


def test_excess_falls_and_does_not_jump_where_the_series_begins():
    t = np.linspace(49.9, 50.1, 401)
    found = np.array([excess(x) for x in t])
    assert np.all(np.diff(found) < 0.0)
    np.testing.assert_allclose(np.diff(found, 2), 0.0, atol=1e-11)


def test_excess_at_extremes():
    assert excess(-1e300) == 1e300
    assert excess(1e300) == pytest.approx(1e-300)
    assert excess(-40.0) == 40.0
