"""Splits of rows in two, along single columns, principal axes and axes of kurtosis.

Rows drawn far apart seed groups that lie apart in all columns. Groups that differ in a
few of many columns are as near to each other as rows of one group are; but the rows'
projection on the right axis has a valley.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows, SparseRows
from kplus.dp_mixture.families.categorical import CategoricalFamily
from kplus.dp_mixture.families.factor_gaussian import FactorGaussianFamily
from kplus.dp_mixture.families.family import Family
from kplus.dp_mixture.families.mixed import MixedFamily
from kplus.dp_mixture.families.multinomial import MultinomialFamily
from kplus.dp_mixture.families.negative_binomial import NegativeBinomialFamily
from kplus.dp_mixture.families.poisson import PoissonFamily
from kplus.dp_mixture.families.spiked import SpikedFamily
from kplus.dp_mixture.families.transformed import TransformedFamily

__all__ = [
    "Split",
    "as_numbers",
    "as_standardised",
    "directional_splits",
    "standardised",
    "valleys",
]

_MOST_AXES = 60  # principal axes that are projected on
_SCANNED = 6  # axes of each kind that are sorted
_SARLE = 0.38  # least coefficient of an axis that is sorted; a Gaussian has .333
_HEAVY = 3.6  # least kurtosis of an axis with heavy tails; a Gaussian has 3
_EACH = 2  # best cuts of each kind of axis
_N_KURTOSIS = 2  # axes of lowest, and of highest kurtosis
_STEPS = 8  # of the ascent in kurtosis
_FLOOR = 1e-3  # least variance of a side of a cut, as a share of all
_FEW_VALUES = 3  # a column of so few values has no valley
_NEGLIGIBLE = 1e-9  # variance along an axis that has none, as a share of the largest
_ALIKE = 0.2  # cuts that differ by less, as a share of the smaller side, are the same
_LARGE = 0.1  # share of the rows on either side of some of the cuts
_MANY_COLUMNS = 500  # sparse rows of more stay sparse: few axes stand for them
_N_SPARSE = 10  # principal axes of these, and columns of largest variance
_N_MORE = 6  # axes beside them, with which products find them ...
_POWERS = 3  # ... so often repeated


class Split(NamedTuple):
    """Rows on either side of a place on an axis, or in its core and its tails."""

    axis: Array
    place: float
    tails: bool = False

    def side(self, Z: Array) -> IntArray:
        """1 for the rows beyond the place, 0 for the others."""
        projected = Z @ self.axis
        beyond = (np.abs(projected) if self.tails else projected) > self.place
        return np.asarray(beyond, dtype=np.int64)


def directional_splits(Z: Array, weights: Array) -> list[Split]:
    """Promising ways to part standardised rows in two, unlike each other."""
    if Z.shape[1] == 0 or len(Z) < 2:
        return []
    axes = _axes(Z, weights)
    splits = _best_cuts(Z, weights, None)
    for kind in (axes.principal, axes.kurtosis):
        if kind.shape[1]:
            splits += _best_cuts(Z @ kind, weights, kind)
    splits += [Split(_unit(Z.shape[1], j), 0.0) for j in _telling(Z, weights)]
    return _distinct(splits, Z, weights)


def as_standardised(family: Family, X: Rows, weights: Array) -> Array:
    """Standardised columns in which the rows of a component scatter about evenly.

    Many sparse columns are told by the foremost of their principal axes, and by those
    columns themselves that vary most.
    """
    if not isinstance(X, SparseRows):
        return standardised(as_numbers(family, X), weights)
    if X.n_columns <= _MANY_COLUMNS:
        return standardised(as_numbers(family, X.toarray()), weights)
    return standardised(_foremost(_sparse_numbers(family, X), weights), weights)


def as_numbers(family: Family, X: Array) -> Array:
    """Columns in which the rows of a component scatter about evenly.

    Categories as marks of each, counts as their roots, whose variance is about that of
    any other count; in place of what is missing the mean.
    """
    if isinstance(family, MixedFamily):
        pairs = zip(family.parts, family.where, strict=True)
        return np.hstack([as_numbers(part, X[:, j]) for part, j in pairs])
    if isinstance(family, TransformedFamily):
        return as_numbers(family.inner, family.units.transform(X))
    if isinstance(family, SpikedFamily):
        return as_numbers(family.inner, family.expanded(X))
    if isinstance(family, FactorGaussianFamily):
        return family.factor_scores(X)
    if isinstance(family, CategoricalFamily):
        return family.features(X)
    Z = X.astype(np.float64)
    if isinstance(family, MultinomialFamily):
        Z = Z / np.maximum(Z.sum(axis=1, keepdims=True), 1.0)
        out: Array = np.sqrt(Z)
        return out
    if isinstance(family, PoissonFamily | NegativeBinomialFamily):
        Z = np.sqrt(Z + 0.375)
    missing = np.isnan(Z)
    if missing.any():
        seen = np.maximum((~missing).sum(axis=0), 1)
        Z = np.where(missing, np.nansum(Z, axis=0) / seen, Z)
    return Z


def _sparse_numbers(family: Family, X: SparseRows) -> sp.csr_array:
    """As `as_numbers`, less what a 0 becomes; what is missing counts as 0."""
    x = np.nan_to_num(X.values)
    if isinstance(family, MultinomialFamily):
        scale = 1.0 / np.sqrt(np.maximum(X.marks @ x, 1.0))
        return X.changed(np.sqrt(x)).multiply(scale[:, None]).tocsr()
    if isinstance(family, PoissonFamily | NegativeBinomialFamily):
        x = np.sqrt(x + 0.375) - np.sqrt(0.375)
    return X.changed(x)


def _foremost(Z: sp.csr_array, weights: Array) -> Array:
    """Rows on principal axes, and in the columns of largest variance.

    By products with the centred columns, from random axes on (Halko, Martinsson and
    Tropp, 2011); always from the same ones.
    """
    share = weights / weights.sum()
    mean = share @ Z
    variance = share @ (Z * Z) - mean**2
    loud = np.argsort(-variance, kind="stable")[:_N_SPARSE]
    axes = np.random.default_rng(0).normal(size=(Z.shape[1], _N_SPARSE + _N_MORE))
    for _ in range(_POWERS):
        placed = share[:, None] * (Z @ axes - mean @ axes)
        axes, _ = np.linalg.qr(Z.T @ placed - np.outer(mean, placed.sum(axis=0)))
    placed = Z @ axes - mean @ axes
    _, turn = np.linalg.eigh(placed.T @ (share[:, None] * placed))
    return np.hstack([placed @ turn[:, ::-1][:, :_N_SPARSE], Z[:, loud].toarray()])


def standardised(Z: Array, weights: Array) -> Array:
    """Columns of mean 0 and variance 1; those that are constant are left out."""
    size = np.abs(Z).max(axis=0)
    Z = Z / np.where(size > 0.0, size, 1.0)  # squares of far values do not overflow
    share = weights / weights.sum()
    Z = Z - share @ Z
    spread = np.sqrt(share @ Z**2)
    varied = spread > 1e-7
    out: Array = Z[:, varied] / spread[varied]
    return out


class _Axes(NamedTuple):
    """Axes in the columns of Z, one in each column, of variance 1."""

    principal: Array
    kurtosis: Array


def _axes(Z: Array, weights: Array) -> _Axes:
    """Principal axes, and axes of extreme kurtosis of the whitened rows.

    The latter begin at the extreme axes of E[|y|² y yᵀ] and follow the gradient of the
    kurtosis (Peña and Prieto, 2001).
    """
    share = (weights / weights.sum())[:, None]
    whiten = _whitening(Z, share)
    Y = Z @ whiten
    if Y.shape[1] < 2 or _is_simplex(Y):
        return _Axes(whiten, whiten[:, :0])
    far = share * np.sum(Y**2, axis=1, keepdims=True)
    _, extreme = np.linalg.eigh(Y.T @ (far * Y))
    n = min(_N_KURTOSIS, Y.shape[1] // 2)
    U = np.hstack([extreme[:, :n], extreme[:, -n:]])
    for _ in range(_STEPS):
        P = Y @ U
        U = Y.T @ (share * P * P * P) - 3.0 * U
        U /= np.maximum(np.linalg.norm(U, axis=0), 1e-300)
    return _Axes(whiten, whiten @ U)


def _whitening(Z: Array, share: Array) -> Array:
    """The foremost principal axes; of more columns than rows by products of rows."""
    wide, scaled = Z.shape[1] > len(Z), np.sqrt(share) * Z
    values, vectors = np.linalg.eigh(scaled @ scaled.T if wide else scaled.T @ scaled)
    kept = values > _NEGLIGIBLE * values[-1]
    kept[: -min(_MOST_AXES, len(Z) - 1)] = False
    values, vectors = values[kept], vectors[:, kept]
    if wide:
        vectors = scaled.T @ vectors / np.sqrt(values)
    out: Array = (vectors / np.sqrt(values))[:, ::-1]
    return out


def _is_simplex(Y: Array) -> bool:
    """Whether whitened rows are n different ones in n - 1 dimensions.

    Their corners are all alike then, so that rounding would choose the axes.
    """
    most = Y.shape[1] + 1
    if len(np.unique(Y.sum(axis=1).round(6))) > most:
        return False
    return bool(len(np.unique(Y.round(6), axis=0)) <= most)


def _unit(D: int, j: int) -> Array:
    """The axis that is a column."""
    out = np.zeros(D)
    out[j] = 1.0
    return out


def _best_cuts(P: Array, weights: Array, axes: Array | None) -> list[Split]:
    """The best cuts over all axes: at valleys, and between core and tails.

    None: the axes are the columns themselves.
    """
    splits: list[Split] = []
    two_sided, tailed = _promising(P, weights)
    for where, tails, kinds in (
        (two_sided, False, ((0.0, _EACH), (_LARGE, 1))),
        (tailed, True, ((0.0, 1),)),
    ):
        if not len(where):
            continue
        some = np.abs(P[:, where]) if tails else P[:, where]
        found = valleys(some, weights, [least for least, _ in kinds])
        for (gains, places), (_, most) in zip(found, kinds, strict=True):
            for j in np.argsort(-gains, kind="stable")[:most]:
                if np.isfinite(gains[j]):
                    k = int(where[j])
                    axis = _unit(P.shape[1], k) if axes is None else axes[:, k]
                    splits.append(Split(axis, float(places[j]), tails))
    return splits


def _promising(P: Array, weights: Array) -> tuple[IntArray, IntArray]:
    """Axes that may have a valley, by Sarle's coefficient, and those of heavy tails.

    Sums are cheaper than sorting. The coefficient, (skewness² + 1) / kurtosis, is 1
    for two points and 1/3 for a Gaussian.
    """
    share = weights / weights.sum()
    squares = P * P
    second = np.maximum(share @ squares, 1e-300)
    third = (share @ (squares * P)) / second**1.5
    fourth = (share @ (squares * squares)) / second**2
    # Two points alone have nothing between them; see `_telling`.
    sarle = np.where(fourth - third**2 < 1.0 + 1e-6, 0.0, (third**2 + 1.0) / fourth)
    two_sided = np.argsort(-sarle, kind="stable")[:_SCANNED]
    tailed = np.argsort(-fourth, kind="stable")[:1]
    return two_sided[sarle[two_sided] > _SARLE], tailed[fourth[tailed] > _HEAVY]


def valleys(
    P: Array, weights: Array, least_shares: Sequence[float] = (0.0,)
) -> list[tuple[Array, Array]]:
    """How much each column of P gains when cut in two Gaussians, per row, and where.

    The gain is that of the log-likelihood of rows with known sides: half the logarithm
    of the variance, less the entropy of the sides. Cut in the middle, a Gaussian loses.
    A column of few values, in which sides may have no variance at all, gains -inf.
    For each of `least_shares`, the best cuts with so many of the rows on either side.
    """
    order = np.argsort(P, axis=0, kind="stable")
    p, w = np.take_along_axis(P, order, axis=0), weights[order]
    mass = np.cumsum(w, axis=0)
    first, second = np.cumsum(w * p, axis=0), np.cumsum(w * p * p, axis=0)
    whole = mass[-1], first[-1], second[-1]
    least = _FLOOR * (whole[2] / whole[0] - (whole[1] / whole[0]) ** 2)
    left, right = np.zeros(P.shape), np.zeros(P.shape)
    with np.errstate(all="ignore"):
        for side, (n, s, q) in (
            (left, (mass, first, second)),
            (right, (whole[0] - mass, whole[1] - first, whole[2] - second)),
        ):
            variance = np.maximum(q / n - (s / n) ** 2, least)
            side[:] = n / whole[0] * (np.log(n / whole[0]) - 0.5 * np.log(variance))
        gains = left + right + 0.5 * np.log(least / _FLOOR)
    rises = np.diff(p, axis=0) > 0.0
    gains = np.where(rises & ~np.isnan(gains[:-1]), gains[:-1], -np.inf)
    gains[:, rises.sum(axis=0) < _FEW_VALUES] = -np.inf
    smaller = np.minimum(mass[:-1], whole[0] - mass[:-1]) / whole[0]
    columns, found = np.arange(P.shape[1]), []
    for least_share in least_shares:
        fine = gains if least_share == 0.0 else gains.copy()
        fine[smaller < least_share] = -np.inf
        best = np.argmax(fine, axis=0)
        places = 0.5 * (p[best, columns] + p[best + 1, columns])
        found.append((fine[best, columns], places))
    return found


def _telling(Z: Array, weights: Array) -> IntArray:
    """Columns of two values that are most correlated with the others."""
    marks = np.flatnonzero([len(np.unique(z[:50])) <= 2 for z in Z.T])
    if len(marks) < 2:
        return marks[:0]
    share = (weights / weights.sum())[:, None]
    related = np.sum((Z[:, marks].T @ (share * Z)) ** 2, axis=1)
    return marks[np.argsort(-related, kind="stable")[:_EACH]]


def _distinct(splits: list[Split], Z: Array, weights: Array) -> list[Split]:
    """Splits with rows on both sides that differ from those before them."""
    kept: list[Split] = []
    sides: list[IntArray] = []
    mass = weights.sum()
    for split in splits:
        side = split.side(Z)
        if side.all() or not side.any():
            continue
        # Where few rows are on one side, many agree by chance.
        beyond = weights @ side
        few = _ALIKE * min(beyond, mass - beyond)
        unlike = (weights @ (side != other) for other in sides)
        if all(few < n < mass - few for n in unlike):
            kept.append(split)
            sides.append(side)
    return kept
