"""From a table to features by maximisation and expectation (MEIBP)."""

from dataclasses import dataclass, replace

import numpy as np

from kplus.core.job import Job, draw
from kplus.core.runs import answers, negated, run_job
from kplus.core.types import Array, Move
from kplus.engine.blas import SINGLE_THREAD
from kplus.ibp.factors import IBPSums
from kplus.ibp.meibp_model import (
    DropEmpty,
    DropFeature,
    IBPParams,
    MEIBPModel,
    RowState,
    renumbered,
)
from kplus.ibp.meibp_sample import (
    CLEAR_SHARE,
    Sample,
    SampleFit,
    Scales,
    Spectrum,
    parts,
    projections,
    random_bits,
    with_births,
)
from kplus.ibp.meibp_weights import WeightedModel, WeightState
from kplus.ibp.table import Survey

__all__ = ["IBPFit", "IBPSpec", "best_start", "choose", "draw_sample", "fit"]

_FIRST_ROWS = 1_000  # enough where projections of the rows are clear
_MORE_ROWS = 5_000
_BIRTHS = 5  # at a time
_PATIENCE = 2  # rounds of births in vain
_DIGITS = 1e-14
_LEAST = 1e-8  # least variance of the noise, as a share of that of the data


@dataclass(frozen=True)
class IBPSpec:
    """Settings of a search.

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
        Number of starts; the best is kept.
    weights : bool
        Whether rows have some amount of a feature, or have it or not.
    """

    most: int | None
    alpha: float | None
    noise: float | None
    spread: float | None
    nonnegative: bool
    greedy: int | None
    init: str
    n_init: int
    weights: bool = False

    def limit(self, sample: Sample) -> int:
        """Never more features than that, than rows, or than columns.

        As many features as columns explain any table of amounts up to rounding; binary
        ones beyond that would only cut amounts into finer steps.
        """
        least = int(min(sample.table.shape))
        return least if self.most is None else min(self.most, least)

    def model(self, survey: Survey) -> MEIBPModel:
        kind = WeightedModel if self.weights else MEIBPModel
        return kind(
            infer_noise=self.noise is None,
            infer_spread=self.spread is None,
            infer_alpha=self.alpha is None,
            greedy=self.greedy,
            least=_LEAST * survey.variance,
        )

    def step(self, tol: float, survey: Survey) -> float:
        """The rise of the bound below which a fit has converged.

        `tol` per value, or rounding where values are far larger than the noise.
        """
        square = survey.deviation**2 + float(np.max(survey.means**2))
        rounding = _DIGITS * square / (self.noise or survey.variance)
        return survey.observed * max(tol, rounding)

    def scales(self, survey: Survey) -> Scales:
        """Initial hyperparameters: half of the deviation is taken as noise."""
        variance = survey.variance
        return Scales(
            noise=self.noise or variance / 4.0,
            spread=self.spread or variance,
            alpha=self.alpha or 1.0,
            nonnegative=self.nonnegative,
        )


@dataclass(frozen=True)
class IBPFit:
    """The converged fit of all rows."""

    params: IBPParams
    sums: IBPSums
    history: Array
    converged: bool


def fit(
    job: Job, spec: IBPSpec, survey: Survey, start: IBPParams | None = None
) -> IBPFit:
    """Find features: on a sample first, then on all rows."""
    model, step = spec.model(survey), spec.step(job.tol, survey)
    with SINGLE_THREAD:
        if start is None:
            start = best_start(job, spec, survey).params
        fitted = _converge(job, model, start, step)
        if model.greedy is None:
            return fitted
        # Rows as `choose` will see them: by local search, from nothing.
        once = replace(job, max_iter=1, callback=None)
        last = _converge(once, replace(model, greedy=None), fitted.params, step)
    if last.history[-1] < fitted.history[-1]:
        return fitted
    history = np.append(fitted.history[:-1], last.history[-1])
    return replace(last, history=history, converged=fitted.converged)


def _converge(job: Job, model: MEIBPModel, params: IBPParams, step: float) -> IBPFit:
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
    """Z of the rows, or their weights, under given factors and scales."""
    model = MEIBPModel() if params.slab is None else WeightedModel()
    _, Z = answers(job, model, params, part=_as_numbers)
    return np.asarray(Z)


def _as_numbers(local: RowState | WeightState) -> Array:
    return np.asarray(local.unpack(), dtype=np.float64)


# -------------------------------------------------------------------- the sample


def draw_sample(job: Job, size: int, seed: int) -> Sample:
    """Rows in memory, up to `size` of them."""
    rows = draw(job.source, None, size, np.random.default_rng(seed)).rows
    return Sample(np.ascontiguousarray(rows, dtype=np.float64))


