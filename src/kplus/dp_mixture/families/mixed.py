"""A product of families over groups of columns: numbers, categories and counts."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from kplus.core.errors import DataError
from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.categorical import Categorical
from kplus.dp_mixture.families.diag_gaussian import DiagGaussian
from kplus.dp_mixture.families.family import ByComponent, Columns, Expectations, Family
from kplus.dp_mixture.families.poisson import Poisson

__all__ = ["Mixed", "MixedExpected", "MixedFamily"]


@dataclass(frozen=True)
class Mixed:
    """Numbers, categories and counts side by side, independent inside a component.

    Parameters
    ----------
    numbers : Likelihood, default=DiagGaussian()
        For the columns of numbers that are not among `counts`.
    categories : Likelihood, default=Categorical()
        For the columns of categories.
    counts : sequence of str or int, default=()
        Names or positions of the columns of numbers that are counts.
    count_family : Likelihood, default=Poisson()
        For the columns of `counts`.

    Notes
    -----
    The fitted attributes are those of the families in use, and describe the columns of
    their group only, in the table's order; ``number_columns_``, ``category_columns_``
    and ``count_columns_`` hold the positions of these columns in the table. By default
    these are ``means_``, ``covariances_`` and ``precisions_cholesky_`` of the numbers,
    ``probabilities_`` of the categories and ``rates_`` of the counts. Where two groups
    have an attribute of the same name, that of the later group gets a prefix, as in
    ``category_probabilities_`` and ``count_rates_``.

    Examples
    --------
    >>> from kplus.observations import Mixed, SphericalGaussian
    >>> model = Mixed(numbers=SphericalGaussian(), counts=["visits"])
    >>> model.counts
    ['visits']
    """

    numbers: Any = field(default_factory=DiagGaussian)
    categories: Any = field(default_factory=Categorical)
    counts: Any = ()
    count_family: Any = field(default_factory=Poisson)

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "MixedFamily":
        """Resolve the priors; see `kplus.dp_mixture.families.family.Likelihood`."""
        counted = _positions(self.counts, columns)
        coded = [j for j, levels in enumerate(columns.levels) if levels is not None]
        numeric = sorted(set(range(len(columns.names))) - set(coded) - set(counted))
        groups: dict[str, tuple[Any, list[int]]] = {
            "number": (self.numbers, numeric),
            "category": (self.categories, coded),
            "count": (self.count_family, counted),
        }
        groups = {name: group for name, group in groups.items() if group[1]}
        where = tuple(np.array(group[1], dtype=np.int64) for group in groups.values())
        parts = tuple(
            likelihood.resolve(np.take(sample, j, axis=1), weights, _some(columns, j))
            for (likelihood, _), j in zip(groups.values(), where, strict=True)
        )
        return MixedFamily(tuple(groups), where, parts)


def _positions(counts: Any, columns: Columns) -> list[int]:
    """The columns of counts that the user named, ascending."""
    if isinstance(counts, str):
        raise ValueError(f"counts must be a list of columns, got the text {counts!r}.")
    positions = set()
    for item in counts:
        if isinstance(item, str) and item in columns.names:
            positions.add(columns.names.index(item))
        elif isinstance(item, int | np.integer) and 0 <= item < len(columns.names):
            positions.add(int(item))
        else:
            some = ", ".join(map(repr, columns.names[:10]))
            raise ValueError(
                f"counts names the column {item!r}, which the table does not have; its "
                f"{len(columns.names)} columns begin with {some}."
            )
    for j in positions:
        if columns.levels[j] is not None:
            raise DataError(
                f"Column {columns.names[j]!r} holds categories, so that it cannot be "
                "among counts."
            )
    return sorted(positions)


def _some(columns: Columns, where: IntArray) -> Columns:
    return Columns(
        tuple(columns.names[j] for j in where), tuple(columns.levels[j] for j in where)
    )


def _added(parts: list[Array]) -> Array:
    out: Array = np.add.reduce(parts)
    return out


@dataclass(frozen=True)
class MixedExpected:
    """The expected log-likelihoods of the parts; a row's is their sum."""

    parts: tuple[Expectations, ...]

    @property
    def eta(self) -> Array:
        return np.concatenate([part.eta for part in self.parts], axis=1)

    @property
    def bias(self) -> Array:
        return _added([part.bias for part in self.parts])

    def total(self, N: Array, S: Array) -> Array:
        """See `Expected.total`."""
        out: Array = np.einsum("km,km->k", self.eta, S) + self.bias * N
        return out


