"""How many features: a number given, a penalty given, or neither."""

from dataclasses import dataclass

import numpy as np

from kplus.search.features.local import iterate, rounds
from kplus.search.features.pursuit import strengths
from kplus.search.features.rows import Found, Rows
from kplus.search.features.seeds import (
    add_split,
    by_splits,
    pursued,
    without_base,
)

__all__ = [
    "Choice",
    "by_number",
    "by_penalty",
    "choose_penalty",
    "improved",
    "likely_number",
    "settled",
    "stepwise",
]

_MANY = 8  # from so many features on, splits alone find poor starts
_CLOSE = 0.25  # a rise of so much of the penalty may be for want of searching
_CERTAIN = 2.0  # a feature worth so many penalties stays, however others adapt
_MARGIN = 1.1  # nothing is left to explain where even this much more would not pay
_TRIES = 3  # splits tried before the number of features is taken as enough


@dataclass(frozen=True)
class Choice:
    """A penalty found on the rows, and the errors it was chosen from, K = 0, 1, ..."""

    penalty: float
    path: list[Found]


def by_number(rows: Rows, K: int, effort: float, rng: np.random.Generator) -> Found:
    """The best allocation of K features that all seeds and the search lead to."""
    starts: list[Found] = []
    if K >= _MANY and (seen := pursued(rows, K, rng)) is not None:
        found, certain = seen
        starts = [drop_least(rows, found), without_base(rows, found)]
        if certain:
            return min(starts, key=_error)
    starts += _splits(rows, K, rng)
    patience = rounds(rows, K, effort)
    ends = [
        iterate(rows, min(family, key=_error), patience // 4, rng)
        for base in (True, False)
        if (family := [f for f in starts if f.base is base])
    ]
    return iterate(rows, min(ends, key=_error), patience, rng)


def _error(found: Found) -> float:
    return found.error


def _splits(rows: Rows, K: int, rng: np.random.Generator) -> list[Found]:
    """Starts by splits with and without a base feature, each at its local optimum."""
    more = by_splits(rows, K + 1, True, rng)
    starts = [by_splits(rows, K, True, rng), by_splits(rows, K, False, rng)]
    if np.isfinite(more.error):
        starts.append(without_base(rows, more))
    return starts


# ------------------------------------------------------------------ by penalty


def by_penalty(
    rows: Rows, penalty: float, most: int, effort: float, rng: np.random.Generator
) -> Found:
    """Add features while they pay, drop those that do not (Eq. 6)."""
    if most == 0:
        return rows.empty()
    guess = likely_number(rows, penalty, most)
    seen = pursued(rows, guess, rng) if guess >= _MANY else None
    if seen is None:
        found = _grown(rows, rows.only_base(), penalty, most, rng)
    else:
        found, certain = seen
        found = _cheapest(penalty, most + 1, found, without_base(rows, found))
        effort = 0.0 if certain else effort
    return improved(rows, found, penalty, most, effort, rng)


def improved(
    rows: Rows,
    found: Found,
    penalty: float,
    most: int,
    effort: float,
    rng: np.random.Generator,
) -> Found:
    """Search around features found by any means, with and without a base."""
    found = settled(rows, found, penalty, most, rng)
    found = iterate(rows, found, rounds(rows, found.K, effort) // 2, rng)
    found = settled(rows, found, penalty, most, rng)
    others = [rows.empty()]
    if found.K <= 2:
        others.append(by_splits(rows, 1, False, rng))
    if found.base and found.K > 1:
        bare = without_base(rows, found)
        if bare.cost(penalty) < found.cost(penalty) + penalty:
            others.append(settled(rows, bare, penalty, most, rng))
    return _cheapest(penalty, most, found, *others)


def _cheapest(penalty: float, most: int, *found: Found) -> Found:
    allowed = [f for f in found if most >= f.K]
    return min(allowed, key=lambda f: f.cost(penalty))


def likely_number(rows: Rows, penalty: float, most: int) -> int:
    """Directions of the centred rows that are worth the penalty."""
    return min(int(np.sum(strengths(rows.centred) > penalty)), most)


def settled(
    rows: Rows, found: Found, penalty: float, most: int, rng: np.random.Generator
) -> Found:
    """Drop features that do not pay, then add some that do."""
    return _grown(rows, _shrunk(rows, found, penalty, most), penalty, most, rng)


def _shrunk(rows: Rows, found: Found, penalty: float, most: int) -> Found:
    """Drop the feature worth least, as long as it is worth less than λ²."""
    while found.K > 0:
        if not np.isfinite(found.error):
            return rows.empty()
        if most >= found.K and rows.losses(found).min() > _CERTAIN * penalty:
            return found
        smaller = drop_least(rows, found)
        if most >= found.K and smaller.cost(penalty) >= found.cost(penalty):
            return found
        found = smaller
    return found


def _grown(
    rows: Rows, found: Found, penalty: float, most: int, rng: np.random.Generator
) -> Found:
    """Add features as long as one pays."""
    tries = 0
    while tries < _TRIES and most > found.K and found.error > penalty:
        more = add_split(rows, found, rng, penalty)
        tries += 1
        if more.cost(penalty) < found.cost(penalty):
            found, tries = more, 0
    return found


def drop_least(rows: Rows, found: Found) -> Found:
    """Without the feature that is worth least; the others adapt."""
    losses = rows.losses(found)
    k = int(np.argmin(losses))
    base = found.base and k > 0
    if found.K == 1:
        return rows.empty()
    Z = np.ascontiguousarray(np.delete(found.Z, k, axis=1))
    return rows.polish(Z, base)


# -------------------------------------------------------------------- stepwise


def stepwise(
    rows: Rows, penalty: float, most: int, effort: float, rng: np.random.Generator
) -> list[Found]:
    """The best of K = 0, 1, 2, ... features until the objective of Eq. 6 rises.

    The last one is past the optimum, unless `most` features were reached. Where many
    features are likely the steps are walked down from the optimum.
    """
    if likely_number(rows, penalty, most) >= _MANY:
        found = by_penalty(rows, penalty, most, effort, rng)
        path = _backwards(rows, found)
        return [*path, add_split(rows, found, rng, penalty)] if most > found.K else path
    path = [rows.empty()]
    based = rows.only_base()
    while len(path) <= most and path[-1].error > 0.0:
        K = len(path)
        found, based = _next_step(rows, K, based, rng)
        found = iterate(rows, found, rounds(rows, K, effort) // 8, rng)
        path.append(found)
        rise = path[-1].cost(penalty) - path[-2].cost(penalty)
        if 0.0 < rise < _CLOSE * penalty:
            path[-1] = iterate(rows, found, rounds(rows, K, effort), rng)
            rise = path[-1].cost(penalty) - path[-2].cost(penalty)
        if rise > 0.0:
            break
    return path


def _next_step(
    rows: Rows, K: int, based: Found, rng: np.random.Generator
) -> tuple[Found, Found]:
    """The best with K features, and K + 1 with a base, from K with a base."""
    more = add_split(rows, based, rng)
    choices = [based]
    if np.isfinite(more.error):
        choices.append(without_base(rows, more))
    if K <= 2:
        choices.append(by_splits(rows, K, False, rng))
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
    path = stepwise(rows, floor, most, effort, rng)
    return Choice(_middle(path, floor), path)


def _backwards(rows: Rows, found: Found) -> list[Found]:
    """Drop the feature worth least until none is left; fewest first.

    The rows' other features stay as they are, so errors are upper bounds.
    """
    path = [found]
    while path[-1].K > 1:
        last = path[-1]
        k = int(np.argmin(rows.losses(last)))
        base = last.base and k > 0
        Z = np.ascontiguousarray(np.delete(last.Z, k, axis=1))
        path.append(Found(Z, base, rows.error(Z, base)))
    return [rows.empty(), *path[::-1]] if found.K else path


def noise_floor(rows: Rows) -> float:
    """What the strongest direction of noise alone would explain.

    A matrix of N × D noise values of variance σ² has no squared singular value beyond
    σ²(√N + √D)². Directions of the centred rows are set aside as long as they exceed
    what the rest, taken as noise, could show.
    """
    values = strengths(rows.centred)
    N, D = len(rows.X), rows.X.shape[1]
    most = min(N - 1, D)
    left = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    variance = 0.0
    for k in range(most):
        n, d = N - 1 - k, D - k
        variance = left[k] / (n * d)
        if values[k] <= variance * (np.sqrt(n) + np.sqrt(d)) ** 2:
            break
    floor = variance * (np.sqrt(N) + np.sqrt(D)) ** 2
    return max(float(floor), 1e-9 * rows.total)


def _middle(path: list[Found], floor: float) -> float:
    """The geometric middle of the widest range of penalties with one answer.

    No range may reach below the floor; if none lies above it, one feature is better
    than none.
    """
    errors = np.array([found.error for found in path])
    numbers = np.array([found.K for found in path])
    best, width = floor, 0.0
    for i in range(1, len(path)):
        below = np.max(
            (errors[i] - errors[i + 1 :]) / (numbers[i + 1 :] - numbers[i]), initial=0.0
        )
        above = np.min((errors[:i] - errors[i]) / (numbers[i] - numbers[:i]))
        low = max(float(below), floor)
        if i == 1 and above <= low:
            best = 0.99 * float(above)
        if above > low and np.log(above / low) > width:
            width = float(np.log(above / low))
            best = _between(low, float(above))
    return best


def _between(low: float, high: float) -> float:
    """The geometric mean; no product that could leave the range of numbers."""
    return float(np.sqrt(low) * np.sqrt(high))
