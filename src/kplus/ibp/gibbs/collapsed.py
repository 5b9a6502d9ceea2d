"""Chains that integrate the factors out: collapsed and accelerated Gibbs sampling."""

from typing import Any

import numpy as np

from kplus.core.declared import check_shape
from kplus.core.types import Array
from kplus.ibp.gibbs.chain import Bits, Chain
from kplus.ibp.gibbs.factors import Posteriors
from kplus.ibp.gibbs.kernels_accelerated import sweep_accelerated
from kplus.ibp.gibbs.kernels_collapsed import sweep_collapsed
from kplus.ibp.gibbs.kernels_posterior import Posterior
from kplus.ibp.gibbs.scales import (
    Scales,
    Spectrum,
    draw_alpha,
    draw_collapsed_scales,
)

__all__ = ["CollapsedChain"]

_FIRST_DRAWS = 5  # draws of scales before the first sweep
_WIDE = 2  # so many times more columns than rows make it pay to turn the table


class CollapsedChain(Chain):
    """Z and the scales; missing entries are part of the state, too."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._accelerated = self.settings.sampler == "accelerated"
        self._table = self.data.table(_turned(self.data.X, len(self.data.gaps) > 0))
        if len(self.data.gaps):
            self._fill_gaps()

    def _own_state(self) -> dict[str, Any]:
        rows, columns = self.data.rows_of_gaps, self.data.gaps
        return {"filled": self._table.X[rows, columns]} if len(columns) else {}

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
        for _ in range(_FIRST_DRAWS):
            self._refresh()
            self._draw_scales()
            if len(self.data.gaps):
                self._fill_gaps()

    def _draw_scales(self) -> Spectrum:
        """α, σx² and σa² given Z; return what the evidence follows from."""
        Z, hyper = self.Z[:, : self.K].astype(np.float64), self.settings.hyper
        squares = float(self._table.squares.sum())
        spectrum = Spectrum.of(Z, self._post.T[: self.K], squares, self.width)
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
        X = self._table.X
        X[self.data.rows_of_gaps, self.data.gaps] = values
        np.einsum("nd,nd->n", X, X, out=self._table.squares)

    def _refresh(self) -> None:
        """What kernels update by steps, afresh: after other scales, against drift."""
        K, capacity = self.K, self.Z.shape[1]
        self._post = self._empty(capacity)
        Z = self.Z[:, :K].astype(np.float64)
        ratio = self.scales.noise / self.scales.factor
        T = Z.T @ self._table.X
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
            np.zeros((capacity, self._table.X.shape[1])),
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
