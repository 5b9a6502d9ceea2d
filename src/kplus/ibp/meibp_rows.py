"""MEIBP row by row, as in the paper, for a table in memory."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kplus.core.job import Job
from kplus.core.types import Array, Callback, IntArray, PassInfo
from kplus.engine.blas import SINGLE_THREAD
from kplus.ibp import kernels_rows
from kplus.ibp.factors import (
    Factors,
    GaussianFactors,
    TruncatedFactors,
    truncated_moments,
)
from kplus.ibp.kernels_factors import Factors as RowFactors
from kplus.ibp.kernels_factors import (
    Model,
    Sums,
    evidence_of_factors,
    update_factors,
)
from kplus.ibp.kernels_submodular import rows_local_search
from kplus.ibp.meibp_model import IBPParams, renumbered, sums_of
from kplus.ibp.meibp_sample import Bits, Sample, Spectrum
from kplus.ibp.meibp_search import IBPFit, IBPSpec, best_start, draw_sample
from kplus.ibp.prior import count_slopes, harmonic, log_prior
from kplus.ibp.table import Survey
from kplus.linear.gaps import Gaps

__all__ = [
    "RowFit",
    "RowSettings",
    "RowStart",
    "fit_by_rows",
    "fit_rows",
    "start_at_random",
    "start_from_bits",
    "start_from_features",
]

_MAXIMIZERS = {
    "local_search": kernels_rows.LOCAL_SEARCH,
    "double_greedy": kernels_rows.RANDOM_DOUBLE_GREEDY,
    "deterministic_double_greedy": kernels_rows.DOUBLE_GREEDY,
}
_LEAST_NOISE = 1e-12  # of the mean square: less is rounding


@dataclass(frozen=True, slots=True)
class RowSettings:
    """How to fit. A scale or alpha that is None is inferred.

    Attributes
    ----------
    alpha, noise_scale, factor_scale : float or None
        The parameter of the prior, and the standard deviations σ_X and σ_A.
    nonnegative : bool
        Whether factors are confined to nonnegative values. If not, the row objective is
        not submodular, and the maximisers guarantee nothing.
    maximizer : {"local_search", "double_greedy", "deterministic_double_greedy"}
    refresh : int
        After so many changed rows, the factors touched are updated.
    shuffle : bool
        Visit the rows in a random order, another in each sweep.
    max_iter : int
    tol : float
        Stop when no bit changed and the bound rose by less than that, in nats
        per value.
    """

    alpha: float | None = None
    noise_scale: float | None = None
    factor_scale: float | None = None
    nonnegative: bool = True
    maximizer: str = "local_search"
    refresh: int = 10
    shuffle: bool = False
    max_iter: int = 100
    tol: float = 1e-6


@dataclass(frozen=True, slots=True)
class RowStart:
    """Bits Z (N, K) and the mean factors (K, D) that the first update builds on."""

    Z: Bits
    mean: Array


@dataclass(frozen=True, slots=True)
class RowFit:
    """The result of `fit_rows`.

    Attributes
    ----------
    Z : (N, K) uint8
    mu, scale : (K, D)
        Parameters of q(A): Gaussians of mean mu and variance scale, cut off at zero if
        factors are nonnegative.
    mean, variance : (K, D)
        Moments of q(A).
    noise_scale, factor_scale, alpha : float
    history : list of float
        The bound (Eq. 10) after each sweep.
    changed : list of int
        Number of bits changed in each sweep.
    converged : bool
    """

    Z: Bits
    mu: Array
    scale: Array
    mean: Array
    variance: Array
    noise_scale: float
    factor_scale: float
    alpha: float
    history: list[float]
    changed: list[int]
    converged: bool


def start_at_random(
    X: Array, K: int, rng: np.random.Generator, nonnegative: bool = True
) -> RowStart:
    """The start of the authors' code: bits with probability 1/3, small factors."""
    Z = (rng.random((len(X), K)) < 1.0 / 3.0).astype(np.uint8)
    mean: Array = 0.05 * rng.normal(size=(K, X.shape[1]))
    if nonnegative:
        sigma = np.abs(0.1 * rng.normal(size=mean.shape))
        mean = truncated_moments(np.abs(mean), sigma**2)[0]
    return RowStart(Z, mean)


def start_from_bits(Z: Bits, n_features: int) -> RowStart:
    """Given bits; the factors follow from them."""
    return RowStart(Z, np.zeros((Z.shape[1], n_features)))


def start_from_features(X: Array, A: Array, noise_scale: float) -> RowStart:
    """Given factors; each row takes those that fit it, whatever others have."""
    missing = np.isnan(X)
    gaps = Gaps.of(missing)
    seen = gaps.known[:, gaps.group]
    Qs = np.einsum("kd,pd,jd->pkj", A, seen, A, optimize=True) / noise_scale**2
    Qs = np.ascontiguousarray(Qs)
    B = np.where(missing, 0.0, X) @ A.T / noise_scale**2
    Z = np.zeros(B.shape, np.uint8)
    rows_local_search(B, np.zeros(Qs.shape[:2]), Qs, gaps.pattern, Z)
    return RowStart(Z, np.array(A, dtype=np.float64))


