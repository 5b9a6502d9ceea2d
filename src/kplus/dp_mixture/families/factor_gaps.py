"""Rows of many columns of which some values are missing, by a few numbers of each.

Let y be a row in units of its noise, B orthonormal axes, s = Bᵀy. A reference density
has Normal(0, I) for the factors, and is exact in all that no component changes: it has
the precision Q = I + B diag(0, w) Bᵀ, w = 1/λ - 1 for the axes that are no factors.
Given the values observed, the reference has s ~ Normal(a, RRᵀ). A component differs
from it by exp f(s) only, f(s) = -½ (s - m)ᵀ Λ (s - m) + ½ |s|², so that all it says of
the row follows from a and R: with T = I + Rᵀ(Λ - I)R and g = ∇f(a), its q(s) has the
covariance V = R T⁻¹ Rᵀ and the mean a + V g. Nothing larger than (axes)² is inverted,
and of what no component changes once for each pattern of gaps.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, softmax

from kplus.core.types import Array, IntArray

__all__ = ["FactorGaps", "Hidden", "Reference", "hidden", "parts_of", "scales"]

_LOG_2PI = float(np.log(2.0 * np.pi))
_TINY = 1e-12  # variance of a score that is known, in that of the reference
_CHUNK_NUMBERS = 2**20  # of matrices that are held at a time
_MANY_COLUMNS = 300  # of which products take longer than the missing ones alone
_NODES = 80  # of the integral over the scale of a row


class Patterns(NamedTuple):
    """What follows from which columns are missing, once for rows that miss the same."""

    G: Array  # B_mᵀ B_m (P, p, p)
    C: Array  # (I + G_rr diag(w))⁻¹, of the axes that are no factors (P, r, r)
    log_dets: Array  # log |Q_mm| (P,)
    which: IntArray  # of each row (n,)


class Reference(NamedTuple):
    """What a component is compared with: axes, the first q of which are factors."""

    basis: Array  # (D, p)
    w: Array  # (p - q,)

    @property
    def n_factors(self) -> int:
        return int(self.basis.shape[1]) - len(self.w)

    def patterns(self, missing: NDArray[np.bool_]) -> Patterns:
        _, first, which = np.unique(
            np.packbits(missing, axis=1), axis=0, return_index=True, return_inverse=True
        )
        q, G = self.n_factors, self._squares(missing[first])
        M = np.eye(len(self.w)) + G[:, q:, q:] * self.w
        return Patterns(G, np.linalg.inv(M), np.linalg.slogdet(M)[1], which.ravel())

    def _squares(self, missing: NDArray[np.bool_]) -> Array:
        """B_mᵀ B_m, by one product where columns are few."""
        D, p = self.basis.shape
        out = np.empty((len(missing), p, p))
        if D > _MANY_COLUMNS:
            for square, gone in zip(out, missing, strict=True):
                B = self.basis[gone]
                np.matmul(B.T, B, out=square)
            return out
        rows, columns = np.triu_indices(p)
        packed = missing @ (self.basis[:, rows] * self.basis[:, columns])
        out[:, rows, columns] = out[:, columns, rows] = packed
        return out

    def reduce(self, Y: Array) -> "FactorGaps":
        """Rows, NaN where a value is missing, as a, R and log ∫ exp(-½ yᵀQy) dy_m."""
        missing = np.isnan(Y)
        parts = [
            self._reduced(np.where(missing[part], 0.0, Y[part]), missing[part])
            for part in parts_of(len(Y), self.basis.shape[1])
        ]
        return FactorGaps(*(np.concatenate(kind) for kind in zip(*parts, strict=True)))

    def _reduced(
        self, Y: Array, missing: NDArray[np.bool_]
    ) -> tuple[Array, Array, Array]:
        known, q, T = self.patterns(missing), self.n_factors, Y @ self.basis
        G, C = known.G, known.C
        others = _times(C[known.which], T[:, q:])
        pull = others * self.w
        a = T[:, :q] - _times(G[known.which, :q, q:], pull)
        logs = missing.sum(axis=1) * _LOG_2PI - np.einsum("nd,nd->n", Y, Y)
        logs -= np.einsum("nr,nr->n", T[:, q:], pull) + known.log_dets[known.which]
        less = (G[:, :q, q:] * self.w) @ C @ G[:, q:, :q]
        unsure = G[:, :q, :q] - 0.5 * (less + np.swapaxes(less, 1, 2))
        R = np.linalg.cholesky(unsure + _TINY * np.eye(q))
        return a, R[known.which], 0.5 * logs

    def filled(self, Y: Array, pull: Array) -> Array:
        """E[y_m | y_o] where ∇f(s) is `pull` (n, q) at the mean of s."""
        missing, q = np.isnan(Y), self.n_factors
        out = np.where(missing, 0.0, Y)
        for part in parts_of(len(Y), self.basis.shape[1]):
            known, h = self.patterns(missing[part]), pull[part]
            change = _times(np.swapaxes(known.G[known.which, :q, q:], 1, 2), h)
            change = ((out[part] @ self.basis)[:, q:] + change) * self.w
            turned = np.swapaxes(known.C[known.which], 1, 2)
            both = np.hstack([h, -_times(turned, change)])
            out[part] = np.where(missing[part], both @ self.basis.T, out[part])
        return out


def _times(matrices: Array, vectors: Array) -> Array:
    """A matrix for each of some vectors."""
    out: Array = (matrices @ vectors[:, :, None])[:, :, 0]
    return out


@dataclass(frozen=True)
class FactorGaps:
    """Some rows: what the reference says of their factors, given what is observed."""

    a: Array  # (n, q)
    R: Array  # (n, q, q)
    logs: Array  # (n,)

    def some(self, rows: IntArray) -> "FactorGaps":
        return FactorGaps(self.a[rows], self.R[rows], self.logs[rows])

    @cached_property
    def unsure(self) -> Array:
        """I - RᵀR (n, q, q)."""
        out: Array = np.eye(self.a.shape[1]) - np.swapaxes(self.R, 1, 2) @ self.R
        return out


class Hidden(NamedTuple):
    """q(s) of rows under a component, and what it adds to the bound."""

    means: Array  # (n, q)
    spread: Array  # R L⁻ᵀ (n, q, q), so that V = spread spreadᵀ
    scores: Array  # what scores are above those of a row whose factors are a (n,)
    gains: Array  # E[log p(what is left)] and entropy, above those of a (n,)


def parts_of(n: int, q: int) -> list[slice]:
    """Rows whose matrices are held together."""
    size = max(1, _CHUNK_NUMBERS // max(q * q, 1))
    return [slice(i, i + size) for i in range(0, n, size)]


def hidden(rows: FactorGaps, mean: Array, whiten: Array) -> Hidden:
    """Rows under a component with the precision Λ = whiten whitenᵀ, or one of each."""
    a, R, q = rows.a, rows.R, rows.a.shape[1]
    turn = np.swapaxes(whiten, -1, -2)
    turned = turn @ R
    T = rows.unsure + np.swapaxes(turned, 1, 2) @ turned
    L = np.linalg.cholesky(T)
    inverse = np.linalg.inv(L)
    spread = R @ np.swapaxes(inverse, 1, 2)
    pull = a - ((a - mean)[:, None] @ whiten @ turn)[:, 0]  # ∇f(a)
    along = np.einsum("nij,ni->nj", spread, pull)
    means = a + np.einsum("nij,nj->ni", spread, along)
    log_det = 2.0 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    scores = 0.5 * (np.einsum("nj,nj->n", along, along) - log_det)
    # E[½|s|²] less ½|a|², less the divergence of q(s) from the reference's.
    z = np.einsum("nij,ni->nj", inverse, along)
    squares = np.einsum("ni,ni->n", means, means) - np.einsum("ni,ni->n", a, a)
    squares += np.einsum("nij,nij->n", spread, spread)
    gains = squares + q - np.einsum("nij,nij->n", inverse, inverse)
    gains -= np.einsum("nj,nj->n", z, z) + log_det
    return Hidden(means, spread, scores, 0.5 * gains)


class Scales(NamedTuple):
    """Rows under a multivariate t: a Gaussian whose precision u P is unknown."""

    logs: Array  # log ∫ p(u) p(y_o | u) du, as `Hidden.scores` (n,)
    u: Array  # nodes (n, nodes)
    shares: Array  # of the nodes, given y_o (n, nodes)
    mean: Array  # E[s] (n, q)
    heavy: Array  # E[u s] (n, q)


def scales(rows: FactorGaps, mean: Array, precision: Array, free: float) -> Scales:
    """By the trapezoid rule in log u, with u ~ Gamma(free/2, free/2).

    C = I - RᵀR and E = RᵀPR are brought to diagonals together, so that T = C + u E is
    one at each node. A row's log density also has ½ q log u - ½ u |a - m|² under P.
    """
    a, R, q = rows.a, rows.R, rows.a.shape[1]
    E = np.swapaxes(R, 1, 2) @ precision @ R
    L = np.linalg.cholesky(rows.unsure + E)
    inverse = np.linalg.inv(L)
    c, Q = np.linalg.eigh(inverse @ rows.unsure @ np.swapaxes(inverse, 1, 2))
    c = np.clip(c, 0.0, 1.0)
    spread = R @ np.swapaxes(inverse, 1, 2) @ Q  # V = spread diag(1/(c + u e)) spreadᵀ
    away = (a - mean) @ precision
    z0, z1 = (np.einsum("nij,ni->nj", spread, v) for v in (a, away))
    far = np.einsum("ni,ni->n", away, a - mean)
    half = 0.5 * free
    low = np.minimum(np.log((free + q) / (free + far)), 0.0)
    low = low - 9.0 / np.sqrt(half) - 20.0 / half
    high = np.log1p(9.0 / np.sqrt(half) + 30.0 / half)
    step = (high - low) / (_NODES - 1)
    u = np.exp(low[:, None] + step[:, None] * np.arange(_NODES))
    T = c[:, None] + u[:, :, None] * (1.0 - c[:, None])  # (n, nodes, q)
    z = z0[:, None] - u[:, :, None] * z1[:, None]
    logs = (half + 0.5 * q) * np.log(u) - half * u - 0.5 * u * far[:, None]
    logs += 0.5 * (np.square(z) / T - np.log(T)).sum(axis=2)
    logs -= np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)[:, None]
    top = logs.max(axis=1)
    total = np.exp(logs - top[:, None]).sum(axis=1)
    shares = softmax(logs, axis=1)
    moved, heavy = (
        a * w.sum(axis=1)[:, None]
        + np.einsum("nij,nj->ni", spread, np.einsum("nt,ntj->nj", w, z / T))
        for w in (shares, shares * u)
    )
    known = half * np.log(half) - gammaln(half) + np.log(step)
    return Scales(top + np.log(total) + known, u, shares, moved, heavy)
