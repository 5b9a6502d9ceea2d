"""Rows drawn from components, sparse where they have many columns of counts."""

import numpy as np
import scipy.sparse as sp

from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows, SparseRows
from kplus.dp_mixture.families.family import Family, ObservedFamily
from kplus.dp_mixture.families.multinomial import MultinomialFamily

__all__ = ["drawn_rows"]

_MOST_NUMBERS = 2**22  # drawn at once


def drawn_rows(
    family: Family, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
) -> Rows:
    """As `Family.draw`; many columns of counts row by row, sparse."""
    sparse = isinstance(family, ObservedFamily | MultinomialFamily)
    if not sparse or counts.sum() * family.n_columns <= _MOST_NUMBERS:
        return family.draw(N, S, counts, rng)
    parts = []
    for k, count in enumerate(counts):
        rows = max(1, _MOST_NUMBERS // family.n_columns)
        for first in range(0, int(count), rows):
            some = np.array([min(rows, count - first)])
            drawn = family.draw(N[k : k + 1], S[k : k + 1], some, rng)
            parts.append(sp.csr_array(drawn))
    return SparseRows.of(sp.vstack(parts))
