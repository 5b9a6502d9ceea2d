"""Priors that are learned: what the families share to raise the same bound by them.

With q(φ) at its best, the bound of Eq. 8 depends on the prior through the evidence of
each component. A family brings its prior closer to what maximises the sum of these and
the log density of the hyperprior: by steps of expectation maximisation where they have
a closed form (expectations under q(φ) are those that a pass uses), else by ascent in
one dimension. No step lowers the sum. Hyperpriors are proper, so that nothing runs
away, and worth about one vague component.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from scipy.special import digamma

from kplus.core.types import Array

F = TypeVar("F", bound=Any)

__all__ = [
    "DIRICHLET_STEPS",
    "EMPTY",
    "best_step",
    "dirichlet_hyperprior",
    "dirichlet_step",
    "higher",
    "learn_two",
    "log_normal",
    "log_strength",
    "resolutions",
    "rises",
    "search_scale",
    "strength_slope",
    "worth",
]

EMPTY = 1e-9  # a component of lower count says nothing of the prior
_GRID = np.geomspace(1.0, 1e5, 12)  # where a scale is looked for, from its least value
_FINE = np.linspace(-0.75, 0.75, 7)  # steps between two points of the grid
DIRICHLET_STEPS = 4
_STEP = 0.3  # in the logarithms of two parameters of a column ...
_MOST_STEP = 1.5  # ... and the most
_STRIDE = 0.5  # in the logarithm of a shared strength: a first step uphill ...
_FARTHEST = 4.0  # ... and the most
_DIRECTIONS = np.array([[1, 1], [0, 1]], float)
_ROUNDING = 1e-10
_SAME = 1e-7  # values closer than that share of their range are the same


def worth(family: Any, N: Array, S: Array) -> float:
    """What the bound gains by components with these sums, under a family's prior."""
    return float(family.evidence(N, S).sum() + family.log_hyperprior)


def rises(after: float, before: float) -> bool:
    """Whether that is more than before, beyond rounding."""
    return after > before + _ROUNDING * abs(before)


def higher(new: F, old: F, N: Array, S: Array) -> F:
    """The new prior if the bound rises by it; else the old one."""
    return new if rises(worth(new, N, S), worth(old, N, S)) else old


def resolutions(sample: Array) -> Array:
    """Variance of rounding: δ²/12, with δ the least step between values of a column.

    Values of a column that was rounded stand for an interval. That of continuous
    columns comes out far below their variance. 0 for a constant column.
    """
    out = np.zeros(sample.shape[1])
    for d, x in enumerate(sample.T.astype(np.float64)):
        values = np.unique(x[np.isfinite(x)])
        gaps = np.diff(values)
        if len(gaps):
            gaps = gaps[gaps > _SAME * (values[-1] - values[0])]
        if len(gaps):
            out[d] = gaps.min() ** 2 / 12.0
    return out


def search_scale(value: Callable[[Array], Array], least: float, now: Array) -> Array:
    """The best of many values above `least`, for each column: (C,) or scalar arrays.

    ``value(x)`` takes x of shape (G, C) and gives what each is worth, in this shape.
    The present value stays where nothing found is better.
    """
    now = np.asarray(now, dtype=np.float64)
    shape = (-1, *(1,) * now.ndim)
    best, top = now, value(now[None])[0]
    grid = least - 1.0 + _GRID.reshape(shape) * np.ones(now.shape)
    step = float(np.log(_GRID[1]))
    for _ in range(3):
        worth = value(grid)
        place = np.expand_dims(np.argmax(worth, axis=0), 0)
        found = np.take_along_axis(grid, place, axis=0)[0]
        reached = np.take_along_axis(worth, place, axis=0)[0]
        better = reached > top
        best, top = np.where(better, found, best), np.where(better, reached, top)
        beyond = np.maximum(best - least + 1.0, 1.0)
        grid = beyond * np.exp(step * _FINE).reshape(shape)
        grid = least - 1.0 + np.clip(grid, _GRID[0], _GRID[-1])
        step *= _FINE[1] - _FINE[0]
    return best


