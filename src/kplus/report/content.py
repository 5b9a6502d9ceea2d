"""What a report of clusters says, as plain values: no HTML, no pictures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.base.description import Trait, say_number, traits_of
from kplus.base.portrait import Portrait
from kplus.core.types import Array, IntArray
from kplus.report.markup import shortened
from kplus.report.rows import Drawn, Units, column_names

__all__ = [
    "Bar",
    "Cluster",
    "Clusters",
    "Histogram",
    "Interval",
    "OddRow",
    "Telling",
    "TypicalRow",
    "gather",
    "histogram",
    "say_value",
]

_N_TELLING = 4  # columns of a card
_N_TYPICAL, _N_ODD = 3, 10  # rows
_N_BARS = 4  # categories
_N_BINS = 24
_MANY = 200  # rows from which the ends of a histogram hold what lies far out
_FAR = 10.0  # standard deviations: farther is not less typical
_MATTERS = 0.02  # score of a column, as for `describe`
_LEAST_SHARE = 1e-3
_LONGEST = 160  # characters of what is said of a column
_UNUSUAL = (
    6.6  # squared standard deviations, or twice the nats, from which rows are odd
)


@dataclass(frozen=True)
class Histogram:
    """Shares of the rows between edges, in a group and in all rows."""

    edges: tuple[float, ...]
    here: tuple[float, ...]
    overall: tuple[float, ...]
    ends: tuple[str, str]  # in words
    beyond: bool  # whether the first and the last hold what lies farther out


@dataclass(frozen=True)
class Interval:
    """Mean and standard deviation in a group and in all rows, as a model keeps them."""

    here: tuple[float, float]
    overall: tuple[float, float]


@dataclass(frozen=True)
class Bar:
    """A category: its share in a group and in all rows."""

    name: str
    here: float
    overall: float


@dataclass(frozen=True)
class Telling:
    """A column that tells a group from the whole table."""

    column: int
    name: str
    here: str
    overall: str
    picture: Histogram | Interval | tuple[Bar, ...] | None


@dataclass(frozen=True)
class TypicalRow:
    name: str
    words: tuple[str, ...]  # of the telling columns
    values: Array


@dataclass(frozen=True)
class OddRow:
    """A row unlike the rest of its group, and the column that says so."""

    name: str
    group: int
    words: str


@dataclass(frozen=True)
class Cluster:
    """All that a card says."""

    number: int
    size: float
    share: float
    sureness: float | None
    apart: tuple[str, ...]
    telling: tuple[Telling, ...]
    typical: tuple[TypicalRow, ...]
    nearest: int | None
    nearest_words: str
    center: Array  # by number column, in the units of the file


@dataclass(frozen=True)
class Clusters:
    """All that a report says of the clusters of a model."""

    clusters: tuple[Cluster, ...]
    probable: bool  # whether sureness is a probability
    columns: tuple[str, ...]
    n_rows: float
    n_outside: float
    center: Array  # of all rows, as that of a cluster
    idle: tuple[str, ...]  # columns in which no group differs
    odd: tuple[OddRow, ...]
    outside: tuple[TypicalRow, ...]
    missing: tuple[tuple[str, float], ...]  # columns with gaps, and the share of rows

    @property
    def limit(self) -> float:
        """By how much a cluster differs at most, for the colours of pictures."""
        off = [np.abs(np.nan_to_num(c.center - self.center)) for c in self.clusters]
        return max((float(values.max(initial=0.0)) for values in off), default=0.0)

    @property
    def sureness(self) -> float:
        """Mean over the rows that are in a cluster; NaN where nothing is known."""
        pairs = [(c.sureness, c.size) for c in self.clusters if c.sureness is not None]
        total = sum(size for _, size in pairs)
        if not total > 0.0:
            return math.nan
        return sum(sure * size for sure, size in pairs) / total


def gather(
    model: Any,
    portrait: Portrait,
    drawn: Drawn | None = None,
    labels: IntArray | None = None,
) -> Clusters:
    """Look at the groups of a model, in some rows if there are any.

    Parameters
    ----------
    portrait : Portrait
        In the units of the model.
    drawn : Drawn, optional
    labels : (n_drawn,), optional
        The clusters of the rows drawn.
    """
    units, names = Units.of(model), column_names(model)
    told = units.portrait(portrait)
    coding = getattr(model, "_coding", None)
    traits = _by_group(model, traits_of(told, names, coding), names)
    table = None
    if drawn is not None and labels is not None:
        table = _Table(told, units.values(drawn.values), labels, drawn, coding, names)
    kept = _Kept(told, coding)
    profile = _Profiles(told)
    clusters = []
    for k in range(portrait.K):
        telling = tuple(
            _telling(trait, names, k, table, kept) for trait in traits[k][:_N_TELLING]
        )
        near, why = profile.nearest(k, names)
        clusters.append(
            Cluster(
                number=k,
                size=float(portrait.sizes[k]),
                share=float(portrait.sizes[k] / portrait.n_rows),
                sureness=_finite(portrait.sureness[k]),
                apart=tuple(
                    shortened(trait.words, _LONGEST) for trait in traits[k][:_N_TELLING]
                ),
                telling=telling,
                typical=() if table is None else table.typical(k, telling),
                nearest=near,
                nearest_words=why,
                center=told.means[k],
            )
        )
    best = {trait.feature for group in traits for trait in group}
    outside = portrait.n_rows - float(portrait.sizes.sum())
    return Clusters(
        clusters=tuple(clusters),
        probable=not hasattr(model, "cluster_centers_"),
        columns=tuple(names),
        n_rows=portrait.n_rows,
        n_outside=outside if outside > 1e-9 * portrait.n_rows else 0.0,
        center=told.means[-1],
        idle=tuple(name for name in names if name not in best),
        odd=() if table is None else table.odd(),
        outside=() if table is None else table.outside(),
        missing=() if table is None else table.missing(),
    )


def _by_group(
    model: Any, traits: Sequence[Trait], names: Sequence[str]
) -> list[list[Trait]]:
    """Traits of each group; the columns that the model selected come first."""
    out: list[list[Trait]] = [[] for _ in range(model._n_groups)]
    for trait in traits:
        if trait.feature is not None and trait.score >= _MATTERS:
            out[trait.group].append(trait)
    selected = getattr(model, "selected_features_", None)
    if selected is not None:
        place = {name: j for j, name in enumerate(names)}
        for k, group in enumerate(out):
            group.sort(key=lambda t: not selected[k, place[str(t.feature)]])
    return out


def _telling(
    trait: Trait, names: Sequence[str], k: int, table: "_Table | None", kept: "_Kept"
) -> Telling:
    j = list(names).index(str(trait.feature))
    picture = kept.picture(j, k) if table is None else table.picture(j, k, kept)
    here, overall = (
        shortened(words, _LONGEST) for words in (trait.here, trait.overall)
    )
    return Telling(j, names[j], here, overall, picture)


class _Kept:
    """Pictures of what a portrait has."""

    def __init__(self, portrait: Portrait, coding: Any) -> None:
        self.portrait, self.coding = portrait, coding
        self.place = {int(j): p for p, j in enumerate(portrait.numbers)}

    def picture(self, j: int, k: int) -> Interval | tuple[Bar, ...]:
        if j in self.place:
            p, of = self.place[j], self.portrait
            here, overall = (
                (float(of.means[i, p]), float(of.deviations[i, p])) for i in (k, -1)
            )
            return Interval(here, overall)
        shares = self.portrait.shares[self.portrait.coded.index(j)]
        here, overall = shares[k], shares[-1]
        first = np.argsort(-np.maximum(here, 0.0), kind="stable")[:_N_BARS]
        return tuple(
            Bar(str(self.coding.categories[j][t]), float(here[t]), float(overall[t]))
            for t in first
            if max(here[t], overall[t]) >= _LEAST_SHARE
        )


class _Profiles:
    """Groups as points: means in standard deviations of the table, and shares."""

    def __init__(self, portrait: Portrait) -> None:
        scale = np.where(portrait.deviations[-1] > 0.0, portrait.deviations[-1], np.inf)
        numbers = (portrait.means[:-1] - portrait.means[-1]) / scale
        self.portrait = portrait
        self.parts = [(int(j), numbers[:, [p]]) for p, j in enumerate(portrait.numbers)]
        for j, shares in zip(portrait.coded, portrait.shares, strict=True):
            spread = math.sqrt(max(1.0 - float(np.square(shares[-1]).sum()), 0.0))
            self.parts.append((j, shares[:-1] / (spread or np.inf)))

    def nearest(self, k: int, names: Sequence[str]) -> tuple[int | None, str]:
        """The nearest other group that has rows, and what tells the two apart."""
        sizes = self.portrait.sizes
        others = np.flatnonzero((sizes > 0.0) & (np.arange(len(sizes)) != k))
        if not len(others) or not self.parts:
            return None, ""
        squares = np.array(
            [
                np.nan_to_num(np.square(values[others] - values[k])).sum(axis=1)
                for _, values in self.parts
            ]
        )
        at = int(np.argmin(squares.sum(axis=0)))
        j = self.parts[int(np.argmax(squares[:, at]))][0]
        return int(others[at]), names[j] if squares[:, at].max() > 0.0 else ""


class _Table:
    """The rows drawn, in the units of the file, with the groups they are in."""

    def __init__(
        self,
        portrait: Portrait,
        values: Array,
        labels: IntArray,
        drawn: Drawn,
        coding: Any,
        names: Sequence[str],
    ) -> None:
        self.portrait, self.values, self.labels = portrait, values, labels
        self.drawn, self.coding, self.names = drawn, coding, names
        self.edges: dict[int, tuple[Array, bool]] = {}
        self.costs, self.oddest, self.most = self._costs()

    def picture(self, j: int, k: int, kept: _Kept) -> Any:
        if j not in kept.place:
            return kept.picture(j, k)
        fair = self.values[self.drawn.fair, j]
        if j not in self.edges:
            self.edges[j] = _edges(fair)
        edges, beyond = self.edges[j]
        return histogram(edges, self.values[self.labels == k, j], fair, beyond)

    def _costs(self) -> tuple[Array, IntArray, Array]:
        """How unlike its group each row is, and in which column most of all.

        The mean over columns of squared distances to the mean of the group in its
        standard deviations, or of -2 log of the share of a category; what is missing
        counts as it would on average.
        """
        n, of = len(self.labels), self.portrait
        total, most = np.zeros(n), np.full(n, -np.inf)
        oddest = np.zeros(n, int)
        inside = self.labels >= 0
        owner = np.where(inside, self.labels, of.K)  # others: beside the whole table

        def add(j: int, costs: Array) -> None:
            nonlocal total, most, oddest
            total = total + costs
            odder = costs > most
            oddest[odder] = j
            most = np.maximum(most, costs)

        for p, j in enumerate(of.numbers.tolist()):
            x, scale = self.values[:, j], of.deviations[-1, p]
            deviation = np.maximum(of.deviations[owner, p], 1e-3 * scale)
            far = np.abs(x - of.means[owner, p]) / np.where(
                deviation > 0.0, deviation, 1.0
            )
            add(j, np.where(np.isnan(far), 1.0, np.square(np.minimum(far, _FAR))))
        for j, shares in zip(of.coded, of.shares, strict=True):
            known = ~np.isnan(self.values[:, j])
            code = np.where(known, self.values[:, j], 0.0).astype(int)
            floor = np.maximum(np.nan_to_num(shares), math.exp(-0.5 * _FAR**2))
            cost = -2.0 * np.log(floor)
            mean = (np.nan_to_num(shares) * cost).sum(axis=1)
            add(j, np.where(known, cost[owner, code], mean[owner]))
        return total / max(len(of.numbers) + len(of.coded), 1), oddest, most

    def typical(self, k: int, telling: Sequence[Telling]) -> tuple[TypicalRow, ...]:
        rows = np.flatnonzero(self.labels == k)
        first = rows[np.argsort(self.costs[rows], kind="stable")[:_N_TYPICAL]]
        return self._rows(first, [column.column for column in telling])

    def outside(self) -> tuple[TypicalRow, ...]:
        """Some rows that belong nowhere, the oddest first."""
        rows = np.flatnonzero(self.labels < 0)
        first = rows[np.argsort(-self.costs[rows], kind="stable")[:_N_ODD]]
        columns = np.unique(self.oddest[first])[:_N_TELLING]
        return self._rows(first, columns.tolist())

    def odd(self) -> tuple[OddRow, ...]:
        """The rows that are least like their groups."""
        unusual = (self.labels >= 0) & (self.most >= _UNUSUAL)
        costs = np.where(unusual, self.costs, -np.inf)
        order = np.argsort(-costs, kind="stable")[:_N_ODD]
        rows = order[np.isfinite(costs[order])]
        called = self.drawn.called(rows.tolist())
        out = []
        for name, i in zip(called, rows.tolist(), strict=True):
            k, j = int(self.labels[i]), int(self.oddest[i])
            words = f"{self._told(i, j)}; group {k} has {self._usual(k, j)}"
            out.append(OddRow(name, k, words))
        return tuple(out)

    def _usual(self, k: int, j: int) -> str:
        of = self.portrait
        if j in of.coded:
            shares = of.shares[of.coded.index(j)][k]
            top = int(np.nanargmax(shares))
            name = shortened(self.coding.categories[j][top])
            return f"mostly {name} ({shares[top]:.0%})"
        p = int(np.flatnonzero(of.numbers == j)[0])
        scale = of.deviations[-1, p]
        mean, spread = (say_number(v[k, p], scale) for v in (of.means, of.deviations))
        return f"{mean} ± {spread}"

    def _rows(self, at: IntArray, columns: Sequence[int]) -> tuple[TypicalRow, ...]:
        rows = at.tolist()
        return tuple(
            TypicalRow(
                name,
                tuple(self._told(i, j) for j in columns),
                self.values[i],
            )
            for i, name in zip(rows, self.drawn.called(rows), strict=True)
        )

    def _told(self, i: int, j: int) -> str:
        """As in "age = 30"."""
        missing = math.isnan(self.values[i, j])
        return f"{self.names[j]} {'missing' if missing else f'= {self._say(i, j)}'}"

    def _say(self, i: int, j: int) -> str:
        """A value as people write it."""
        of, value = self.portrait, self.values[i, j]
        if j in of.coded:
            return shortened(self.coding.categories[j][int(value)])
        return say_value(value, float(of.deviations[-1, list(of.numbers).index(j)]))

    def missing(self) -> tuple[tuple[str, float], ...]:
        shares = np.isnan(self.values[self.drawn.fair]).mean(axis=0)
        order = np.argsort(-shares, kind="stable")
        return tuple(
            (self.names[j], float(shares[j])) for j in order if shares[j] > 0.0
        )


def say_value(value: float, scale: float) -> str:
    """One value beside the spread of its column; whole numbers stay so."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return say_number(float(value), scale)


