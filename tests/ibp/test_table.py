"""What a survey of a table says, and how gaps are filled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus.data.blocks import ArrayBlocks
from kplus.datasets import make_binary_features
from kplus.features.rows import Rows
from kplus.ibp import table as gaps_module
from kplus.ibp.table import fill_with_noise, survey
from kplus.linear.pursuit import noise_rank


@pytest.mark.parametrize("kind", ["scattered", "block"])
def test_filled_tables_look_like_observed_ones(kind):
    truth, _, _ = make_binary_features(500, 40, 5, random_state=2)
    gaps = np.zeros(truth.shape, bool)
    if kind == "scattered":
        gaps = np.random.default_rng(0).random(truth.shape) < 0.25
    else:
        gaps[250:, :10] = True
    X = np.where(gaps, np.nan, truth)
    filled = fill_with_noise(X, gaps, np.random.default_rng(1))
    np.testing.assert_array_equal(filled[~gaps], truth[~gaps])
    # True and filled value differ by twice the noise, of variance 0.25.
    assert np.mean((filled - truth)[gaps] ** 2) == pytest.approx(0.5, rel=0.25)
    rank, variance = noise_rank(Rows(filled, np.ones(500)).strengths, 500, 40)
    assert rank == 5
    assert variance == pytest.approx(0.25, rel=0.1)


def test_more_columns_than_rows_and_constant_ones():
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=30), (8, 1))
    gaps = rng.random(X.shape) < 0.2
    gaps[0] = False
    filled = fill_with_noise(np.where(gaps, np.nan, X), gaps, rng)
    np.testing.assert_allclose(filled, X, atol=1e-7)


@pytest.mark.parametrize("shape", [(150, 80), (80, 150)])
@pytest.mark.parametrize("rank", [0, 3, 12])
def test_large_tables_are_filled_as_by_all_their_directions(shape, rank, monkeypatch):
    """Large are tables of 8 rows and columns here, and 4 directions sought at first."""
    rng = np.random.default_rng(rank)
    N, D = shape
    truth = 2.0 * rng.normal(size=(N, rank)) @ rng.normal(size=(rank, D))
    truth += rng.normal(size=shape)
    gaps = rng.random(shape) < 0.1
    X = np.where(gaps, np.nan, truth)
    monkeypatch.setattr(gaps_module, "_SMALL", 8)
    monkeypatch.setattr(gaps_module, "_FIRST_DIRECTIONS", 4)
    quick = fill_with_noise(X, gaps, np.random.default_rng(1))
    monkeypatch.setattr(gaps_module, "_SMALL", N + D)
    exact = fill_with_noise(X, gaps, np.random.default_rng(1))
    np.testing.assert_array_equal(quick[~gaps], truth[~gaps])
    assert np.mean((quick - exact)[gaps] ** 2) < 0.01**2  # of the noise, which is 1


# --------------------------------------------------------------------------- the survey


seeds = st.integers(0, 2**20)


@given(seeds, st.integers(1, 40), st.booleans())
def test_survey_equals_the_obvious(seed, block_rows, gaps):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4)) + rng.choice([0.0, 1e8])
    if gaps:
        X[rng.random(X.shape) < 0.4] = np.nan
        X[:, np.isnan(X).all(axis=0)] = 1.0
    found = survey(ArrayBlocks(X, block_rows))
    assert found.finite
    assert found.rows == 30
    assert found.observed == np.count_nonzero(~np.isnan(X))
    about = np.nanmean(X, axis=0)
    np.testing.assert_allclose(found.means, about, rtol=1e-12)
    deviation = np.sqrt(np.nanmean((X - about) ** 2))
    assert found.deviation == pytest.approx(deviation, rel=1e-6, abs=1e-7)
    np.testing.assert_array_equal(found.lowest, np.nanmin(X, axis=0))
    assert found.empty_rows == np.flatnonzero(np.isnan(X).all(axis=1)).tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("values", [[np.inf], [-np.inf], [np.inf, -np.inf],
                                    [np.nan, np.inf]])  # fmt: skip
def test_survey_of_infinite_values(values, dtype):
    X = np.ones((9, 3), dtype)
    X[4, : len(values)] = values
    assert not survey(ArrayBlocks(X, 3)).finite


def test_survey_of_large_numbers():
    assert not survey(ArrayBlocks(np.array([[1e200], [-1e200]]), 2)).finite
    large = np.full((4, 2), 3e38, np.float32)
    assert survey(ArrayBlocks(large, 2)).finite
    np.testing.assert_array_equal(survey(ArrayBlocks(large, 2)).lowest, large[0])
    nothing = survey(ArrayBlocks(np.full((3, 2), np.nan), 2))
    assert nothing.observed == 0
    assert nothing.deviation == 0.0
    assert nothing.empty_rows == [0, 1, 2]
