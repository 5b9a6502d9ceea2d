"""Rows of a sparse table that stay sparse, as families of counts take them.

Most entries are 0, and the others recur: counts of 1, 2, 3 in the same columns, row
after row. What is a sum over columns of some function of the value is therefore its sum
over a row of zeros, and a product of the sparse matrix that marks which pairs of column
and value a row holds with what the function changes by at each pair.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray
from kplus.data.blocks import ArrayBlocks, Cut, SparseBlocks, default_block_rows

__all__ = ["Rows", "SparseRowBlocks", "SparseRows", "blocks_of"]

_DIRECT = 8  # places in a table for each entry, up to which pairs need no sorting


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows by the pairs of column and value, not 0, that they hold.

    Attributes
    ----------
    marks : sparse array of shape (n, P)
        1 where a row holds a pair.
    values, columns : arrays of shape (P,)
        The pairs by column, then by value; NaN is a missing value.
    n_columns : int
    """

    marks: sp.csr_array
    values: Array
    columns: IntArray
    n_columns: int

    @classmethod
    def of(cls, X: Any) -> "SparseRows":
        """The rows of a scipy sparse matrix or array, which stays as it is."""
        X = sp.csr_array(X)
        if not X.has_canonical_format:  # the same entry twice, or not in order
            X = X.copy()
            X.sum_duplicates()
        if np.any(X.data == 0):
            X = X.copy()
            X.eliminate_zeros()
        D = X.shape[1]
        values, kinds = np.unique(X.data.astype(np.float64), return_inverse=True)
        pairs = X.indices.astype(np.int64) * len(values) + kinds
        if D * len(values) <= _DIRECT * X.nnz:
            distinct, places = _numbered(pairs, D * len(values))
        else:
            distinct, places = np.unique(pairs, return_inverse=True)
        columns, kinds = np.divmod(distinct, max(len(values), 1))
        shape = X.shape[0], len(distinct)
        marks = (np.ones(X.nnz), places.astype(np.int32, copy=False), X.indptr)
        return cls(sp.csr_array(marks, shape=shape), values[kinds], columns, D)

    @property
    def shape(self) -> tuple[int, int]:
        return self.marks.shape[0], self.n_columns

    def __len__(self) -> int:
        return int(self.marks.shape[0])

    def __getitem__(self, rows: Any) -> Any:
        """Some rows, sparse; a single one as an array of all columns."""
        if isinstance(rows, (int, np.integer)):
            return self[rows : rows + 1].toarray()[0]
        marks = self.marks[rows]
        used, places = _numbered(marks.indices, len(self.values))
        shape = marks.shape[0], len(used)
        marks = sp.csr_array((marks.data, places, marks.indptr), shape=shape)
        return SparseRows(marks, self.values[used], self.columns[used], self.n_columns)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which pairs stand for a missing value."""
        out: NDArray[np.bool_] = np.isnan(self.values)
        return out

    def changed(self, values: Array) -> sp.csr_array:
        """The rows with other values in place of those of the pairs."""
        indices, indptr = self.marks.indices, self.marks.indptr
        entries = values[indices], self.columns[indices].astype(np.int32), indptr
        return sp.csr_array(entries, shape=self.shape)

    def toarray(self) -> Array:
        """The rows with their zeros."""
        out: Array = self.changed(self.values).toarray()
        return out

    def sums(self, function: Callable[[Array, Any], Array]) -> Array:
        """Σ_d f(x_nd, d) of each row, f a function of values and their columns.

        Where f is NaN, as if the other columns were all.
        """
        zero = function(np.zeros(self.n_columns), slice(None))
        change = function(self.values, self.columns) - zero[self.columns]
        gaps = np.isnan(change)
        change[gaps] = -zero[self.columns[gaps]]
        out: Array = zero.sum() + self.marks @ change
        if gaps.any():
            n_seen = self.n_columns - self.marks @ gaps.astype(np.float64)
            out *= self.n_columns / np.maximum(n_seen, 1.0)
        return out

    def by_column(self, weights: Array, values: Array) -> Array:
        """Σ_n w_n f(x_nd) of each column, given f of the pairs and f(0) = 0."""
        each = (weights @ self.marks) * values
        out: Array = np.bincount(self.columns, each, self.n_columns).astype(np.float64)
        return out

    def order(self) -> IntArray:
        """The rows in lexical order of their values, equals as they come.

        Of two rows that are the same up to some pair the larger is that whose next pair
        has the lower column, or in the same column the larger value.
        """
        ranks = np.empty(len(self.values), ">u4")
        ranks[np.lexsort((self.values, -self.columns))] = 1 + np.arange(len(ranks))
        parts = np.split(ranks[self.marks.indices], self.marks.indptr[1:-1])
        keys = [part.tobytes() for part in parts]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


Rows = Array | SparseRows
"""Rows as families of counts take them."""


def _numbered(keys: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """As `np.unique` with `return_inverse`, of keys below n, without sorting."""
    used = np.zeros(n, np.bool_)
    used[keys] = True
    places = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(used), places[keys]


class SparseRowBlocks(Cut):
    """Blocks of rows that stay sparse.

    Attributes
    ----------
    row_numbers : int
        Numbers that a row takes in memory, on average.
    """

    def __init__(self, rows: SparseRows, block_rows: int | None = None) -> None:
        self.rows = rows
        # An index takes half of what a number does.
        self.row_numbers = 1 + int(1.5 * rows.marks.nnz / max(len(rows), 1))
        block_rows = block_rows or default_block_rows(self.row_numbers)
        super().__init__(*rows.shape, block_rows)

    @classmethod
    def of(cls, source: SparseBlocks) -> "SparseRowBlocks":
        return cls(SparseRows.of(source.matrix))

    def dense(self) -> SparseBlocks:
        """The same rows with their zeros."""
        return SparseBlocks(self.rows.changed(self.rows.values), self.block_rows)

    def read(self, index: int) -> Any:
        return self.rows[slice(*self.bounds(index))]

    def take(self, rows: IntArray) -> Any:
        return self.rows[rows]


def blocks_of(rows: Rows, block_rows: int) -> Cut:
    """Blocks of rows in memory."""
    if isinstance(rows, SparseRows):
        return SparseRowBlocks(rows, block_rows)
    return ArrayBlocks(rows, block_rows)
