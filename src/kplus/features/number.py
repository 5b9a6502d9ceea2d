"""How many features: a number given, a penalty given, or neither."""

from dataclasses import dataclass

import numpy as np

from kplus.features.local_search import (
    add_split,
    by_splits,
    iterate,
    pursued,
    rounds,
    without_base,
)
from kplus.features.rows import Rows, Solution
from kplus.linear.pursuit import noise_rank

__all__ = [
    "Choice",
    "adjust_number",
    "by_number",
    "by_penalty",
    "choose_penalty",
    "improved",
    "likely_number",
    "steps_to",
]

_FAR = 1.5  # times the least possible error: splits may have missed features
_NEAR = 1.2  # times the least possible error is what features often reach
_BELOW = 0.1  # of the noise floor: no range of penalties reaches below that
_JUST = 0.9999  # of what one feature explains: a penalty that keeps the feature
_RIVAL = 1.5  # times the best error: the other kind of start may still win
_FEW = 4  # with fewer features, solutions without a base are tried as well
_MANY = 8  # from so many features on, splits alone find poor starts
_CLOSE = 0.25  # of the penalty: a smaller rise may be due to too short a search
_CERTAIN = 2.0  # penalties: a feature that explains more stays, without a refit
_TRIES = 3  # splits without a gain before no more features are added


@dataclass(frozen=True)
class Choice:
    """A penalty chosen from a path of solutions with K = 0, 1, ... features.

    `clear` is False where no feature exceeds the noise; one feature is enough then.
    """

    penalty: float
    path: list[Solution]
    clear: bool


