"""The map of a report: rows in two coordinates that tell the groups apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.plots.coordinates import Points, discriminant
from kplus.report.markup import shortened
from kplus.report.rows import Drawn

__all__ = ["MANY_NAMES", "MAP", "NAME_RADIUS", "Ellipse", "Scatter", "scatter"]

MAP = (720, 480)  # units of the picture
MANY_NAMES = 24  # more of them are written smaller
NAME_RADIUS = (12, 9)

_MOST_DOTS = 4_000
_FEWEST = 20  # rows of each group, if it has so many
_RIM = 0.06  # of the frame, around what nearly all rows fill
_EDGE = 0.005  # rows on each side that may lie beyond
_FEW = 15  # rows that an ellipse needs
_REACH = 2.0  # standard deviations
_PUSHES = 30


@dataclass(frozen=True)
class Ellipse:
    """Where most rows of a component lie: centre, half axes, angle in degrees."""

    group: int
    center: tuple[float, float]
    radii: tuple[float, float]
    angle: float


@dataclass(frozen=True)
class Scatter:
    """Dots in a frame from 0 to 1, up and to the right, and where names go."""

    dots: Array  # (n, 2)
    labels: IntArray
    centers: dict[int, tuple[float, float]]
    ellipses: tuple[Ellipse, ...]
    axes: tuple[tuple[str, ...], ...]  # one or two: columns that there are more of
    n_rows: int
    n_beyond: int  # dots that are drawn at the rim


def scatter(
    model: Any, drawn: Drawn, labels: IntArray, names: list[str], K: int
) -> Scatter:
    """Place some of the rows drawn."""
    at = _some(labels, drawn.fair, K)
    rows = Points.of(drawn.some(at), np.arange(len(at)))
    if len(rows.names) == len(names):
        rows = Points(rows.values, names)
    own = labels[at]
    place = discriminant(rows, own)
    points = place(rows.values)
    axes = tuple(_said(columns, rows.names, names) for columns in place.leading)
    if points.shape[1] == 1:  # one column: the rest is there to see rows side by side
        up = np.random.default_rng(0).uniform(-1.0, 1.0, len(points))
        points = np.column_stack([points[:, 0], up])
    low, span = _frame(points)
    placed = (points - low) / span
    dots = np.clip(placed, 0.0, 1.0)
    components = own
    if hasattr(model, "predict_components"):
        components = np.asarray(model.predict_components(drawn.some(at)))
    ellipses: tuple[Ellipse, ...] = ()
    if hasattr(model, "predict_components") and len(axes) == 2:
        inside = np.all(placed == dots, axis=1)
        ellipses = tuple(_ellipses(dots[inside], own[inside], components[inside]))
    return Scatter(
        dots=dots,
        labels=own,
        centers=_apart(
            {int(k): _middle(dots[own == k]) for k in np.unique(own) if k >= 0}
        ),
        ellipses=ellipses,
        axes=axes,
        n_rows=drawn.n_rows,
        n_beyond=int(np.any(placed != dots, axis=1).sum()),
    )


def _some(labels: IntArray, fair: Any, K: int) -> IntArray:
    """Rows to draw: a fair sample, and more of the groups that would hardly show."""
    rng = np.random.default_rng(0)
    pool = np.flatnonzero(fair)
    taken = pool
    if len(pool) > _MOST_DOTS:
        taken = rng.choice(pool, _MOST_DOTS, replace=False)
    there = np.bincount(labels[taken] + 1, minlength=K + 1)
    chosen = [taken]
    for k in np.flatnonzero(there < _FEWEST) - 1:
        own = np.setdiff1d(np.flatnonzero(labels == k), taken)
        chosen.append(own[: max(0, _FEWEST - int(there[k + 1]))])
    return np.sort(np.concatenate(chosen))


def _frame(points: Array) -> tuple[Array, Array]:
    low, high = np.quantile(points, [_EDGE, 1.0 - _EDGE], axis=0)
    whole = np.stack([points.min(axis=0), points.max(axis=0)])
    span = np.maximum(high - low, 1e-12)
    # What reaches a little farther has its place, too.
    low, high = (
        np.maximum(whole[0], low - 0.5 * span),
        np.minimum(whole[1], high + 0.5 * span),
    )
    span = np.where(high > low, high - low, 1.0)
    return low - _RIM * span - 0.5 * (high <= low), span * (1.0 + 2.0 * _RIM)


def _said(
    columns: Sequence[tuple[int, bool]], of: Sequence[str], names: Sequence[str]
) -> tuple[str, ...]:
    """What there is more of further along an axis; a category is there, or is not."""
    numbers = set(names)
    return tuple(
        f"{'lower' if less else 'higher'} {shortened(of[j])}"
        if of[j] in numbers
        else f"{'not ' * less}{shortened(of[j])}"
        for j, less in columns
    )


def _middle(dots: Array) -> Array:
    """The dot nearest to the median: of a ring one of its dots, not the hole in it."""
    far = np.square(dots - np.median(dots, axis=0)).sum(axis=1)
    middle: Array = dots[int(np.argmin(far))]
    return middle


def _apart(centers: dict[int, Array]) -> dict[int, tuple[float, float]]:
    """Names that would cover each other are pushed apart, a little."""
    radius = NAME_RADIUS[len(centers) > MANY_NAMES]
    least, low, high = 1.9 * radius, radius, np.subtract(MAP, radius)
    at = np.clip(np.array(list(centers.values())).reshape(-1, 2) * MAP, low, high)
    for _ in range(_PUSHES):
        off = at[:, None] - at
        far = np.sqrt(np.square(off).sum(axis=2))
        if not np.any(np.triu(far < least, 1)):
            break
        i, j = np.nonzero((far == 0.0) & ~np.eye(len(at), dtype=bool))
        off[i, j, 0] = np.sign(i - j)  # at the same place: side by side
        length = np.maximum(np.sqrt(np.square(off).sum(axis=2)), 1e-9)
        push = np.clip(least - far, 0.0, None) / length
        at = at + 0.5 * (off * push[..., None]).sum(axis=1)
        at = np.clip(at, low, high)
    return {
        k: (float(x), float(y)) for k, (x, y) in zip(centers, at / MAP, strict=True)
    }


def _ellipses(points: Array, labels: IntArray, components: IntArray) -> list[Ellipse]:
    out = []
    for c in np.unique(components[components >= 0]):
        own = components == c
        if own.sum() < _FEW:
            continue
        values, axes = np.linalg.eigh(np.cov(points[own].T))
        radii = _REACH * np.sqrt(np.maximum(values[::-1], 1e-8))
        center = points[own].mean(axis=0)
        angle = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
        group = int(np.bincount(labels[own] + 1).argmax()) - 1
        out.append(
            Ellipse(
                group,
                (float(center[0]), float(center[1])),
                (float(radii[0]), float(radii[1])),
                angle,
            )
        )
    return out