def learn_two(family: F, N: Array, S: Array, first: str, second: str) -> F:
    """Raise the bound by two parameters of each column, by steps of their logarithms.

    Both together, which keeps their ratio, and one alone. The family has the evidence
    of each column, and `guess`, the medians of the hyperpriors.
    """
    if family.guess is None:
        return family
    S = S[N > EMPTY]
    best = np.stack([getattr(family, first), getattr(family, second)])

    def changed(values: Array) -> F:
        return replace(family, **{first: values[0], second: values[1]})

    def worth(values: Array) -> Array:
        evidence: Array = changed(values).column_evidence(S).sum(axis=0)
        evidence -= 0.5 * np.square(np.log(values / family.guess)).sum(axis=0)
        return evidence

    top = worth(best)
    for way in _DIRECTIONS:
        best, top = _best_of_columns(worth, best, top, way[:, None])
    return higher(changed(best), family, N[N > EMPTY], S)


def _best_of_columns(
    worth: Callable[[Array], Array], best: Array, top: Array, way: Array
) -> tuple[Array, Array]:
    """The best of two steps of each column and of the top of the parabola by them."""
    now, before = best, top
    steps = [np.full(len(top), step) for step in (_STEP, -_STEP)]
    up, down = (worth(now * np.exp(step * way)) for step in steps)
    bend = np.maximum(2.0 * before - up - down, 1e-300)
    vertex = np.clip(0.5 * _STEP * (up - down) / bend, -_MOST_STEP, _MOST_STEP)
    tried = [(steps[0], up), (steps[1], down)]
    tried.append((vertex, worth(now * np.exp(vertex * way))))
    for step, reached in tried:
        better = reached > top
        best = np.where(better, now * np.exp(step * way), best)
        top = np.where(better, reached, top)
    return best, top


def log_normal(values: Array, medians: Array | None) -> float:
    """log density of positive numbers whose logarithms have variance 1."""
    if medians is None:
        return 0.0
    return -0.5 * float(np.square(np.log(values / medians)).sum())


def log_strength(ratio: float) -> float:
    """log density of the logarithm of a strength that columns share, but for constants.

    One over its root has half a t distribution with 2 degrees of freedom. That is
    nearly flat where it is small, so that nothing keeps components from being alike.
    `ratio` is that of the strength to the one guessed.
    """
    return -0.5 * float(np.log(ratio)) - 1.5 * float(np.log1p(0.5 / ratio))


def strength_slope(ratio: float) -> float:
    """What `log_strength` changes by with the logarithm of the ratio."""
    return 1.5 / (1.0 + 2.0 * ratio) - 0.5


def best_step(value: Callable[[float], float], slope: float) -> float:
    """A step that raises a function, whose slope at 0 is known; 0 if none is found.

    One step uphill, and from there to the top of the parabola through what is known.
    """
    first = float(np.copysign(_STRIDE, slope))
    before, reached = value(0.0), value(first)
    bend = (slope * first - (reached - before)) / first**2
    top = slope / (2.0 * bend) if bend > 0.0 else _FARTHEST * first
    top = float(np.clip(top, -_FARTHEST, _FARTHEST))
    further = value(top)
    step, best = (top, further) if further > reached else (first, reached)
    return step if rises(best, before) else 0.0


def dirichlet_hyperprior(pseudo_counts: Array, mode: Array | None) -> float:
    """log of Gamma densities with these modes and rate 1, without their constants."""
    if mode is None:
        return 0.0
    return float(np.sum(mode * np.log(pseudo_counts / mode) - pseudo_counts))


def dirichlet_step(
    counts: Array, totals: Array, prior: Array, prior_total: Array, mode: Array
) -> Array:
    """Pseudo-counts of a Dirichlet, a step closer to the best (Minka's fixed point).

    A bound from below of the evidence is linear in the pseudo-counts and in their
    logarithms. Their hyperprior is `dirichlet_hyperprior`.

    Parameters
    ----------
    counts : array of shape (K, C)
        Of each category in each component.
    totals, prior_total : arrays that broadcast to (K, C) and (C,)
        Sums over the categories of a column.
    prior, mode : arrays of shape (C,)
    """
    up = prior * (digamma(counts + prior) - digamma(prior)).sum(axis=0)
    down = (digamma(totals + prior_total) - digamma(prior_total)).sum(axis=0)
    out: Array = (up + mode) / (down + 1.0)
    return out
