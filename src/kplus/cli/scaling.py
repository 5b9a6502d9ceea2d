"""What is known of the columns before a fit, and putting them on one scale.

``kplus fit --scale`` fits the model on standardised columns. The means and standard
deviations used are stored in the model file itself, as the fitted attribute
`scaling_` (a dict of `columns`, `mean` and `scale`), and ``kplus predict`` applies
them. The model's own `feature_names_in_` are those of the standardised columns, such
as "hue (standardised)": whoever loads the file in Python and forgets to standardise
a frame gets an error about its names instead of wrong labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kplus.cli.tables import Table, number_columns, read_once
from kplus.core.errors import DataError, ModelFormatError
from kplus.core.types import Array, Blocks, IntArray
from kplus.data.categories import Coding
from kplus.data.wrapped import WrappedBlocks

if TYPE_CHECKING:
    from kplus.base.description import Trait

__all__ = [
    "Profile",
    "ScaledBlocks",
    "profile_columns",
    "scale_hint",
    "scaled_table",
    "scaling_of",
    "summary_in_units",
    "takes_missing",
    "traits_in_units",
]


@dataclass(frozen=True)
class Profile:
    """What every column holds; all is 0 for categories."""

    count: Array  # of values that are not missing
    mean: Array
    deviation: Array

    @property
    def scale(self) -> Array:
        """Standard deviations, with 1 for constant columns: these stay as they are."""
        return np.where(self.deviation > 0, self.deviation, 1.0)

    def scaling(self, names: Sequence[str] | None) -> dict[str, Any]:
        """What a model file keeps of the standardisation."""
        columns = None if names is None else np.array(names, dtype=object)
        return {"columns": columns, "mean": self.mean, "scale": self.scale}


def scaling_of(model: Any) -> dict[str, Any] | None:
    """Return what ``kplus fit --scale`` stored, checked."""
    scaling = getattr(model, "scaling_", None)
    if scaling is None:
        return None
    try:
        shapes = {scaling[key].shape for key in ("mean", "scale")}
        names = scaling["columns"]
        good = shapes == {(model.n_features_in_,)} and (
            names is None or len(names) == model.n_features_in_
        )
    except (TypeError, KeyError, AttributeError):
        good = False
    if not good:
        raise ModelFormatError("The model's scaling is not that of its columns.")
    return dict(scaling)


def traits_in_units(
    model: Any, names: Sequence[str] | None, most: int
) -> "list[Trait]":
    """What sets each group apart, in the units of the file."""
    from kplus.base.description import traits_of

    scaling, portrait = scaling_of(model), model.portrait_
    components = getattr(model, "components_", None)
    if scaling is not None:
        portrait = portrait.in_units(scaling["mean"], scaling["scale"])
        components = None if components is None else components * scaling["scale"]
    coding = getattr(model, "_coding", None)
    return traits_of(portrait, names, coding, components, most)


def summary_in_units(model: Any) -> list[dict[str, Any]]:
    """The lines of `summary()`, in the units of the file, as JSON has them."""
    import narwhals.stable.v2 as nw

    from kplus.base.description import N_TOLD, summary

    scaling = scaling_of(model)
    if scaling is None:
        frame = model.summary()
    else:
        traits = traits_in_units(model, scaling["columns"], N_TOLD)
        frame = summary(model, model.portrait_, traits)
    return nw.from_native(frame, eager_only=True).rows(named=True)


def takes_missing(model: Any) -> bool:
    """Whether a model takes missing values."""
    from sklearn.utils import get_tags

    return bool(get_tags(model).input_tags.allow_nan)


def profile_columns(table: Table, model: Any, remedy: str = "") -> Profile:
    """Read all rows once; refuse what the model does not take, by names of columns.

    A `remedy` for missing values is added to what is said about them.
    """
    source, may_miss = table.source, takes_missing(model)
    numbers = table.numbers
    names = [table.column_names[j] for j in numbers]
    count, mean, squares = moments = np.zeros((3, len(numbers)))
    missing, infinite = np.zeros((2, len(numbers)), dtype=np.int64)
    for _, block in read_once(source):
        rows = block[:, numbers]
        missing += np.isnan(rows).sum(axis=0)
        infinite += np.isinf(rows).sum(axis=0)
        if not infinite.any() and (may_miss or not missing.any()):
            _add_moments(rows, count, mean, squares)
    if not may_miss:
        _refuse("missing", missing, names, remedy)
    _refuse("infinite", infinite, names)
    huge = np.flatnonzero(~np.isfinite(squares))
    if len(huge):
        raise DataError(
            f"Column {names[huge[0]]!r} holds numbers too large to be squared; divide "
            f"the column by a constant first."
        )
    squares[:] = np.sqrt(squares / np.maximum(count, 1.0))
    of_all = np.zeros((3, source.n_features))
    of_all[:, numbers] = moments
    return Profile(*of_all)


def _add_moments(rows: Array, count: Array, mean: Array, squares: Array) -> None:
    """Add the values that are there to those of earlier rows, column by column."""
    seen = ~np.isnan(rows)
    n = seen.sum(axis=0)
    total = np.maximum(count + n, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        part = np.where(seen, rows, 0.0).sum(axis=0, dtype=np.float64)
        part /= np.maximum(n, 1)
        step = part - mean
        squares += np.where(seen, np.square(rows - part), 0.0).sum(axis=0)
        squares += np.square(step) * (count * n / total)
        mean += step * (n / total)
    count += n


def _refuse(
    kind: str, counts: IntArray, names: Sequence[str], remedy: str = ""
) -> None:
    bad = np.flatnonzero(counts)
    if not len(bad):
        return
    listed = [
        f"{names[j]!r} has {counts[j]:,} {kind} value{'' if counts[j] == 1 else 's'}"
        for j in bad[:5]
    ]
    more = f", and {len(bad) - 5} more columns have some" if len(bad) > 5 else ""
    raise DataError(
        f"Column {', '.join(listed)}{more}. Leave out those rows or columns, or fill "
        f"the gaps first (kplus impute).{remedy}"
    )


def scale_hint(model: Any, profile: Profile, names: Sequence[str]) -> str | None:
    """Advice to standardise where scales differ a hundredfold, and it matters."""
    kind = getattr(model, "observations", "spherical_gaussian")
    varying = np.flatnonzero(profile.deviation)
    if hasattr(model, "numeric") or kind != "spherical_gaussian" or not len(varying):
        return None
    low = varying[np.argmin(profile.deviation[varying])]
    high = varying[np.argmax(profile.deviation[varying])]
    ratio = profile.deviation[high] / profile.deviation[low]
    if ratio <= 100:
        return None
    nonnegative = getattr(model, "prior", None) == "nonnegative"
    return (
        f"Hint: column {names[high]!r} varies {ratio:,.0f} times as much as "
        f"{names[low]!r} and outweighs it; --scale gives all columns the same say."
    ) + " Use --negative shift with it." * nonnegative


class ScaledBlocks(WrappedBlocks):
    """Blocks with every column shifted to mean 0 and divided by its scale.

    Columns of categories stay as they are, codes with mean 0 and scale 1; `coding` says
    what these mean.
    """

    def __init__(
        self,
        source: Blocks,
        mean: Array,
        scale: Array,
        names: Sequence[str] | None,
        coding: Coding | None = None,
    ) -> None:
        super().__init__(source)
        self._mean, self._scale = mean, scale
        self.coding = None
        if names is not None:
            numbers = set(number_columns(coding, len(names)).tolist())
            self.feature_names = [
                f"{name} (standardised)" if j in numbers else name
                for j, name in enumerate(names)
            ]
        if coding is not None and coding.has_categories:
            self.coding = replace(coding, names=tuple(self.feature_names))

    def _change(self, part: Array, rows: int | IntArray) -> Array:
        return np.asarray((part - self._mean) / self._scale)


def scaled_table(table: Table, mean: Array, scale: Array) -> Table:
    """The same table with its numbers on one scale."""
    blocks = ScaledBlocks(table.source, mean, scale, table.names, table.coding)
    return replace(table, source=blocks, data=blocks)
