"""What to say of the clusters of a mixed table."""

from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from kplus.core.types import Array
from kplus.craft.layout import Layout

__all__ = ["Trait", "as_frame", "describe"]

_N_LEADING = 3  # categories that are named
_LIBRARIES = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Trait:
    """One feature of one cluster; a cluster without any has one without a name."""

    cluster: int
    size: float
    share: float
    feature: str | None
    score: float
    here: str
    overall: str


def describe(craft: Any) -> list[Trait]:
    """The selected features of each cluster, or else those that count, best first."""
    sums, layout = craft._sums, craft._model.layout
    whole = sums.sums.sum(axis=0)
    names = getattr(craft, "feature_names_in_", None)
    traits = []
    for k in range(sums.K):
        size = float(sums.counts[k])
        share = size / float(sums.counts.sum())
        chosen = np.flatnonzero(craft.selected_features_[k])
        if not len(chosen):  # told by what it is not
            chosen = layout.columns[craft._clusters.chosen[k]]
        scores = craft.feature_scores_[k]
        for d in chosen[np.argsort(-scores[chosen], kind="stable")]:
            here, overall = (
                _say_column(layout, int(d), part, craft._coding)
                for part in (sums.sums[k], whole)
            )
            name = str(d) if names is None else str(names[d])
            traits.append(Trait(k, size, share, name, float(scores[d]), here, overall))
        if not len(chosen):
            traits.append(Trait(k, size, share, None, 0.0, "", ""))
    return traits


def _say_column(layout: Layout, column: int, sums: Array, coding: Any) -> str:
    """As in "3.1 ± 0.4" or "red 61 %, blue 20 %"."""
    if layout.levels[column] is None:
        n, mean, deviation = layout.moments(sums, column)
        return f"{mean:.4g} ± {deviation:.3g}" if n > 0.0 else "missing"
    q = int(np.flatnonzero(layout.categories == column)[0])
    counts = sums[layout.places(q)]
    if not counts.sum() > 0.0:
        return "missing"
    shares = counts / counts.sum()
    first = np.argsort(-shares, kind="stable")[:_N_LEADING]
    categories = coding.categories[column]
    return ", ".join(
        f"{categories[t]} {100 * shares[t]:.0f} %" for t in first if shares[t] > 0.0
    )


def as_frame(traits: list[Trait]) -> Any:
    """A frame of whichever library is there."""
    library: Any = next((name for name in _LIBRARIES if find_spec(name)), None)
    if library is None:
        raise ImportError("describe() needs pandas, polars or pyarrow; install one.")
    records = [asdict(trait) for trait in traits]
    columns = {name: [r[name] for r in records] for name in records[0]}
    return nw.from_dict(columns, backend=library).to_native()