def best_start(job: Job, spec: IBPSpec, survey: Survey) -> SampleFit:
    """The best of `n_init` fits of a sample, by the bound per row."""
    seed = int(job.rng.integers(2**62))  # all see the same rows
    best: SampleFit | None = None
    for rng in job.rng.spawn(spec.n_init):
        fitted = _fit_sample(job, _SampleSearch(spec, survey, rng), seed)
        if best is None or fitted.bound_per_row > best.bound_per_row:
            best = fitted
    assert best is not None
    return best


def _fit_sample(job: Job, search: "_SampleSearch", seed: int) -> SampleFit:
    """The best features of rows in memory; of more rows where there is doubt."""
    few = more = draw_sample(job, _FIRST_ROWS, seed).for_starts
    if search.spec.weights:
        return search.weighted(few)
    fitted = search.if_clear(few)
    if fitted is None and job.source.n_rows > _FIRST_ROWS:
        more = draw_sample(job, _MORE_ROWS, seed).for_starts
        fitted = search.if_clear(more)
    if fitted is not None:
        return fitted
    fitted = search.grow(few, search.best_of_starts(few))
    if more is not few:
        fitted = search.grow(more, more.converge(search.model, fitted.params))
    return search.shrink(more, fitted)


class _SampleSearch:
    """One search on rows in memory: starts, births and drops."""

    def __init__(self, spec: IBPSpec, survey: Survey, rng: np.random.Generator) -> None:
        self.spec, self.rng = spec, rng
        self.model, self.scales = spec.model(survey), spec.scales(survey)

    def if_clear(self, sample: Sample) -> SampleFit | None:
        """The fit from projections of the rows; None if they leave doubt.

        None also where `init` names another start.
        """
        if self.spec.init != "auto":
            return None
        most = self.spec.limit(sample)
        spectrum = Spectrum.of(sample.complete, most)
        Z, clear = projections(spectrum, most, self.spec.nonnegative, self.rng)
        if clear < CLEAR_SHARE:
            return None
        params = sample.begin(self.model, Z, self.scales)
        start = sample.converge(self.model, params)
        if Z.shape[1] == start.params.K:
            return start
        grown = self.grow(sample, start)
        return grown if grown.params.K == start.params.K else None

    def best_of_starts(self, sample: Sample) -> SampleFit:
        """The best fit from the starts of `init`; "auto": all but random ones."""
        spec, rng = self.spec, self.rng
        most = spec.limit(sample)
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
        fits = [
            sample.converge(self.model, sample.begin(self.model, Z, self.scales))
            for Z in starts
        ]
        return max(fits, key=lambda fitted: fitted.bound)

    def grow(self, sample: Sample, fitted: SampleFit) -> SampleFit:
        """Let features be born from residuals as long as the bound rises."""
        most = self.spec.limit(sample)
        failures = 0
        while failures < _PATIENCE:
            n_births = min(_BIRTHS, most - fitted.params.K)
            new = sample.births(
                self.model, fitted, n_births, self.spec.nonnegative, self.rng
            )
            if not len(new):
                break
            trial = sample.converge(self.model, with_births(fitted.params, new))
            if trial.bound > fitted.bound + sample.step:
                fitted = trial
            else:
                failures += 1
        return fitted

    def shrink(self, sample: Sample, fitted: SampleFit) -> SampleFit:
        """Drop features one by one as long as the converged bound is higher."""
        while fitted.params.K > 1:
            trial = sample.converge(self.model, sample.without_one(fitted))
            if not trial.bound > fitted.bound:
                break
            fitted = trial
        return fitted

    def weighted(self, sample: Sample) -> SampleFit:
        """Weighted features, from as many as the rows have directions beyond noise.

        A quarter of them is dropped at a time, the weakest, as long as the converged
        bound rises; then half as many, down to one.
        """
        most = self.spec.limit(sample)
        K = min(most, Spectrum.of(sample.complete, most).rank + 1)
        starts = sample.weigh_in(self.model, self.scales, K, self.rng)
        fits = [self._fewer(sample, sample.converge(self.model, one)) for one in starts]
        return max(fits, key=lambda fitted: fitted.bound)

    def _fewer(self, sample: Sample, fitted: SampleFit) -> SampleFit:
        """Drop the weakest features, many at a time and then fewer."""
        n = fitted.params.K // 4 + 1
        while 0 < n < fitted.params.K:
            trial = sample.converge(self.model, sample.without_weakest(fitted, n))
            if trial.bound > fitted.bound:
                fitted = trial
                n = min(n, fitted.params.K // 4 + 1)
            else:
                n //= 2
        return fitted
