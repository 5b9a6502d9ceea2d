"""Starts and growth of MEIBP on a sample, then on all rows."""

import numpy as np
import pytest
from hypothesis import strategies as st

from jobs import make_job
from kplus.data.blocks import ArrayBlocks
from kplus.datasets import make_nonnegative_features
from kplus.ibp.meibp_model import MEIBPModel
from kplus.ibp.meibp_sample import (
    Sample,
    Scales,
    Spectrum,
    parts,
    projections,
    random_bits,
    with_births,
)
from kplus.ibp.meibp_search import IBPSpec, choose, fit
from kplus.ibp.table import survey

seeds = st.integers(0, 2**20)


def a_spec(
    most=None, alpha=None, noise=None, spread=None, nonnegative=True, init="auto"
):
    return IBPSpec(
        most, alpha, noise, spread, nonnegative, greedy=None, init=init, n_init=1
    )


def a_job(X, block_rows=None, **more):
    source = ArrayBlocks(X, block_rows or len(X))
    return make_job(source, None, np.random.default_rng(0), tol=1e-6, **more)


def fit_of(X, spec=None, **more):
    job = a_job(X, **more)
    return fit(job, spec or a_spec(), survey(job.source))


def planted(N=300, D=40, K=5, noise=0.5, seed=0):
    return make_nonnegative_features(N, D, K, noise=noise, random_state=seed)


# ------------------------------------------------------------------------ starts


@pytest.mark.parametrize("shape", [(200, 30), (20, 60), (60, 60), (1000, 400)])
def test_spectrum_equals_the_singular_values(shape):
    X = np.random.default_rng(0).normal(size=shape) + 5.0
    X[: shape[0] // 2] += 3.0
    found = Spectrum.of(X, 10)
    exact = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    assert found.values[0] == pytest.approx(exact[0], rel=1e-6)
    assert found.rank >= 1
    white = found.whitened(1)
    assert white.var() == pytest.approx(1.0, rel=1e-6)


DEGENERATE = {
    "constant": np.ones((5, 3)),
    "zero": np.zeros((5, 3)),
    "one_row": np.array([[1.0, 2.0, 0.0]]),
    "one_value": np.array([[3.0]]),
    "one_column": np.ones((5, 1)),
    "equal_rows": np.array([[1.0, 2.0], [1.0, 2.0]]),
    "two_values": np.array([[1.0], [2.0]]),
    "two_kinds": np.repeat([[1.0, 0.0], [0.0, 1.0]], 5, axis=0),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("init", ["auto", "ica", "nmf", "random"])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_tables_without_directions(case, init, nonnegative):
    found = fit_of(DEGENERATE[case], a_spec(init=init, nonnegative=nonnegative))
    assert np.all(np.isfinite(found.history))
    assert np.all(np.isfinite(found.params.factors.mean))
    assert found.params.noise > 0.0
    assert found.params.spread > 0.0
    assert np.all(found.sums.counts > 0.0)


def test_projections_find_what_was_planted():
    X, Z, _ = planted(N=1000)
    found, clear = projections(Spectrum.of(X, 30), 5, True, np.random.default_rng(0))
    assert clear >= 0.8
    # Equal shares of bits; features that add, not their absence.
    agree = np.mean(found[:, :, None] == Z[:, None, :], axis=0)
    assert np.all(agree.max(axis=0) > 0.9)


def test_parts_and_random_bits():
    X, _, _ = planted()
    rng = np.random.default_rng(0)
    for Z in (parts(np.maximum(X, 0.0), 8, rng), random_bits(300, 8, rng)):
        assert Z.shape == (300, 8)
        assert Z.dtype == np.uint8
        assert set(np.unique(Z)) <= {0, 1}
    assert random_bits(3000, 8, rng).mean() == pytest.approx(1 / 3, abs=0.02)
    assert parts(X[:3], 8, rng).shape[1] <= 3


# ------------------------------------------------------------------ rows in memory


@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_births_raise_the_bound(nonnegative, gaps):
    """From fewer features than there are: the bound rises with those born."""
    X, Z, _ = planted()
    hidden = np.random.default_rng(1).random(X.shape) < gaps
    sample = Sample(np.where(hidden, np.nan, X))
    model = MEIBPModel()
    scales = Scales(0.25, 1.0, 1.0, nonnegative)
    start = sample.begin(model, Z[:, :3].astype(np.uint8), scales)
    found = sample.converge(model, start)
    rng = np.random.default_rng(0)
    new = sample.births(model, found, 4, nonnegative, rng)
    assert 1 <= len(new) <= 4
    born = sample.converge(model, with_births(found.params, new))
    assert born.bound > found.bound
    assert len(sample.births(model, found, 0, nonnegative, rng)) == 0


def test_nothing_is_born_from_noise():
    """At the truth nothing is left."""
    X, Z, _ = planted()
    sample = Sample(X)
    model = MEIBPModel()
    start = sample.begin(model, Z.astype(np.uint8), Scales(0.25, 1.0, 1.0, True))
    found = sample.converge(model, start)
    assert found.params.K == 5
    new = sample.births(model, found, 3, True, np.random.default_rng(0))
    assert len(new) == 0


def test_complete_columns_of_a_sample():
    X = np.arange(12.0).reshape(3, 4)
    X[1, 0] = np.nan
    np.testing.assert_array_equal(Sample(X).complete, X[:, 1:])
    X[0, 1:] = np.nan
    filled = Sample(X).complete
    assert filled.shape == (3, 4)
    assert np.all(np.isfinite(filled))
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


# ------------------------------------------------------------------- the driver


def test_more_rows_than_a_sample():
    X, Z, _ = planted(N=7000, D=20, K=4)
    found = fit_of(X, block_rows=1000)
    assert found.params.K == 4
    assert np.sort(found.sums.counts) == pytest.approx(np.sort(Z.sum(axis=0)), rel=0.1)
    job = make_job(ArrayBlocks(X, 900), None, np.random.default_rng(0), n_threads=2)
    bits = choose(job, found.params)
    assert bits.shape == (7000, 4)
    # In a fit, a row keeps what it had if its search from nothing ends lower.
    np.testing.assert_allclose(bits.sum(axis=0), found.sums.counts, rtol=1e-3)
