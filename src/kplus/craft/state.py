"""What a model file keeps of a fitted `CRAFT`."""

from typing import Any

import numpy as np

from kplus.base.checks import check_shapes
from kplus.craft.model import Clusters, ClusterSums, CraftModel
from kplus.craft.paper.algorithm import PaperFit
from kplus.craft.paper.kernels import Clusters as PaperClusters
from kplus.craft.paper.kernels import Columns as PaperColumns

__all__ = ["from_state", "to_state"]


def to_state(craft: Any) -> dict[str, Any]:
    """What a model file keeps beside the public attributes."""
    sums = craft._sums
    return {
        "model": craft._model,
        "clusters": craft._clusters,
        "coding": craft._coding,
        "asked": craft._asked,
        "paper": None if craft._paper is None else _paper_state(craft._paper),
        "sums": sums.sums,
        "counts": sums.counts,
        "blank": sums.blank,
    }


def from_state(craft: Any, kept: dict[str, Any]) -> None:
    """Take up what `to_state` kept; refuse parts that do not fit together."""
    model, clusters = kept["model"], kept["clusters"]
    if not isinstance(model, CraftModel) or not isinstance(clusters, Clusters):
        raise ValueError("model or clusters are of another kind.")
    model.layout.check(craft.n_features_in_)
    K, F = craft.n_clusters_, model.layout.n_sums
    check_shapes(
        {
            "sums": (kept["sums"], (K, F)),
            "counts": (kept["counts"], (K,)),
            "clusters.tables": (clusters.tables, (F, K)),
            "clusters.shares": (clusters.shares, (K,)),
        }
    )
    coding = kept["coding"]
    levels = (None,) * craft.n_features_in_ if coding is None else coding.levels
    if levels != model.layout.levels:
        raise ValueError("coding has other categories than the model.")
    craft._model, craft._clusters, craft._coding = model, clusters, coding
    craft._asked = kept["asked"]
    paper = kept["paper"]
    craft._paper = None if paper is None else _paper_of(paper, K, craft.n_features_in_)
    craft._sums = ClusterSums(kept["sums"], kept["counts"], float(kept["blank"]))


def _paper_state(paper: PaperFit) -> dict[str, Any]:
    return {
        "clusters": dict(paper.clusters._asdict()),
        "columns": dict(paper.columns._asdict()),
        "feature_cost": float(paper.feature_cost),
        "penalty": float(paper.penalty),
    }


def _paper_of(kept: dict[str, Any], K: int, D: int) -> PaperFit:
    """What assigns further rows; how it was found is not kept."""
    columns = PaperColumns(**kept["columns"])
    clusters = PaperClusters(**kept["clusters"])
    T = len(columns.costs)
    for name, part in columns._asdict().items():
        if part.shape != ((T,) if name == "costs" else (D,)):
            raise ValueError(f"columns.{name} has shape {part.shape}.")
    for name, part in clusters._asdict().items():
        if part.shape != ((K, T) if name == "costs" else (K, D)):
            raise ValueError(f"clusters.{name} has shape {part.shape}.")
    if np.any(columns.widths < 0) or np.any(columns.first + columns.widths > T):
        raise ValueError("columns.widths are not those of the categories.")
    return PaperFit(
        labels=np.empty(0, np.int64),
        penalty=float(kept["penalty"]),
        objective=np.nan,
        history=np.empty(0),
        converged=False,
        revisited=False,
        clusters=clusters,
        columns=columns,
        feature_cost=float(kept["feature_cost"]),
    )
