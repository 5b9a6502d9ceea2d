"""How many clusters `DPMixture` has: fits with enough components, and their tree."""

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from kplus.base.checks import check_shapes
from kplus.base.estimator import warn
from kplus.core.job import Job, best_of
from kplus.core.types import IntArray
from kplus.dp_mixture import search
from kplus.dp_mixture.classes import has_classes
from kplus.dp_mixture.clusters import tree_of_draws, tree_of_rows
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.params import Components
from kplus.tree.cluster_tree import check_clusters

__all__ = [
    "attributes",
    "best_fit",
    "check_number",
    "clusters_of",
    "exact_fit",
    "fewer_classes",
    "fit_clusters",
    "restore",
    "warn_of_empty",
    "warn_of_few",
    "with_tree",
]

_SMALL = 50_000  # rows times squared columns of a table that is fitted in no time
_AUTO_STARTS = 3  # of these
_STARTS = 5  # of a fit whose number of components is given
_FEW_PASSES = 2  # after which seeds have not yet lost their rows


def check_number(n_clusters: Any, max_components: int | None) -> None:
    """Refuse more clusters than there may be components."""
    if max_components is not None and _wished(n_clusters) > max_components:
        raise ValueError(
            f"max_components={max_components} should be >= n_clusters={n_clusters}: "
            f"every cluster has a component."
        )


def fit_clusters(
    dp: Any, job: Job, spec: search.Spec, start: Components | None
) -> search.MixtureFit:
    """The best fit with the tree of its components, which has enough of them."""
    n_init = _number_of_starts(dp, job, spec, start)
    result = best_fit(n_init, job, spec, start)
    if _wished(dp.n_clusters) > _n_filled(result.labels):
        result = exact_fit(n_init, job, spec, dp.n_clusters)
    result = with_tree(dp.n_clusters, job, spec.model, result)
    if fewer_classes(dp.n_clusters, result):
        result = exact_fit(n_init, job, spec, dp.n_clusters)
        result = with_tree(dp.n_clusters, job, spec.model, result)
    return result


def _number_of_starts(
    dp: Any, job: Job, spec: search.Spec, start: Components | None
) -> int:
    """If that is left open, small tables are begun with several times."""
    if dp.n_init != "auto":
        return int(dp.n_init)
    work = job.source.n_rows * (job.source.n_features + 1.0) ** 2
    several = start is None and "birth" in spec.kinds and work <= _SMALL
    return _AUTO_STARTS if several else 1


def best_fit(
    n_init: int, job: Job, spec: search.Spec, start: Components | None = None
) -> search.MixtureFit:
    """The fit with the highest bound of several."""
    if n_init > 1:  # each need not go to great lengths
        spec = replace(spec, births=replace(spec.births, shakes=1))
    return best_of(
        n_init,
        job,
        lambda part, again: search.fit(part, spec, start),
        lambda result: -float(result.history[-1]),
    )


def _fullest_fit(n_init: int, job: Job, spec: search.Spec) -> search.MixtureFit:
    """Of several fits without moves that in which most components have rows."""
    return best_of(
        n_init,
        job,
        lambda part, again: search.fit(part, spec),
        lambda result: (-_n_filled(result.labels), -float(result.history[-1])),
    )


def exact_fit(
    n_init: int, job: Job, spec: search.Spec, n_clusters: int
) -> search.MixtureFit:
    """The best fit with just so many components.

    The prior stays as it was resolved: one that is learned would make components that
    the rows do not ask for all the same.
    """
    model = replace(spec.model, learns=False)
    spec = replace(spec, model=model, n_components=int(n_clusters), kinds=())
    n_init = max(n_init, _STARTS)
    result = _fullest_fit(n_init, job, spec)
    if _n_filled(result.labels) < n_clusters:  # some have lost all their rows
        result = _fullest_fit(n_init, replace(job, max_iter=_FEW_PASSES), spec)
    return result


def fewer_classes(n_clusters: Any, result: search.MixtureFit) -> bool:
    """Whether fewer classes were asked for than there are.

    A union of classes is no class; a fit with just so many finds better ones. Not so
    for one cluster, nor where most components are pieces of shapes, which were joined
    because no valley is between.
    """
    tree, K = result.tree, result.params.K
    if tree is None or not has_classes(result.params.family):
        return False
    n_joined = int(np.count_nonzero(tree.heights == 0.0))
    return 1 < _wished(n_clusters) < K and 2 * n_joined <= K


def _wished(n_clusters: Any) -> int:
    """The number that was asked for; 0 if none was."""
    return int(n_clusters) if isinstance(n_clusters, Integral) else 0


def with_tree(
    n_clusters: Any,
    job: Job,
    model: DPMixtureModel,
    result: search.MixtureFit,
    gone: bool = False,
) -> search.MixtureFit:
    """The same with the tree of its components; `gone`: not all rows are at hand."""
    if n_clusters is None:
        return result
    if gone:
        tree = tree_of_draws(job, model, result.params)
    else:
        tree = tree_of_rows(job, model, result.params, result.total.pairs)
    return replace(result, tree=tree)


def attributes(n_clusters: Any, result: search.MixtureFit) -> dict[str, Any]:
    """Fitted attributes of the clusters, by name."""
    K, tree = result.params.K, result.tree
    cluster: IntArray = np.arange(K, dtype=np.int32)
    if tree is not None:
        cluster = tree.cut(None if n_clusters == "auto" else min(n_clusters, K))
    return {
        "n_clusters_": int(cluster.max()) + 1,
        "cluster_of_component_": cluster,
        "cluster_tree_": tree,
        "labels_": clusters_of(cluster, result.labels),
    }


def clusters_of(cluster: IntArray, components: IntArray) -> IntArray:
    """The clusters of rows by their components; noise, -1, stays."""
    out: IntArray = np.append(cluster, cluster.dtype.type(-1))[components]
    return out


def _n_filled(labels: IntArray) -> int:
    """How many clusters or components have rows."""
    return len(np.unique(labels[labels >= 0]))


def warn_of_few(dp: Any) -> None:
    """Warn where a stream has fewer components than clusters were asked for."""
    if _wished(dp.n_clusters) > dp.n_components_:
        warn(
            f"n_clusters={dp.n_clusters}, but the stream has only {dp.n_components_} "
            f"components so far: each is a cluster."
        )


def warn_of_empty(dp: Any) -> None:
    """Warn where rows fill fewer clusters than were asked for."""
    n_filled = _n_filled(dp.labels_)
    if n_filled < _wished(dp.n_clusters):
        warn(
            f"n_clusters={dp.n_clusters}, but only {n_filled} clusters have rows of "
            f"their own: the rows do not fall into more; ask for fewer."
        )


def restore(dp: Any) -> None:
    """Check the clusters of a model from a file against its components."""
    K, tree = dp.n_components_, getattr(dp, "cluster_tree_", None)
    if not hasattr(dp, "cluster_of_component_"):  # kept before there were clusters
        dp.cluster_of_component_ = np.arange(K, dtype=np.int32)
        dp.component_labels_ = dp.labels_
    cluster = dp.cluster_of_component_
    check_shapes({"cluster_of_component_": (cluster, (K,))})
    check_clusters("cluster_of_component_", cluster, dp.n_clusters_, tree)
