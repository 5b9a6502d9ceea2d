"""From a table to features: search on rows in memory, then passes over all rows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.job import Job
from kplus.core.runs import answers, run_job
from kplus.core.types import Array, FitResult, Move, PassInfo
from kplus.engine.blas import SINGLE_THREAD
from kplus.features import local_search, number
from kplus.features.model import EXACT_FEATURES, FeatureModel, Features, FeatureSums
from kplus.features.moves import OpenFeatures, RemoveFeature, TidyFeatures
from kplus.features.rows import Rows, RowSample, Solution, draw_rows
from kplus.linear.bits import Allocation
from kplus.linear.sums import solve

__all__ = ["FeatureFit", "FeatureSpec", "allocate", "fit", "run_passes"]

_SAMPLE_ROWS = 5_000
_ENDLESS = 2**62
_STEP = np.dtype(
    [("n_components", np.int64), ("error", np.float64), ("objective", np.float64)]
)
_FILLINGS = 3
_MAX_PASSES = 100


@dataclass(frozen=True)
class FeatureSpec:
    """What the parameters of an estimator ask of a search.

    Attributes
    ----------
    penalty : float or None
        λ²; None: choose it.
    n_components : int or None
        Exactly so many; None: the penalty decides.
    max_components : int or None
        Never more.
    stepwise : bool
        Look for the number by K-features with K = 1, 2, ... until Eq. 6 rises.
    collapsed : bool
        End with a collapsed local search over all rows, in memory.
    init : {"auto", "++", "split", "ica", "random"}
    assignment : {"auto", "flips", "exact"}
    effort : float
        How long to search; 0: passes from the seed only, as in the paper.
    n_init : int
        Number of starts; the best is kept.
    """

    penalty: float | None
    n_components: int | None
    max_components: int | None
    stepwise: bool
    collapsed: bool
    init: str
    assignment: str
    effort: float
    n_init: int

    @property
    def most(self) -> int:
        """The number of features allowed."""
        limits = [n for n in (self.n_components, self.max_components) if n is not None]
        if self.assignment == "exact":
            limits.append(EXACT_FEATURES)
        return min(limits, default=10**6)


@dataclass(frozen=True)
class FeatureFit:
    """Features, the sums over all rows, and the history of the fit."""

    components: Array
    sums: FeatureSums
    penalty: float
    history: Array
    converged: bool
    path: NDArray[Any] | None


def fit(job: Job, spec: FeatureSpec, start: Array | None = None) -> FeatureFit:
    """Find features: from a search on a sample, or from those of an earlier fit."""
    with SINGLE_THREAD:
        sample = draw_rows(job, _SAMPLE_ROWS)
        share, penalty = sample.share, spec.penalty or 0.0
        path: list[Solution] | None = None
        known = None
        if spec.penalty is None and spec.n_components is None:
            choice = number.choose_penalty(sample.rows, spec.most, spec.effort, job.rng)
            penalty, path = choice.penalty / share, choice.path
            known = min(path, key=lambda solution: solution.cost(choice.penalty))
            if not choice.clear:
                spec = replace(spec, max_components=1)
        if start is None:
            best = _best_start(job, spec, sample, penalty * share, known)
            start, path = best.A, best.path or path
        if spec.collapsed:
            sample = draw_rows(job, job.source.n_rows)
            solution = _collapsed(sample.rows, start / sample.scale)
            start = start if solution is None else sample.features(solution)
        fitted = run_passes(job, spec, start, penalty)
    steps = None if path is None else _as_steps(path, penalty, share)
    return replace(fitted, path=steps)


def _as_steps(path: list[Solution], penalty: float, share: float) -> NDArray[Any]:
    steps = [
        (
            solution.K,
            solution.error / share,
            solution.error / share + penalty * solution.K,
        )
        for solution in path
    ]
    return np.array(steps, dtype=_STEP)


# ----------------------------------------------------- the search on a sample


@dataclass(frozen=True)
class _Start:
    """Features to start from, what they cost on the sample, and a stepwise path."""

    A: Array
    cost: float
    path: list[Solution] | None = None


def _best_start(
    job: Job,
    spec: FeatureSpec,
    sample: RowSample,
    penalty: float,
    known: Solution | None,
) -> _Start:
    """The best of `n_init` starts, the first among equals; side by side in threads.

    `known` is the best solution of the choice of the penalty: the first start of a
    full search begins there.
    """

    def one(rng: np.random.Generator, known: Solution | None = None) -> _Start:
        if known is None or spec.init != "auto" or spec.effort == 0.0:
            return _one_start(spec, sample, penalty, rng)
        solution = number.improved(
            sample.rows, known, penalty, spec.most, spec.effort, rng
        )
        return _as_start(spec, sample, solution, penalty, rng)

    first, *rngs = job.rng.spawn(spec.n_init)
    starts = [one(first, known)]
    if job.n_threads == 1:
        starts += [one(rng) for rng in rngs]
    else:
        with ThreadPoolExecutor(job.n_threads) as pool:
            starts += pool.map(one, rngs)
    return min(starts, key=lambda start: start.cost)


def _one_start(
    spec: FeatureSpec, sample: RowSample, penalty: float, rng: np.random.Generator
) -> _Start:
    rows, K = sample.rows, spec.n_components
    if spec.effort == 0.0:
        A, cost = _plain_passes(rows, _seed(spec, rows, penalty, rng), penalty)
        solution = _collapsed(rows, A) if spec.collapsed else None
        if solution is None:
            return _Start(sample.scale * A, cost)
        return _Start(sample.features(solution), solution.cost(penalty))
    if spec.init == "auto" and K is None and spec.stepwise:
        path = number.steps_to(rows, penalty, spec.most, spec.effort, rng)
        solution = min(path, key=lambda f: f.cost(penalty))
        return replace(_as_start(spec, sample, solution, penalty, rng), path=path)
    if spec.init != "auto":
        solution = _search_from_seed(spec, rows, penalty, rng)
    elif K is not None:
        solution = number.by_number(rows, K, spec.effort, rng)
    else:
        solution = number.by_penalty(rows, penalty, spec.most, spec.effort, rng)
    return _as_start(spec, sample, solution, penalty, rng)


def _as_start(
    spec: FeatureSpec,
    sample: RowSample,
    solution: Solution,
    penalty: float,
    rng: np.random.Generator,
) -> _Start:
    """Features of a solution.

    Gaps first take the values that features give them, and the features follow.
    """
    for _ in range(0 if sample.gaps is None else _FILLINGS):
        sample = sample.refilled(solution)
        solution = sample.rows.polish(solution.Z.copy(), solution.base)
        if spec.n_components is None:
            solution = number.adjust_number(
                sample.rows, solution, penalty, spec.most, rng
            )
    return _Start(sample.features(solution), solution.cost(penalty))


def _collapsed(rows: Rows, A: Array) -> Solution | None:
    """The collapsed local optimum next to features A, if these are independent."""
    Z, _ = local_search.allocate(rows, A)
    everywhere = np.flatnonzero(Z.sum(axis=0, dtype=np.int64) == len(Z))
    if len(everywhere):  # a feature of every row goes in front: it is a base
        order = np.append(everywhere[:1], np.delete(np.arange(len(A)), everywhere[0]))
        Z = np.ascontiguousarray(Z[:, order])
    solution = rows.polish(Z, len(everywhere) > 0)
    return solution if np.isfinite(solution.error) else None


def _search_from_seed(
    spec: FeatureSpec, rows: Rows, penalty: float, rng: np.random.Generator
) -> Solution:
    """A local search from the seed of `spec.init`."""
    solution = _collapsed(rows, _seed(spec, rows, penalty, rng)) or rows.only_base()
    solution = local_search.iterate(
        rows, solution, local_search.rounds(rows, solution.K, spec.effort), rng
    )
    if spec.n_components is None:
        solution = number.adjust_number(rows, solution, penalty, spec.most, rng)
    return solution


def _seed(
    spec: FeatureSpec, rows: Rows, penalty: float, rng: np.random.Generator
) -> Array:
    """Features of the seed, before any search."""
    K = spec.n_components
    if spec.init in ("auto", "++"):
        return local_search.plus_plus(
            rows, spec.most, penalty if K is None else 0.0, rng
        )
    if K is None:
        K = max(number.likely_number(rows, penalty, spec.most), 1)
    columns: dict[str, Callable[[], Solution | None]] = {
        "split": lambda: local_search.split_columns(rows, K, True, rng),
        "ica": lambda: local_search.pursued_columns(rows, K, rng),
        "random": lambda: local_search.random_columns(rows, K, rng),
    }
    solution = columns[spec.init]()
    if solution is None:
        return local_search.plus_plus(rows, K, 0.0, rng)
    return rows.features(solution)


def _plain_passes(rows: Rows, A: Array, penalty: float) -> tuple[Array, float]:
    """Algorithm 4: z given A by flips, then A given Z, until nothing changes."""
    Z = np.zeros((len(rows.X), len(A)), np.uint8)
    cost = np.inf
    for _ in range(_MAX_PASSES):
        error, changed, S, T = local_search.visit(rows, A, Z, exact=False)
        cost = error + penalty * len(A)
        if not changed:
            break
        A = A + solve(S, T)
    return A, cost


# ------------------------------------------------------ passes over all rows


def run_passes(
    job: Job,
    spec: FeatureSpec,
    A: Array,
    penalty: float,
    earlier: FeatureSums | None = None,
) -> FeatureFit:
    """Pass over all rows until nothing changes, from features A.

    By flips first where there are many rows, then with the best z. With a number of
    features given the penalty opens and closes none; it is charged at the end.
    `earlier` are the sums of the batches before this one: their rows keep their z, and
    the features are those of all rows.
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
    """Features whose rows are searched to the very end with "exact"."""
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
