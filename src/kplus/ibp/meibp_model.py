"""MEIBP as a model of the loop, and its moves: rows choose features, factors follow."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kplus.core.regroup import without
from kplus.core.types import Array, Block, IntArray, Position, Proposal
from kplus.ibp.factors import Factors, IBPSums
from kplus.ibp.kernels_double_greedy import rows_double_greedy
from kplus.ibp.kernels_scattered import scattered_local_search
from kplus.ibp.kernels_submodular import rows_local_search
from kplus.ibp.prior import count_slopes, harmonic, log_prior
from kplus.linear.bits import Allocation
from kplus.linear.gaps import Gaps, whole

__all__ = [
    "DropEmpty",
    "DropFeature",
    "IBPParams",
    "MEIBPModel",
    "RowState",
    "removal_upper_bounds",
    "renumbered",
    "sums_of",
]

_REFITTED = 3  # features with the highest removal upper bounds
_SLACK = 10.0  # nats that refitted scales may add to a removal upper bound
_NEVER = -1e30
_PATTERNS = 256  # rows of so many patterns are handled at a time


@dataclass(frozen=True)
class IBPParams:
    """Parameters by which rows choose their features.

    Attributes
    ----------
    factors : Factors
        q(A).
    noise, spread : float
        Variances of the noise and of the factors, σ_X² and σ_A².
    alpha : float
        Concentration of the prior.
    slopes : (K,)
        What the log-prior gains for one more row with each feature.
    keep_alive : (K,) or None
        Features of which a block must keep a row that has them: to lose the last one
        would cost more than the slopes imply. None: there are none.
    slab : (K,) or None
        Prior variances of the weights of each feature; None: rows have it or not.
    """

    shapes: ClassVar[dict[str, str]] = {"slopes": "K", "keep_alive": "K", "slab": "K"}

    factors: Factors
    noise: float
    spread: float
    alpha: float
    slopes: Array
    keep_alive: NDArray[np.bool_] | None = None
    slab: Array | None = None

    @property
    def K(self) -> int:
        return len(self.slopes)


@dataclass(frozen=True, slots=True)
class RowState:
    """What is kept of a block: Z of its rows, and where its values are missing."""

    allocation: Allocation
    gaps: Gaps

    def unpack(self) -> Any:
        return self.allocation.unpack()


@dataclass(frozen=True)
class MEIBPModel:
    """The evidence bound of MEIBP (Eq. 10), as something to be minimised: −F.

    Rows choose all at once. The IBP prior couples them through the counts m_k, in which
    it is convex: its tangent at the last counts bounds it from below, so that rows
    which choose by the tangent raise the bound by at least the gains they compute. The
    objective of each row is quadratic, and submodular for nonnegative factors.

    Attributes
    ----------
    infer_noise, infer_spread, infer_alpha : bool
        Which hyperparameters follow the data.
    greedy : int or None
        Seed of the randomised double greedy; None: local search.
    least : float
        The variance of the noise is inferred to be no less: rows that features explain
        exactly would leave none.
    """

    infer_noise: bool = True
    infer_spread: bool = True
    infer_alpha: bool = True
    greedy: int | None = None
    least: float = 1e-200
    incremental = False

    # ------------------------------------------------------------------- rows

    def summarize(
        self, params: IBPParams, block: Block, local: RowState | None
    ) -> tuple[IBPSums, RowState]:
        X = block.read().astype(np.float64, copy=False)
        n = len(X)
        missing = np.isnan(X) if np.isnan(np.sum(X)) else None
        if missing is not None:
            X = np.where(missing, 0.0, X)
        if local is None:
            gaps = whole(*X.shape) if missing is None else Gaps.of(missing)
            Z = np.zeros((n, params.K), np.uint8)
        else:
            gaps, Z = local.gaps, local.unpack()
        changed = self._visit(params, X, gaps, Z, block.start) if params.K else 0
        sums = sums_of(X, missing, gaps, Z, params.factors.mean)
        sums.changed = n if local is None else changed
        return sums, RowState(Allocation.of(Z), gaps)

    def _visit(
        self, params: IBPParams, X: Array, gaps: Gaps, Z: Any, first: int
    ) -> int:
        """Let rows choose; a block keeps one row of each feature to be kept alive."""
        if params.keep_alive is None:
            return self.choose(params, X, gaps, Z, first)
        before = Z.copy()
        self.choose(params, X, gaps, Z, first)
        for k in np.flatnonzero(params.keep_alive & before.any(axis=0)):
            if not Z[:, k].any():
                row = int(np.argmax(before[:, k]))
                Z[row] = before[row]
        return int(np.count_nonzero(np.any(before != Z, axis=1)))

    def choose(
        self, params: IBPParams, X: Array, gaps: Gaps, Z: Any, first: int
    ) -> int:
        """Let rows (gaps filled with 0) choose; Z changes; return how many did."""
        K = params.K
        B = X @ params.factors.mean.T
        grams = params.factors.grams(gaps.group, gaps.known.shape[1])
        slopes = params.noise * params.slopes
        if gaps.scattered and self.greedy is None:
            return scattered_local_search(B, slopes[None], grams, gaps, Z)
        grams = grams.reshape(-1, K * K)
        changed = 0
        for start in range(0, len(gaps.known), _PATTERNS):
            known = gaps.known[start : start + _PATTERNS]
            Q = (known @ grams).reshape(-1, K, K)
            linear = np.tile(slopes, (len(known), 1))
            if len(known) == len(gaps.known):
                numbers = first + np.arange(len(Z))
                return self._maximise(B, linear, Q, gaps.pattern, Z, numbers)
            rows = np.flatnonzero(
                (gaps.pattern >= start) & (gaps.pattern < start + len(known))
            )
            own = Z[rows]
            pattern = gaps.pattern[rows] - start
            changed += self._maximise(B[rows], linear, Q, pattern, own, first + rows)
            Z[rows] = own
        return changed

    def _maximise(
        self,
        B: Array,
        linear: Array,
        Q: Array,
        pattern: IntArray,
        Z: Any,
        numbers: IntArray,
    ) -> int:
        if self.greedy is None:
            return int(rows_local_search(B, linear, Q, pattern, Z))
        return int(rows_double_greedy(B, linear, Q, pattern, Z, self.greedy, numbers))

    # -------------------------------------------------------------- parameters

    def update(self, params: IBPParams, total: IBPSums) -> IBPParams:
        """q(A), then the scales and alpha, each the best given the others."""
        factors = params.factors.refreshed(total, params.noise, params.spread)
        noise, spread, alpha = params.noise, params.spread, params.alpha
        sums = total.about(factors.mean)
        if self.infer_noise:
            expected = sums.error + factors.uncertainty(sums)
            noise = max(expected / total.observed, self.least)
        if self.infer_spread and params.K:
            spread = factors.squares / factors.mean.size
        n_used = np.count_nonzero(total.counts)
        if self.infer_alpha and n_used:
            alpha = n_used / harmonic(total.weight)
        slopes = _slopes(total)
        keep_alive = _keep_alive(total, slopes, alpha)
        return IBPParams(factors, noise, spread, alpha, slopes, keep_alive, params.slab)

    def advance(self, params: IBPParams, total: IBPSums, latest: IBPSums) -> IBPParams:
        return self.update(params, total)

    def objective(self, params: IBPParams, total: IBPSums) -> float:
        return -self.bound(params, total)

    def bound(self, params: IBPParams, total: IBPSums) -> float:
        """F, the lower bound on the log-evidence. Features no row has are left out."""
        factors = params.factors
        counts = total.counts
        sums = total if total.A is factors.mean else total.about(factors.mean)
        expected = sums.error + factors.uncertainty(sums)
        likelihood = -0.5 * total.observed * np.log(2.0 * np.pi * params.noise)
        likelihood -= 0.5 * expected / params.noise
        likelihood += float(total.weight_gains(params.slab).sum())
        if not np.all(counts > 0.0):
            used = np.flatnonzero(counts > 0.0)
            factors = kept_factors(factors, used)
            counts = counts[used]
        prior = log_prior(counts, total.weight, params.alpha)
        return float(likelihood + factors.gain(params.spread) + prior)

    def converged(self, total: IBPSums) -> bool:
        return False  # factors and scales may still move: the bound decides

    def regroup_local(self, local: RowState, old_to_new: IntArray, K: int) -> RowState:
        return replace(local, allocation=local.allocation.regroup(old_to_new, K))


def sums_of(
    X: Array, missing: NDArray[np.bool_] | None, gaps: Gaps, Z: Any, A: Array
) -> IBPSums:
    """The sums of rows (0 where a value is missing) about features A."""
    ones = Z.astype(np.float64)
    R = ones @ A
    np.subtract(X, R, out=R)
    if missing is not None:
        np.copyto(R, 0.0, where=missing)
    return IBPSums(
        A=A,
        S=gaps.gram(ones),
        group=gaps.group,
        T=ones.T @ R,
        error=float(np.vdot(R, R)),
        observed=gaps.observed,
        weight=float(len(X)),
        counts=ones.sum(axis=0),
    )


def kept_factors(factors: Factors, kept: IntArray) -> Factors:
    """Some of the factors, in the order given."""
    K, D = factors.mean.shape
    old_to_new = np.full(K, -1)
    old_to_new[kept] = np.arange(len(kept))
    return factors.regroup(old_to_new, len(kept), np.empty((0, D)), 1.0)


def renumbered(
    params: IBPParams, old_to_new: IntArray, K: int, new: Array
) -> IBPParams:
    """Parameters after a renumbering; `new` are the means of factors that come."""
    slopes = np.zeros(K)
    slopes[old_to_new[old_to_new >= 0]] = params.slopes[old_to_new >= 0]
    keep_alive = None
    if params.keep_alive is not None:
        keep_alive = np.zeros(K, np.bool_)
        keep_alive[old_to_new[old_to_new >= 0]] = params.keep_alive[old_to_new >= 0]
    slab = params.slab
    if slab is not None:
        carried = np.ones(K)
        carried[old_to_new[old_to_new >= 0]] = slab[old_to_new >= 0]
        slab = carried
    factors = params.factors.regroup(old_to_new, K, new, params.noise)
    return replace(
        params, factors=factors, slopes=slopes, keep_alive=keep_alive, slab=slab
    )


def _slopes(total: IBPSums) -> Array:
    """Slopes of the prior at the counts. Features that no row has are excluded."""
    used = total.counts > 0.0
    slopes = count_slopes(np.where(used, total.counts, 1.0), total.weight)
    return np.where(used, slopes, _NEVER)


def _keep_alive(
    total: IBPSums, slopes: Array, alpha: float
) -> NDArray[np.bool_] | None:
    """Features for which the tangent of the prior may be too high where no row is left.

    There the bound loses all that a feature adds, which is at most its term in the
    prior of Z, as q(A) has a cost; of ln K! it gains at least the share of an average
    feature. This takes very few rows or a large alpha.
    """
    N, K = total.weight, total.K
    counts = np.maximum(total.counts, 1.0)
    columns = gammaln(N - counts + 1.0) + gammaln(counts) - gammaln(N + 1.0)
    added = columns + np.log(alpha) - gammaln(K + 1.0) / max(K, 1)
    keep_alive: NDArray[np.bool_] = (added > counts * slopes) & (total.counts > 0.0)
    return keep_alive if keep_alive.any() else None


# -------------------------------------------------------------------------------- moves


class DropEmpty:
    """Drop features that no row has; the bound leaves them out already."""

    def propose(self, at: Position[MEIBPModel, IBPParams, IBPSums]) -> Proposal | None:
        empty = at.total.counts <= 0.0
        if not empty.any():
            return None
        old_to_new = without(at.total.K, empty)
        K = int(np.count_nonzero(~empty))
        fewer = renumbered(at.updated, old_to_new, K, at.updated.factors.mean[:0])
        return Proposal(fewer, old_to_new, K, exact=True)


class DropFeature:
    """Once converged, drop a feature if that raises the bound, all else refitted.

    Rows keep their other features, so that the bound follows exactly from the sums. One
    that explains next to nothing need not wait: it would shrink, and σ_A with it, for
    hundreds of passes.
    """

    def propose(self, at: Position[MEIBPModel, IBPParams, IBPSums]) -> Proposal | None:
        model, total, updated = at.model, at.total, at.updated
        K = total.K
        if K == 0 or not np.all(total.counts > 0.0):
            return None
        if not at.converged and not _dwindling(updated, total):
            return None
        most = removal_upper_bounds(updated, total)
        now = model.bound(updated, total)
        for k in np.argsort(most)[::-1][:_REFITTED]:
            if not most[k] > -_SLACK:
                return None
            old_to_new = without(K, int(k))
            fewer = renumbered(updated, old_to_new, K - 1, updated.factors.mean[:0])
            sums = total.regroup(old_to_new, K - 1)
            refitted = model.update(fewer, sums)
            if model.bound(refitted, sums) > now:
                return Proposal(refitted, old_to_new, K - 1, exact=True)
        return None


def _dwindling(params: IBPParams, total: IBPSums) -> bool:
    """Whether the squares of some feature, over its rows, are less than σ_X²."""
    own = np.diagonal(total.S, axis1=1, axis2=2)[total.group].T  # (K, D)
    squares = np.sum(own * params.factors.mean**2, axis=1)
    return bool(np.any(squares < params.noise))


def removal_upper_bounds(params: IBPParams, total: IBPSums) -> Array:
    """At most what the bound could gain by dropping each feature, given the scales.

    That is what a feature costs in the priors, less what its squares explain that the
    others, refitted without regard to any prior, cannot.
    """
    N, counts, A = total.weight, total.counts, params.factors.mean
    column = gammaln(N - counts + 1.0) + gammaln(counts) - gammaln(N + 1.0)
    prior = column + np.log(params.alpha) - np.log(total.K)
    costs = (
        -params.factors.own_gains(params.spread)
        - prior
        - total.weight_gains(params.slab)
    )
    explained = total.losses(A)
    explained[total.same_rows().sum(axis=1) > 1] = 0.0
    most: Array = costs - 0.5 * explained / params.noise
    return most
