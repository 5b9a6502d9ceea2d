"""Gaussian rows of many columns: components differ along a few factors."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import (
    Scaling,
    draw_codes,
    refuse_categories,
    refuse_empty,
)
from kplus.dp_mixture.families.factor_axes import Axes, principal_axes
from kplus.dp_mixture.families.factor_gaps import (
    FactorGaps,
    Hidden,
    Reference,
    Scales,
    hidden,
    parts_of,
    scales,
)
from kplus.dp_mixture.families.family import ByComponent, Columns, Family
from kplus.dp_mixture.families.gaps import normals_of_rows, some_members
from kplus.dp_mixture.families.gaussian import Gaussian, GaussianFamily
from kplus.dp_mixture.families.inner import InnerFamily
from kplus.dp_mixture.families.normal_wishart import check_finite
from kplus.dp_mixture.families.quadratic import pack
from kplus.dp_mixture.families.spiked import SpikedFamily
from kplus.engine.blas import SINGLE_THREAD

__all__ = ["FactorGaussian", "FactorGaussianFamily", "compared", "reduced"]

_LOG_2PI = float(np.log(2.0 * np.pi))
_NUMBERS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40)  # of factors, that are tried


@dataclass(frozen=True, eq=False)
class FactorGaussian:
    """Gaussian rows of many columns, whose components differ along a few factors.

    A mixture of common factor analysers (Baek, McLachlan and Flack, 2010): x = m + A u
    + e, with the same loadings A and noise e for all components, and factors u that
    have a mean and a full covariance in each. So the covariance of a component is of
    low rank plus noise, and 40 factors of 10,000 columns cost no more than 40 columns.

    Parameters
    ----------
    n_factors : int or "auto", default="auto"
        How many factors; "auto": the number with the highest bound, of a few.
    variance_share : float or None
        Share of the variance along a factor that is expected inside a component; 0.5
        to begin with.
    mean_strength : float or None
        How many rows the prior mean counts for; 0.01 to begin with.
    dof : float or None
        Degrees of freedom of the prior of covariances; ``n_factors + 2`` to begin with.
    learn : bool, default=True
        Learn what is not given; see `Gaussian`.

    Notes
    -----
    With y = (x - m) / √ψ in units of the noise and an orthonormal basis B of the
    loadings in these units, s = Bᵀy says all that a row says of its factors, so that::

        p(x) = p(s | component) · p(what is left of y) · Π ψ^-½

    exactly. The scores s are the rows of a `Gaussian`, whose prior, bound and births
    these are. What is left, which no component changes, is a Gaussian: axes that might
    have been factors have a variance each, all others that of the noise. So a factor
    must tell components apart to raise the bound; it is not enough that rows spread
    along it. A component's covariance of s may be any, also less than the noise.

    The noise of a column is in proportion to its variance times its kurtosis: see
    `kplus.dp_mixture.families.factor_axes`. What a single column says, and no other
    with it, counts as noise.

    Missing values are hidden parts of their rows, exactly, for any pattern of gaps. Of
    such a row there are a mean and a covariance of s, given what is observed, and each
    component takes matrices of q × q for it; see `factor_gaps`. Axes and their number
    are found on up to 2,000 rows, whose gaps are filled with draws.

    References
    ----------
    J. Baek, G. J. McLachlan and L. K. Flack, "Mixtures of factor analyzers with common
    factor loadings", IEEE Transactions on Pattern Analysis and Machine Intelligence 32
    (2010).

    Examples
    --------
    >>> from kplus import DPMixture
    >>> from kplus.observations import FactorGaussian
    >>> model = DPMixture(FactorGaussian(n_factors=10))
    """

    n_factors: int | str = "auto"
    variance_share: float | None = None
    mean_strength: float | None = None
    dof: float | None = None
    learn: bool = True

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "FactorGaussianFamily":
        refuse_categories(columns, "factor_gaussian")
        refuse_empty(sample, columns.names, "factor_gaussian")
        check_finite(sample)
        given = self._given(len(columns.names))
        with SINGLE_THREAD:  # BLAS with more may round in another way
            axes = principal_axes(sample, weights, max(given or 0, _NUMBERS[-1]))
            scores = axes.scores()
            if given is not None:
                return self._family(axes, scores, given, columns.names)
            most = min(_NUMBERS[-1], axes.basis.shape[1])
            numbers = [*(q for q in _NUMBERS if q < most), most]
            families = [self._family(axes, scores, q, columns.names) for q in numbers]
            # What fits rows to families is built upon them.
            from kplus.dp_mixture.factor_number import with_highest_bound

            return with_highest_bound(families, axes.rows, axes.weights)

    def _given(self, D: int) -> int | None:
        """How many factors there are to be; None: the data decide."""
        q = self.n_factors
        if isinstance(q, str) and q == "auto":
            return None
        if isinstance(q, bool) or not isinstance(q, int | np.integer) or q < 1:
            raise ValueError(
                f'n_factors must be an int from 1 on or "auto", not {q!r}.'
            )
        if q > D:
            raise ValueError(f"n_factors={q} is more than the {D} columns.")
        return int(q)

    def _family(
        self, axes: Axes, scores: Array, q: int, names: tuple[str, ...]
    ) -> "FactorGaussianFamily":
        """With the first axes for factors."""
        q = min(q, axes.basis.shape[1])
        share = axes.weights / axes.weights.sum()
        own = Gaussian(
            variance_share=self.variance_share,
            mean_strength=self.mean_strength,
            dof=self.dof,
            learn=self.learn,
        )
        factors = Columns(tuple(f"factor {j}" for j in range(q)), (None,) * q)
        inner = own.resolve(scores[:, :q], axes.weights, factors)
        if "covariance" in inner.learns:
            rounding = axes.resolution @ axes.basis[:, :q] ** 2
            inner = replace(inner, resolution=rounding * inner.inv**2)
        others = share @ scores[:, q:] ** 2
        return FactorGaussianFamily(
            axes.origin, axes.inv, axes.basis, others, inner, names
        )


@dataclass(frozen=True, eq=False)
class FactorGaussianFamily(InnerFamily):
    """See `FactorGaussian`; y = (x - origin) · inv has noise of variance 1.

    Attributes
    ----------
    basis : array of shape (D, p)
        Orthonormal axes of y: the factors first, then those that are not factors.
    others : array of shape (p - q,)
        Variances along the latter.
    inner : GaussianFamily
        Of the scores along the factors.
    """

    shapes: ClassVar[dict[str, str]] = {
        "origin": "d", "inv": "d", "basis": "d p", "others": "r",
    }  # fmt: skip

    origin: Array
    inv: Array
    basis: Array
    others: Array
    inner: GaussianFamily
    names: tuple[str, ...]

    def consistent(self) -> bool:
        n_axes = self.inner.n_columns + len(self.others)
        D, p = self.basis.shape
        return bool(p == n_axes and len(self.names) == D)

    @property
    def n_columns(self) -> int:
        return len(self.inv)

    @cached_property
    def _factors(self) -> Array:
        return np.ascontiguousarray(self.basis[:, : self.inner.n_columns])

    @property
    def _scaling(self) -> Scaling:
        return Scaling(self.origin, self.inv)

    def reduced(self, X: Array) -> "ReducedRows":
        """Rows as all other methods need them, who take whole rows as well.

        After the scores comes the log density of what is left of rows beside their
        factors, in the units of the data. Where there are gaps, R follows, and the
        scores are the means that the reference has; see `factor_gaps`.
        """
        if isinstance(X, ReducedRows):
            return X
        Y = self._scaling.transform(X)
        missing = np.isnan(Y)
        short = np.flatnonzero(missing.any(axis=1))
        if not len(short):
            return self._whole(Y).view(ReducedRows)
        q = self.inner.n_columns
        out = np.zeros((len(Y), q + 1 + q * (q + 1) // 2))
        whole = np.flatnonzero(~missing.any(axis=1))
        out[whole, : q + 1] = self._whole(Y[whole])
        for part in parts_of(len(short), q):
            rows = self._reference.reduce(Y[short[part]])
            left = rows.logs + 0.5 * np.einsum("nj,nj->n", rows.a, rows.a)
            left += ~missing[short[part]] @ np.log(self.inv) + self._left_const
            out[short[part], :q], out[short[part], q] = rows.a, left
            out[short[part], q + 1 :] = rows.R[:, *np.tril_indices(q)]
        return out.view(ReducedRows)

    def _whole(self, Y: Array) -> Array:
        q, S = self.inner.n_columns, Y @ self.basis
        left = np.einsum("nd,nd->n", Y, Y) - np.einsum("nj,nj->n", S, S)
        logs = np.maximum(left, 0.0) + S[:, q:] ** 2 @ (1.0 / self.others)
        logs = self._left_const + np.log(self.inv).sum() - 0.5 * logs
        return np.column_stack([S[:, :q], logs])

    @cached_property
    def _left_const(self) -> float:
        const = np.log(self.others).sum()
        const += (self.n_columns - self.inner.n_columns) * _LOG_2PI
        return -0.5 * float(const)

    @cached_property
    def _reference(self) -> Reference:
        return Reference(self.basis, 1.0 / self.others - 1.0)

    def _gaps(self, rows: Array) -> tuple[IntArray, FactorGaps] | None:
        """Those of the reduced rows in which something is missing."""
        q = self.inner.n_columns
        if rows.shape[1] == q + 1:
            return None
        flat = np.array(rows)
        short = np.flatnonzero(flat[:, q + 1 :].any(axis=1))
        if not len(short):
            return None
        R = np.zeros((len(short), q, q))
        R[:, *np.tril_indices(q)] = flat[short, q + 1 :]
        return short, FactorGaps(flat[short, :q], R, flat[short, q])

    def _in(self, X: Array) -> Array:
        return np.array(self.reduced(X)[:, : self.inner.n_columns])

    def _components(self, expected: Any) -> tuple[Array, Array]:
        """Means and factors of precisions of components, in the units of scores."""
        means = self.inner.scaling.inverse_transform(expected.means)
        return means, self.inner.inv[:, None] * expected.whiten

    @cached_property
    def _typical(self) -> tuple[Array, Array]:
        """The same of a component that has not seen rows."""
        inner = self.inner
        means, whiten = self._components(
            inner.expect(np.zeros(1), np.zeros((1, inner.n_stats)))
        )
        return means[0], whiten[0]

    def factor_scores(self, X: Array) -> Array:
        """s of each row, (n, q), with what is likely where values are missing."""
        rows = self.reduced(X)
        out, gaps = self._in(rows), self._gaps(rows)
        if gaps is not None:
            for part in parts_of(len(gaps[0]), out.shape[1]):
                here = np.arange(len(gaps[0]))[part]
                found = hidden(gaps[1].some(here), *self._typical)
                out[gaps[0][here]] = found.means
        return out

    def filled(self, expected: Any, X: Array, owners: IntArray) -> Array:
        """Scores in the units of `inner`, unsure ones drawn given their owners."""
        rows = self.reduced(X)
        out, gaps = self._in(rows), self._gaps(rows)
        if gaps is not None:
            known = self._components(expected)
            normals = normals_of_rows(gaps[1].a)
            for k in np.unique(owners[gaps[0]]):
                here = np.flatnonzero(owners[gaps[0]] == k)
                for part in parts_of(len(here), out.shape[1]):
                    some = here[part]
                    found = hidden(gaps[1].some(some), known[0][k], known[1][k])
                    more = np.einsum("nij,nj->ni", found.spread, normals[some])
                    out[gaps[0][some]] = found.means + more
        return self.inner.scaling.transform(out)

    def features(self, X: Array) -> Array:
        """t(x) of rows in which nothing is missing."""
        return self.inner.features(self._in(X))

    def hides(self, S: Array) -> bool:
        return self.inner.hides(S)

    def check(self, X: Array) -> None:
        if not isinstance(X, ReducedRows):
            check_finite(X, self._scaling)

    def log_base(self, X: Array) -> Array:
        """What is left of rows beside their factors, and the change of units."""
        out: Array = np.array(self.reduced(X)[:, self.inner.n_columns])
        out += self.inner.scaling.log_inv.sum()
        return out

    # ------------------------------------------------------------------- rows

    def scores(
        self, expected: Any, X: Array, candidates: IntArray | None = None
    ) -> Array:
        rows = self.reduced(X)
        out, gaps = self.inner.scores(expected, self._in(rows), candidates), None
        gaps = self._gaps(rows)
        if gaps is None:
            return out
        short, of = gaps
        for k, known in enumerate(zip(*self._components(expected), strict=True)):
            where, slots = np.arange(len(short)), np.full(len(short), k)
            if candidates is not None:
                where, slots = np.nonzero(candidates[short] == k)
            for part in parts_of(len(where), self.inner.n_columns):
                found = hidden(of.some(where[part]), *known)
                out[short[where[part]], slots[part]] += found.scores
        return out

    def shortlist(
        self, expected: Any, X: Array, log_weights: Array, margin: float
    ) -> IntArray | None:
        """Scores of rows with gaps are not known before they are computed."""
        rows = self.reduced(X)
        if self._gaps(rows) is not None:
            return None
        return self.inner.shortlist(expected, self._in(rows), log_weights, margin)

    def sums(self, X: Array, members: ByComponent, expected: Any = None) -> Array:
        rows = self.reduced(X)
        scores, gaps = self._in(rows), self._gaps(rows)
        if gaps is None:
            return self.inner.sums(scores, members, expected)
        if expected is None:
            guess = np.repeat(self._typical[0][None], len(members.starts) - 1, axis=0)
            turn = np.repeat(self._typical[1][None], len(guess), axis=0)
            first = self._all_sums(scores, gaps, members, (guess, turn))
            N = np.bincount(members.owners, members.weights, len(guess)).astype(float)
            expected = self.inner.expect(N, first)
        known = self._components(expected)
        return self._all_sums(scores, gaps, members, known)

    def _all_sums(
        self,
        scores: Array,
        gaps: tuple[IntArray, FactorGaps],
        members: ByComponent,
        known: tuple[Array, Array],
    ) -> Array:
        """Rows without gaps as `inner` has them, the others in expectation."""
        place = np.full(len(scores), -1)
        place[gaps[0]] = np.arange(len(gaps[0]))
        where = place[members.rows]
        whole = some_members(members, where < 0, members.rows)
        short = some_members(members, where >= 0, where)
        out: Array = self.inner.sums(scores, whole)
        for k, (mean, whiten) in enumerate(zip(*known, strict=True)):
            own = slice(short.starts[k], short.starts[k + 1])
            rows, weights = short.rows[own], short.weights[own]
            for part in parts_of(len(rows), scores.shape[1]):
                found = hidden(gaps[1].some(rows[part]), mean, whiten)
                out[k] += self._expected_stats(found, weights[part])
        return out

    def _expected_stats(self, found: Hidden, weights: Array) -> Array:
        """Σ w E[t(s)] of rows, in the units of `inner`."""
        q, inner = self.inner.n_columns, self.inner
        Y = inner.scaling.transform(found.means)
        Z = np.swapaxes(found.spread * inner.inv[:, None], 1, 2).reshape(-1, q)
        squares = (weights[:, None] * Y).T @ Y
        squares += (np.repeat(weights, q)[:, None] * Z).T @ Z
        entropy = np.array([weights @ found.gains])
        return np.concatenate([weights @ Y, pack(squares), entropy])

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        row = self.factor_scores(seed[None])[0]
        return self.inner.dissimilarity(self.factor_scores(X), row, N, S)

    # --------------------------------------------------------------- new rows

    def _predictive(self, N: Array, S: Array) -> Iterator[tuple[Array, Array, float]]:
        """Mean, precision and degrees of freedom of s in each component."""
        q, inv = self.inner._posterior(N, S), self.inner.inv
        means = self.inner.scaling.inverse_transform(q.means)
        yield from zip(
            means, inv[:, None] * q.precisions * inv, q.free.tolist(), strict=True
        )

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        rows = self.reduced(X)
        out = self.inner.log_predictive(N, S, self._in(rows))
        out += np.array(rows[:, self.inner.n_columns])[:, None]
        gaps = self._gaps(rows)
        if gaps is None:
            return out
        short, of = gaps
        for k, (mean, precision, free) in enumerate(self._predictive(N, S)):
            const = 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * len(mean) * _LOG_2PI
            for part in _few(len(short), len(mean)):
                here = np.arange(len(short))[part]
                found = scales(of.some(here), mean, precision, free)
                out[short[here], k] = of.logs[here] + const + found.logs
        return out

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        """Scores by each component, and what they and the values observed lead to."""
        gaps = self._gaps(self.reduced(X))
        if gaps is None:
            return X
        short, of = gaps
        pull = np.zeros(of.a.shape)
        for k, (mean, precision, free) in enumerate(self._predictive(N, S)):
            for part in _few(len(short), len(mean)):
                here = np.arange(len(short))[part]
                t = scales(of.some(here), mean, precision, free)
                u = np.einsum("nt,nt->n", t.shares, t.u)[:, None]
                h = t.mean - (t.heavy - u * mean) @ precision
                pull[here] += shares[short[here], k, None] * h
        return self._with_gaps_filled(X, short, pull)

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        """Whole rows are drawn, and moved by what their values that are observed here
        should have led to: their scales first."""
        gaps = self._gaps(self.reduced(X))
        if gaps is None:
            return X
        short, of = gaps
        Y = self._scaling.transform(X[short])
        new, missing = np.empty(Y.shape), np.isnan(Y)
        pull = np.zeros(of.a.shape)
        for k, (mean, precision, free) in enumerate(self._predictive(N, S)):
            own = np.flatnonzero(components[short] == k)
            turn = np.linalg.cholesky(precision)
            for part in _few(len(own), len(mean)):
                here = own[part]
                t = scales(of.some(here), mean, precision, free)
                whiten = _drawn_scales(t, rng)[:, None, None] * turn
                normals = rng.standard_normal((len(here), len(mean)))
                drawn = np.einsum("nij,ni->nj", np.linalg.inv(whiten), normals)
                new[here] = self._beside(mean + drawn, rng)
                change = np.where(missing[here], np.nan, Y[here] - new[here])
                moved = self._reference.reduce(change)
                found = hidden(moved, np.zeros(len(mean)), whiten)
                square = whiten @ np.swapaxes(whiten, 1, 2)
                pull[here] = found.means - (found.means[:, None] @ square)[:, 0]
        change = np.where(missing, np.nan, Y - new)
        new += self._reference.filled(change, pull)
        out = np.array(X, dtype=np.float64)
        out[short] = self._scaling.inverse_transform(new)
        return np.where(np.isnan(X), out, X)

    def _with_gaps_filled(self, X: Array, short: IntArray, pull: Array) -> Array:
        out = np.array(X, dtype=np.float64)
        Y = self._scaling.transform(X[short])
        out[short] = self._scaling.inverse_transform(self._reference.filled(Y, pull))
        return np.where(np.isnan(X), out, X)

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        """Factors of each row, and all that is not along factors from one Gaussian."""
        scores = self.inner.draw(N, S, counts, rng)
        return self._scaling.inverse_transform(self._beside(scores, rng))

    def _beside(self, scores: Array, rng: np.random.Generator) -> Array:
        """Rows of these scores, y, with noise and all that is not along factors."""
        n, q = scores.shape
        Y = rng.standard_normal((n, self.n_columns))
        more = rng.standard_normal((n, len(self.others))) * np.sqrt(self.others)
        Y -= (Y @ self.basis) @ self.basis.T
        Y += scores @ self._factors.T + more @ self.basis[:, q:].T
        return Y

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        """Means in the units of the data, and the covariances along factors only.

        Those of all columns would fill K D² numbers; that of a component is
        ``factors_.T @ factor_covariances_[k] @ factors_`` and what is left.
        """
        found, q = self.inner.attributes(N, S), self.inner.n_columns
        factors = self._factors.T / self.inv
        left = 1.0 + self.basis**2 @ np.append(np.full(q, -1.0), self.others - 1.0)
        return {
            "means_": self.origin + found["means_"] @ factors,
            "factors_": factors,
            "factor_means_": found["means_"],
            "factor_covariances_": found["covariances_"],
            "residual_variances_": np.maximum(left, 0.0) / self.inv**2,
        }


def _drawn_scales(t: Scales, rng: np.random.Generator) -> Array:
    """Roots of scales, one of each row, drawn given what is observed there."""
    at = draw_codes(t.shares, rng)[:, None]
    step = np.log(t.u[:, 1] / t.u[:, 0]) * (rng.random(len(t.u)) - 0.5)
    out: Array = np.sqrt(np.take_along_axis(t.u, at, 1)[:, 0] * np.exp(step))
    return out


def _few(n: int, q: int) -> list[slice]:
    """Rows of which scales are integrated over at a time."""
    return parts_of(n, 10 * (q + 10))


class ReducedRows(np.ndarray):
    """Scores of rows along factors, and the log density of what is left of them."""


def reduced(family: Family, X: Array) -> Array:
    """Rows as a family has them, to be made once where they are needed often."""
    return family.reduced(X) if isinstance(family, FactorGaussianFamily) else X


def compared(family: Family) -> Family:
    """The family of what tells components apart: of scores, of numbers beside bits, or
    the family itself."""
    if isinstance(family, FactorGaussianFamily | SpikedFamily):
        return family.inner
    return family
