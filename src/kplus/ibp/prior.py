"""The Indian buffet process prior over binary matrices, and its variational posteriors.

The collapsed prior of Z (MEIBP Eq. 1); then, for mean-field inference, the finite IBP
and its stick-breaking limit. Each of the two is a variational posterior q of the
probabilities π with the prior it belongs to. What it adds to the evidence bound is
linear in the expected counts N_k of rows that have each feature.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln

from kplus.core.types import Array, IntArray

__all__ = [
    "FiniteIBP",
    "InfiniteIBP",
    "count_slopes",
    "harmonic",
    "log_prior",
    "log_prior_left_ordered",
]

_LEAST, _MOST = 1e-8, 1e8  # of alpha
_MAX_STEPS = 20  # in one update; the next one goes on from there
_CONVERGED = 1e-6  # of the parameters: sticks that change by less have converged


def harmonic(N: float) -> float:
    """H_N = 1 + 1/2 + ... + 1/N, also between whole numbers."""
    return float(digamma(N + 1.0) + np.euler_gamma)


def log_prior(counts: Array, N: float, alpha: float) -> float:
    """Log-probability of Z, given how many rows have each of its features (Eq. 1).

    That of a class of matrices that differ by where empty columns stand ("shifted"
    classes). All counts are above 0; they and N may be sums of weights.
    """
    K = len(counts)
    columns = gammaln(N - counts + 1.0) + gammaln(counts) - gammaln(N + 1.0)
    features = K * np.log(alpha) - gammaln(K + 1.0) - alpha * harmonic(N)
    return float(features + columns.sum())


def log_prior_left_ordered(Z: NDArray[Any], alpha: float) -> float:
    """The same for a class of matrices that differ by the order of columns.

    Griffiths and Ghahramani's "left-ordered form": with K! in Eq. 1 replaced by the
    factorials of how often each column occurs.
    """
    used = Z[:, Z.any(axis=0)]
    _, repeats = np.unique(used, axis=1, return_counts=True)
    shifted = log_prior(used.sum(axis=0).astype(np.float64), len(Z), alpha)
    return float(shifted + gammaln(used.shape[1] + 1.0) - gammaln(repeats + 1.0).sum())


def count_slopes(counts: Array, N: float) -> Array:
    """How fast the log-prior rises with the count of each feature.

    The log-prior is convex in the counts: its tangent lies below it. So if all rows
    choose at once by these slopes, it rises by at least the sum of their linear gains.
    """
    slopes: Array = digamma(counts) - digamma(N - counts + 1.0)
    return slopes


# ------------------------------------------------------------ probabilities of features


def _mean_logs(tau: Array) -> tuple[Array, Array]:
    """E[log v] and E[log(1 − v)] of v ~ Beta(tau)."""
    both = digamma(tau.sum(axis=1))
    return digamma(tau[:, 0]) - both, digamma(tau[:, 1]) - both


def _divergence(tau: Array, first: float) -> float:
    """KL from Beta(first, 1) to Beta(tau), summed."""
    have, lack = _mean_logs(tau)
    parts = (tau[:, 0] - first) * have + (tau[:, 1] - 1.0) * lack
    parts = parts - betaln(tau[:, 0], tau[:, 1]) - np.log(first)
    return float(parts.sum())


def _lacking(counts: Array, N: float) -> Array:
    """How many rows do not have each feature; rounding may not make it negative."""
    lacking: Array = np.maximum(N - counts, 0.0)
    return lacking


@dataclass(frozen=True)
class FiniteIBP:
    """π_k ~ Beta(α/K, 1), independently; q(π_k) = Beta(tau_k).

    For K → ∞ the counts follow an Indian buffet process.
    """

    shapes: ClassVar[dict[str, str]] = {"tau": "K t"}

    tau: Array
    alpha: float

    @classmethod
    def fitted(cls, counts: Array, N: float, alpha: float) -> Self:
        """With the best q for the counts, which is the posterior."""
        tau = np.stack([alpha / len(counts) + counts, 1.0 + _lacking(counts, N)], 1)
        return cls(tau, float(alpha))

    def updated(self, counts: Array, N: float, infer_alpha: bool) -> Self:
        """The best q for the counts, and the best α with it if that is inferred."""
        alpha = self._best_alpha(counts, N) if infer_alpha else self.alpha
        return self.fitted(counts, N, alpha)

    def _best_alpha(self, counts: Array, N: float) -> float:
        """The α with the largest evidence of the counts; never worse than before."""
        K, lacking = len(counts), _lacking(counts, N)

        def cost(log_alpha: float) -> float:
            share = np.exp(log_alpha) / K
            terms = np.log(share) + betaln(share + counts, 1.0 + lacking)
            return -float(terms.sum())

        limits = (np.log(_LEAST), np.log(_MOST))
        from scipy.optimize import minimize_scalar  # imports take .1 s

        log_best = minimize_scalar(cost, bounds=limits, method="bounded").x
        log_now = float(np.log(self.alpha))
        keep = cost(log_now) <= cost(log_best)
        return self.alpha if keep else float(np.exp(log_best))

    @cached_property
    def log_odds(self) -> Array:
        """E[log π_k] − E[log(1 − π_k)]."""
        odds: Array = digamma(self.tau[:, 0]) - digamma(self.tau[:, 1])
        return odds

    @property
    def probabilities(self) -> Array:
        """E[π_k]."""
        shares: Array = self.tau[:, 0] / self.tau.sum(axis=1)
        return shares

    def bound(self, counts: Array, N: float) -> float:
        """E[log p(Z | π)] − KL(q(π) ‖ p(π)), given how often features are expected."""
        have, lack = _mean_logs(self.tau)
        likelihood = counts @ have + _lacking(counts, N) @ lack
        return float(likelihood) - _divergence(self.tau, self.alpha / len(counts))


@dataclass(frozen=True)
class InfiniteIBP:
    """π_k = v_1 ··· v_k with v ~ Beta(α, 1); q(v_j) = Beta(tau_j), K sticks.

    E[log(1 − v_1 ··· v_k)] has no closed form. It is bounded from below by
    log Σ_{y≤k} exp(E[log(1 − v_y)] + Σ_{m<y} E[log v_m]): the best of the multinomial
    bounds of Doshi-Velez et al., in which stick y is the one that ends π_k with
    probability q_k(y).

    Attributes
    ----------
    tau : (K, 2)
        By stick, the longest first.
    order : (K,)
        The feature at each stick. It is as good as any other, for nothing else tells
        features apart; falling counts are mostly best.
    """

    shapes: ClassVar[dict[str, str]] = {"tau": "K t", "order": "K <K"}

    tau: Array
    alpha: float
    order: IntArray

    @classmethod
    def fitted(cls, counts: Array, N: float, alpha: float) -> Self:
        """With sticks for the counts, in falling order."""
        return cls._guess(counts, N, alpha)._ascended(counts, N, False)

    @classmethod
    def _guess(cls, counts: Array, N: float, alpha: float) -> Self:
        """Sticks whose products are about the shares of the features."""
        order = np.argsort(-counts, kind="stable")
        shares = (counts[order] + 1.0 / np.arange(1, len(counts) + 1)) / (N + 1.0)
        before = np.concatenate([[1.0], shares[:-1]])
        weight, v = N * before, shares / before
        tau = np.stack([alpha + weight * v, 1.0 + weight * (1.0 - v)], axis=1)
        return cls(tau, float(alpha), order)

    def updated(self, counts: Array, N: float, infer_alpha: bool) -> Self:
        """Better sticks, order and, if inferred, α, from where they stand."""
        kept = self._ascended(counts, N, infer_alpha)
        if np.all(np.diff(counts[self.order]) <= 0.0):
            return kept
        guess = self._guess(counts, N, self.alpha)
        other = guess._ascended(counts, N, infer_alpha)
        return max(kept, other, key=lambda sticks: sticks.bound(counts, N))

    def _ascended(self, counts: Array, N: float, infer_alpha: bool) -> Self:
        """q_k(y), q(v) and α in turn, each the best given the others."""
        sticks = self
        for _ in range(_MAX_STEPS):
            last, sticks = sticks.tau, sticks.with_sticks(counts, N)
            if infer_alpha:
                sticks = sticks.with_alpha()
            if np.all(np.abs(sticks.tau - last) <= _CONVERGED * last):
                break
        return sticks

    def with_sticks(self, counts: Array, N: float) -> Self:
        """The best q(v) for the multinomials that are best for the present one."""
        have = counts[self.order]
        ends, missing = self._ends
        shares = np.tril(np.exp(np.minimum(ends[None, :] - missing[:, None], 0.0)))
        ended = _lacking(have, N) @ shares
        reached = np.cumsum((have + ended)[::-1])[::-1] - ended
        return replace(self, tau=np.stack([self.alpha + reached, 1.0 + ended], axis=1))

    def with_alpha(self) -> Self:
        """The best α given q(v)."""
        least = len(self.tau) / -float(_mean_logs(self.tau)[0].sum())
        return replace(self, alpha=float(np.clip(least, _LEAST, _MOST)))

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Of each stick: E[log v_1 ··· v_{y−1}(1 − v_y)], and the bound that they give.

        The latter is that of E[log(1 − π_k)].
        """
        have, lack = _mean_logs(self.tau)
        ends = lack + np.cumsum(have) - have
        return ends, np.logaddexp.accumulate(ends)

    @cached_property
    def log_odds(self) -> Array:
        """E[log π_k] less the bound of E[log(1 − π_k)], by feature."""
        odds = np.empty(len(self.tau))
        odds[self.order] = np.cumsum(_mean_logs(self.tau)[0]) - self._ends[1]
        return odds

    @property
    def probabilities(self) -> Array:
        """E[π_k] of each feature."""
        shares = np.empty(len(self.tau))
        shares[self.order] = np.cumprod(self.tau[:, 0] / self.tau.sum(axis=1))
        return shares

    def bound(self, counts: Array, N: float) -> float:
        """A bound of E[log p(Z | v)], less KL(q(v) ‖ p(v)), given expected counts."""
        have, reach = counts[self.order], np.cumsum(_mean_logs(self.tau)[0])
        likelihood = have @ reach + _lacking(have, N) @ self._ends[1]
        return float(likelihood) - _divergence(self.tau, self.alpha)
