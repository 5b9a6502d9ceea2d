"""What the families of counts share."""

import numpy as np
from scipy.special import gammaln

from kplus.core.types import Array
from kplus.dp_mixture.families.columns import (
    observed_sums,
    refuse_categories,
    refuse_values,
)
from kplus.dp_mixture.families.family import Columns

__all__ = ["count_means", "log_factorials", "refuse_no_counts"]


def refuse_no_counts(X: Array, names: tuple[str, ...], family: str) -> None:
    """Raise at numbers that are no counts."""
    bad = ~((X >= 0) & (np.floor(X) == X) & np.isfinite(X) | np.isnan(X))
    why = (
        f"observations={family!r} takes counts, whole numbers from 0 on; use "
        "'diag_gaussian' or 'gaussian' for other numbers, or 'mixed' for both."
    )
    refuse_values(X, bad, names, why)


def count_means(
    sample: Array, weights: Array | None, columns: Columns, family: str
) -> Array:
    """Means of columns that are checked to be counts.

    After one more row with half a count, so that none is 0.
    """
    refuse_categories(columns, family)
    refuse_no_counts(sample, columns.names, family)
    n, total = observed_sums(sample, weights)
    out: Array = (total + 0.5) / (n + 1.0)
    return out


def log_factorials(X: Array) -> Array:
    """Σ log x! over the counts of each row that are not missing."""
    counts = np.where(np.isnan(X), 0.0, X).astype(np.float64)
    out: Array = gammaln(counts + 1.0).sum(axis=1)
    return out
