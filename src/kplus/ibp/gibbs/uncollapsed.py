"""Chains that keep the factors: uncollapsed Gibbs sampling, of either prior."""

from dataclasses import replace
from typing import Any

import numpy as np

from kplus.core.declared import check_shape
from kplus.core.types import Array
from kplus.ibp.gibbs.chain import Bits, Chain
from kplus.ibp.gibbs.factors import Posteriors, draw_nonnegative
from kplus.ibp.gibbs.kernels_uncollapsed import (
    Factors,
    sweep_gaussian,
    sweep_nonnegative,
)
from kplus.ibp.gibbs.scales import (
    LEAST_RATIO,
    Scales,
    draw_alpha,
    draw_variance,
)

__all__ = ["UncollapsedChain"]

_FIRST_DRAWS = 20  # draws of factors and scales before the first sweep
_MEAN_DRAWS = 50  # of which the mean of nonnegative factors is taken


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
        self.A = self._draw_factors(self._state.A[: self.K])
        self._draw_scales()

    def draw_first_scales(self) -> None:
        for _ in range(_FIRST_DRAWS):
            self.A = self._draw_factors(self.A)
            self._draw_scales()

    def keep(self) -> tuple[Bits, Scales, Array]:
        return self.bits(), self.scales, self.A

    def mean_factors(self, kept: tuple[Bits, Scales, Array]) -> Array:
        Z, scales, A = kept
        bits, noise, factor = Z.astype(np.float64), scales.noise, scales.factor
        if not self.settings.nonnegative:
            return Posteriors(bits, self.data, noise, factor).mean()
        rng = np.random.default_rng(0)  # the chain goes on as if nobody had asked
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
        self.A = self._state.A[: self.K].copy()
        self._state = self._arrays(capacity)


def _if_allowed(new: Scales, old: Scales) -> Scales:
    """A draw from a conditional that is cut off: outside, the chain stays."""
    return new if new.noise >= LEAST_RATIO * new.factor else old
