"""The rows that a report shows: all of a table that is small, else some of them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.base.answers import parts_of
from kplus.base.portrait import Portrait, portray
from kplus.core.types import Array, IntArray
from kplus.data.blocks import ArrayBlocks
from kplus.data.categories import Coding
from kplus.report.markup import shortened

__all__ = ["Drawn", "RowNames", "Units", "column_names", "draw", "groups_of"]

_MOST_ROWS = 100_000
_MOST_BYTES = 64 * 2**20
_FEWEST_OF_GROUP = 200  # so that small groups of a large table are seen, too

RowNames = Callable[[IntArray], Sequence[str]]


@dataclass(frozen=True)
class Units:
    """The units of the file, where the model has columns on another scale.

    ``kplus fit --scale`` notes them as ``scaling_``.
    """

    mean: Array
    scale: Array

    @classmethod
    def of(cls, model: Any) -> "Units":
        scaling = getattr(model, "scaling_", None)
        if scaling is None:
            D = model.n_features_in_
            return cls(np.zeros(D), np.ones(D))
        return cls(np.asarray(scaling["mean"]), np.asarray(scaling["scale"]))

    def values(self, X: Array) -> Array:
        return X * self.scale + self.mean

    def portrait(self, of: Portrait) -> Portrait:
        at = of.numbers
        changed = {
            "means": of.means * self.scale[at] + self.mean[at],
            "deviations": of.deviations * self.scale[at],
        }
        return Portrait(**vars(of) | changed)


def column_names(model: Any) -> list[str]:
    """Names to print, no two the same: also where the table has none, or long ones."""
    scaling = getattr(model, "scaling_", None)
    names = getattr(model, "feature_names_in_", None)
    if scaling is not None and scaling.get("columns") is not None:
        names = scaling["columns"]
    if names is None:
        return [f"column {j}" for j in range(model.n_features_in_)]
    short = [shortened(name) for name in names]
    times = Counter(short)
    return [
        f"{name} (column {j})" if times[name] > 1 or not name else name
        for j, name in enumerate(short)
    ]


@dataclass(frozen=True)
class Drawn:
    """Some rows of a table, or all of them.

    Attributes
    ----------
    n_rows : int
        Rows of the table.
    numbers : (n,)
        Which of them these are, ascending.
    values : (n, D)
        In the units of the model; categories as codes.
    fair : (n,) bool
        Those drawn at random; the others are of groups that have few of these.
    coding : Coding or None
    names : callable or None
        What the rows are called.
    """

    n_rows: int
    numbers: IntArray
    values: Array
    fair: Array
    coding: Coding | None
    names: RowNames | None = None

    @property
    def is_all(self) -> bool:
        return len(self.numbers) == self.n_rows

    def some(self, at: Any) -> Any:
        """Some of these rows, as estimators take them."""
        blocks: Any = ArrayBlocks(np.ascontiguousarray(self.values[at]))
        blocks.coding = self.coding
        if self.coding is not None and not self.coding.by_position:
            blocks.feature_names = list(self.coding.names)
        return blocks

    def called(self, at: Sequence[int]) -> list[str]:
        """Names of some of these rows."""
        numbers = self.numbers[np.asarray(at, int)]
        if self.names is None:
            return [f"row {number}" for number in numbers]
        return [str(name) for name in self.names(numbers)]

    def portrait(self, model: Any, labels: IntArray | None) -> Portrait:
        """Of the groups by all rows drawn, of the table by those drawn fairly."""
        of_groups = portray(model, self.some(slice(None)), labels)
        if self.fair.all():
            return of_groups
        known = None if labels is None else labels[self.fair]
        whole = portray(model, self.some(self.fair), known)
        changed: dict[str, Any] = {
            name: np.concatenate(
                [getattr(of_groups, name)[:-1], getattr(whole, name)[-1:]]
            )
            for name in ("seen", "means", "deviations")
        }
        changed["shares"] = tuple(
            np.concatenate([one[:-1], other[-1:]])
            for one, other in zip(of_groups.shares, whole.shares, strict=True)
        )
        return Portrait(**vars(of_groups) | changed)


def draw(
    model: Any, X: Any, labels: IntArray | None, names: RowNames | None = None
) -> Drawn:
    """Draw rows; with `labels`, the clusters of all of them, some of each."""
    table = model._open(X, reset=False)
    source: Any = table.source
    n = source.n_rows
    most = int(max(1, min(_MOST_ROWS, _MOST_BYTES // (8 * source.n_features))))
    rng = np.random.default_rng(0)
    numbers = np.arange(n)
    if n > most:
        numbers = np.sort(rng.choice(n, most, replace=False))
    fair = np.ones(len(numbers), bool)
    if n > most and labels is not None:
        more = _of_small_groups(labels, numbers, most, rng)
        numbers = np.concatenate([numbers, more])
        fair = np.concatenate([fair, np.zeros(len(more), bool)])
        order = np.argsort(numbers, kind="stable")
        numbers, fair = numbers[order], fair[order]
    values = np.asarray(source.take(numbers), np.float64)
    if table.offset is not None:  # back in the units of the table
        values = values + table.offset
    return Drawn(n, numbers, values, fair, table.coding, names)


def _of_small_groups(
    labels: IntArray, drawn: IntArray, most: int, rng: np.random.Generator
) -> IntArray:
    """More rows of groups of which few were drawn."""
    K = int(labels.max(initial=-1)) + 1
    there = np.bincount(labels[drawn] + 1, minlength=K + 1)
    wanted = min(_FEWEST_OF_GROUP, max(1, most // max(K, 1)))
    more: list[IntArray] = []
    for k in np.flatnonzero(there < wanted) - 1:
        own = np.setdiff1d(np.flatnonzero(labels == k), drawn, assume_unique=True)
        size = min(len(own), wanted - int(there[k + 1]))
        more.append(rng.choice(own, size, replace=False))
    return np.concatenate(more) if more else np.empty(0, np.int64)


def groups_of(model: Any, X: Any) -> IntArray:
    """The cluster of every row, part by part."""
    _, parts = parts_of(model, X)
    return np.concatenate([np.asarray(model.predict(part)) for part in parts])
