"""Rows with heavy tails: Gaussians whose precision differs from row to row.

x | u ~ Normal(μ, (u Λ)⁻¹) with u ~ Gamma(τ/2, τ/2) is a multivariate t distribution
with τ degrees of freedom. The scale u of a row is a hidden part of it: given the
component, q(u) = Gamma(a, b) with a = (τ + d)/2, where d counts the observed columns,
and b = (τ + E[(y - μ)ᵀ Λ (y - μ)])/2. A row far out gets a small u, so that it hardly
counts for mean and scatter and needs no component of its own.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, gammaln, logsumexp, softmax

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import contiguous, draw_codes, positive
from kplus.dp_mixture.families.family import ByComponent, Columns
from kplus.dp_mixture.families.gaps import LOG_2PI, Gaps
from kplus.dp_mixture.families.gaussian import Gaussian, GaussianFamily
from kplus.dp_mixture.families.normal_wishart import mean_log_det
from kplus.dp_mixture.families.quadratic import (
    NormalWishart,
    Quadratic,
    precision_factors,
    squares,
)
from kplus.dp_mixture.families.wishart_learning import factor
from kplus.dp_mixture.kernels_gaps import fill_gaps
from kplus.dp_mixture.kernels_student_t import Tailed, gather_scaled, likeliest_tails

__all__ = ["StudentT", "StudentTExpected", "StudentTFamily", "log_prior_at_mode"]

# The prior of τ is Gamma(2, 1/10): its mode is 10, and no τ that data ask for is
# unlikely (Juárez and Steel 2010).
_PRIOR_SHAPE, _PRIOR_RATE = 2.0, 0.1
_MODE = (_PRIOR_SHAPE - 1.0) / _PRIOR_RATE
_LEAST, _MOST = 1.0, 1000.0  # τ of Cauchy's tails, and of none to speak of
_NODES = 80  # of the integral over u in a predictive density


@dataclass(frozen=True, eq=False)
class StudentT(Gaussian):
    """Rows with heavy tails: a multivariate t distribution for each component.

    Rows far from everything do not make components of their own, nor widen those that
    they belong to. The prior is that of `Gaussian`, with the same settings; here it is
    about the scale matrix Σ = Λ⁻¹, which the bulk of the rows follows.

    Parameters
    ----------
    tail_dof : float or None
        Degrees of freedom of the tails: 1 is heavy as Cauchy's, 30 nearly Gaussian. By
        default each component has its own, which is learned.

    Notes
    -----
    The other parameters are those of `Gaussian`. Fitted attributes are those of
    `Gaussian` and ``tail_dof_``, of shape (n_components,); ``covariances_`` holds the
    scale matrices, which have to be multiplied by τ/(τ - 2) for the covariance, if τ
    exceeds 2. The τ of a component is its likeliest value under a Gamma(2, 1/10)
    prior, and part of the bound like a parameter of the prior.

    Examples
    --------
    >>> from kplus.observations import StudentT
    >>> StudentT(tail_dof=4).tail_dof
    4
    """

    tail_dof: float | None = None

    name: ClassVar[str] = "student_t"

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "StudentTFamily":
        if self.tail_dof is not None:
            positive("tail_dof", self.tail_dof)
        inner = super().resolve(sample, weights, columns)
        settings = {field.name: getattr(inner, field.name) for field in fields(inner)}
        return StudentTFamily(**settings, tail_dof=self.tail_dof)


@dataclass(frozen=True)
class StudentTExpected(Quadratic):
    """Expected log-likelihoods of rows with their scales.

    `const` is that of a row with u = 1 at the mean, which is known for sure.
    """

    shapes: ClassVar[dict[str, str]] = Quadratic.shapes | {"tails": "K", "spread": "K"}

    tails: Array  # τ (K,)
    spread: Array  # what mean and rounding add to squared distances (K,)

    @cached_property
    def plain(self) -> Quadratic:
        """-½ squared distance, without anything else."""
        zero = np.zeros(len(self.const))
        return Quadratic(zero, self.means, self.whiten, linear=True)

    @cached_property
    def _natural(self) -> tuple[Array, Array]:
        D, eta = self.means.shape[1], self.plain.eta
        scale = self.plain.bias - 0.5 * (self.spread + self.tails)
        logs = 0.5 * (D + self.tails)
        return np.column_stack([eta, scale, logs]), self.const + _normaliser(self.tails)


def _normaliser(tails: Array) -> Array:
    """log of (τ/2)^(τ/2) / Γ(τ/2)."""
    half = 0.5 * np.asarray(tails)
    out: Array = half * np.log(half) - gammaln(half)
    return out


def _log_prior(tails: Array) -> Array:
    """log density of τ over that at its mode."""
    ratio = tails / _MODE
    out: Array = (_PRIOR_SHAPE - 1.0) * (np.log(ratio) + 1.0 - ratio)
    return out


def log_prior_at_mode() -> float:
    """log density of τ at its mode."""
    shape, rate = _PRIOR_SHAPE, _PRIOR_RATE
    return float(
        shape * np.log(rate) + (shape - 1.0) * (np.log(_MODE) - 1.0) - gammaln(shape)
    )


class Scales:
    """q(u) of pairs of rows and components."""

    def __init__(self, tails: Array, n_seen: Array | float, far: Array) -> None:
        self.shape, self.rate = 0.5 * (tails + n_seen), 0.5 * (tails + far)

    @property
    def mean(self) -> Array:
        return self.shape / self.rate

    @property
    def mean_log(self) -> Array:
        out: Array = digamma(self.shape) - np.log(self.rate)
        return out

    @property
    def entropy(self) -> Array:
        a = self.shape
        out: Array = a - np.log(self.rate) + gammaln(a) + (1.0 - a) * digamma(a)
        return out


@dataclass(frozen=True, eq=False)
class StudentTFamily(GaussianFamily):
    """See `StudentT`; in units y = (x - origin) · inv.

    t(y) = [u y, triangle of u y yᵀ, entropy of hidden parts less log u, u, log u], each
    in its expectation under q(u).
    """

    tail_dof: float | None = None

    @property
    def n_stats(self) -> int:
        return self.n_free + 3

    def features(self, X: Array) -> Array:
        """t(x) of rows all of which have the most likely scale, 1."""
        return self._typical(super().features(X), np.ones(len(X)))

    def _typical(self, S: Array, N: Array) -> Array:
        """The same as if all rows had E[u] = 1."""
        tails = np.full(1, self.tail_dof or _MODE)
        typical = Scales(tails, self.n_columns, np.full(1, float(self.n_columns)))
        S[:, self.n_free] += N * (typical.entropy - typical.mean_log)
        S[:, -2], S[:, -1] = N, N * typical.mean_log
        return S

    def hides(self, S: Array) -> bool:
        return True

    def _heft(self, N: Array, S: Array) -> Array:
        """Σ r u."""
        return np.maximum(S[:, -2], 0.0)

    # -------------------------------------------------------------------- tails

    def tails(self, N: Array, S: Array) -> Array:
        """The likeliest τ of each component, where its derivative changes sign.

        N/2 (log τ/2 + 1 - ψ(τ/2)) + ½ Σ r (log u - u) + log p(τ)' falls with τ.
        """
        if self.tail_dof is not None:
            return np.full(len(N), float(self.tail_dof))
        count, slope = np.maximum(N, 0.0), 0.5 * (S[:, -1] - S[:, -2])
        out = np.empty(len(N))
        likeliest_tails(count, slope, _PRIOR_SHAPE, _PRIOR_RATE, _LEAST, _MOST, out)
        return np.where(count > 0.0, out, _MODE)

    def evidence(self, N: Array, S: Array) -> Array:
        tails = self.tails(N, S)
        out: Array = super().evidence(N, S) + 0.5 * self.n_columns * S[:, -1]
        out += N * _normaliser(tails) + 0.5 * tails * (S[:, -1] - S[:, -2])
        return out if self.tail_dof is not None else out + _log_prior(tails)

    def expect(self, N: Array, S: Array) -> StudentTExpected:
        D, q = self.n_columns, self._posterior(N, S)
        L, log_det = factor(q.scatter)
        whiten = precision_factors(L, np.sqrt(q.dof))
        squares = np.einsum("kij,kij->ki", whiten, whiten)
        const = 0.5 * (mean_log_det(q.dof, log_det, D) - D * LOG_2PI)
        spread = D / q.strength + squares @ (self.resolution * np.ones(D))
        tails = self.tails(N, S)
        return StudentTExpected(const, q.means, whiten, True, tails, spread)

    # --------------------------------------------------------------------- rows

    def scores(  # type: ignore[override]
        self,
        expected: StudentTExpected,
        X: Array,
        candidates: IntArray | None = None,
    ) -> Array:
        """log ∫ exp E[log p(y, u | φ)] du, over missing values as well."""
        D, K = self.n_columns, len(expected.const)
        out = self._whole_scores(expected.plain, X, candidates)
        k = slice(None) if candidates is None else np.maximum(candidates, 0)
        self._with_scales(expected, k, out)
        gaps = Gaps.of(X, self.scaling)
        if gaps is not None:
            starts, rows, slots = gaps.pairs(candidates, K)
            far, log_dets = gaps.distances(
                starts, rows, expected.means, expected.precision
            )
            k, missing = np.repeat(np.arange(K), np.diff(starts)), gaps.n_missing[rows]
            q = Scales(expected.tails[k], D - missing, far + expected.spread[k])
            found = expected.bias[k] + gammaln(q.shape) - q.shape * np.log(q.rate)
            found += 0.5 * (missing * LOG_2PI - log_dets)
            out[gaps.rows[rows], slots] = found
        return out if candidates is None else np.where(candidates < 0, -np.inf, out)

    def _with_scales(self, expected: StudentTExpected, k: Any, out: Array) -> None:
        """Turn -½ squared distances to components k into scores, in place."""
        shape = 0.5 * (expected.tails + self.n_columns)
        np.minimum(out, 0.0, out=out)
        np.subtract(0.5 * (expected.tails + expected.spread)[k], out, out=out)
        np.log(out, out=out)
        out *= -shape[k]
        out += (expected.bias + gammaln(shape))[k]

    def shortlist(
        self, expected: Quadratic, X: Array, log_weights: Array, margin: float
    ) -> IntArray | None:
        return None

    def sums(  # type: ignore[override]
        self,
        X: Array,
        members: ByComponent,
        expected: StudentTExpected | None = None,
    ) -> Array:
        K, D, scaling = len(members.starts) - 1, self.n_columns, self.scaling
        if expected is None:
            N = np.bincount(members.owners, members.weights, K).astype(float)
            expected = self.expect(N, self._typical(super().sums(X, members), N))
        out = np.zeros((K, self.n_stats))
        known = expected.means, expected.precision
        gaps = Gaps.of(X, scaling)
        whole = members
        if gaps is not None:
            whole, short = gaps.split(members)
            far, log_dets = gaps.distances(short.starts, short.rows, *known)
            missing = gaps.n_missing[short.rows]
            q = self._scales(expected, short, D - missing, far)
            gaps.outer(short, q.mean, *known, self._offset, out)
            hidden = gaps.entropy(short.rows, log_dets) - 0.5 * missing * q.mean_log
            self._add_scales(out, short, q, hidden)
        self._add_whole(out, X, whole, expected)
        return out

    def _add_whole(
        self, out: Array, X: Array, whole: ByComponent, expected: StudentTExpected
    ) -> None:
        """Add the sums of rows without gaps, whose scales have one shape."""
        tails, scaling = expected.tails, self.scaling
        shape, logs = 0.5 * (tails + self.n_columns), np.zeros(len(tails))
        least = 0.5 * (tails + expected.spread)
        tailed = Tailed(expected.means, expected.whiten, shape, least)
        rows = contiguous(X), scaling.origin, scaling.inv
        gather_scaled(*rows, *whole, tailed, out, logs)
        N = np.bincount(whole.owners, whole.weights, len(out))
        level = digamma(shape)
        out[:, self.n_free] += N * (shape + gammaln(shape) - shape * level)
        out[:, -1] += N * level - logs

    def _scales(
        self,
        expected: StudentTExpected,
        members: ByComponent,
        n_seen: Array | float,
        far: Array,
    ) -> Scales:
        k = members.owners
        far = np.maximum(far, 0.0) + expected.spread[k]
        return Scales(expected.tails[k], n_seen, far)

    def _add_scales(
        self, out: Array, members: ByComponent, q: Scales, hidden: Array | float
    ) -> None:
        """Add Σ r of the entropies less log u, of u, and of log u."""
        for j, values in (
            (self.n_free, q.entropy + hidden - q.mean_log),
            (self.n_free + 1, q.mean),
            (self.n_free + 2, q.mean_log),
        ):
            out[:, j] += np.bincount(members.owners, members.weights * values, len(out))

    # ------------------------------------------------------------- new rows

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        """The integral over u of multivariate t densities."""
        q, tails = self._posterior(N, S), self.tails(N, S)
        far, log_dets, n_seen = squares(self.scaling.transform(X), q.means, q.scatter)
        out = np.empty(far.shape)
        for k in range(len(N)):
            out[:, k] = _integral(q, k, tails[k], far[:, k], n_seen[:, 0])
        out += self.log_base(X)[:, None] - 0.5 * log_dets
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        """Each row from parameters, and a scale, drawn for it alone."""
        q, tails = self._posterior(N, S), self.tails(N, S)
        L, _ = factor(q.scatter)
        parts = []
        for k, count in enumerate(counts):
            normal = rng.standard_normal((count, self.n_columns)) @ L[k].T
            wide = 1.0 / rng.chisquare(q.free[k], size=count)
            scale = rng.chisquare(tails[k], size=count) / tails[k]
            wide *= 1.0 / scale + 1.0 / q.strength[k]
            parts.append(q.means[k] + normal * np.sqrt(wide)[:, None])
        return self.scaling.inverse_transform(np.concatenate(parts))

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        """Scales first, given what is observed: u by the nodes of the integral, then χ²
        of the matrix, of which d²/w more is known."""
        q, tails, k = self._posterior(N, S), self.tails(N, S), components
        Y = self.scaling.transform(X)
        far, _, n_seen = squares(Y, q.means, q.scatter)
        far, n_seen = np.take_along_axis(far, k[:, None], 1)[:, 0], n_seen[:, 0]
        wide = np.empty(len(Y))
        for c in np.unique(k):
            here = np.flatnonzero(k == c)
            logs_u, logs, step = _scale_logs(q, c, tails[c], far[here], n_seen[here])
            at = draw_codes(softmax(logs, axis=1), rng)[:, None]
            logs_u = np.take_along_axis(logs_u, at, 1)[:, 0]
            logs_u += step * (rng.random(len(here)) - 0.5)
            wide[here] = np.exp(-logs_u) + 1.0 / q.strength[c]
        wide = (wide + far) / rng.chisquare(q.free[k] + n_seen)
        normals = np.sqrt(wide)[:, None] * rng.standard_normal(Y.shape)
        whiten = precision_factors(factor(q.scatter)[0])
        fill_gaps(Y, k, q.means, whiten @ np.swapaxes(whiten, 1, 2), normals)
        return np.where(np.isnan(X), self.scaling.inverse_transform(Y), X)

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        return super().attributes(N, S) | {"tail_dof_": self.tails(N, S)}


def _integral(
    q: NormalWishart, k: int, tail: float, far: Array, n_seen: Array
) -> Array:
    """log ∫ p(u) p(y | u) du without log |B|; `far` is a distance under B⁻¹."""
    _, logs, step = _scale_logs(q, k, tail, far, n_seen)
    out: Array = logsumexp(logs, axis=1) + np.log(step)
    return out


def _scale_logs(
    q: NormalWishart, k: int, tail: float, far: Array, n_seen: Array
) -> tuple[Array, Array, Array]:
    """log u at nodes, (n, nodes), log p(log u) p(y | u) there, and the step (n,).

    Given u, y - m has the scale matrix (1/u + 1/κ) B/(ν - D + 1), and a t distribution
    of ν - D + 1 degrees of freedom. By the trapezoid rule in log u, from where u would
    lie if the parameters were known for sure, or lower, to what the prior allows.
    """
    free, strength, half = q.free[k], q.strength[k], 0.5 * tail
    known = Scales(np.full(1, tail), n_seen, far * q.dof[k] + n_seen / strength)
    a, low = known.shape, np.minimum(np.log(known.mean), 0.0)
    low = low - 9.0 / np.sqrt(a) - 20.0 / a
    high = np.log1p(9.0 / np.sqrt(half) + 30.0 / half)
    step = (high - low) / (_NODES - 1)
    logs_u = low[:, None] + step[:, None] * np.arange(_NODES)
    u, d = np.exp(logs_u), n_seen[:, None]
    wide = 1.0 / u + 1.0 / strength
    logs = half * (np.log(half) + logs_u - u) - gammaln(half)
    logs += gammaln(0.5 * (free + d)) - gammaln(0.5 * free)
    logs -= 0.5 * d * np.log(wide * np.pi)
    logs -= 0.5 * (free + d) * np.log1p(far[:, None] / wide)
    return logs_u, logs, step
