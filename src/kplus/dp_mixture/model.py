"""Mean-field inference for Dirichlet-process mixtures of exponential families.

The bound of Eq. 8 needs no data: where q(v) and q(φ) are the posteriors given counts
N and sums S, their part of it is the log evidence of (N, S), for any q(z) with those
sums; and for other sums it is linear in the difference.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kplus.core.kernels_uniform import uniform_of_rows
from kplus.core.types import Array, Block, IntArray
from kplus.dp_mixture.families.factor_gaussian import reduced
from kplus.dp_mixture.families.family import ByComponent, Family
from kplus.dp_mixture.kernels import candidate_sets, gather_support
from kplus.dp_mixture.kernels_responsibilities import Notes, Shares, responsibilities
from kplus.dp_mixture.noise import Noise
from kplus.dp_mixture.params import (
    Collected,
    Components,
    MixtureStats,
    Plan,
    pair_index,
)
from kplus.dp_mixture.sticks import (
    best_concentration,
    log_prior,
    mean_log_weights,
    stick_evidence,
)

__all__ = ["DPMixtureModel", "StochasticModel", "Support"]

_ALL_COMPONENTS = np.empty((0, 0), np.int32)
_NO_NOISE: Array = np.empty(0)
_NEGLIGIBLE = 1e-20  # responsibilities below this share of the largest are 0 ...
_SPARSE_NEGLIGIBLE = 1e-12  # ... and in a sparse posterior below this
_TARGET_SHARE = 0.1  # τ of Eq. 23
_N_NEIGHBOURS = 6
_FEW = 2  # so many components are sooner scored than ruled out
_FRESH = 5  # every so many passes rows are compared with every component


@dataclass(frozen=True)
class Support:
    """Components of each row of a block that have a share in it, the largest first.

    `noise` marks rows that are noise rather than anything else, if there is noise.
    """

    shapes: ClassVar[dict[str, str]] = {
        "starts": "s", "components": "c <K", "noise": "n",
    }  # fmt: skip

    starts: IntArray  # (n + 1,) int64
    components: IntArray  # int32
    noise: NDArray[np.bool_] | None = None

    @property
    def leading(self) -> IntArray:
        """The component of each row that has most of it."""
        return self.components[self.starts[:-1]]

    @property
    def labels(self) -> IntArray:
        """The same, -1 for noise."""
        if self.noise is None:
            return self.leading
        return np.where(self.noise, np.int32(-1), self.leading)

    def consistent(self) -> bool:
        """Whether every row has components; see `core.declared`."""
        starts = self.starts
        ends = len(starts) > 0 and (starts[0], starts[-1]) == (0, len(self.components))
        marked = self.noise is None or len(self.noise) == len(starts) - 1
        return bool(ends and marked and np.all(np.diff(starts) > 0))


@dataclass(frozen=True)
class DPMixtureModel:
    """The model of Eq. 3, fitted by full-data or memoized updates.

    Parameters
    ----------
    family : Family
        Observations with the prior to begin with; `at` takes that of parameters.
    concentration : float or None
        α; None: learned, with a Gamma(2, 1) prior.
    n_active : int or None
        Most components that share in a row; None: all.
    n_collect : int
        Most rows noted for each birth.
    learns : bool
        Whether `learning` changes the prior.
    others : tuple of arrays (N, S) or None
        Components that the rows at hand do not concern, but whose prior is the same:
        they count in what is learned and in `best_bound`.
    noise : Noise or None
        What rows are like that belong nowhere.
    """

    family: Family
    concentration: float | None = 1.0
    n_active: int | None = None
    n_collect: int = 10_000
    learns: bool = True
    others: tuple[Array, Array] | None = None
    noise: Noise | None = None

    incremental = False

    # ------------------------------------------------------------- parameters

    def at(self, params: Components) -> Self:
        """The same model with the prior that the parameters have."""
        return (
            self
            if params.family is self.family
            else replace(self, family=params.family)
        )

    def posterior(
        self, N: Array, S: Array, mass: float, noise: float | None = None
    ) -> Components:
        """q(v) and q(φ) given counts and sums (Eq. 10), nothing tried yet.

        `noise` is how much of the rows is; None: as much as is expected.
        """
        K = len(N)
        if noise is None:
            noise = 0.0 if self.noise is None else self.noise.expected * mass
        alpha = self.concentration
        if alpha is None:
            alpha = best_concentration(N)
        return Components(
            N=N,
            S=S,
            family=self.family,
            expected=self.family.expect(N, S),
            log_weights=mean_log_weights(N, alpha),
            concentration=alpha,
            mass=mass,
            neighbours=np.empty((K, 0), np.int32),
            tried=np.zeros(K),
            waited=np.ones(K, np.int64),
            noise=noise,
        )

    def rescaled(self, params: Components, mass: float) -> Components:
        """The same components as if seen in rows of another summed weight."""
        scale = mass / params.mass
        return self.at(params).posterior(
            params.N * scale, params.S * scale, mass, params.noise * scale
        )

    def beside_noise(self, count: float, mass: float) -> Self:
        """The same for the rest of the rows, beside some that have so much noise."""
        if self.noise is None:
            return self
        return replace(self, noise=self.noise.beside(count, mass))

    def refreshed(self, params: Components, total: MixtureStats) -> Components:
        """The posterior given new sums; all else stays."""
        new = self.posterior(total.N.copy(), total.S.copy(), total.mass, total.noise)
        return replace(
            new,
            neighbours=params.neighbours,
            tried=params.tried,
            waited=params.waited,
            visits=params.visits,
            plan=params.plan,
        )

    def learning(self, N: Array, S: Array) -> Self:
        """The same model with a prior that components with these sums favour more."""
        if not self.learns:
            return self
        if self.others is not None:
            N, S = (np.concatenate(p) for p in zip((N, S), self.others, strict=True))
        family = self.family.learned(N, S)
        return self if family is self.family else replace(self, family=family)

    def advance(
        self, params: Components, total: MixtureStats, latest: MixtureStats
    ) -> Components:
        """Memoized step; sums over part of the rows do not replace a start on all."""
        if params.plan.frozen or total.mass < params.mass * (1.0 - 1e-9):
            return params
        return self.at(params).refreshed(params, total)

    def update(self, params: Components, total: MixtureStats) -> Components:
        """The posterior for the next pass, its prior learned, and what it is to do."""
        model = self.at(params).learning(total.N, total.S)
        same = np.array_equal(params.N, total.N) and np.array_equal(params.S, total.S)
        same = same and model.family is params.family and params.noise == total.noise
        return self.ready(params if same else model.refreshed(params, total))

    def ready(self, params: Components, everyone: bool = False) -> Components:
        """Begin a pass: neighbours as they are now, no births."""
        visits = params.visits + 1
        everyone = everyone or visits % _FRESH == 0 or not self.is_sparse(params.K)
        return replace(
            params,
            visits=visits,
            waited=params.waited + 1,
            neighbours=self._neighbours(params),
            plan=Plan(everyone=everyone),
        )

    def is_sparse(self, K: int) -> bool:
        return self.n_active is not None and self.n_active + _N_NEIGHBOURS < K

    def crossed(self, params: Components) -> Array:
        """Mean score of the rows of one component under another, (K, K)."""
        means = params.S / np.maximum(params.N, 1e-12)[:, None]
        out: Array = means @ params.expected.eta.T
        out += params.expected.bias + params.log_weights
        return out

    def _neighbours(self, params: Components) -> IntArray:
        if not self.is_sparse(params.K):
            return np.empty((params.K, 0), np.int32)
        cross = self.crossed(params)
        np.fill_diagonal(cross, -np.inf)
        best = np.argpartition(-cross, _N_NEIGHBOURS, axis=1)[:, :_N_NEIGHBOURS]
        return np.ascontiguousarray(best, dtype=np.int32)

    # ------------------------------------------------------------------- rows

    def summarize(
        self, params: Components, block: Block, local: Support | None
    ) -> tuple[MixtureStats, Support]:
        X = block.read()
        weights = np.ones(len(X)) if block.weights is None else block.weights
        stats, support, r = self.share_out(params, X, weights, local)
        if params.plan.targets is not None:
            stats.collected = [self._collect(params, block, support, r, weights)]
        return stats, support

    def reduced(self, X: Array) -> Array:
        """Rows that `share_out` is given again and again; noise needs whole rows."""
        return X if self.noise is not None else reduced(self.family, X)

    def share_out(
        self, params: Components, X: Array, weights: Array, local: Support | None = None
    ) -> tuple[MixtureStats, Support, Array]:
        """Responsibilities of rows (Eq. 9) and what they sum to.

        Those of a row sum to 1, or to what noise leaves of it.
        """
        family, K, n = params.family, params.K, len(X)
        family.check(X)
        rows = reduced(family, X)
        candidates, most, least = None, K, _NEGLIGIBLE
        if self.n_active is not None and self.is_sparse(K):
            most, least = self.n_active, _SPARSE_NEGLIGIBLE
            if local is not None and not params.plan.everyone:
                candidates = candidate_sets(
                    local.starts, local.components, params.neighbours, most
                )
        margin = -float(np.log(least))
        if candidates is None and K > _FEW:
            candidates = family.shortlist(
                params.expected, rows, params.log_weights, margin
            )
        scores = family.scores(params.expected, rows, candidates)
        stats = MixtureStats.zeros(K, family.n_stats)
        starts = np.empty(n + 1, np.int64)
        capacity = n * min(most, scores.shape[1])
        components, r = np.empty(capacity, np.int32), np.empty(capacity)
        pairs = np.zeros((K, K))
        log_base = family.log_base(rows)
        density, r0 = self._scores_of_noise(params, X, log_base)
        responsibilities(
            scores, _ALL_COMPONENTS if candidates is None else candidates,
            params.log_weights, weights, most, -margin,
            Shares(components, r, starts, r0),
            Notes(stats.entropy, pairs, stats.removal_cost),
        )  # fmt: skip
        components, r = components[: starts[n]].copy(), r[: starts[n]]
        members = ByComponent(*gather_support(starts, components, r, weights, K))
        filled = members.starts[:-1] < members.starts[1:]
        stats.N[filled] = np.add.reduceat(members.weights, members.starts[:-1][filled])
        stats.seen = stats.N.copy()
        stats.S = family.sums(rows, members, params.expected)
        stats.pairs = pairs[pair_index(K)]
        stats.mass = float(weights.sum())
        if self.noise is None:
            stats.base = float(weights @ log_base)
            return stats, Support(starts, components), r
        stats.base = self.noise.base(weights, log_base, density, r0)
        stats.noise = float(weights @ r0)
        return stats, Support(starts, components, r0 > 0.5), r

    def _scores_of_noise(
        self, params: Components, X: Array, log_base: Array
    ) -> tuple[Array, Array]:
        """log p₀(x) of rows, and what noise scores beside components; or no numbers."""
        if self.noise is None:
            return _NO_NOISE, _NO_NOISE
        density = self.noise.log_density(X)
        chance, rest = self.noise.log_shares(params.noise, params.mass)
        return density, density - log_base + (chance - rest)

    def _collect(
        self,
        params: Components,
        block: Block,
        support: Support,
        r: Array,
        weights: Array,
    ) -> Collected:
        """Note rows of which a target has more than τ."""
        # Somewhat more rows than needed have so low a priority, if N_k is about right.
        enough = np.zeros(params.K)
        targets = params.plan.targets
        enough[targets] = 1.5 * self.n_collect / np.maximum(params.N[targets], 1.0)
        at = np.flatnonzero((enough[support.components] > 0.0) & (r > _TARGET_SHARE))
        inside = np.searchsorted(support.starts, at, side="right") - 1
        priority = np.empty(len(inside))
        uniform_of_rows(inside + block.start, params.plan.seed, priority)
        low = (priority < enough[support.components[at]]) & (weights[inside] > 0.0)
        at, inside, priority = at[low], inside[low], priority[low]
        targets = support.components[at].astype(np.int64)
        return Collected(inside + block.start, targets, priority)

    def regroup_local(
        self, local: Support, old_to_new: IntArray, K: int
    ) -> Support | None:
        """Renumber; a block with a row that lost all its components starts anew."""
        components = old_to_new[local.components]
        if np.all(components >= 0):
            return Support(local.starts, components.astype(np.int32), local.noise)
        kept = components >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        starts = before[local.starts]
        if np.any(starts[1:] == starts[:-1]):
            return None
        return Support(starts, components[kept].astype(np.int32), local.noise)

    # ------------------------------------------------------------------ bound

    def bound(self, params: Components, total: MixtureStats) -> float:
        """Eq. 8 for q(z) as summed in `total` and q(v), q(φ) as in `params`."""
        N, S = total.N - params.N, total.S - params.S
        parts = params.family.evidence(params.N, params.S)
        parts = parts + params.expected.total(N, S)
        sticks = stick_evidence(params.N, params.concentration)
        sticks += float(N @ params.log_weights)
        if self.concentration is None:
            sticks += log_prior(params.concentration)
        sticks += params.family.log_hyperprior
        if self.noise is not None:
            known, more = (params.noise, params.mass), total.noise - params.noise
            chance, rest = self.noise.log_shares(*known)
            sticks += self.noise.evidence(*known)
            sticks += more * chance + (total.mass - params.mass - more) * rest
        return float(parts.sum() + sticks + total.entropy.sum() + total.base)

    def best_bound(self, total: MixtureStats) -> float:
        """Eq. 8 with the best q(v), q(φ) for these sums."""
        alpha = self.concentration
        extra = self.family.log_hyperprior
        if alpha is None:
            alpha = best_concentration(total.N)
            extra += log_prior(alpha)
        parts = self.family.evidence(total.N, total.S).sum()
        if self.others is not None:
            parts += self.family.evidence(*self.others).sum()
        sticks = stick_evidence(total.N, alpha)
        if self.noise is not None:
            extra += self.noise.evidence(total.noise, total.mass)
        return float(parts + sticks + extra + total.entropy.sum() + total.base)

    def objective(self, params: Components, total: MixtureStats) -> float:
        """The bound with its sign changed, as the loop looks for the lowest."""
        return -self.bound(params, total)

    def converged(self, total: MixtureStats) -> bool:
        return False


@dataclass(frozen=True)
class StochasticModel(DPMixtureModel):
    """Stochastic steps: S ← (1 - ρ) S + ρ (N / |batch|) S_batch, ρ = (t + d)^-κ.

    Interpolating sums is the same as interpolating natural parameters (section 2.3).
    After each pass the prior is learned from the sums that the steps have reached, as
    if they were those of all rows.
    """

    delay: float = 10.0
    decay: float = 0.5

    def advance(
        self, params: Components, total: MixtureStats, latest: MixtureStats
    ) -> Components:
        if params.plan.frozen or latest.mass <= 0.0:
            return params
        rho = (params.visits + self.delay) ** -self.decay
        scale = rho * params.mass / latest.mass
        N = (1.0 - rho) * params.N + scale * latest.N
        S = (1.0 - rho) * params.S + scale * latest.S
        noise = (1.0 - rho) * params.noise + scale * latest.noise
        new = self.at(params).posterior(N, S, params.mass, noise)
        return replace(new, visits=params.visits + 1)

    def update(self, params: Components, total: MixtureStats) -> Components:
        model = self.at(params).learning(params.N, params.S)
        if model.family is params.family:
            return params
        new = model.posterior(params.N, params.S, params.mass, params.noise)
        return replace(new, visits=params.visits)
