"""t(x) of sparse rows, without their zeros: one for each pair of column and value."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from kplus.core.types import Array
from kplus.data.sparse_rows import SparseRows

if TYPE_CHECKING:
    from kplus.dp_mixture.families.family import ByComponent

__all__ = ["SparseFeatures"]


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """t(x) = t(0) + Σ_p t_p, over the pairs p that a row holds.

    Attributes
    ----------
    rows : SparseRows
    changes : sparse array of shape (P, M)
        t_p, what a pair changes t(0) by.
    zero : array of shape (M,)
        t(0), of a row of zeros.
    """

    rows: SparseRows
    changes: sp.csr_array
    zero: Array

    def __matmul__(self, eta: Array) -> Array:
        """t(x) · η, (n, K) of η (M, K)."""
        eta = np.ascontiguousarray(eta)
        out: Array = self.rows.marks @ (self.changes @ eta)
        out += self.zero @ eta
        return out

    def sums(self, members: "ByComponent") -> Array:
        """Σ r t(x) of each component, (K, M)."""
        K = len(members.starts) - 1
        shape = K, len(self.rows)
        shares = sp.csr_array(
            (members.weights, members.rows, members.starts), shape=shape
        )
        out = np.ascontiguousarray(self._weighted(shares).T)
        out += np.outer(shares.sum(axis=1), self.zero)
        return out

    def _weighted(self, shares: sp.csr_array) -> Array:
        """Σ r Σ_p t_p of each component, (M, K)."""
        held = self.rows.marks.T @ np.ascontiguousarray(shares.T.toarray())
        out: Array = self.changes.T @ held
        return out
