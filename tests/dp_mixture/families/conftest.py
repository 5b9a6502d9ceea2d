"""Small tables for every observation family."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from kplus.dp_mixture.families.family import ByComponent, Columns
from kplus.observations import (
    Bernoulli,
    Categorical,
    DiagGaussian,
    FactorGaussian,
    Gaussian,
    Mixed,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    Spiked,
    StudentT,
    Transformed,
    ZeroMeanGaussian,
)

LEVELS = (2, 4, 3)


def normal_rows(rng, n):
    mix = np.array([[2.0, 0.0, 0.0], [1.0, 0.5, 0.0], [0.3, 0.2, 3.0]])
    return rng.normal(size=(n, 3)) @ mix + [1.0, -20.0, 0.0]


def skewed_rows(rng, n):
    X = normal_rows(rng, n)
    X[:, 0], X[:, 2] = np.exp(0.5 * X[:, 0]), 1.0 / (1.0 + np.exp(-X[:, 2]))
    return X


def spiked_rows(rng, n):
    X = normal_rows(rng, n)
    X[rng.random(n) < 0.4, 0], X[rng.random(n) < 0.3, 2] = 0.0, 5.0
    return X


def bit_rows(rng, n):
    return (rng.random((n, 3)) < [0.2, 0.5, 0.9]).astype(float)


def code_rows(rng, n):
    return rng.integers(0, LEVELS, size=(n, 3)).astype(float)


def count_rows(rng, n):
    return rng.poisson([0.3, 4.0, 30.0], size=(n, 3)).astype(float)


def mixed_rows(rng, n):
    """Numbers in columns 0 and 3, categories in 1 and 4, counts in 2 and 5."""
    parts = normal_rows(rng, n), code_rows(rng, n), count_rows(rng, n)
    return np.stack([part[:, j] for j in (0, 1) for part in parts], axis=1)


@dataclass(frozen=True)
class Case:
    """A family to test: the user's choice, and rows that suit it."""

    name: str
    likelihood: Any
    make: Any
    levels: tuple[int | None, ...] = (None, None, None)
    missing: bool = True  # whether t(x) is known where values are missing

    @property
    def columns(self):
        names = tuple(f"column {j}" for j in range(len(self.levels)))
        return Columns(names, self.levels)

    def rows(self, n=12, seed=0, missing=True):
        rng = np.random.default_rng(seed)
        X = self.make(rng, n)
        if self.missing and missing:
            X[rng.random(X.shape) < 0.25] = np.nan
        return X

    def family(self, n=40, seed=7):
        sample = self.rows(n, seed)
        return self.likelihood.resolve(sample, None, self.columns)


_DIAG_SET = DiagGaussian([5, 0, -3.0], 0.7, 4.5, [1, 2, 0.1])
_FACTORS_SET = FactorGaussian(2, 0.2, 0.4, 6.0)
_FULL_SET = Gaussian(0.5, mean=[1, -2, 3.0], dof=6)
_MIXED = (None, LEVELS[0], None, None, LEVELS[1], None)
_FULL_MIXED = Mixed(Gaussian(), counts=(2, 5))
_SKEWED = Transformed(DiagGaussian(), {0: "log", 2: "logit"})
_SPIKED = Spiked(DiagGaussian(), {0: 0.0, "column 2": 5.0})
CASES = [
    Case("gaussian", Gaussian(), normal_rows, missing=False),
    Case("gaussian-set", _FULL_SET, normal_rows, missing=False),
    Case("zero_mean_gaussian", ZeroMeanGaussian(), normal_rows, missing=False),
    Case("factor_gaussian", FactorGaussian(), normal_rows, missing=False),
    Case("factor_gaussian-set", _FACTORS_SET, normal_rows, missing=False),
    Case("diag_gaussian", DiagGaussian(), normal_rows),
    Case("diag_gaussian-set", _DIAG_SET, normal_rows),
    Case("spherical_gaussian", SphericalGaussian(), normal_rows),
    Case("spherical_gaussian-set", SphericalGaussian(4.0, 0.7, 2.5, 3.0), normal_rows),
    Case("transformed", _SKEWED, skewed_rows),
    Case("spiked", _SPIKED, spiked_rows),
    Case("bernoulli", Bernoulli(), bit_rows),
    Case("bernoulli-set", Bernoulli(0.5, [1, 2, 3]), bit_rows),
    Case("categorical", Categorical(), code_rows, LEVELS),
    Case("categorical-set", Categorical([1.0, [1, 2, 3, 4], 0.2]), code_rows, LEVELS),
    Case("poisson", Poisson(), count_rows),
    Case("poisson-set", Poisson(2.0, [1, 0.5, 0.1]), count_rows),
    Case("negative_binomial", NegativeBinomial(), count_rows),
    Case("negative_binomial-set", NegativeBinomial([0.3, 2, 0.01], 5, 0.5), count_rows),
    Case("multinomial", Multinomial(), count_rows, missing=False),
    Case("multinomial-set", Multinomial([0.3, 1, 2]), count_rows, missing=False),
    Case("mixed", Mixed(counts=(2, 5)), mixed_rows, _MIXED),
    Case("mixed-gaussian", _FULL_MIXED, mixed_rows, _MIXED, missing=False),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


_TAILS = [Case(f"tails-{t}", StudentT(tail_dof=t), normal_rows) for t in (None, 4.0)]
# The first takes no missing values, "transformed" has means of other units, and the
# last no density at its spikes.
_OTHERS = "multinomial", "transformed", "spiked"
_FILLED = [c for c in (*CASES, *_TAILS) if not c.name.startswith(_OTHERS)]


@pytest.fixture(params=_FILLED, ids=lambda case: case.name)
def filled_case(request):
    """All that take missing values, with hidden parts or without."""
    return request.param


@pytest.fixture
def cases():
    """All by name, also those whose rows have hidden parts: t(x) is not known."""
    hidden = Case("student_t", StudentT(), normal_rows, missing=False)
    return {case.name: case for case in [*CASES, hidden]}


@pytest.fixture(params=[c for c in CASES if c.missing], ids=lambda case: case.name)
def missing_case(request):
    return request.param


_ALONE = (
    "diag_gaussian", "bernoulli", "categorical", "poisson", "negative_binomial",
)  # fmt: skip


@pytest.fixture(params=[c for c in CASES if c.name in _ALONE], ids=lambda c: c.name)
def columnwise_case(request):
    """Families whose default prior of a column depends on that column alone."""
    return request.param


def _gathered(R):
    """Rows with positive weights in each column of R (n, K)."""
    k, rows = np.nonzero(R.T)
    starts = np.searchsorted(k, np.arange(R.shape[1] + 1)).astype(np.int64)
    return ByComponent(starts, rows.astype(np.int64), np.ascontiguousarray(R[rows, k]))


@pytest.fixture
def gathered():
    return _gathered


@pytest.fixture
def stats():
    """N and S of rows weighted by the columns of R; by default one component."""

    def make(family, X, R=None):
        R = np.ones((len(X), 1)) if R is None else R
        return R.sum(axis=0), R.T @ family.features(X)

    return make