@dataclass(frozen=True, eq=False)
class MixedFamily:
    """See `Mixed`; t(x) is that of the parts, one after the other."""

    groups: tuple[str, ...]  # "number", "category", "count"
    where: tuple[IntArray, ...]  # the columns of each part
    parts: tuple[Family, ...]

    def consistent(self) -> bool:
        groups = zip(self.parts, self.where, strict=True)
        fine = all(j.shape == (part.n_columns,) for part, j in groups)
        columns = np.sort(np.concatenate(self.where))
        return fine and np.array_equal(columns, np.arange(len(columns)))

    @property
    def n_columns(self) -> int:
        return sum(len(j) for j in self.where)

    @property
    def n_stats(self) -> int:
        return sum(part.n_stats for part in self.parts)

    @property
    def n_free(self) -> int:
        return sum(part.n_free for part in self.parts)

    def _rows(self, X: Array) -> list[tuple[Family, Array]]:
        """Each part with its columns of rows."""
        return [
            (part, np.take(X, j, axis=-1))
            for part, j in zip(self.parts, self.where, strict=True)
        ]

    def split(self, S: Array) -> list[Array]:
        """Each part's share of the statistics."""
        stops = np.cumsum([part.n_stats for part in self.parts])
        return np.split(S, stops[:-1], axis=1)

    def hides(self, S: Array) -> bool:
        pairs = zip(self.parts, self.split(S), strict=True)
        return any(part.hides(own) for part, own in pairs)

    def check(self, X: Array) -> None:
        for part, rows in self._rows(X):
            part.check(rows)

    def log_base(self, X: Array) -> Array:
        return _added([part.log_base(rows) for part, rows in self._rows(X)])

    def features(self, X: Array) -> Array:
        return np.hstack([part.features(rows) for part, rows in self._rows(X)])

    def evidence(self, N: Array, S: Array) -> Array:
        pairs = zip(self.parts, self.split(S), strict=True)
        return _added([part.evidence(N, own) for part, own in pairs])

    def expect(self, N: Array, S: Array) -> MixedExpected:
        pairs = zip(self.parts, self.split(S), strict=True)
        return MixedExpected(tuple(part.expect(N, own) for part, own in pairs))

    @property
    def log_hyperprior(self) -> float:
        return sum(part.log_hyperprior for part in self.parts)

    def learned(self, N: Array, S: Array) -> Self:
        pairs = list(zip(self.parts, self.split(S), strict=True))
        parts = tuple(part.learned(N, own) for part, own in pairs)
        same = all(new is old for new, old in zip(parts, self.parts, strict=True))
        return self if same else replace(self, parts=parts)

    def scores(
        self, expected: MixedExpected, X: Array, candidates: IntArray | None = None
    ) -> Array:
        pairs = zip(self._rows(X), expected.parts, strict=True)
        return _added([part.scores(e, rows, candidates) for (part, rows), e in pairs])

    def shortlist(
        self, expected: "MixedExpected", X: Array, log_weights: Array, margin: float
    ) -> IntArray | None:
        return None

    def sums(
        self, X: Array, members: ByComponent, expected: MixedExpected | None = None
    ) -> Array:
        known = [None] * len(self.parts) if expected is None else expected.parts
        pairs = zip(self._rows(X), known, strict=True)
        return np.hstack([part.sums(rows, members, e) for (part, rows), e in pairs])

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        pairs = zip(self._rows(X), self._rows(seed), self.split(S), strict=True)
        return _added(
            [
                part.dissimilarity(rows, row, N, own)
                for (part, rows), (_, row), own in pairs
            ]
        )

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        pairs = zip(self._rows(X), self.split(S), strict=True)
        return _added(
            [part.log_predictive(N, own, rows) for (part, rows), own in pairs]
        )

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        out = np.empty((int(np.sum(counts)), self.n_columns))
        for part, j, own in zip(self.parts, self.where, self.split(S), strict=True):
            out[:, j] = part.draw(N, own, counts, rng)
        return out

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        out = np.empty(X.shape)
        pairs = zip(self._rows(X), self.where, self.split(S), strict=True)
        for (part, rows), j, own in pairs:
            out[:, j] = part.fill(N, own, rows, shares)
        return out

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        out = np.empty(X.shape)
        pairs = zip(self._rows(X), self.where, self.split(S), strict=True)
        for (part, rows), j, own in pairs:
            out[:, j] = part.draw_missing(N, own, rows, components, rng)
        return out

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        out: dict[str, Any] = {}
        groups = zip(self.groups, self.where, self.parts, self.split(S), strict=True)
        for group, j, part, own in groups:
            for name, value in part.attributes(N, own).items():
                out[f"{group}_{name}" if name in out else name] = value
            out[f"{group}_columns_"] = j
        return out
