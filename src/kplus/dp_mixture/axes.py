"""An axis between two components, on which a valley between them would show.

Gaussian rows are projected on Fisher's axis of the two components; other rows on their
log-odds, the difference of two scores. Both are in nats, so that the columns of a mixed
table add.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows
from kplus.dp_mixture.drawn_rows import drawn_rows
from kplus.dp_mixture.families.factor_gaussian import FactorGaussianFamily, compared
from kplus.dp_mixture.families.family import Family
from kplus.dp_mixture.families.gaussian import GaussianFamily
from kplus.dp_mixture.families.mixed import MixedFamily
from kplus.dp_mixture.families.normal_gamma import NormalGammaFamily
from kplus.dp_mixture.families.spiked import SpikedFamily
from kplus.dp_mixture.families.transformed import TransformedFamily
from kplus.dp_mixture.params import Components
from kplus.tree.borders import Axes

__all__ = ["PairAxes"]

_DRAWS = 200  # rows of each component that say where its rows lie on an axis ...
_FEW_DRAWS, _MANY_COLUMNS = 50, 1000  # ... and where they have so many columns


@dataclass(frozen=True)
class PairAxes:
    """Axes, and the coefficients (n_pairs, m) that take rows to them."""

    axes: Axes
    coefficients: Array

    @classmethod
    def of(cls, params: Components, pairs: IntArray) -> "PairAxes":
        """The axes of some pairs of components, and where their rows lie on them."""
        family, N, S = compared(params.family), params.N, params.S
        coefficients = _coefficients(family, params.expected, N, S, pairs)
        # Always the same rows: where a histogram ends is no matter of luck.
        rng = np.random.default_rng(0)
        n = _DRAWS if family.n_columns <= _MANY_COLUMNS else _FEW_DRAWS
        draws = drawn_rows(family, N, S, np.full(len(N), n), rng)
        owners = np.repeat(np.arange(len(N)), n)
        rows = _coordinates(family, draws, params.expected, owners)
        rows = rows.reshape(len(N), n, -1)
        centers, spreads = np.empty((len(pairs), 2)), np.empty((len(pairs), 2))
        for p, pair in enumerate(pairs):
            values = rows[pair] @ coefficients[p]
            # Half the width of the middle 68 %: rows of few may be drawn far away.
            low, centers[p], high = np.quantile(values, (0.16, 0.5, 0.84), axis=1)
            spreads[p] = 0.5 * (high - low)
        return cls(Axes.spanning(pairs, centers, spreads), coefficients)

    def values(self, params: Components, X: Rows, owners: IntArray) -> "RowValues":
        """Rows of which `owners` are the components."""
        rows = _coordinates(params.family, X, params.expected, owners)
        return RowValues(rows, self.coefficients)


@dataclass(frozen=True)
class RowValues:
    """Rows, to be placed on axes."""

    coordinates: Array
    coefficients: Array

    def on(self, rows: IntArray, of: IntArray) -> Array:
        """Values of some rows on some axes, (n, len(of))."""
        out: Array = self.coordinates[rows] @ self.coefficients[of].T
        return out


def _coordinates(family: Family, X: Any, expected: Any, owners: IntArray) -> Array:
    """What axes are linear in, (n, m)."""
    if isinstance(family, MixedFamily):
        parts = zip(family.parts, family.where, expected.parts, strict=True)
        return np.hstack(
            [_coordinates(f, np.take(X, j, axis=1), e, owners) for f, j, e in parts]
        )
    if isinstance(family, TransformedFamily):
        return _coordinates(family.inner, family.units.transform(X), expected, owners)
    if isinstance(family, SpikedFamily):
        return _coordinates(family.inner, family.expanded(X), expected, owners)
    if isinstance(family, FactorGaussianFamily | GaussianFamily):
        return family.filled(expected, X, owners)
    if isinstance(family, NormalGammaFamily):
        # Which are observed, and the values: the squares have no part in Fisher's axis.
        return family.features(X)[:, : 2 * family.n_columns]
    return family.scores(expected, X)


def _coefficients(
    family: Family, expected: Any, N: Array, S: Array, pairs: IntArray
) -> Array:
    family, (a, b) = compared(family), pairs.T
    if isinstance(family, MixedFamily):
        parts = zip(family.parts, expected.parts, family.split(S), strict=True)
        return np.hstack([_coefficients(f, e, N, own, pairs) for f, e, own in parts])
    if isinstance(family, TransformedFamily):
        return _coefficients(family.inner, expected, N, S, pairs)
    if not isinstance(family, (GaussianFamily, NormalGammaFamily)):
        out: Array = np.eye(len(N))[b] - np.eye(len(N))[a]
        return out
    described = family.attributes(N, S)
    means = family.scaling.transform(described["means_"])
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(family, GaussianFamily):
            units = family.inv[:, None] * family.inv
            return _finite(_fisher(means, described["covariances_"] * units, pairs))
        variances = described["covariances_"].reshape(len(N), -1) * family.inv**2
        slopes = 2.0 * (means[b] - means[a]) / (variances[a] + variances[b])
    middle = 0.5 * (means[a] + means[b])
    return _finite(np.hstack([-middle * slopes, slopes]))


def _fisher(means: Array, covariances: Array, pairs: IntArray) -> Array:
    """((Σ_a + Σ_b) / 2)⁻¹ (μ_b - μ_a) of each pair."""
    out = np.zeros((len(pairs), means.shape[1]))
    for p, (a, b) in enumerate(pairs):
        pooled = 0.5 * (covariances[a] + covariances[b])
        if np.all(np.isfinite(pooled)):
            out[p] = np.linalg.lstsq(pooled, means[b] - means[a], rcond=None)[0]
    return out


def _finite(values: Array) -> Array:
    """Nothing is seen on an axis of numbers too large to compute."""
    return np.where(np.isfinite(values), values, 0.0)
