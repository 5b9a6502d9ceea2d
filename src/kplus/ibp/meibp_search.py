"""From a table to features by maximisation and expectation (MEIBP)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kplus.core.job import Job, draw
from kplus.core.runs import answers, negated, run_job
from kplus.core.types import Array, Callback, Move, PassInfo
from kplus.engine.blas import SINGLE_THREAD
from kplus.ibp.factors import Factors, GaussianFactors, IBPSums, TruncatedFactors
from kplus.ibp.meibp_model import (
    DropEmpty,
    DropFeature,
    IBPParams,
    MEIBPModel,
    renumbered,
    sums_of,
)
from kplus.ibp.meibp_rows import (
    RowFit,
    RowSettings,
    RowStart,
    fit_rows,
    start_at_random,
    start_from_features,
)
from kplus.ibp.meibp_sample import (
    MOSTLY,
    Found,
    Sample,
    Scales,
    Spectrum,
    parts,
    projections,
    random_bits,
    with_births,
)
from kplus.ibp.prior import count_slopes
from kplus.ibp.table import Survey
from kplus.linear.bits import Allocation
from kplus.linear.gaps import Gaps

__all__ = ["IBPFit", "IBPSpec", "choose", "fit", "fit_by_rows"]

_FIRST_ROWS = 1_000  # enough where projections of the rows are clear
_MORE_ROWS = 5_000
_BIRTHS = 5  # at a time
_PATIENCE = 2  # rounds of births in vain
_MAX_PASSES = 50
_DIGITS = 1e-14
_LEAST = 1e-8  # least variance of the noise, as a share of that of the data


@dataclass(frozen=True)
class IBPSpec:
    """What is wanted.

    Attributes
    ----------
    most : int or None
        Never more features.
    alpha, noise, spread : float or None
        Concentration, variances of noise and factors; None: infer.
    nonnegative : bool
        Whether factors are.
    greedy : int or None
        Seed of the double greedy; None: local search.
    init : {"auto", "ica", "nmf", "random"}
    n_init : int
        Starts, of which the best is kept.
    """

    most: int | None
    alpha: float | None
    noise: float | None
    spread: float | None
    nonnegative: bool
    greedy: int | None
    init: str
    n_init: int

    def model(self, survey: Survey) -> MEIBPModel:
        return MEIBPModel(
            infer_noise=self.noise is None,
            infer_spread=self.spread is None,
            infer_alpha=self.alpha is None,
            greedy=self.greedy,
            least=_LEAST * survey.variance,
        )

    def step(self, tol: float, survey: Survey) -> float:
        """Passes that raise the bound by less are the last: what was asked for, or what
        rounding makes of values that are far larger than the noise."""
        square = survey.deviation**2 + float(np.max(survey.means**2))
        rounding = _DIGITS * square / (self.noise or survey.variance)
        return survey.observed * max(tol, rounding)

    def scales(self, survey: Survey) -> Scales:
        """Hyperparameters to begin with: half of the deviation is taken as noise."""
        variance = survey.variance
        return Scales(
            noise=self.noise or variance / 4.0,
            spread=self.spread or variance,
            alpha=self.alpha or 1.0,
            nonnegative=self.nonnegative,
        )


@dataclass(frozen=True)
class IBPFit:
    """Where a fit of all rows came to rest."""

    params: IBPParams
    sums: IBPSums
    history: Array
    converged: bool


def fit(
    job: Job, spec: IBPSpec, survey: Survey, start: IBPParams | None = None
) -> IBPFit:
    """Find features: on a sample first, then on all rows."""
    with SINGLE_THREAD:
        if start is None:
            start = _best_start(job, spec, survey).params
        return _over_all_rows(
            job, spec.model(survey), start, spec.step(job.tol, survey)
        )


def fit_by_rows(
    job: Job, spec: IBPSpec, survey: Survey, start: IBPParams | None = None
) -> IBPFit:
    """Find features as in the paper: rows one by one, in memory."""
    sample = _rows(job, job.source.n_rows, 0)
    begin = _row_start(job, spec, survey, sample, start)
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
        told = _told(job.callback, spec, sample.gaps)
        found = fit_rows(sample.table, begin, settings, job.rng, told)
    return _as_fit(sample, found, spec)


def _row_start(
    job: Job, spec: IBPSpec, survey: Survey, sample: Sample, start: IBPParams | None
) -> RowStart:
    if start is None and spec.init == "random":
        K = spec.most or max(2 * Spectrum.of(sample.complete, len(sample.X)).rank, 1)
        return start_at_random(sample.table, K, job.rng, spec.nonnegative)
    if start is None:
        with SINGLE_THREAD:
            start = _best_start(job, spec, survey).params
    return start_from_features(sample.table, start.factors.mean, np.sqrt(start.noise))


def _told(
    callback: Callback | None, spec: IBPSpec, gaps: Gaps
) -> Callable[[int, RowFit], bool] | None:
    """A callback of the loop as one of sweeps over rows."""
    if callback is None:
        return None

    def tell(sweep: int, here: RowFit) -> bool:
        return callback(PassInfo(sweep, here.history[-1], _as_params(here, spec, gaps)))

    return tell


def _as_params(found: RowFit, spec: IBPSpec, gaps: Gaps) -> IBPParams:
    """Where a fit by rows is, in the terms of a fit by blocks."""
    factors: Factors
    if spec.nonnegative:
        factors = TruncatedFactors(found.mu, found.scale)
    else:
        factors = GaussianFactors.independent(found.mu, found.scale, gaps.group)
    counts = found.Z.sum(axis=0, dtype=np.float64)
    return IBPParams(
        factors,
        found.noise_scale**2,
        found.factor_scale**2,
        found.alpha,
        count_slopes(counts, len(found.Z)),
    )


def _as_fit(sample: Sample, found: RowFit, spec: IBPSpec) -> IBPFit:
    """The same at the end, features by falling number of rows."""
    params = _as_params(found, spec, sample.gaps)
    order = np.argsort(-found.Z.sum(axis=0, dtype=np.int64), kind="stable")
    old_to_new = np.argsort(order)
    params = renumbered(params, old_to_new, len(old_to_new), params.factors.mean[:0])
    sums = sums_of(
        sample.X, sample.missing, sample.gaps, found.Z[:, order], params.factors.mean
    )
    return IBPFit(params, sums, np.array(found.history), found.converged)


def _over_all_rows(
    job: Job, model: MEIBPModel, params: IBPParams, step: float
) -> IBPFit:
    fitted = _to_rest(job, model, params, step)
    if model.greedy is None:
        return fitted
    # Rows as `choose` will see them: by local search, from nothing.
    local = replace(model, greedy=None)
    once = replace(job, max_iter=1, callback=None)
    last = _to_rest(once, local, fitted.params, step)
    if last.history[-1] < fitted.history[-1]:
        return fitted
    history = np.append(fitted.history[:-1], last.history[-1])
    return replace(last, history=history, converged=fitted.converged)


def _to_rest(job: Job, model: MEIBPModel, params: IBPParams, step: float) -> IBPFit:
    """Pass over all rows until nothing changes; features by falling number of rows."""
    moves: list[Move] = [DropEmpty(), DropFeature()]
    result, _ = run_job(job, model, params, moves, step=step, reported=negated)
    counts = result.total.counts
    old_to_new = np.argsort(np.argsort(-counts, kind="stable"))
    old_to_new[counts == 0.0] = -1  # where max_iter came before they were dropped
    K = int(np.count_nonzero(counts))
    params = renumbered(result.params, old_to_new, K, result.params.factors.mean[:0])
    sums = result.total.regroup(old_to_new, K).about(params.factors.mean)
    return IBPFit(params, sums, -np.array(result.history), result.converged)


def choose(job: Job, params: IBPParams) -> Array:
    """Z of the rows, under given factors and scales."""
    _, Z = answers(job, MEIBPModel(), params, part=_as_numbers)
    return np.asarray(Z)


def _as_numbers(bits: Allocation) -> Array:
    return bits.unpack().astype(np.float64)


# -------------------------------------------------------------------- the sample


def _best_start(job: Job, spec: IBPSpec, survey: Survey) -> Found:
    """The best of several starts, by the bound for each row; all see the same rows."""
    seed = int(job.rng.integers(2**62))
    starts = [
        _on_sample(job, spec, survey, rng, seed) for rng in job.rng.spawn(spec.n_init)
    ]
    return max(starts, key=lambda found: found.bound / len(found.Z))


def _on_sample(
    job: Job, spec: IBPSpec, survey: Survey, rng: np.random.Generator, seed: int
) -> Found:
    """The best features found on rows in memory; on more of them where in doubt."""
    few = more = _rows(job, _FIRST_ROWS, seed)
    model, scales = spec.model(survey), spec.scales(survey)
    found = _if_clear(few, model, spec, scales, rng)
    if found is None and job.source.n_rows > _FIRST_ROWS:
        more = _rows(job, _MORE_ROWS, seed)
        found = _if_clear(more, model, spec, scales, rng)
    if found is not None:
        return found
    found = _from_starts(few, model, spec, scales, rng)
    found = _grown(few, model, spec, found, rng)
    if more is not few:
        found = more.rest(model, found.params, _MAX_PASSES)
        found = _grown(more, model, spec, found, rng)
    return _shrunk(more, model, found)


def _if_clear(
    sample: Sample,
    model: MEIBPModel,
    spec: IBPSpec,
    scales: Scales,
    rng: np.random.Generator,
) -> Found | None:
    """What projections of the rows lead to, if asked for and if they leave no doubt."""
    if spec.init != "auto":
        return None
    most = spec.most or len(sample.table)
    spectrum = Spectrum.of(sample.complete, most)
    Z, clear = projections(spectrum, most, spec.nonnegative, rng)
    if clear < MOSTLY:
        return None
    start = sample.rest(model, sample.begin(model, Z, scales), _MAX_PASSES)
    if Z.shape[1] == start.params.K:
        return start
    found = _grown(sample, model, spec, start, rng)
    return found if found.params.K == start.params.K else None


def _rows(job: Job, size: int, seed: int) -> Sample:
    rows = draw(job.source, None, size, np.random.default_rng(seed)).rows
    return Sample(np.ascontiguousarray(rows, dtype=np.float64))


def _from_starts(
    sample: Sample,
    model: MEIBPModel,
    spec: IBPSpec,
    scales: Scales,
    rng: np.random.Generator,
) -> Found:
    """The best of the starts asked for; "auto" stands for all but random ones."""
    most = spec.most or len(sample.table)
    spectrum = Spectrum.of(sample.complete, most)
    twice = min(most, 2 * max(spectrum.rank, 1))
    starts = []
    if spec.init in ("auto", "ica"):
        starts.append(projections(spectrum, most, spec.nonnegative, rng)[0])
    if spec.init == "auto" and sample.missing is not None:
        rough = Spectrum.of(sample.level, most)
        starts.append(projections(rough, most, spec.nonnegative, rng)[0])
    if spec.init in ("auto", "nmf"):
        shifted = sample.level - np.minimum(sample.level.min(axis=0), 0.0)
        starts.append(parts(shifted, twice, rng))
    if spec.init == "random":
        starts.append(random_bits(len(sample.table), twice, rng))
    rested = [
        sample.rest(model, sample.begin(model, Z, scales), _MAX_PASSES) for Z in starts
    ]
    return max(rested, key=lambda found: found.bound)


def _grown(
    sample: Sample,
    model: MEIBPModel,
    spec: IBPSpec,
    found: Found,
    rng: np.random.Generator,
) -> Found:
    """Let features be born from residuals as long as the bound rises."""
    most = spec.most or len(sample.table)
    failures = 0
    while failures < _PATIENCE:
        room = min(_BIRTHS, most - found.params.K)
        new = sample.births(model, found, room, spec.nonnegative, rng)
        if not len(new):
            break
        born = with_births(found.params, new)
        tried = sample.rest(model, born, _MAX_PASSES)
        if tried.bound > found.bound + sample.step:
            found = tried
        else:
            failures += 1
    return found


def _shrunk(sample: Sample, model: MEIBPModel, found: Found) -> Found:
    """Drop features one by one as long as the bound is higher once rows have chosen."""
    while found.params.K > 1:
        fewer = sample.without_one(found)
        tried = sample.rest(model, fewer, _MAX_PASSES)
        if not tried.bound > found.bound:
            break
        found = tried
    return found