def fit_rows(
    X: Array,
    start: RowStart,
    settings: RowSettings,
    rng: np.random.Generator,
    callback: Callable[[int, "RowFit"], bool] | None = None,
) -> RowFit:
    """Sweep over the rows until nothing changes.

    Parameters
    ----------
    X : (N, D)
        NaN where a value is missing.
    start : RowStart
    settings : RowSettings
    rng : Generator
        For shuffled rows and the double greedy.
    callback : callable, optional
        Called with the number of each sweep and the fit so far; returns True to stop.
    """
    state = _State(X, start, settings)
    history: list[float] = []
    changed: list[int] = []
    converged = False
    for iteration in range(settings.max_iter):
        changed.append(state.sweep(rng))
        state.update()
        history.append(state.bound())
        if callback is not None:
            so_far = state.result(history, changed, False)
            if callback(iteration + 1, so_far):
                break
        step = settings.tol * state.gaps.observed
        converged = changed[-1] == 0 and _converged(history, step)
        if converged:
            break
    return state.result(history, changed, converged)


def _converged(history: list[float], step: float) -> bool:
    return len(history) > 1 and history[-1] - history[-2] <= step


class _State:
    """All that changes during a fit; columns in the order of their groups."""

    def __init__(self, X: Array, start: RowStart, settings: RowSettings) -> None:
        self.settings = settings
        missing = np.isnan(X)
        filled = np.where(missing, 0.0, X)
        self.gaps = gaps = Gaps.of(missing)
        self.columns = np.argsort(gaps.group, kind="stable")
        self.table = kernels_rows.Table(
            np.ascontiguousarray(filled[:, self.columns]),
            gaps.pattern,
            gaps.known.astype(np.uint8),
            np.append(0, np.cumsum(np.bincount(gaps.group))),
        )
        self.squares = float(np.vdot(filled, filled))
        self.Z = np.array(start.Z, dtype=np.uint8, order="C")
        mean = np.ascontiguousarray(start.mean[:, self.columns], dtype=np.float64)
        self.factors = RowFactors(*(mean.copy() for _ in range(4)))
        self.sums = self._sums()
        self.model = self._first_model(start)
        self._drop_empty()
        update_factors(*self._parts())

    def _sums(self) -> Sums:
        Z = self.Z.astype(np.float64)
        return Sums(Z.T @ self.table.X, self.gaps.gram(Z), Z.sum(axis=0))

    def _first_model(self, start: RowStart) -> Model:
        """Given scales; or half the deviation of the data for the noise."""
        settings, K = self.settings, self.Z.shape[1]
        total = float(self.table.X.sum())
        mean_square = self.squares / self.gaps.observed
        variance = max(mean_square - (total / self.gaps.observed) ** 2, 0.0)
        self.least_noise = _LEAST_NOISE * mean_square or 1.0
        noise = max(0.25 * variance, self.least_noise)
        spread = float(np.mean(start.mean**2)) if start.mean.any() else variance
        alpha = max(K, 1) / harmonic(len(self.Z))
        if settings.noise_scale is not None:
            noise = settings.noise_scale**2
        if settings.factor_scale is not None:
            spread = settings.factor_scale**2
        return Model(
            float(noise),
            float(spread) or 1.0,
            float(settings.alpha or alpha),
            settings.nonnegative,
        )

    def _parts(self) -> tuple[Sums, IntArray, RowFactors, Model]:
        return self.sums, self.table.starts, self.factors, self.model

    def _drop_empty(self) -> None:
        keep = np.flatnonzero(self.sums.counts > 0.0)
        if len(keep) == len(self.sums.counts):
            return
        T, S, counts = self.sums
        self.Z = np.ascontiguousarray(self.Z[:, keep])
        self.sums = Sums(
            T[keep], np.ascontiguousarray(S[:, keep][:, :, keep]), counts[keep]
        )
        self.factors = RowFactors(*(part[keep] for part in self.factors))

    def sweep(self, rng: np.random.Generator) -> int:
        """Visit all rows, drop empty features; return the number of changed bits."""
        N, K = self.Z.shape
        if K == 0:
            return 0
        order = rng.permutation(N) if self.settings.shuffle else np.arange(N)
        schedule = kernels_rows.Schedule(
            _MAXIMIZERS[self.settings.maximizer],
            self.settings.refresh,
            int(rng.integers(2**62)),
        )
        bits = kernels_rows.sweep(
            self.table,
            order,
            self.Z,
            self.sums,
            self.factors,
            self.model,
            schedule,
        )
        self._drop_empty()
        return int(bits)

    def update(self) -> None:
        """All factors once, then the scales and alpha that are to be inferred."""
        K = self.Z.shape[1]
        if K:
            update_factors(*self._parts())
        noise, spread, alpha, nonnegative = self.model
        if self.settings.noise_scale is None:
            noise = max(self.error() / self.gaps.observed, self.least_noise)
        if self.settings.factor_scale is None and K:
            spread = float(np.mean(self.factors.mean**2 + self.factors.variance))
        if self.settings.alpha is None and K:
            alpha = K / harmonic(len(self.Z))
        self.model = Model(noise, spread, alpha, nonnegative)

    def error(self) -> float:
        """E‖X − ZA‖² over the observed entries."""
        mean, variance = self.factors.mean, self.factors.variance
        total = self.squares - 2.0 * float(np.vdot(self.sums.T, mean))
        for g, S in enumerate(self.sums.S):
            part = slice(self.table.starts[g], self.table.starts[g + 1])
            total += float(np.vdot(mean[:, part], S @ mean[:, part]))
            total += float(np.diag(S) @ variance[:, part].sum(axis=1))
        return total

    def bound(self) -> float:
        """The evidence bound, Eq. 10 with all constants."""
        noise = self.model.noise
        fit = self.gaps.observed * np.log(2.0 * np.pi * noise) + self.error() / noise
        prior = log_prior(self.sums.counts, len(self.Z), self.model.alpha)
        factors = evidence_of_factors(self.factors, self.model)
        return float(prior + factors - 0.5 * fit)

    def result(
        self, history: list[float], changed: list[int], converged: bool
    ) -> RowFit:
        back = np.argsort(self.columns)
        mu, scale, mean, variance = (part[:, back] for part in self.factors)
        return RowFit(
            Z=self.Z,
            mu=mu,
            scale=scale,
            mean=mean,
            variance=variance,
            noise_scale=float(np.sqrt(self.model.noise)),
            factor_scale=float(np.sqrt(self.model.spread)),
            alpha=float(self.model.alpha),
            history=history,
            changed=changed,
            converged=converged,
        )


