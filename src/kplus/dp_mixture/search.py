"""How `DPMixture` is fitted: starts, batches, moves, streams."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp

from kplus.core.job import Job, Sample, draw
from kplus.core.reading import n_blocks, read_blocks
from kplus.core.runs import labels_of, negated, run_job
from kplus.core.types import Array, Blocks, IntArray, Move, PassInfo
from kplus.data.sparse_rows import blocks_of
from kplus.dp_mixture.birth import BirthSettings, BornComponents
from kplus.dp_mixture.families.family import Family
from kplus.dp_mixture.fresh import seeded
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.moves import (
    DeleteComponent,
    MergeComponents,
    MoveRecord,
    MoveRecords,
    OrderComponents,
)
from kplus.dp_mixture.noise import Noise
from kplus.dp_mixture.noise_births import BornFromNoise
from kplus.dp_mixture.params import Components, MixtureStats
from kplus.dp_mixture.refit import RefitComponents
from kplus.dp_mixture.sticks import mean_weights
from kplus.engine.blas import SINGLE_THREAD
from kplus.tree.cluster_tree import ClusterTree

__all__ = [
    "MixtureFit",
    "PassParams",
    "Spec",
    "fit",
    "fit_sample",
    "log_densities",
    "log_responsibilities",
    "prior_sample",
    "resolve_noise",
    "stream",
]

_PRIOR_ROWS = 20_000  # rows that a prior is resolved on
_START_ROWS = 10_000  # rows that a start of several components is made of
_LEVELS = (5_000, 20_000)  # rows of the samples that a fit with births begins on
_SAMPLE_BATCHES = 4
_SAMPLE_TOL = 1e-3  # tolerance of the fits to samples, in nats per row
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Spec:
    """What a fit is to do.

    Attributes
    ----------
    model : DPMixtureModel
    n_components : int
        Components at the start.
    kinds : tuple of str
        Moves: "birth", "merge", "delete".
    births : BirthSettings
    n_batches : int
        Parameters are updated after each batch; 1 is full-data inference.
    """

    model: DPMixtureModel
    n_components: int = 1
    kinds: tuple[str, ...] = ("birth", "merge", "delete")
    births: BirthSettings = field(default_factory=BirthSettings)
    n_batches: int = 20


@dataclass(frozen=True)
class MixtureFit:
    """A fit: components by falling size, sums of all rows, labels, bounds by pass."""

    family: Family
    params: Components
    total: MixtureStats
    labels: IntArray
    history: Array
    converged: bool
    records: list[MoveRecord]
    tree: ClusterTree | None = None
    noise: Noise | None = None
    choice: str | None = None  # why the family, where it was left open


@dataclass(frozen=True)
class PassParams:
    """The parameters after a pass, for callbacks."""

    family: Family
    components: Components
    noise: Noise | None = None

    @property
    def K(self) -> int:
        return self.components.K


def prior_sample(job: Job) -> Sample:
    """The rows that a prior is resolved on."""
    return draw(job.source, job.weights, _PRIOR_ROWS, job.rng)


def resolve_noise(job: Job, share: bool | float, family: Family) -> Noise | None:
    """Noise over what a sample of the rows spans; None if there is to be none."""
    if share is False:
        return None
    sample = prior_sample(job)
    return Noise.resolve(share, family, sample.rows, sample.weights)


def fit(job: Job, spec: Spec, start: Components | None = None) -> MixtureFit:
    """Pass over the rows until no move raises the bound, from a start or from seeds.

    With births, small samples first: most components are born where a pass costs
    little, and the passes over all rows begin near their end.
    """
    mass = _mass(job)
    if start is None and "birth" in spec.kinds:
        for size in _LEVELS:
            if job.source.n_rows >= 4 * size:
                sample = draw(job.source, job.weights, size, job.rng)
                start = fit_sample(job, spec, sample, start).params
    if start is None:
        start = _seeded_start(job, spec)
    finish = _finishing_move(job, spec)
    return _run(job, spec, spec.model.rescaled(start, mass), finish)


def fit_sample(
    job: Job, spec: Spec, sample: Sample, start: Components | None = None
) -> MixtureFit:
    """A rough fit to a sample: few batches, a loose tolerance, no refits."""
    blocks, tol = blocks_of(sample.rows, _BLOCK_ROWS), max(job.tol, _SAMPLE_TOL)
    part = job.on_sample(blocks, sample.weights, n_threads=1, tol=tol)
    if start is None:
        start = _seeded_start(part, spec)
    start = spec.model.rescaled(start, _mass(part))
    return _run(part, replace(spec, n_batches=_SAMPLE_BATCHES), start, None)


def stream(
    job: Job, spec: Spec, params: Components, earlier: MixtureStats
) -> MixtureFit:
    """Add rows to those that `earlier` sums: these keep their responsibilities."""
    start = replace(params, mass=earlier.mass)
    return _run(job, spec, start, _finishing_move(job, spec), earlier)


def _finishing_move(job: Job, spec: Spec) -> OrderComponents:
    weights = job.weights
    lightest = 1.0 if weights is None else float(weights[weights > 0.0].min())
    return OrderComponents(bool(spec.kinds), lightest)


def _mass(job: Job) -> float:
    return float(job.source.n_rows if job.weights is None else job.weights.sum())


def _seeded_start(job: Job, spec: Spec) -> Components:
    """Components from rows drawn far apart."""
    sample = draw(job.source, job.weights, _START_ROWS, job.rng)
    stats = seeded(spec.model, sample.rows, sample.weight(), spec.n_components, job.rng)
    return spec.model.posterior(stats.N, stats.S, stats.mass)


def _run(
    job: Job,
    spec: Spec,
    start: Components,
    finish: Move | None,
    earlier: MixtureStats | None = None,
) -> MixtureFit:
    start = spec.model.ready(start, everyone=True)
    records = MoveRecords()
    moves: list[Move] = []
    if "merge" in spec.kinds:
        moves.append(MergeComponents(records))
    # Few rows are split by refits, which are exact.
    refits = finish is not None and bool(spec.kinds)
    few = refits and earlier is None and RefitComponents.replace_births(job.source)
    if "birth" in spec.kinds and not few:
        born = BornComponents(job.source, job.weights, job.rng, records, spec.births)
        moves.append(born)
        planned = born.planned(start)
        start = start if planned is None else planned.params
    if "delete" in spec.kinds:
        moves.append(DeleteComponent(records))
    if "birth" in spec.kinds and spec.model.noise is not None:
        moves.append(
            BornFromNoise(job.source, job.weights, job.rng, records, spec.births)
        )
    if refits:
        refit = RefitComponents(
            job.source, job.weights, job.rng, records, spec.births, spec.kinds
        )
        moves.append(refit)

    def reported(info: PassInfo) -> PassInfo:
        params = PassParams(info.params.family, info.params, spec.model.noise)
        return replace(negated(info), params=params)

    result, labels = run_job(
        job, spec.model, start, moves,
        groups=_batches(n_blocks(job.source), spec.n_batches),
        step=job.tol * _mass(job), base=earlier, finish=finish, others=[records],
        reported=reported, rows=labels_of,
    )  # fmt: skip
    return MixtureFit(
        result.params.family,
        result.params, result.total, labels, -np.array(result.history),
        result.converged, records.entries, noise=spec.model.noise,
    )  # fmt: skip


def _batches(n_blocks: int, n_batches: int) -> list[list[int]]:
    """Consecutive blocks in groups of about equal size, and an update at the end."""
    cuts = np.linspace(0, n_blocks, min(n_batches, n_blocks) + 1).astype(int)
    return [*(list(range(a, b)) for a, b in pairwise(cuts)), []]


def log_responsibilities(
    source: Blocks, params: Components, noise: Noise | None = None
) -> Iterator[Array]:
    """log r of every row, block by block, as in the last pass of a fit.

    Noise takes its share, but has no column.
    """
    family = params.family
    for X in _read(source, family):
        scores = family.scores(params.expected, X) + params.log_weights
        if noise is not None:
            chance, rest = noise.log_shares(params.noise, params.mass)
            one = noise.log_density(X) - family.log_base(X) + (chance - rest)
            scores = np.column_stack([scores, one])
        scores -= scores.max(axis=1, keepdims=True)  # far rows have huge scores
        logs = scores - logsumexp(scores, axis=1, keepdims=True)
        yield logs[:, : params.K]


def log_densities(
    source: Blocks,
    family: Family,
    N: Array,
    S: Array,
    concentration: float,
    noise: tuple[Noise, float] | None = None,
) -> Array:
    """Log posterior predictive density of every row.

    The weights are those expected, brought to sum 1: components not seen yet have a
    share in a new row, but say nothing about where it lies. `noise` comes with its
    share.
    """
    weights = mean_weights(N, concentration)
    log_weights = np.log(weights / weights.sum())
    parts = []
    for X in _read(source, family):
        logs = logsumexp(family.log_predictive(N, S, X) + log_weights, axis=1)
        if noise is not None:
            density, share = noise[0].log_density(X), noise[1]
            logs = np.logaddexp(logs + np.log1p(-share), density + np.log(share))
        parts.append(logs)
    return np.concatenate(parts)


def _read(source: Blocks, family: Family) -> Iterator[Array]:
    SINGLE_THREAD.take()
    try:
        for _, X in read_blocks(source):
            family.check(X)
            yield X
    finally:
        SINGLE_THREAD.give_back()
