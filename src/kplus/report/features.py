"""What a report of latent features says, as plain values."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.base.answers import parts_of
from kplus.base.description import say_number
from kplus.base.portrait import Portrait
from kplus.core.types import Array
from kplus.plots.features import in_deviations
from kplus.report.rows import Drawn, Units, column_names

__all__ = [
    "Added",
    "Combination",
    "Feature",
    "Features",
    "Filled",
    "Rebuilt",
    "bits",
    "counts_of",
    "gather",
]

_N_ADDED, _N_TYPICAL = 8, 3
_LEAST = 0.1  # standard deviations: less is not worth a line
_MOST_COMBINATIONS, _N_REBUILT, _MOST_COLUMNS = 20, 6, 60


@dataclass(frozen=True)
class Added:
    """What a feature adds to a column."""

    name: str
    words: str
    deviation: float  # in standard deviations of the column


@dataclass(frozen=True)
class Feature:
    """All that a card says."""

    number: int
    size: float
    share: float
    sureness: float | None
    is_base: bool
    added: tuple[Added, ...]
    n_more: int  # columns beside these
    values: Array  # in the units of the file
    typical: tuple[str, ...]


@dataclass(frozen=True)
class Combination:
    """Rows that have these features and no others."""

    features: tuple[int, ...]
    rows: int
    share: float


@dataclass(frozen=True)
class Filled:
    """A column with gaps, and what the features expect there."""

    name: str
    share: float
    filled: tuple[str, float | None]  # in words, and as a number
    seen: tuple[str, float | None]
    n: int  # gaps


@dataclass(frozen=True)
class Rebuilt:
    """A row, and what its features make of it, in the units of the file."""

    name: str
    features: tuple[int, ...]
    values: Array
    rebuilt: Array


@dataclass(frozen=True)
class Features:
    """All that a report says of the features of a model."""

    features: tuple[Feature, ...]
    columns: tuple[str, ...]
    n_rows: float
    explained: float | None  # share of the variance about the column means
    by_column: tuple[tuple[str, float], ...]
    combinations: tuple[Combination, ...]
    n_combinations: int
    filled: tuple[Filled, ...]
    rebuilt: tuple[Rebuilt, ...]
    idle: tuple[str, ...]
    has_offset: bool  # rows have more than their features: what was taken off

    @property
    def limit(self) -> float:
        """The largest value beside that of a base, for the colours of pictures."""
        return _largest([f.values for f in self.features if not f.is_base])

    @property
    def longest(self) -> float:
        """The largest number of standard deviations, for the bars."""
        added = [one.deviation for feature in self.features for one in feature.added]
        return _largest([np.array(added)])


def _largest(values: Sequence[Array]) -> float:
    return max((float(np.abs(v).max(initial=0.0)) for v in values), default=0.0) or 1.0


def bits(model: Any, X: Any) -> Array:
    """How much rows have of each feature, as an array."""
    Z = model.transform(X)
    return np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, np.float64)


def counts_of(model: Any, X: Any) -> tuple[Array, float]:
    """Rows that have each feature, and all rows, counted part by part."""
    counts, n = np.zeros(model._n_groups), 0.0
    for part in parts_of(model, X)[1]:
        Z = bits(model, part)
        counts += (_least(model) < Z).sum(axis=0)
        n += len(Z)
    return counts, n


def _least(model: Any) -> float:
    """A row has a feature of which it has more than that."""
    return 0.5 if getattr(model, "weights", None) is None else 0.0


def gather(
    model: Any, portrait: Portrait, drawn: Drawn | None = None, Z: Array | None = None
) -> Features:
    """Look at the features of a model, in some rows if there are any."""
    units, names = Units.of(model), column_names(model)
    told = units.portrait(portrait)
    mean, spread = told.means[-1], told.deviations[-1]
    table = None
    if drawn is not None and Z is not None:
        table = _Table(model, units, drawn, Z)
    base = None if table is None else table.base
    values = np.array(model.components_, np.float64) * units.scale
    taken = units.mean + units.scale * np.asarray(getattr(model, "offset_", 0.0))
    if base is not None:
        values[base] += taken
    deviations = in_deviations(values, base, mean, spread)
    features = tuple(
        _feature(k, portrait, values[k], deviations[k], spread, names, base, table)
        for k in range(portrait.K)
    )
    matters = (np.abs(deviations) >= _LEAST).any(axis=0)
    return Features(
        features=features,
        columns=tuple(names),
        n_rows=portrait.n_rows,
        explained=None if table is None else table.explained(),
        by_column=() if table is None else table.by_column(names),
        combinations=() if table is None else table.combinations(),
        n_combinations=0 if table is None else len(table.patterns),
        filled=() if table is None else table.filled(names, spread),
        rebuilt=() if table is None else table.examples(),
        idle=tuple(name for name, m in zip(names, matters, strict=True) if not m),
        has_offset=base is None and bool(np.any(taken)),
    )


def _feature(
    k: int,
    portrait: Portrait,
    values: Array,
    deviations: Array,
    spread: Array,
    names: Sequence[str],
    base: int | None,
    table: "_Table | None",
) -> Feature:
    order = np.argsort(-np.abs(deviations), kind="stable")
    telling = [int(j) for j in order if abs(deviations[j]) >= _LEAST]
    sign = "" if k == base else "+"
    sure = float(portrait.sureness[k])
    return Feature(
        number=k,
        size=float(portrait.sizes[k]),
        share=float(portrait.sizes[k] / portrait.n_rows),
        sureness=sure if math.isfinite(sure) else None,
        is_base=k == base,
        added=tuple(
            Added(
                names[j], say_number(values[j], spread[j], sign), float(deviations[j])
            )
            for j in telling[:_N_ADDED]
        ),
        n_more=max(0, len(telling) - _N_ADDED),
        values=values,
        typical=() if table is None else table.typical(k),
    )


class _Table:
    """The rows drawn, and what is made of them, in the units of the file."""

    def __init__(self, model: Any, units: Units, drawn: Drawn, Z: Array) -> None:
        self.drawn, self.Z, self.has = drawn, Z, _least(model) < Z
        self.values = units.values(drawn.values)
        self.rebuilt = units.values(np.asarray(model.inverse_transform(Z), np.float64))
        self.seen = ~np.isnan(self.values)
        self.left = np.where(self.seen, self.values - self.rebuilt, 0.0)
        whole = self.seen.any(axis=1)
        everywhere = self.has[whole].all(axis=0)
        self.base = int(everywhere.argmax()) if everywhere.any() else None
        self.patterns = Counter(map(bytes, np.packbits(self.has, axis=1)))

    def _squares(self) -> tuple[Array, Array]:
        """Of each column: what is left of the variance, and all of it."""
        n = np.maximum(self.seen.sum(axis=0), 1)
        mean = np.where(self.seen, self.values, 0.0).sum(axis=0) / n
        about = np.where(self.seen, self.values - mean, 0.0)
        return np.square(self.left).sum(axis=0), np.square(about).sum(axis=0)

    def explained(self) -> float | None:
        """Share of the variance, each column in the model's own units."""
        left, total = (part.sum() for part in self._squares())
        return None if total == 0.0 else float(1.0 - left / total)

    def by_column(self, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
        left, total = self._squares()
        order = np.argsort(left / np.maximum(total, 1e-300), kind="stable")
        some = [j for j in order.tolist() if total[j] > 0.0]
        return tuple((names[j], float(1.0 - left[j] / total[j])) for j in some)

    def combinations(self) -> tuple[Combination, ...]:
        n, K = len(self.has), self.has.shape[1]
        out = []
        for pattern, rows in self.patterns.most_common(_MOST_COMBINATIONS):
            on = np.unpackbits(np.frombuffer(pattern, np.uint8))[:K]
            out.append(Combination(tuple(np.flatnonzero(on).tolist()), rows, rows / n))
        return tuple(out)

    def filled(self, names: Sequence[str], spread: Array) -> tuple[Filled, ...]:
        out = []
        shares = 1.0 - self.seen.mean(axis=0)
        for j in np.argsort(-shares, kind="stable")[:_MOST_COLUMNS].tolist():
            if not shares[j] > 0.0:
                break
            gaps = ~self.seen[:, j]
            expected = float(self.rebuilt[gaps, j].mean())
            known = self.values[~gaps, j]
            there = float(known.mean()) if len(known) else None
            said = "none" if there is None else say_number(there, spread[j])
            out.append(
                Filled(
                    names[j],
                    float(shares[j]),
                    (say_number(expected, spread[j]), expected),
                    (said, there),
                    int(gaps.sum()),
                )
            )
        return tuple(out)

    def _order(self, rows: Any) -> Any:
        """Rows that few other features have a part in, and that are rebuilt well."""
        error = np.square(self.left[rows]).sum(axis=1)
        return rows[np.lexsort((error, self.has[rows].sum(axis=1)))]

    def typical(self, k: int) -> tuple[str, ...]:
        rows = self._order(np.flatnonzero(self.has[:, k]))[:_N_TYPICAL]
        return tuple(self.drawn.called(rows.tolist()))

    def examples(self) -> tuple[Rebuilt, ...]:
        """Rows far from each other in the table, with what is made of them."""
        n = len(self.values)
        rows = np.unique(np.linspace(0, n - 1, min(n, _N_REBUILT)).astype(int)).tolist()
        return tuple(
            Rebuilt(
                name, tuple(np.flatnonzero(self.has[i]).tolist()),
                self.values[i], self.rebuilt[i],
            )
            for i, name in zip(rows, self.drawn.called(rows), strict=True)
        )  # fmt: skip
