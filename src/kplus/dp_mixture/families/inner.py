"""Families that see rows in other units, and leave all else to a family of those."""

from dataclasses import replace
from typing import Any, Self

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.family import ByComponent, Family

__all__ = ["InnerFamily"]


class InnerFamily:
    """What `inner` says of rows in its units.

    A subclass is a dataclass that has the units, log h, the predictive and draws.
    """

    inner: Family

    def _in(self, X: Array) -> Array:
        """Rows in the units of `inner`."""
        raise NotImplementedError

    @property
    def n_stats(self) -> int:
        return self.inner.n_stats

    @property
    def n_free(self) -> int:
        return self.inner.n_free

    def hides(self, S: Array) -> bool:
        return self.inner.hides(S)

    def features(self, X: Array) -> Array:
        return self.inner.features(self._in(X))

    def evidence(self, N: Array, S: Array) -> Array:
        return self.inner.evidence(N, S)

    def expect(self, N: Array, S: Array) -> Any:
        return self.inner.expect(N, S)

    def scores(
        self, expected: Any, X: Array, candidates: IntArray | None = None
    ) -> Array:
        return self.inner.scores(expected, self._in(X), candidates)

    def shortlist(
        self, expected: Any, X: Array, log_weights: Array, margin: float
    ) -> IntArray | None:
        return self.inner.shortlist(expected, self._in(X), log_weights, margin)

    def sums(self, X: Array, members: ByComponent, expected: Any = None) -> Array:
        return self.inner.sums(self._in(X), members, expected)

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        row = self._in(seed[None])[0]
        return self.inner.dissimilarity(self._in(X), row, N, S)

    @property
    def log_hyperprior(self) -> float:
        return self.inner.log_hyperprior

    def learned(self, N: Array, S: Array) -> Self:
        inner = self.inner.learned(N, S)
        same = inner is self.inner
        return self if same else replace(self, inner=inner)  # type: ignore[type-var]
