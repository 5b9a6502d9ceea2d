"""From a table to features: search on rows in memory, then passes over all rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.job import Job
from kplus.core.runs import answers, run_job
from kplus.core.types import Array, FitResult, Move, PassInfo
from kplus.engine.blas import SINGLE_THREAD
from kplus.features import number
from kplus.features.model import FeatureModel
from kplus.features.moves import OpenFeatures, RemoveFeature, TidyFeatures
from kplus.features.params import EXACT_FEATURES, Features
from kplus.features.rows import Found
from kplus.features.spec import FeatureSpec
from kplus.features.starts import best_start, collapsed
from kplus.features.stats import FeatureSums
from kplus.features.table import draw_rows
from kplus.linear.bits import Allocation

__all__ = ["FeatureFit", "FeatureSpec", "allocate", "fit", "stream"]

_SAMPLE_ROWS = 5_000
_ENDLESS = 2**62
_STEP = np.dtype(
    [("n_components", np.int64), ("error", np.float64), ("objective", np.float64)]
)


@dataclass(frozen=True)
class FeatureFit:
    """Features, the sums over all rows, and how they were found."""

    components: Array
    sums: FeatureSums
    penalty: float
    history: Array
    converged: bool
    path: NDArray[Any] | None


def fit(job: Job, spec: FeatureSpec, start: Array | None = None) -> FeatureFit:
    """Find features: from a search on a sample, or from those of an earlier fit."""
    with SINGLE_THREAD:
        begin = _start(job, spec, start)
        fitted = _over_all_rows(job, begin.spec, begin.A, begin.penalty, None)
    return replace(fitted, path=begin.path)


@dataclass(frozen=True)
class _Begin:
    """Features to begin with, the penalty, and the path by which it was chosen."""

    spec: FeatureSpec
    A: Array
    penalty: float
    path: NDArray[Any] | None


def _start(job: Job, spec: FeatureSpec, start: Array | None) -> _Begin:
    drawn = draw_rows(job, _SAMPLE_ROWS)
    share = drawn.share
    path: list[Found] | None = None
    penalty = spec.penalty or 0.0
    known = None
    if spec.penalty is None and spec.n_components is None:
        choice = number.choose_penalty(drawn.rows, spec.most, spec.effort, job.rng)
        penalty, path = choice.penalty / share, choice.path
        known = min(path, key=lambda found: found.cost(choice.penalty))
        if not choice.clear:
            spec = replace(spec, max_components=1)
    if start is None:
        best = best_start(job, spec, drawn, penalty * share, known)
        start, path = best.A, best.path or path
    if spec.collapsed:
        everything = draw_rows(job, job.source.n_rows)
        found = collapsed(everything.rows, start / everything.scale)
        if found is not None:
            start = everything.features(found)
    steps = None if path is None else _as_steps(path, penalty, share)
    return _Begin(spec, start, penalty, steps)


def _as_steps(path: list[Found], penalty: float, share: float) -> NDArray[Any]:
    steps = [
        (found.K, found.error / share, found.error / share + penalty * found.K)
        for found in path
    ]
    return np.array(steps, dtype=_STEP)


def stream(job: Job, spec: FeatureSpec, earlier: FeatureSums) -> FeatureFit:
    """Add rows to a fit of which only the sums are known.

    Earlier rows keep their features; the features follow all rows.
    """
    return _over_all_rows(job, spec, earlier.A, spec.penalty or 0.0, earlier)


def _over_all_rows(
    job: Job,
    spec: FeatureSpec,
    A: Array,
    penalty: float,
    earlier: FeatureSums | None,
) -> FeatureFit:
    """Pass over all rows until nothing changes, from features A.

    By flips first where there are many rows, then with the best z. With a number of
    features given the penalty opens and closes none; it is charged at the end.
    """
    fixed = spec.n_components is not None
    moves: list[Move] = [TidyFeatures(), OpenFeatures(spec.most)]
    if not fixed:
        moves.insert(1, RemoveFeature())
    model = FeatureModel(0.0 if fixed else penalty, spec.most)
    first, *more = _stages(spec.assignment, len(A), job.source.n_rows)

    def charged(info: PassInfo) -> PassInfo:
        return replace(info, objective=info.objective + penalty * info.params.K)

    def then(result: FitResult) -> Features | None:
        again = result.params.A
        return _features(again, more[0], spec.assignment) if more else None

    result, _ = run_job(
        job, model, _features(A, first, spec.assignment), moves, base=earlier,
        reported=charged if fixed else None, then=then,
    )  # fmt: skip
    history = np.array(result.history)
    if fixed:
        history = history + penalty * result.params.K
    sums = _sorted(result.total.about(result.params.A))
    return FeatureFit(sums.A, sums, penalty, history, result.converged, None)


def _sorted(sums: FeatureSums) -> FeatureSums:
    """Number features by how many rows have them, most first."""
    old_to_new = np.argsort(np.argsort(-sums.counts, kind="stable"))
    return sums.regroup(old_to_new, sums.K)


def _features(A: Array, exact: bool, assignment: str) -> Features:
    """Features whose rows are searched to the very end if "exact" was asked for."""
    return Features(A, exact, _ENDLESS) if assignment == "exact" else Features(A, exact)


def _stages(assignment: str, K: int, n_rows: int) -> list[bool]:
    """Whether z is exact in each of the runs of a fit."""
    if assignment == "flips" or (assignment == "auto" and K > EXACT_FEATURES):
        return [False]
    if n_rows <= _SAMPLE_ROWS:
        return [True]
    return [False, True]


def allocate(
    job: Job, components: Array, assignment: str
) -> tuple[NDArray[np.uint8], float]:
    """Z of the rows under given features, and the weighted error."""
    exact = _stages(assignment, len(components), 0)[-1]
    params = _features(components, exact, assignment)
    sums, Z = answers(job, FeatureModel(), params, part=Allocation.unpack)
    return Z, sums.error
