"""The chains of the samplers: collapsed, accelerated and uncollapsed Gibbs sampling.

The first two integrate the factors A out; the third draws them, of either prior.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from kplus.core.declared import check_shape
from kplus.core.types import Array
from kplus.engine.blas import SINGLE_THREAD
from kplus.ibp.gibbs.chain import Bits, Chain, Settings, Start
from kplus.ibp.gibbs.conditionals import Observed, Posteriors, draw_nonnegative
from kplus.ibp.gibbs.kernels_accelerated import sweep_accelerated
from kplus.ibp.gibbs.kernels_collapsed import sweep_collapsed
from kplus.ibp.gibbs.kernels_posterior import Posterior
from kplus.ibp.gibbs.kernels_uncollapsed import (
    Factors,
    sweep_gaussian,
    sweep_nonnegative,
)
from kplus.ibp.gibbs.scales import (
    LEAST_RATIO,
    Scales,
    Spectrum,
    draw_alpha,
    draw_collapsed_scales,
    draw_variance,
)

__all__ = ["CollapsedChain", "UncollapsedChain", "make_chain"]

_UNCOLLAPSED_DRAWS = 20  # draws of factors and scales before the first sweep
_MEAN_DRAWS = 50  # of which the mean of nonnegative factors is taken
_COLLAPSED_DRAWS = 5  # draws of scales before the first sweep
_WIDE = 2  # so many times more columns than rows make it pay to turn the table


class CollapsedChain(Chain):
    """Z and the scales; missing entries are part of the state, too."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._accelerated = self.settings.sampler == "accelerated"
        self._X = _turned(self.data.X, len(self.data.gaps) > 0)
        self._table = self.data.table(self._X)
        if len(self.data.gaps):
            self._fill_gaps()

    def _own_state(self) -> dict[str, Any]:
        rows, columns = self.data.rows_of_gaps, self.data.gaps
        return {"filled": self._X[rows, columns]} if len(columns) else {}

    def _restore(self, state: dict[str, Any]) -> None:
        if len(self.data.gaps):
            sizes = {"G": len(self.data.gaps)}
            check_shape(state["filled"], "G", sizes, {}, "filled gaps of the chain")
            self._fill(state["filled"])

    def sweep(self) -> None:
        """Rows, then scales given Z, then missing entries afresh."""
        kernel = sweep_accelerated if self._accelerated else sweep_collapsed
        self._refresh()
        self._draw_rows(
            lambda law, row, K: kernel(self._table, self._post, law, row, K, self.rng)
        )
        spectrum = self._draw_scales()
        if len(self.data.gaps):
            evidence = self._fill_gaps()
        else:
            evidence = spectrum.log_evidence(self.scales.noise, self.scales.factor)
        self.log_joint = evidence + self._log_prior()

    def draw_first_scales(self) -> None:
        for _ in range(_COLLAPSED_DRAWS):
            self._refresh()
            self._draw_scales()
            if len(self.data.gaps):
                self._fill_gaps()

    def _draw_scales(self) -> Spectrum:
        """α, σx² and σa² given Z; return what the evidence follows from."""
        Z, hyper = self.Z[:, : self.K].astype(np.float64), self.settings.hyper
        squares = float(np.sum(self._table.squares))
        T = np.asarray(self._post.T)[: self.K]
        spectrum = Spectrum.of(Z, T, squares, self.width)
        scales = draw_alpha(
            self.K, self.N, self.scales, hyper, self.settings.most, self.rng
        )
        self.scales = draw_collapsed_scales(spectrum, scales, hyper, self.rng)
        return spectrum

    def keep(self) -> tuple[Bits, Scales]:
        return self.bits(), self.scales

    def mean_factors(self, kept: tuple[Bits, Scales]) -> Array:
        Z, scales = kept
        return Posteriors(
            Z.astype(np.float64), self.data, scales.noise, scales.factor
        ).mean()

    def _fill_gaps(self) -> float:
        """Draw A given what was observed, then missing entries given A.

        The draw of A is forgotten. Return the evidence of what was observed.
        """
        Z = self.Z[:, : self.K].astype(np.float64)
        factors = Posteriors(Z, self.data, self.scales.noise, self.scales.factor)
        rows, columns = self.data.rows_of_gaps, self.data.gaps
        noise = np.sqrt(self.scales.noise) * self.rng.standard_normal(len(columns))
        self._fill((Z @ factors.draw(self.rng))[rows, columns] + noise)
        return factors.log_evidence()

    def _fill(self, values: Array) -> None:
        """Put values where entries are missing."""
        X = self._X
        X[self.data.rows_of_gaps, self.data.gaps] = values
        np.einsum("nd,nd->n", X, X, out=np.asarray(self._table.squares))

    def _refresh(self) -> None:
        """What kernels update by steps, afresh: after other scales, against drift."""
        K, capacity = self.K, self.Z.shape[1]
        self._post = self._empty(capacity)
        Z = self.Z[:, :K].astype(np.float64)
        ratio = self.scales.noise / self.scales.factor
        T = Z.T @ self._X
        H = np.linalg.inv(Z.T @ Z + ratio * np.eye(K))
        H = 0.5 * (H + H.T)
        A = H @ T if self._accelerated else T
        self._post.T[:K] = T
        self._post.H[:K, :K] = H
        self._post.Q[:K, :K] = A @ A.T

    def _empty(self, capacity: int) -> Posterior:
        return Posterior(
            self.Z,
            self.counts,
            np.zeros((capacity, self._X.shape[1])),
            np.zeros((capacity, capacity)),
            np.zeros((capacity, capacity)),
        )

    def _resize(self, capacity: int) -> None:
        old, K = self._post, self.K
        self._post = self._empty(capacity)
        self._post.T[:K] = old.T[:K]
        self._post.H[:K, :K] = old.H[:K, :K]
        self._post.Q[:K, :K] = old.Q[:K, :K]