# ------------------------------------------------------------ from a table to features


def fit_by_rows(
    job: Job, spec: IBPSpec, survey: Survey, start: IBPParams | None = None
) -> IBPFit:
    """Find features as in the paper: rows one by one, in memory."""
    sample = draw_sample(job, job.source.n_rows, 0)
    row_start = _row_start(job, spec, survey, sample, start)
    settings = RowSettings(
        alpha=spec.alpha,
        noise_scale=None if spec.noise is None else np.sqrt(spec.noise),
        factor_scale=None if spec.spread is None else np.sqrt(spec.spread),
        nonnegative=spec.nonnegative,
        maximizer="local_search" if spec.greedy is None else "double_greedy",
        max_iter=job.max_iter,
        tol=job.tol,
    )
    with SINGLE_THREAD:
        callback = _on_sweep(job.callback, spec, sample.gaps)
        row_fit = fit_rows(sample.table, row_start, settings, job.rng, callback)
    return _as_fit(sample, row_fit, spec)


def _row_start(
    job: Job, spec: IBPSpec, survey: Survey, sample: Sample, start: IBPParams | None
) -> RowStart:
    if start is None and spec.init == "random":
        rank = Spectrum.of(sample.complete, len(sample.X)).rank
        K = min(spec.most or max(2 * rank, 1), spec.limit(sample))
        return start_at_random(sample.table, K, job.rng, spec.nonnegative)
    if start is None:
        with SINGLE_THREAD:
            start = best_start(job, spec, survey).params
    return start_from_features(sample.table, start.factors.mean, np.sqrt(start.noise))


def _on_sweep(
    callback: Callback | None, spec: IBPSpec, gaps: Gaps
) -> Callable[[int, RowFit], bool] | None:
    """A callback of the loop as one of sweeps over rows."""
    if callback is None:
        return None

    def on_sweep(sweep: int, row_fit: RowFit) -> bool:
        params = _as_params(row_fit, spec, gaps)
        return callback(PassInfo(sweep, row_fit.history[-1], params))

    return on_sweep


def _as_params(row_fit: RowFit, spec: IBPSpec, gaps: Gaps) -> IBPParams:
    """The parameters of a fit by rows, as those of a fit by blocks."""
    factors: Factors
    if spec.nonnegative:
        factors = TruncatedFactors(row_fit.mu, row_fit.scale)
    else:
        factors = GaussianFactors.independent(row_fit.mu, row_fit.scale, gaps.group)
    counts = row_fit.Z.sum(axis=0, dtype=np.float64)
    return IBPParams(
        factors,
        row_fit.noise_scale**2,
        row_fit.factor_scale**2,
        row_fit.alpha,
        count_slopes(counts, len(row_fit.Z)),
    )


def _as_fit(sample: Sample, row_fit: RowFit, spec: IBPSpec) -> IBPFit:
    """A fit by rows as one by blocks, features by falling number of rows."""
    params = _as_params(row_fit, spec, sample.gaps)
    order = np.argsort(-row_fit.Z.sum(axis=0, dtype=np.int64), kind="stable")
    old_to_new = np.argsort(order)
    params = renumbered(params, old_to_new, len(old_to_new), params.factors.mean[:0])
    sums = sums_of(
        sample.X, sample.missing, sample.gaps, row_fit.Z[:, order], params.factors.mean
    )
    return IBPFit(params, sums, np.array(row_fit.history), row_fit.converged)
