"""Rows in memory: starts are made and improved here before all rows are seen.

Starts are columns of Z. The quality of a fit depends on its start more than on anything
else.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kplus.core import loop
from kplus.core.regroup import without
from kplus.core.types import Array
from kplus.data.blocks import ArrayBlocks
from kplus.engine import make_engine
from kplus.ibp.factors import GaussianFactors, IBPSums, TruncatedFactors
from kplus.ibp.meibp_model import (
    DropEmpty,
    DropFeature,
    IBPParams,
    MEIBPModel,
    removal_upper_bounds,
    renumbered,
    sums_of,
)
from kplus.ibp.table import fill_with_noise, filled_and_rank
from kplus.linear.gaps import Gaps, columns_of, whole
from kplus.linear.pursuit import noise_rank, two_valued

__all__ = [
    "CLEAR_SHARE",
    "Bits",
    "Sample",
    "SampleFit",
    "Scales",
    "Spectrum",
    "amounts",
    "parts",
    "projections",
    "random_bits",
    "with_births",
]

Bits = NDArray[np.uint8]
_MOST_DIRECTIONS = 200
_PART_STEPS = 30
_POWER_STEPS = 6
_LEVEL = 10.0  # times what noise and K features make of a level that is not there
CLEAR_SHARE = 0.8  # of projections; where so many are clear, all are trusted
_CANDIDATES = 4
_MANY_GAPS = 0.2  # share of entries: from there on what fills gaps may mislead a start
_DETERMINED = 4  # times as many values as the directions that fill gaps have numbers
_MAX_PASSES = 50
_TOL = 1e-5  # nats per value
_RIDGE = 1e-6  # of a row: features may depend on each other


@dataclass(frozen=True)
class Scales:
    """Initial hyperparameters, as variances, and the kind of factors."""

    noise: float
    spread: float
    alpha: float
    nonnegative: bool


@dataclass(frozen=True)
class SampleFit:
    """The converged fit of rows in memory: Z, or the weights of features."""

    params: IBPParams
    Z: NDArray[Any]
    bound: float

    @property
    def bound_per_row(self) -> float:
        return self.bound / len(self.Z)


@dataclass(frozen=True)
class Sample:
    """Rows with NaN where values are missing."""

    table: Array

    @cached_property
    def missing(self) -> NDArray[np.bool_] | None:
        missing = np.isnan(self.table)
        return missing if missing.any() else None

    @cached_property
    def X(self) -> Array:
        """The rows, with 0 where a value is missing."""
        if self.missing is None:
            return self.table
        return np.where(self.missing, 0.0, self.table)

    @cached_property
    def gaps(self) -> Gaps:
        if self.missing is None:
            return whole(*self.table.shape)
        return Gaps.of(self.missing)

    @cached_property
    def complete(self) -> Array:
        """Columns without gaps if they are many, or else all, with gaps filled."""
        if self.missing is None:
            return self.table
        columns = ~self.missing.any(axis=0)
        if 2 * np.count_nonzero(columns) >= self.table.shape[1]:
            return np.ascontiguousarray(self.table[:, columns])
        columns = ~self.missing.all(axis=0)
        rng = np.random.default_rng(len(self.table))
        return fill_with_noise(self.table[:, columns], self.missing[:, columns], rng)

    @cached_property
    def for_starts(self) -> "Sample":
        """These rows; as if what fills their gaps had been observed, where it may.

        A search for starts passes over the rows many times. As long as little is filled
        in, or what fills it is well determined by what is known, it finds the same
        features without gaps, for less; the passes over all rows that follow know of
        gaps.
        """
        if self.missing is None or self.missing.all(axis=0).any():
            return self
        rng = np.random.default_rng(len(self.table))
        filled, rank = filled_and_rank(self.table, self.missing, rng)
        numbers = (rank + 2) * sum(self.table.shape)
        if (
            self.missing.mean() > _MANY_GAPS
            and self.gaps.observed < _DETERMINED * numbers
        ):
            return self
        return Sample(filled)

    @cached_property
    def level(self) -> Array:
        """All columns, with their means in gaps: what many gaps leave is weaker."""
        if self.missing is None:
            return self.table
        known = np.maximum((~self.missing).sum(axis=0), 1)
        return np.where(self.missing, self.X.sum(axis=0) / known, self.table)

    def begin(self, model: MEIBPModel, Z: Bits, scales: Scales) -> IBPParams:
        """Factors and scales for given features of the rows."""
        zero = np.zeros((Z.shape[1], self.table.shape[1]))
        sums = sums_of(self.X, self.missing, self.gaps, Z, zero)
        A = _least_squares(sums)
        spread = scales.spread
        if model.infer_spread and A.any():  # else a high level would be shrunk
            spread = float(np.mean(A * A))
        kind = TruncatedFactors if scales.nonnegative else GaussianFactors
        params = IBPParams(
            kind.near(A, scales.noise),
            scales.noise, spread, scales.alpha, np.zeros(len(A)),
        )  # fmt: skip
        return model.update(params, sums)

    @property
    def step(self) -> float:
        """The rise of the bound below which a fit has converged."""
        return _TOL * self.gaps.observed

    def converge(self, model: MEIBPModel, params: IBPParams) -> SampleFit:
        """Pass over the rows until the bound rises by less than `step`."""
        source = ArrayBlocks(self.table, max(len(self.table), 1))
        with make_engine(source, None, 1) as engine:
            result = loop.run(
                model, engine, params, moves=[DropEmpty(), DropFeature()],
                max_iter=_MAX_PASSES, tol=1e-11, step=self.step,
            )  # fmt: skip
            Z = next(iter(engine.locals())).unpack()
        return SampleFit(result.params, Z, -result.history[-1])

    def without_one(self, fitted: SampleFit) -> IBPParams:
        """Parameters without the feature of the highest removal upper bound."""
        K, A = fitted.params.K, fitted.params.factors.mean
        sums = sums_of(self.X, self.missing, self.gaps, fitted.Z, A)
        old_to_new = without(
            K, int(np.argmax(removal_upper_bounds(fitted.params, sums)))
        )
        return renumbered(fitted.params, old_to_new, K - 1, A[:0])

    def weigh_in(
        self, model: MEIBPModel, scales: Scales, K: int, rng: np.random.Generator
    ) -> list[IBPParams]:
        """Features of which rows have some amount: K parts of a factorisation.

        With what these leave as noise: more would hide weak features at first. There
        are two starts: bits of a fit in which rows have all features hardly ever go,
        and in one in which they must earn them some never come.
        """
        shifted = self.level - np.minimum(self.level.min(axis=0), 0.0)
        W, H = amounts(shifted, self.missing, K, rng)
        sizes = np.sqrt(np.mean(W * W, axis=0)) + 1e-12 * np.abs(W).max(initial=1e-300)
        A = H * sizes[:, None]
        noise, spread = scales.noise, scales.spread
        if model.infer_noise:
            left = shifted - W @ H
            known = left if self.missing is None else left[~self.missing]
            noise = max(float(np.mean(known**2)), model.least)
        if model.infer_spread and A.any():
            spread = float(np.mean(A * A))
        start = IBPParams(
            TruncatedFactors.near(A, noise), noise, spread, scales.alpha,
            slopes=np.zeros(len(A)), slab=np.ones(len(A)),
        )  # fmt: skip
        return [start, replace(start, slopes=np.full(len(A), np.log(len(W))))]

    def without_weakest(self, fitted: SampleFit, n: int) -> IBPParams:
        """Parameters without the n features that rows have least of."""
        A = fitted.params.factors.mean
        energy = (fitted.Z**2).sum(axis=0) * (A**2).sum(axis=1)
        gone = np.zeros(len(A), np.bool_)
        gone[np.argsort(energy, kind="stable")[:n]] = True
        return renumbered(fitted.params, without(len(A), gone), len(A) - n, A[:0])

    def births(
        self,
        model: MEIBPModel,
        fitted: SampleFit,
        most: int,
        nonnegative: bool,
        rng: np.random.Generator,
    ) -> Array:
        """Features that some of the residuals have in common, (up to most, D).

        Each raises the bound by itself.
        """
        R = self.X - fitted.Z.astype(np.float64) @ fitted.params.factors.mean
        if self.missing is not None:
            R[self.missing] = 0.0
        new: list[Array] = []
        for _ in range(most):
            tried = [_common_feature(R, nonnegative, rng) for _ in range(_CANDIDATES)]
            _, rows, a = max(tried, key=lambda one: one[0])
            if not rows.any() or not self._raises_bound(model, fitted.params, R, rows):
                break
            new.append(a)
            R[rows] -= a
            if self.missing is not None:
                R[self.missing] = 0.0
        return np.array(new).reshape(-1, self.table.shape[1])

    def _raises_bound(
        self, model: MEIBPModel, params: IBPParams, R: Array, rows: NDArray[np.bool_]
    ) -> bool:
        """Whether one more feature for some rows raises the bound of the residuals."""
        D = R.shape[1]
        none = sums_of(R, self.missing, self.gaps, rows[:, None], np.zeros((1, D)))
        kind = type(params.factors)
        alone = replace(
            params,
            factors=kind.near(_least_squares(none), params.noise),
            slopes=np.zeros(1),
            keep_alive=None,
        )
        fitted = replace(
            alone,
            factors=alone.factors.refreshed(none, params.noise, params.spread),
            alpha=params.alpha / (params.K + 1.0),  # K! of Eq. 1
        )
        nothing = none.regroup(np.array([-1]), 0)
        empty = renumbered(fitted, np.array([-1]), 0, np.empty((0, D)))
        return model.bound(fitted, none) > model.bound(empty, nothing)


def _least_squares(sums: IBPSums) -> Array:
    """Least-squares features, for sums about zero."""
    K, D = sums.T.shape
    A = np.zeros((K, D))
    for S, own in zip(sums.S, columns_of(sums.group, len(sums.S)), strict=True):
        firm = S + _RIDGE * np.eye(K)
        A[:, own] = np.linalg.solve(firm, sums.T[:, own])
    return A


def _common_feature(
    R: Array, nonnegative: bool, rng: np.random.Generator
) -> tuple[float, NDArray[np.bool_], Array]:
    """A feature that residuals share, from that of a row drawn at random.

    The rows that are nearer to the feature than to nothing, and their mean, in turns.
    """
    squares = np.einsum("nd,nd->n", R, R)
    total = squares.sum()
    no_row = np.zeros(len(R), np.bool_)
    if not total > 0.0:
        return 0.0, no_row, R[0]
    a = R[int(rng.choice(len(R), p=squares / total))]
    rows = no_row
    for turn in range(6):
        if nonnegative:
            a = np.maximum(a, 0.0)
        products = R @ a
        # At first a is one noisy row: any that points the same way counts.
        new = products > (0.0 if turn == 0 else 0.5 * (a @ a))
        if not new.any() or np.array_equal(new, rows):
            break
        rows = new
        a = R[rows].mean(axis=0)
    if nonnegative:
        a = np.maximum(a, 0.0)
    gain = float(np.sum(2.0 * (R[rows] @ a) - a @ a)) if rows.any() else 0.0
    return gain, rows, a


def with_births(params: IBPParams, new: Array) -> IBPParams:
    """Parameters with more features."""
    K = params.K
    return renumbered(params, np.arange(K), K + len(new), new)


# ------------------------------------------------------------------------------- starts


@dataclass(frozen=True)
class Spectrum:
    """The strongest directions of rows without gaps.

    Attributes
    ----------
    X : (n, D)
        Rows, centred.
    mean : (D,)
    values : (m,)
        Squared singular values, falling.
    right : (D, m)
        Their directions.
    rank : int
        How many of them stand out of noise.
    noise : float
        Variance of the rest.
    """

    X: Array
    mean: Array
    values: Array
    right: Array
    rank: int
    noise: float

    @classmethod
    def of(cls, X: Array, most: int) -> "Spectrum":
        """Of rows, in up to `most` directions."""
        mean = X.mean(axis=0)
        centred = X - mean
        n, D = X.shape
        wide = n < D
        gram = centred @ centred.T if wide else centred.T @ centred
        m = min(len(gram), most + 1, _MOST_DIRECTIONS)
        values, vectors = _strongest(gram, m)
        if wide:
            vectors = centred.T @ (vectors / np.sqrt(np.maximum(values, 1e-300)))
        total = float(np.vdot(centred, centred))
        rest = max(total - float(values.sum()), 0.0)
        rank, noise = noise_rank(values, n, D, rest)
        return cls(centred, mean, values, vectors, min(rank, most), noise)

    def whitened(self, K: int) -> Array:
        """Rows in K directions, of unit variance each."""
        n = len(self.X)
        white: Array = self.X @ (self.right[:, :K] * np.sqrt(n / self.values[:K]))
        return white


def _strongest(gram: Array, m: int) -> tuple[Array, Array]:
    """The m largest eigenvalues, falling, and their vectors.

    Of large matrices by a few steps of subspace iteration: what stands out of noise
    comes out exactly, and what does not need not.
    """
    n = len(gram)
    if n < 6 * m:
        values, vectors = scipy.linalg.eigh(
            gram, subset_by_index=[n - m, n - 1], check_finite=False
        )
        return np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    block = np.random.default_rng(0).normal(size=(n, m))
    for _ in range(_POWER_STEPS):
        block = np.linalg.qr(gram @ block)[0]
    values, turn = np.linalg.eigh(block.T @ (gram @ block))
    return np.maximum(values[::-1], 0.0), block @ turn[:, ::-1]


def projections(
    spectrum: Spectrum, most: int, nonnegative: bool, rng: np.random.Generator
) -> tuple[Bits, float]:
    """Columns of Z that projections of the rows show, and the share that is clear.

    What a projection tells apart may be a feature or its absence. Features that add are
    taken: where the sum over columns is positive. What all rows have in common beside
    them, if it is more than noise, is one feature more.
    """
    n = len(spectrum.X)
    K = max(spectrum.rank, int(spectrum.values[0] > 0.0))
    columns, clear = np.zeros((n, 0), np.bool_), 0
    if K:
        columns, clear = two_valued(
            spectrum.whitened(K), np.full(n, 1.0 / n), rng, CLEAR_SHARE
        )
    Z = columns.astype(np.uint8)
    ones = columns - columns.mean(axis=0)
    gram = ones.T @ ones
    slopes = np.linalg.pinv(gram, hermitian=True) @ (ones.T @ spectrum.X)
    turned = slopes.sum(axis=1) < 0.0
    if not nonnegative:
        turned = columns.mean(axis=0) > 0.5
    Z[:, turned] ^= 1
    slopes[turned] *= -1.0
    level = spectrum.mean - Z.mean(axis=0) @ slopes
    if nonnegative:
        level = np.maximum(level, 0.0)
    if level @ level * n > _LEVEL * (K + 1) * spectrum.noise * len(level):
        Z = np.column_stack([np.ones(n, np.uint8), Z])
    return Z[:, :most], clear / max(K, 1)


def parts(X: Array, K: int, rng: np.random.Generator) -> Bits:
    """Columns of Z from K nonnegative parts: which rows have much of each."""
    return _cut_in_two(amounts(X, None, K, rng)[0])


def amounts(
    X: Array, missing: NDArray[np.bool_] | None, K: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """K nonnegative parts of rows, and how much each row has of them: X ≈ WH.

    A few rounds of coordinate descent from rows drawn far apart. Missing entries, which
    X must fill somehow, follow the fit.
    """
    H = np.maximum(X[_distant_rows(X, K, rng)], 0.0) + 1e-9
    W = np.zeros((len(X), len(H)))
    for _ in range(_PART_STEPS):
        _descend(W, X @ H.T, H @ H.T)
        _descend(H.T, X.T @ W, W.T @ W)
        if missing is not None:
            X = np.where(missing, W @ H, X)
    return W, H


def _descend(W: Array, products: Array, gram: Array) -> None:
    """One round over the columns of W; those of no use become zero."""
    for k in range(W.shape[1]):
        own = gram[k, k]
        if own > 0.0:
            W[:, k] += (products[:, k] - W @ gram[:, k]) / own
            np.maximum(W[:, k], 0.0, out=W[:, k])


def _cut_in_two(W: Array) -> Bits:
    """Cut each column in two where 2-means would."""
    Z = np.empty(W.shape, np.uint8)
    for k, w in enumerate(W.T):
        cut = 0.5 * (w.min() + w.max())
        for _ in range(10):
            above = w > cut
            if above.all() or not above.any():
                break
            cut = 0.5 * (w[above].mean() + w[~above].mean())
        Z[:, k] = w > cut
    return Z


def _distant_rows(X: Array, K: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows drawn in proportion to their residuals given the rows drawn before."""
    R = X.copy()
    chosen: list[int] = []
    for _ in range(min(K, len(X))):
        squares = np.einsum("nd,nd->n", R, R)
        total = squares.sum()
        if not total > 0.0:
            break
        n = int(rng.choice(len(X), p=squares / total))
        chosen.append(n)
        direction = R[n] / np.sqrt(squares[n])
        R -= np.outer(R @ direction, direction)
    return np.array(chosen, dtype=np.int64)


def random_bits(n: int, K: int, rng: np.random.Generator) -> Bits:
    """As in the authors' code: each row has each feature with probability 1/3."""
    return (rng.uniform(size=(n, K)) < 1.0 / 3.0).astype(np.uint8)
