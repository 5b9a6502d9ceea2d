"""MEIBP with nonnegative weights: how much of a feature a row has, not only whether.

x_n = Σ_k z_nk v_nk a_k + noise, where v_nk ≥ 0 is half-normal of variance τ_k, which is
learned. q(V) and q(A) are independent Gaussians cut off below zero. With w = zv the
sums are those of bits: ZᵀZ becomes E[WᵀW], ZᵀR and ‖R‖² the expectations of WᵀR and
‖R‖² over q(V), and all that follows from sums, q(A) above all, stays.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, Block, IntArray
from kplus.ibp.factors import IBPSums
from kplus.ibp.kernels_weights import rows_weights
from kplus.ibp.meibp_model import IBPParams, MEIBPModel
from kplus.linear.gaps import Gaps, whole

__all__ = ["WeightState", "WeightedModel", "WeightedSums", "weighted_sums"]

_ROUNDS = 10
_FIRST_ROUNDS = 500  # from nothing; also of rows that are only visited once
_STILL = 1e-3  # a row is done when no feature moves it by more, in units of the noise
_ALWAYS = 1e30


@dataclass(frozen=True, slots=True)
class WeightState:
    """What is kept of a block: E[W] of its rows, and where its values are missing."""

    shapes: ClassVar[dict[str, str]] = {"means": "N K"}

    means: Array
    gaps: Gaps

    def unpack(self) -> Array:
        return self.means


@dataclass
class WeightedSums(IBPSums):
    """Sums over rows, expectations over q(V).

    Attributes
    ----------
    entropy : (K,)
        Of q(v) of the rows with each feature.
    squares : (K,)
        E[v²], added up over these.
    """

    shapes: ClassVar[dict[str, str]] = {
        **IBPSums.shapes,
        "entropy": "K",
        "squares": "K",
    }

    entropy: Array = None  # type: ignore[assignment]
    squares: Array = None  # type: ignore[assignment]

    def weight_gains(self, slab: Array | None) -> Array:
        """E[ln p(v)] and the entropy of q(v), for each feature."""
        assert slab is not None
        prior = self.counts * np.log(0.5 * np.pi * slab) + self.squares / slab
        gains: Array = self.entropy - 0.5 * prior
        return gains

    def _plus(self, other: Self, sign: float) -> Self:
        self.entropy = self.entropy + sign * other.entropy
        self.squares = self.squares + sign * other.squares
        return super()._plus(other, sign)

    def regroup(self, old_to_new: IntArray, K: int) -> Self:
        kept = old_to_new >= 0
        entropy, squares = np.zeros(K), np.zeros(K)
        entropy[old_to_new[kept]] = self.entropy[kept]
        squares[old_to_new[kept]] = self.squares[kept]
        return replace(super().regroup(old_to_new, K), entropy=entropy, squares=squares)


@dataclass(frozen=True)
class WeightedModel(MEIBPModel):
    """The evidence bound with weights, as something to be minimised: −F.

    Rows choose bits and weights by coordinate ascent from where they were, given the
    tangent of the prior of Z: the bound cannot fall.
    """

    def summarize(  # type: ignore[override]
        self, params: IBPParams, block: Block, local: WeightState | None
    ) -> tuple[WeightedSums, WeightState]:
        X = block.read().astype(np.float64, copy=False)
        missing = np.isnan(X) if np.isnan(np.sum(X)) else None
        if missing is not None:
            X = np.where(missing, 0.0, X)
        if local is None:
            gaps = whole(*X.shape) if missing is None else Gaps.of(missing)
            M = np.zeros((len(X), params.K))
        else:
            gaps, M = local.gaps, np.array(local.means)
        V, H = np.zeros_like(M), np.zeros_like(M)
        rounds = _FIRST_ROUNDS if local is None else _ROUNDS
        changed = weigh(params, X, gaps, M, V, H, rounds)
        sums = weighted_sums(X, missing, gaps, M, V, H, params.factors.mean)
        sums.changed = len(X) if local is None else changed
        return sums, WeightState(M, gaps)

    def update(self, params: IBPParams, total: IBPSums) -> IBPParams:
        assert isinstance(total, WeightedSums)
        assert params.slab is not None
        used = total.counts > 0.0
        slab = np.divide(
            total.squares, total.counts, out=params.slab.copy(), where=used
        )
        return replace(super().update(params, total), slab=slab)

    def regroup_local(  # type: ignore[override]
        self, local: WeightState, old_to_new: IntArray, K: int
    ) -> WeightState:
        means = np.zeros((len(local.means), K))
        means[:, old_to_new[old_to_new >= 0]] = local.means[:, old_to_new >= 0]
        return replace(local, means=means)


def weigh(
    params: IBPParams,
    X: Array,
    gaps: Gaps,
    M: Array,
    V: Array,
    H: Array,
    rounds: int = _ROUNDS,
) -> int:
    """Let rows (gaps filled with 0) choose; M, V and H follow; return how many did.

    A block keeps one row of each feature to be kept alive.
    """
    if not params.K:
        return 0
    B = X @ params.factors.mean.T
    grams = params.factors.grams(gaps.group, gaps.known.shape[1])
    still = _STILL * np.sqrt(params.noise)
    how = params.noise, params.slab, rounds, still
    before = M.copy()
    changed = rows_weights(B, params.slopes, grams, gaps, *how, M, V, H)
    if params.keep_alive is None:
        return int(changed)
    for k in np.flatnonzero(params.keep_alive & before.any(axis=0)):
        if M[:, k].any():
            continue
        own = [int(np.argmax(before[:, k]))]
        forced = np.where((before[own[0]] > 0.0) & params.keep_alive, _ALWAYS, 0.0)
        parts = before[own], V[own], H[own]
        one = replace(gaps, pattern=gaps.pattern[own])
        rows_weights(B[own], params.slopes + forced, grams, one, *how, *parts)
        M[own], V[own], H[own] = parts
    return int(np.count_nonzero(np.any((before > 0.0) != (M > 0.0), axis=1)))


def weighted_sums(
    X: Array,
    missing: NDArray[np.bool_] | None,
    gaps: Gaps,
    M: Array,
    V: Array,
    H: Array,
    A: Array,
) -> WeightedSums:
    """The sums of rows (0 where a value is missing) about features A.

    E[WᵀR] = MᵀR − diag(ΣV)A for R = X − MA, and E‖X − WA‖² = ‖R‖² + Σ V A².
    """
    R = M @ A
    np.subtract(X, R, out=R)
    if missing is not None:
        np.copyto(R, 0.0, where=missing)
    by_pattern = np.zeros((len(gaps.known), M.shape[1]))
    np.add.at(by_pattern, gaps.pattern, V)
    spread = gaps.known.T @ by_pattern  # (groups, K)
    S = gaps.gram(M)
    S[:, range(len(A)), range(len(A))] += spread
    each = spread[gaps.group].T
    return WeightedSums(
        A=A,
        S=S,
        group=gaps.group,
        T=M.T @ R - each * A,
        error=float(np.vdot(R, R) + np.vdot(each, A * A)),
        observed=gaps.observed,
        weight=float(len(X)),
        counts=np.count_nonzero(M, axis=0).astype(np.float64),
        entropy=H.sum(axis=0),
        squares=(M * M + V).sum(axis=0),
    )
