"""Gaussian rows of many columns: components differ along a few factors."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import Scaling, refuse_categories, refuse_values
from kplus.dp_mixture.families.factor_axes import Axes, principal_axes
from kplus.dp_mixture.families.family import Columns, Family
from kplus.dp_mixture.families.gaussian import Gaussian, GaussianFamily
from kplus.dp_mixture.families.inner import InnerFamily
from kplus.dp_mixture.families.normal_wishart import check_finite
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
        _check(sample, columns.names)
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

        The last column is the log density of what is left of rows beside their
        factors, in the units of the data.
        """
        if isinstance(X, ReducedRows):
            return X
        q, Y = self.inner.n_columns, self._scaling.transform(X)
        S = Y @ self.basis
        left = np.einsum("nd,nd->n", Y, Y) - np.einsum("nj,nj->n", S, S)
        logs = np.maximum(left, 0.0) + S[:, q:] ** 2 @ (1.0 / self.others)
        logs += np.log(self.others).sum() + (self.n_columns - q) * _LOG_2PI
        logs = np.log(self.inv).sum() - 0.5 * logs
        return np.column_stack([S[:, :q], logs]).view(ReducedRows)

    def factor_scores(self, X: Array) -> Array:
        """s of each row, (n, q)."""
        if isinstance(X, ReducedRows):
            return np.array(X[:, :-1])
        out: Array = self._scaling.transform(X) @ self._factors
        return out

    def _in(self, X: Array) -> Array:
        return self.factor_scores(X)

    def check(self, X: Array) -> None:
        if not isinstance(X, ReducedRows):
            _check(X, self.names, self._scaling)

    def log_base(self, X: Array) -> Array:
        """What is left of rows beside their factors, and the change of units."""
        out: Array = np.array(self.reduced(X)[:, -1])
        out += self.inner.scaling.log_inv.sum()
        return out

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        rows = self.reduced(X)
        out = self.inner.log_predictive(N, S, self.factor_scores(rows))
        out += np.array(rows[:, -1:])
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        """Factors of each row, and all that is not along factors from one Gaussian."""
        scores = self.inner.draw(N, S, counts, rng)
        n, q = scores.shape
        Y = rng.standard_normal((n, self.n_columns))
        more = rng.standard_normal((n, len(self.others))) * np.sqrt(self.others)
        Y -= (Y @ self.basis) @ self.basis.T
        Y += scores @ self._factors.T + more @ self.basis[:, q:].T
        return self._scaling.inverse_transform(Y)

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        """Nothing is missing in rows that `check` takes."""
        return X

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        """Nothing is missing in rows that `check` takes."""
        return X

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


def _check(X: Array, names: tuple[str, ...], scaling: Scaling | None = None) -> None:
    """Refuse rows with values that are missing, infinite or too far out."""
    if scaling is not None and scaling.holds(X):
        return
    why = (
        "observations='factor_gaussian' takes whole rows: fill the gaps, or give "
        "'diag_gaussian', or 'gaussian' where columns are few."
    )
    refuse_values(X, np.isnan(X), names, why)
    check_finite(X, scaling)


class ReducedRows(np.ndarray):
    """Scores of rows along factors, and the log density of what is left of them."""


def reduced(family: Family, X: Array) -> Array:
    """Rows as a family has them, to be made once where they are needed often."""
    return family.reduced(X) if isinstance(family, FactorGaussianFamily) else X


def compared(family: Family) -> Family:
    """The family of what tells components apart: of scores, or the family itself."""
    return family.inner if isinstance(family, FactorGaussianFamily) else family
