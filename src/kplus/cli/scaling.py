"""What is known of the columns before a fit, and putting them on one scale.

``kplus fit --scale`` fits the model on standardised columns. The means and standard
deviations used are stored in the model file itself, as the fitted attribute
`scaling_` (a dict of `columns`, `mean` and `scale`), and ``kplus predict`` applies
them. The model's own `feature_names_in_` are those of the standardised columns, such
as "hue (standardised)": whoever loads the file in Python and forgets to standardise
a frame gets an error about its names instead of wrong labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.core.errors import DataError
from kplus.core.types import Array, Blocks, IntArray

__all__ = ["Profile", "ScaledBlocks", "profile", "scale_hint", "scaling_record"]


@dataclass(frozen=True)
class Profile:
    """Mean and standard deviation of every column."""

    mean: Array
    deviation: Array

    @property
    def scale(self) -> Array:
        """Standard deviations, with 1 for constant columns: these stay as they are."""
        return np.where(self.deviation > 0, self.deviation, 1.0)


def profile(source: Blocks, names: Sequence[str]) -> Profile:
    """Read all rows once; refuse missing and infinite values, naming the columns."""
    count, mean, squares = 0, np.zeros(source.n_features), np.zeros(source.n_features)
    missing = np.zeros(source.n_features, dtype=np.int64)
    infinite = missing.copy()
    for i in range(-(-source.n_rows // source.block_rows)):
        rows = source.read(i)
        missing += np.isnan(rows).sum(axis=0)
        infinite += np.isinf(rows).sum(axis=0)
        if missing.any() or infinite.any():
            continue  # only the counts matter now
        with np.errstate(over="ignore", invalid="ignore"):
            part = rows.mean(axis=0, dtype=np.float64)
            step = part - mean
            squares += np.square(rows - part).sum(axis=0)
            squares += np.square(step) * (count * len(rows) / (count + len(rows)))
        count += len(rows)
        mean += step * (len(rows) / count)
    _refuse("missing", missing, names)
    _refuse("infinite", infinite, names)
    _refuse_huge(squares, names)
    return Profile(mean, np.sqrt(squares / count))


def _refuse_huge(squares: Array, names: Sequence[str]) -> None:
    huge = np.flatnonzero(~np.isfinite(squares))
    if len(huge):
        raise DataError(
            f"Column {names[huge[0]]!r} holds numbers too large to be squared; divide "
            f"the column by a constant first."
        )


def _refuse(kind: str, counts: IntArray, names: Sequence[str]) -> None:
    bad = np.flatnonzero(counts)
    if not len(bad):
        return
    listed = [
        f"{names[j]!r} has {counts[j]:,} {kind} value{'' if counts[j] == 1 else 's'}"
        for j in bad[:5]
    ]
    more = f", and {len(bad) - 5} more columns have some" if len(bad) > 5 else ""
    raise DataError(
        f"Column {', '.join(listed)}{more}. Remove those rows or fill the gaps first."
    )


def scale_hint(found: Profile, names: Sequence[str]) -> str | None:
    """Advice to standardise when the scales of columns differ a hundredfold."""
    varying = np.flatnonzero(found.deviation)
    if not len(varying):
        return None
    low = varying[np.argmin(found.deviation[varying])]
    high = varying[np.argmax(found.deviation[varying])]
    ratio = found.deviation[high] / found.deviation[low]
    if ratio <= 100:
        return None
    return (
        f"Hint: column {names[high]!r} varies {ratio:,.0f} times as much as "
        f"{names[low]!r} and outweighs it; --scale gives all columns the same say."
    )


def scaling_record(names: Sequence[str] | None, found: Profile) -> dict[str, Any]:
    """Return what a model file keeps of the standardisation."""
    columns = None if names is None else np.array(names, dtype=object)
    return {"columns": columns, "mean": found.mean, "scale": found.scale}


class ScaledBlocks:
    """Blocks with every column shifted to mean 0 and divided by its scale."""

    def __init__(
        self, source: Blocks, mean: Array, scale: Array, names: Sequence[str] | None
    ) -> None:
        self._source = source
        self._mean = mean
        self._scale = scale
        self.n_rows = source.n_rows
        self.n_features = source.n_features
        self.block_rows = source.block_rows
        if names is not None:
            self.feature_names = [f"{name} (standardised)" for name in names]

    def read(self, index: int) -> Array:
        return self._apply(self._source.read(index))

    def take(self, rows: IntArray) -> Array:
        return self._apply(self._source.take(rows))

    def whole(self) -> Any:
        """Return all rows as estimators take them: an array, or a table with names."""
        n_blocks = -(-self.n_rows // self.block_rows)
        X = np.concatenate([self.read(i) for i in range(n_blocks)])
        if not hasattr(self, "feature_names"):
            return X
        import pyarrow as pa

        return pa.table(dict(zip(self.feature_names, X.T.copy(), strict=True)))

    def _apply(self, rows: Array) -> Array:
        scaled: Array = (rows - self._mean) / self._scale
        return scaled
