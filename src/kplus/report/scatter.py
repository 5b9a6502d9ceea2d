"""The map of a report: rows in two coordinates that tell the groups apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.plots.coordinates import Points, discriminant
from kplus.report.rows import Drawn

__all__ = ["Ellipse", "Scatter", "scatter"]

_MOST_DOTS = 4_000
_FEWEST = 20  # rows of each group, if it has so many
_RIM = 0.06  # of the frame, around what nearly all rows fill
_EDGE = 0.005  # rows on each side that may lie beyond
_FEW = 5  # rows that an ellipse needs
_REACH = 2.0  # standard deviations


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
    axis_names: tuple[str, ...]  # one or two
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
    axis_names = tuple(place.names)
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
    if hasattr(model, "predict_components") and len(axis_names) == 2:
        ellipses = tuple(_ellipses(placed, own, components))
    return Scatter(
        dots=dots,
        labels=own,
        centers={int(k): _center(dots[own == k]) for k in np.unique(own[own >= 0])},
        ellipses=ellipses,
        axis_names=axis_names,
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


def _center(dots: Array) -> tuple[float, float]:
    middle = np.median(dots, axis=0)
    return float(middle[0]), float(middle[1])


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