def _edges(values: Array) -> tuple[Array, bool]:
    """Edges of bins for a column, and whether values lie beyond them."""
    seen = values[~np.isnan(values)]
    if not len(seen):
        return np.array([0.0, 1.0]), False
    low, high = float(seen.min()), float(seen.max())
    whole = bool(np.all(seen == np.floor(seen)))
    if whole and high - low < _N_BINS:
        return np.arange(low - 0.5, high + 1.0), False
    if len(seen) >= _MANY:
        inner = np.quantile(seen, [0.005, 0.995])
        if inner[1] > inner[0]:
            low, high = map(float, inner)
    if not high > low:
        width = max(abs(low) * 1e-6, 1e-12)
        low, high = low - width, high + width
    edges = np.linspace(low, high, _N_BINS + 1)
    return edges, bool(seen.min() < low or seen.max() > high)


def histogram(edges: Array, here: Array, overall: Array, beyond: bool) -> Histogram:
    """Shares of the values there are; what lies beyond the edges is in the end bins."""
    scale = float(edges[-1] - edges[0])
    words = (say_value(edges[0], scale), say_value(edges[-1], scale))
    if (
        len(edges) > 1
        and float(edges[0] + 0.5).is_integer()
        and edges[1] - edges[0] == 1
    ):
        words = (f"{edges[0] + 0.5:,.0f}", f"{edges[-1] - 0.5:,.0f}")
    return Histogram(
        edges=tuple(edges.tolist()),
        here=_shares(edges, here),
        overall=_shares(edges, overall),
        ends=words,
        beyond=beyond,
    )


def _shares(edges: Array, values: Array) -> tuple[float, ...]:
    seen = values[~np.isnan(values)]
    counts, _ = np.histogram(np.clip(seen, edges[0], edges[-1]), edges)
    return tuple((counts / max(len(seen), 1)).tolist())


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
