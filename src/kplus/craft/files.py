"""What model files keep of a fitted `CRAFT` beside its public attributes."""

from typing import Any

from kplus.base.checks import check_shapes
from kplus.craft import joining
from kplus.craft.axes import n_numbers
from kplus.craft.clusters import Between
from kplus.craft.model import Clusters, ClusterSums, CraftModel
from kplus.craft.paper.algorithm import PaperFit

__all__ = ["restore", "to_state"]


def to_state(craft: Any) -> dict[str, Any]:
    """What `restore` needs."""
    sums, between = craft._sums, craft._between
    return {
        "model": craft._model,
        "clusters": craft._clusters,
        "coding": craft._coding,
        "asked": craft._categorical,
        "paper": None if craft._paper is None else craft._paper.to_state(),
        "sums": sums.sums,
        "counts": sums.counts,
        "blank": sums.blank,
        **({} if between is None else between.to_state()),
    }


def restore(craft: Any, kept: dict[str, Any]) -> None:
    """Restore what `to_state` returned; refuse parts that do not fit together."""
    model, clusters = kept["model"], kept["clusters"]
    if not isinstance(model, CraftModel) or not isinstance(clusters, Clusters):
        raise ValueError("model or clusters are of another kind.")
    D, layout = craft.n_features_in_, model.layout
    layout.check(D)
    K, F = getattr(craft, "n_components_", craft.n_clusters_), layout.n_sums
    check_shapes(
        {
            "sums": (kept["sums"], (K, F)),
            "counts": (kept["counts"], (K,)),
            "clusters.tables": (clusters.tables, (F, K)),
            "clusters.shares": (clusters.shares, (K,)),
        }
    )
    joining.restore(craft, K)
    coding, paper = kept["coding"], kept["paper"]
    if layout.levels != ((None,) * D if coding is None else coding.levels):
        raise ValueError("coding has other categories than the model.")
    craft._model, craft._clusters, craft._coding = model, clusters, coding
    craft._categorical = kept["asked"]
    craft._paper = None if paper is None else PaperFit.from_state(paper, K, D)
    craft._sums = ClusterSums(kept["sums"], kept["counts"], float(kept["blank"]))
    craft._between = None
    if "between_pairs" in kept:
        craft._between = Between.from_state(kept, K, n_numbers(layout))
