"""Rows in memory, and the allocations of features to them."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import NotFiniteError
from kplus.core.job import Job, draw
from kplus.core.types import Array
from kplus.features.kernels_collapsed import ALL, PAIRS, improve
from kplus.features.kernels_columns import refit, residuals
from kplus.linear.pursuit import fill_gaps, strengths
from kplus.linear.sums import solve

__all__ = ["MAX_SWEEPS", "Bits", "RowSample", "Rows", "Solution", "View", "draw_rows"]

Bits = NDArray[np.uint8]
_EXACT = 8  # up to so many features a row's z is the best of all 2^K
MAX_SWEEPS = 100


@dataclass(frozen=True)
class View:
    """Rows as kernels take them: values, weights, squared lengths.

    The first `locked` columns of an allocation are ones for every row.
    """

    X: Array
    weights: Array
    locked: int

    @cached_property
    def squares(self) -> Array:
        squares: Array = np.einsum("nd,nd->n", self.X, self.X)
        return squares

    def fitted(self, Z: Bits) -> tuple[Array, Array]:
        """The best features for Z and (ZᵀWZ)⁻¹, infinite where that does not exist."""
        explained, H, A, _ = refit(self.X, self.weights, Z)
        if explained == -np.inf:
            Zw = (Z * self.weights[:, None]).T
            return solve(Zw @ Z, Zw @ self.X), np.full(H.shape, np.inf)
        return A, H

    def residuals(self, Z: Bits, A: Array) -> Array:
        left: Array = residuals(self.X, Z, A)
        return left


@dataclass(frozen=True)
class Rows:
    """A table in memory, without gaps.

    A base feature that every row has is a shift of the origin, so with one the search
    works on centred rows: no digits are lost to a large offset.
    """

    X: Array
    weights: Array

    @cached_property
    def mean(self) -> Array:
        mean: Array = self.weights @ self.X / self.weights.sum()
        return mean

    @cached_property
    def plain(self) -> View:
        return View(self.X, self.weights, 0)

    @cached_property
    def centred(self) -> View:
        return View(self.X - self.mean, self.weights, 1)

    def view(self, base: bool) -> View:
        return self.centred if base else self.plain

    @cached_property
    def strengths(self) -> Array:
        """Squared singular values of the centred, weighted rows, falling."""
        return strengths(self.centred.X, self.weights)

    def least_error(self, K: int) -> float:
        """No K features, with or without a base among them, leave less than that."""
        return float(np.sum(self.strengths[K:]))

    @property
    def total(self) -> float:
        """The error without any feature."""
        return float(self.weights @ self.plain.squares)

    def empty(self) -> "Solution":
        return Solution(np.zeros((len(self.X), 0), np.uint8), False, self.total)

    def only_base(self) -> "Solution":
        Z = np.ones((len(self.X), 1), np.uint8)
        return Solution(Z, True, float(self.weights @ self.centred.squares))

    def polish(
        self, Z: Bits, base: bool, target: float = np.inf, *, pairs: bool = False
    ) -> "Solution":
        """The local optimum next to Z (which is changed).

        The way there may be given up if it will not lead below `target`. With `pairs`,
        rows are tried with two bits flipped instead of all patterns.
        """
        view = self.view(base)
        flips = ALL if Z.shape[1] <= _EXACT and not pairs else PAIRS
        error = improve(
            view.X, view.weights, view.squares, Z, view.locked,
            flips, MAX_SWEEPS, target,
        )  # fmt: skip
        return Solution(Z, base, max(float(error), 0.0))  # rounding may go below

    def error(self, Z: Bits, base: bool) -> float:
        """The error of an allocation as it stands."""
        view = self.view(base)
        R = view.residuals(Z, view.fitted(Z)[0])
        return float(self.weights @ np.einsum("nd,nd->n", R, R))

    def features(self, solution: "Solution") -> Array:
        """The features of an allocation, in the units of the rows."""
        A, _ = self.view(solution.base).fitted(solution.Z)
        if solution.base:
            A[0] += self.mean
        return A

    def losses(self, solution: "Solution") -> Array:
        """How much the error rises if a feature goes and the others are refitted."""
        A = self.features(solution)
        _, H = self.view(solution.base).fitted(solution.Z)
        losses: Array = np.einsum("kd,kd->k", A, A) / np.diag(H)
        return losses


@dataclass(frozen=True)
class Solution:
    """An allocation Z and its error; with `base`, column 0 is ones for every row."""

    Z: Bits
    base: bool
    error: float

    @property
    def K(self) -> int:
        return int(self.Z.shape[1])

    def cost(self, penalty: float) -> float:
        return self.error + penalty * self.K


# -------------------------------------------------------- rows of a table


@dataclass(frozen=True)
class RowSample:
    """A sample of rows, gaps filled in.

    Weights are on average 1 and values at most about 1, so that units do not matter;
    `scale` is that of the values. `share` is what the error on these rows is to that
    on all rows.
    """

    rows: Rows
    gaps: NDArray[np.bool_] | None
    scale: float
    share: float

    def features(self, solution: Solution) -> Array:
        """The features of an allocation found on these rows, in units of the data."""
        if not solution.K:
            return np.empty((0, self.rows.X.shape[1]))
        return self.scale * self.rows.features(_oriented(solution, self.rows.weights))

    def refilled(self, solution: Solution) -> "RowSample":
        """The same rows, with the values in gaps that an allocation gives them."""
        if self.gaps is None or not solution.K:
            return self
        fitted = solution.Z @ self.rows.features(solution)
        X = np.where(self.gaps, fitted, self.rows.X)
        return replace(self, rows=Rows(X, self.rows.weights))


def _oriented(solution: Solution, weights: Array) -> Solution:
    """With a base, no other feature is held by more than half the rows.

    A feature may be complemented, the base then has what it had: the fit is the same.
    """
    if not solution.base:
        return solution
    most = weights @ solution.Z > 0.5 * weights.sum()
    most[0] = False
    return Solution(solution.Z ^ most.astype(np.uint8), True, solution.error)


def draw_rows(job: Job, size: int) -> RowSample:
    """Draw rows into memory, as float64, without gaps.

    Equal rows become one with their weights added up, and rows are sorted: the search
    sees the same table whatever the order of rows, and whether a row has weight 2 or
    comes twice.
    """
    sample = draw(job.source, job.weights, size, job.rng)
    X: Array = np.ascontiguousarray(sample.rows, dtype=np.float64)
    weights = sample.weight()
    gaps = np.isnan(X)
    _check_squares(np.where(gaps, 0.0, X))
    if gaps.any():
        X = fill_gaps(X, gaps, weights)
    else:
        distinct = np.unique(X, axis=0, return_inverse=True)
        X = distinct[0]
        counts = np.bincount(distinct[1].ravel(), weights=weights)
        weights = counts.astype(np.float64)
    unit = float(weights.mean())
    known = gaps if gaps.any() else None
    scale = _power_of_two(X)
    rows = Rows(X / scale, weights / unit)
    return RowSample(rows, known, scale, sample.share / unit / scale / scale)


def _power_of_two(X: Array) -> float:
    """About the largest value; dividing by it changes no digit."""
    largest = float(np.max(np.abs(X), initial=0.0))
    return float(2.0 ** np.round(np.log2(largest))) if largest > 0.0 else 1.0


def _check_squares(X: Array) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(np.vdot(X, X)):
            raise NotFiniteError("A row of the sample")