def by_number(rows: Rows, K: int, effort: float, rng: np.random.Generator) -> Solution:
    """The best solution with K features, from all seeds."""
    starts = _splits(rows, K, rng) if K < _MANY else []
    far = _FAR * rows.least_error(K)
    if not starts or min(starts, key=_error).error > far:
        start = pursued(rows, K, rng)
        if start is not None:
            solution, certain = start
            starts += [drop_least(rows, solution), without_base(rows, solution)]
            if certain and K >= _MANY:
                return min(starts, key=_error)
    if K >= _MANY:
        starts += _splits(rows, K, rng)
    patience = rounds(rows, K, effort)
    limit = _RIVAL * min(starts, key=_error).error
    ends = [
        iterate(rows, min(family, key=_error), patience // 4, rng)
        for base in (True, False)
        if (family := [f for f in starts if f.base is base and f.error <= limit])
    ]
    return iterate(rows, min(ends, key=_error), patience, rng)


def _error(solution: Solution) -> float:
    return solution.error


def _splits(rows: Rows, K: int, rng: np.random.Generator) -> list[Solution]:
    """Starts by splits with and without a base feature, each at its local optimum."""
    more = by_splits(rows, K + 1, True, rng)
    starts = [by_splits(rows, K, True, rng), by_splits(rows, K, False, rng)]
    if np.isfinite(more.error):
        starts.append(without_base(rows, more))
    return starts


# ------------------------------------------------------------------ by penalty


def by_penalty(
    rows: Rows, penalty: float, most: int, effort: float, rng: np.random.Generator
) -> Solution:
    """Add and drop features as long as that lowers the objective (Eq. 6)."""
    if most == 0:
        return rows.empty()

    def cost(solution: Solution) -> float:
        return solution.cost(penalty)

    guess = likely_number(rows, penalty, most)
    starts: list[Solution] = []
    if guess < _MANY:
        starts = stepwise(rows, penalty, most, effort, rng)
    if not starts or _promising(rows, guess, penalty, min(starts, key=cost)):
        start = pursued(rows, guess, rng)
        if start is not None:
            solution, certain = start
            starts += [solution, without_base(rows, solution)]
            effort = 0.0 if certain else effort
    solution = min(starts or stepwise(rows, penalty, most, effort, rng), key=cost)
    return improved(rows, solution, penalty, most, effort, rng)


def _promising(rows: Rows, K: int, penalty: float, solution: Solution) -> bool:
    """Whether K features could be much better than a solution."""
    possible = _NEAR * rows.least_error(K) + penalty * K
    return K > 1 and possible < solution.cost(penalty)


def improved(
    rows: Rows,
    solution: Solution,
    penalty: float,
    most: int,
    effort: float,
    rng: np.random.Generator,
) -> Solution:
    """Search around a solution, with and without a base."""
    solution = adjust_number(rows, solution, penalty, most, rng)
    solution = iterate(rows, solution, rounds(rows, solution.K, effort) // 2, rng)
    solution = adjust_number(rows, solution, penalty, most, rng)
    others = [rows.empty()]
    if solution.K <= 2:
        others.append(by_splits(rows, 1, False, rng))
    if solution.base and solution.K > 1:
        bare = without_base(rows, solution)
        if bare.cost(penalty) < solution.cost(penalty) + penalty:
            others.append(adjust_number(rows, bare, penalty, most, rng))
    if most == solution.K:
        # The cap rules out a base and K features, from which K would be reached.
        others.append(_shrunk(rows, by_number(rows, most, effort, rng), penalty, most))
    return _cheapest(penalty, most, solution, *others)


def _cheapest(penalty: float, most: int, *solutions: Solution) -> Solution:
    allowed = [f for f in solutions if most >= f.K]
    return min(allowed, key=lambda f: f.cost(penalty))


def likely_number(rows: Rows, penalty: float, most: int) -> int:
    """How many directions of the centred rows explain more than the penalty."""
    return min(int(np.sum(rows.strengths > penalty)), most)


def adjust_number(
    rows: Rows, solution: Solution, penalty: float, most: int, rng: np.random.Generator
) -> Solution:
    """Drop features that explain less than λ², then add some that explain more."""
    return _grown(rows, _shrunk(rows, solution, penalty, most), penalty, most, rng)


def _shrunk(rows: Rows, solution: Solution, penalty: float, most: int) -> Solution:
    """Drop the feature that explains least, as long as that is less than λ²."""
    while solution.K > 0:
        if not np.isfinite(solution.error):
            return rows.empty()
        if most >= solution.K and rows.losses(solution).min() > _CERTAIN * penalty:
            return solution
        smaller = drop_least(rows, solution)
        if most >= solution.K and smaller.cost(penalty) >= solution.cost(penalty):
            return solution
        solution = smaller
    return solution


def _grown(
    rows: Rows, solution: Solution, penalty: float, most: int, rng: np.random.Generator
) -> Solution:
    """Add features as long as one lowers the objective."""
    tries = 0
    while tries < _TRIES and most > solution.K and solution.error > penalty:
        more = add_split(rows, solution, rng, penalty)
        tries += 1
        if tries == _TRIES and most > more.K:
            # Two features may lower the objective where one alone does not.
            needed = max(2.0 * penalty - (solution.error - more.error), 0.0)
            two = add_split(rows, more, rng, needed)
            more = min(more, two, key=lambda f: f.cost(penalty))
        if more.cost(penalty) < solution.cost(penalty):
            solution, tries = more, 0
    return solution


def drop_least(rows: Rows, solution: Solution) -> Solution:
    """Drop the feature whose removal raises the error least; refit the others."""
    losses = rows.losses(solution)
    k = int(np.argmin(losses))
    base = solution.base and k > 0
    if solution.K == 1:
        return rows.empty()
    Z = np.ascontiguousarray(np.delete(solution.Z, k, axis=1))
    return rows.polish(Z, base)


# -------------------------------------------------------------------- stepwise


def stepwise(
    rows: Rows, penalty: float, most: int, effort: float, rng: np.random.Generator
) -> list[Solution]:
    """The best of K = 0, 1, 2, ... features until the objective of Eq. 6 rises.

    The last one is past the optimum, unless `most` features were reached.
    """
    path = [rows.empty()]
    based = rows.only_base()
    while len(path) <= most and path[-1].error > 0.0:
        K = len(path)
        first, based = _next_step(rows, path[-1], based, rng)
        solution = iterate(rows, first, rounds(rows, K, effort) // 8, rng)
        if solution.base and solution is not first:
            path[-1] = min(path[-1], without_base(rows, solution), key=_error)
        path.append(solution)
        rise = path[-1].cost(penalty) - path[-2].cost(penalty)
        if 0.0 < rise < _CLOSE * penalty:
            path[-1] = iterate(rows, solution, rounds(rows, K, effort), rng)
            rise = path[-1].cost(penalty) - path[-2].cost(penalty)
        if rise > 0.0:
            break
    return path


def steps_to(
    rows: Rows, penalty: float, most: int, effort: float, rng: np.random.Generator
) -> list[Solution]:
    """As `stepwise`, or down from the optimum where `stepwise` may miss it."""
    guess = likely_number(rows, penalty, most)
    if guess < _MANY:
        path = stepwise(rows, penalty, most, effort, rng)
        solution = min(path, key=lambda f: f.cost(penalty))
        if not _promising(rows, guess, penalty, solution):
            return path
    solution = by_penalty(rows, penalty, most, effort, rng)
    path = _backwards(rows, solution)
    return (
        [*path, add_split(rows, solution, rng, penalty)] if most > solution.K else path
    )


def _next_step(
    rows: Rows, last: Solution, based: Solution, rng: np.random.Generator
) -> tuple[Solution, Solution]:
    """One feature more than `last`, and one more than `based`, which has a base."""
    more = add_split(rows, based, rng)
    choices = [based]
    if not last.base:
        choices.append(add_split(rows, last, rng))
    if np.isfinite(more.error):
        choices.append(without_base(rows, more))
    if last.K < _FEW:
        choices.append(by_splits(rows, last.K + 1, False, rng))
    return min(choices, key=_error), more


# ------------------------------------------------------------------- automatic


def choose_penalty(
    rows: Rows, most: int, effort: float, rng: np.random.Generator
) -> Choice:
    """The penalty in the middle of the widest range that agrees on a number.

    Numbers are considered up to where a feature explains no more than the strongest
    direction of pure noise would. The one is taken for which λ² may vary by the
    largest factor.
    """
    floor = noise_floor(rows)
    path = steps_to(rows, floor, most, effort, rng)
    penalty, clear = _middle(path, floor)
    return Choice(penalty, path, clear)


def _backwards(rows: Rows, solution: Solution) -> list[Solution]:
    """Drop the feature that explains least until none is left; fewest first.

    The other columns of Z stay as they are, so errors are upper bounds.
    """
    path = [solution]
    while path[-1].K > 1:
        last = path[-1]
        k = int(np.argmin(rows.losses(last)))
        base = last.base and k > 0
        Z = np.ascontiguousarray(np.delete(last.Z, k, axis=1))
        path.append(Solution(Z, base, rows.error(Z, base)))
    return [rows.empty(), *path[::-1]] if solution.K else path


def noise_floor(rows: Rows) -> float:
    """What the strongest direction of noise alone would explain."""
    values = rows.strengths
    N, D = rows.X.shape
    _, variance = noise_rank(values, N, D)
    strongest = variance * float(np.sqrt(N) + np.sqrt(D)) ** 2
    return max(strongest, 1e-9 * rows.total)


def _middle(path: list[Solution], floor: float) -> tuple[float, bool]:
    """The geometric middle of the widest range of penalties with one answer.

    No range may reach far below the floor. A single feature, mostly the mean of all
    rows, is the answer only where nothing else lies above it; False where not even that
    does.
    """
    errors = np.array([solution.error for solution in path])
    numbers = np.array([solution.K for solution in path])
    best, width, single = floor, 0.0, (floor, False)
    for i in range(1, len(path)):
        below = np.max(
            (errors[i] - errors[i + 1 :]) / (numbers[i + 1 :] - numbers[i]), initial=0.0
        )
        above = float(np.min((errors[:i] - errors[i]) / (numbers[i] - numbers[:i])))
        low = max(float(below), _BELOW * floor if i + 1 < len(path) else floor)
        if i == 1:
            single = (_between(low, above), True)
            if above <= low:
                single = (_JUST * above, False)
        elif above > low and np.log(above / low) > width:
            best, width = _between(low, above), float(np.log(above / low))
    return (best, True) if width > 0.0 else single


def _between(low: float, high: float) -> float:
    """The geometric mean; no product that could leave the range of numbers."""
    return float(np.sqrt(low) * np.sqrt(high))