def _turned(X: Array, gaps: bool) -> Array:
    """Rows in as few columns as their inner products allow; a copy.

    Of X the chain needs XXᵀ only: many columns are turned into as many as rows. With
    gaps there is no telling columns apart, and X is copied to be filled in.
    """
    N, D = X.shape
    if gaps or D < _WIDE * N:
        return X.copy()
    values, vectors = np.linalg.eigh(X @ X.T)
    return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))


# -------------------------------------------------------------------------- uncollapsed


class UncollapsedChain(Chain):
    """Z, A and the scales; missing entries are left out.

    Parameters
    ----------
    *given
        Those of `Chain`.
    A : (K, D) or None
        Factors to start from, where factors are nonnegative.
    """

    def __init__(self, *given: Any, A: Array | None = None) -> None:
        super().__init__(*given)
        self._table = self.data.table(self.data.X)
        if A is None:
            shape = (self.K, self.width)
            A = np.sqrt(self.scales.factor) * np.abs(self.rng.standard_normal(shape))
        self.A = self._draw_factors(A)

    def _own_state(self) -> dict[str, Any]:
        return {"A": self.A}

    def _restore(self, state: dict[str, Any]) -> None:
        sizes = {"K": self.K, "D": self.width}
        check_shape(state["A"], "K D", sizes, {}, "A of the chain")
        self.A = state["A"]

    def sweep(self) -> None:
        """Rows given A, then A given Z, then scales given both."""
        kernel = sweep_nonnegative if self.settings.nonnegative else sweep_gaussian
        self._state = self._arrays(self.Z.shape[1])
        self._draw_rows(
            lambda law, row, K: kernel(self._table, self._state, law, row, K, self.rng)
        )
        self.A = self._draw_factors(np.asarray(self._state.A)[: self.K])
        self._draw_scales()

    def draw_first_scales(self) -> None:
        for _ in range(_UNCOLLAPSED_DRAWS):
            self.A = self._draw_factors(self.A)
            self._draw_scales()

    def keep(self) -> tuple[Bits, Scales, Array]:
        return self.bits(), self.scales, self.A

    def mean_factors(self, kept: tuple[Bits, Scales, Array]) -> Array:
        Z, scales, A = kept
        bits, noise, factor = Z.astype(np.float64), scales.noise, scales.factor
        if not self.settings.nonnegative:
            return Posteriors(bits, self.data, noise, factor).mean()
        rng = np.random.default_rng(0)  # that of the chain stays as it is
        return draw_nonnegative(A, bits, self.data, noise, factor, rng, _MEAN_DRAWS)[1]

    def _floats(self) -> Array:
        return self.Z[:, : self.K].astype(np.float64)

    def _draw_factors(self, A: Array) -> Array:
        """A given Z; where nonnegative, one after the other from where they were."""
        noise, factor = self.scales.noise, self.scales.factor
        if self.settings.nonnegative:
            return draw_nonnegative(
                A, self._floats(), self.data, noise, factor, self.rng
            )[0]
        return Posteriors(self._floats(), self.data, noise, factor).draw(self.rng)

    def _draw_scales(self) -> None:
        """α, σx² and σa² given Z and A; sets the log-joint."""
        residuals = self.data.residuals(self._floats() @ self.A)
        error = float(np.vdot(residuals, residuals))
        hyper, rng = self.settings.hyper, self.rng
        scales = draw_alpha(self.K, self.N, self.scales, hyper, self.settings.most, rng)
        squares, size, count = (
            float(np.vdot(self.A, self.A)),
            self.A.size,
            self.data.count,
        )
        if hyper.noise is not None:
            noise = draw_variance(hyper.noise, count, error, rng)
            scales = _if_allowed(replace(scales, noise=noise), scales)
        if hyper.factor is not None:
            factor = draw_variance(hyper.factor, size, squares, rng)
            scales = _if_allowed(replace(scales, factor=factor), scales)
        self.scales = scales
        fit = count * np.log(2.0 * np.pi * scales.noise) + error / scales.noise
        prior = size * np.log(2.0 * np.pi * scales.factor) + squares / scales.factor
        if self.settings.nonnegative:
            prior -= 2.0 * size * np.log(2.0)
        self.log_joint = float(-0.5 * (fit + prior)) + self._log_prior()

    def _arrays(self, capacity: int) -> Factors:
        A, norms = np.zeros((capacity, self.width)), np.zeros(capacity)
        A[: self.K] = self.A
        norms[: self.K] = np.einsum("kd,kd->k", self.A, self.A)
        return Factors(self.Z, self.counts, A, norms)

    def _resize(self, capacity: int) -> None:
        self.A = np.array(self._state.A[: self.K])
        self._state = self._arrays(capacity)


def _if_allowed(new: Scales, old: Scales) -> Scales:
    """A draw from a conditional that is cut off: outside, the chain stays."""
    return new if new.noise >= LEAST_RATIO * new.factor else old


def make_chain(
    data: Observed, settings: Settings, start: Start, rng: np.random.Generator
) -> Chain:
    """The chain of a sampler."""
    with SINGLE_THREAD:
        if settings.sampler == "uncollapsed":
            return UncollapsedChain(
                data, settings, start.Z, start.scales, rng, A=start.A
            )
        return CollapsedChain(data, settings, start.Z, start.scales, rng)
