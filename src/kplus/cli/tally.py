"""Which features rows have, added up part by part."""

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray

__all__ = ["FeatureTally"]

_WORD = 64  # bits

_Patterns = tuple[NDArray[np.uint64], IntArray, IntArray]
"""Distinct patterns as words, the first row and the number of rows of each."""


class FeatureTally:
    """Counts of features and of their combinations.

    Parameters
    ----------
    K : int
        Number of features.
    """

    def __init__(self, K: int) -> None:
        self.K, self.n_rows = K, 0
        self.counts = np.zeros(K, dtype=np.int64)
        self._everywhere = np.ones(K, dtype=bool)
        self._parts: list[_Patterns] = []
        self._known = 0  # patterns of the first part

    def add(self, Z: NDArray[np.uint8]) -> None:
        """Add rows, which come after those that are there."""
        self.counts += np.count_nonzero(Z, axis=0)
        first = np.arange(self.n_rows, self.n_rows + len(Z))
        one_each = np.ones(len(Z), dtype=np.int64)
        self._parts.append(_merged([(_words(Z), first, one_each)]))
        self.n_rows += len(Z)
        # Only when as many are waiting, so that few are sorted again and again.
        if sum(len(part[0]) for part in self._parts[1:]) >= self._known:
            self._merge()

    def add_values(self, rows: Array, Z: NDArray[np.uint8]) -> None:
        """Note which features are in all rows that have some value."""
        seen = ~np.isnan(rows).all(axis=1)
        self._everywhere &= Z[seen].all(axis=0)

    @property
    def base(self) -> int | None:
        """The feature that all rows with some value have."""
        # Features with equal rows are one, so that no two are everywhere.
        return int(self._everywhere.argmax()) if self._everywhere.any() else None

    def combinations(self) -> tuple[NDArray[np.uint8], IntArray]:
        """Those that occur, the most frequent first, and how many rows have each."""
        self._merge()
        words, first, counts = self._parts[0]
        order = np.lexsort((first, -counts))
        bits = np.unpackbits(words[order].view(np.uint8), axis=1)[:, : self.K]
        return bits, counts[order]

    def _merge(self) -> None:
        self._parts = [_merged(self._parts)]
        self._known = len(self._parts[0][0])


def _words(Z: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The patterns of rows, 64 bits a word."""
    packed = np.packbits(Z, axis=1)
    n_words = max(1, -(-Z.shape[1] // _WORD))
    padded = np.zeros((len(Z), 8 * n_words), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


def _merged(parts: list[_Patterns]) -> _Patterns:
    """Patterns of parts that follow each other, each of them once."""
    words, first, counts = (np.concatenate(kind) for kind in zip(*parts, strict=True))
    # A single column is sorted much sooner than lines are.
    keys, axis = (words[:, 0], None) if words.shape[1] == 1 else (words, 0)
    _, index, inverse = np.unique(
        keys, axis=axis, return_index=True, return_inverse=True
    )
    total = np.zeros(len(index), dtype=np.int64)
    np.add.at(total, inverse.ravel(), counts)
    return words[index], first[index], total
