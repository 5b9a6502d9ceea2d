"""Starts of a fit: a seed, a search from there, and the best of several."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from kplus.core.job import Job
from kplus.core.types import Array
from kplus.features import number, seeds
from kplus.features.local import iterate, rounds
from kplus.features.rows import Found, Rows
from kplus.features.spec import FeatureSpec
from kplus.features.table import Drawn
from kplus.linear.sums import solve

__all__ = ["Start", "best_start", "collapsed"]

_FILLINGS = 3
_MAX_PASSES = 100


@dataclass(frozen=True)
class Start:
    """Features to start from, what they cost on the sample, and a stepwise path."""

    A: Array
    cost: float
    path: list[Found] | None = None


def best_start(
    job: Job, spec: FeatureSpec, drawn: Drawn, penalty: float, known: Found | None
) -> Start:
    """The best of `n_init` starts, the first among equals; side by side in threads.

    `known` is what the choice of the penalty came upon: the first start of a full
    search goes on from there.
    """

    def one(rng: np.random.Generator, known: Found | None = None) -> Start:
        if known is None or spec.init != "auto" or spec.effort == 0.0:
            return _start(spec, drawn, penalty, rng)
        found = number.improved(drawn.rows, known, penalty, spec.most, spec.effort, rng)
        return _as_start(spec, drawn, found, penalty, rng)

    first, *rngs = job.rng.spawn(spec.n_init)
    starts = [one(first, known)]
    if job.n_threads == 1:
        starts += [one(rng) for rng in rngs]
    else:
        with ThreadPoolExecutor(job.n_threads) as pool:
            starts += pool.map(one, rngs)
    return min(starts, key=lambda start: start.cost)


def _start(
    spec: FeatureSpec, drawn: Drawn, penalty: float, rng: np.random.Generator
) -> Start:
    rows, K = drawn.rows, spec.n_components
    if spec.effort == 0.0:
        A, cost = _passes(rows, _seed(spec, rows, penalty, rng), penalty)
        found = collapsed(rows, A) if spec.collapsed else None
        if found is None:
            return Start(drawn.scale * A, cost)
        return Start(drawn.features(found), found.cost(penalty))
    if spec.init == "auto" and K is None and spec.stepwise:
        path = number.steps_to(rows, penalty, spec.most, spec.effort, rng)
        found = min(path, key=lambda f: f.cost(penalty))
        return replace(_as_start(spec, drawn, found, penalty, rng), path=path)
    if spec.init != "auto":
        found = _searched(spec, rows, penalty, rng)
    elif K is not None:
        found = number.by_number(rows, K, spec.effort, rng)
    else:
        found = number.by_penalty(rows, penalty, spec.most, spec.effort, rng)
    return _as_start(spec, drawn, found, penalty, rng)


def _as_start(
    spec: FeatureSpec,
    drawn: Drawn,
    found: Found,
    penalty: float,
    rng: np.random.Generator,
) -> Start:
    """Features of what was found.

    Gaps first take the values that features give them, and the features follow.
    """
    for _ in range(0 if drawn.gaps is None else _FILLINGS):
        drawn = drawn.refilled(found)
        found = drawn.rows.polish(found.Z.copy(), found.base)
        if spec.n_components is None:
            found = number.converged(drawn.rows, found, penalty, spec.most, rng)
    return Start(drawn.features(found), found.cost(penalty))


def collapsed(rows: Rows, A: Array) -> Found | None:
    """The collapsed local optimum next to features A, if these are independent."""
    found = _allocation(rows, A)
    found = rows.polish(found.Z, found.base)
    return found if np.isfinite(found.error) else None


def _searched(
    spec: FeatureSpec, rows: Rows, penalty: float, rng: np.random.Generator
) -> Found:
    """A local search from the seed that was asked for."""
    found = collapsed(rows, _seed(spec, rows, penalty, rng)) or rows.only_base()
    found = iterate(rows, found, rounds(rows, found.K, spec.effort), rng)
    if spec.n_components is None:
        found = number.converged(rows, found, penalty, spec.most, rng)
    return found


def _seed(
    spec: FeatureSpec, rows: Rows, penalty: float, rng: np.random.Generator
) -> Array:
    """Features of the seed, before any search."""
    K = spec.n_components
    if spec.init in ("auto", "++"):
        return seeds.plus_plus(rows, spec.most, penalty if K is None else 0.0, rng)
    if K is None:
        K = max(number.likely_number(rows, penalty, spec.most), 1)
    columns: dict[str, Callable[[], Found | None]] = {
        "split": lambda: seeds.split_columns(rows, K, True, rng),
        "ica": lambda: seeds.pursued_columns(rows, K, rng),
        "random": lambda: seeds.random_columns(rows, K, rng),
    }
    found = columns[spec.init]()
    if found is None:
        return seeds.plus_plus(rows, K, 0.0, rng)
    return rows.features(found)


def _allocation(rows: Rows, A: Array) -> Found:
    """Z of rows under features A; a feature of every row in front is a base."""
    Z, error = seeds.allocate(rows, A)
    counts = Z.sum(axis=0, dtype=np.int64)
    whole = np.flatnonzero(counts == len(Z))
    if not len(whole):
        return Found(Z, False, error)
    order = np.append(whole[:1], np.delete(np.arange(len(A)), whole[0]))
    return Found(np.ascontiguousarray(Z[:, order]), True, error)


def _passes(rows: Rows, A: Array, penalty: float) -> tuple[Array, float]:
    """Algorithm 4: z given A by flips, then A given Z, until nothing changes."""
    Z = np.zeros((len(rows.X), len(A)), np.uint8)
    cost = np.inf
    for _ in range(_MAX_PASSES):
        error, changed, S, T = seeds.visit(rows, A, Z, exact=False)
        cost = error + penalty * len(A)
        if not changed:
            break
        A = A + solve(S, T)
    return A, cost
