"""How many clusters `CRAFT` has: fits with enough components, and their tree."""

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from kplus.base.checks import check_shapes
from kplus.core.job import Job
from kplus.core.types import Array, IntArray
from kplus.craft import search
from kplus.craft.clusters import Between, borders_of, look_between, tree_of
from kplus.craft.model import ClusterSums, CraftModel, by_size
from kplus.tree.cluster_tree import ClusterTree, check_clusters

__all__ = [
    "attributes",
    "fit_clusters",
    "joined",
    "restore",
    "scores_of",
    "stream",
    "wished",
    "with_tree",
]


def wished(n_clusters: Any) -> int | None:
    """The number that was asked for, None if it is open."""
    return int(n_clusters) if isinstance(n_clusters, Integral) else None


def fit_clusters(n_clusters: Any, job: Job, spec: search.CraftSpec) -> search.CraftFit:
    """A fit with its tree, cut where the rows say or at the number asked for.

    A number is met by a fit with as many components. If no valley is between some of
    these, they cut through what belongs together. Then the components of a fit with an
    open number are joined to as many clusters, if these have valleys between them. Not
    with a budget of features: it is meant for the clusters themselves.
    """
    number = wished(n_clusters)
    result = with_tree(n_clusters, job, search.fit(job, spec))
    if number is None or result.tree is None or spec.fraction is not None:
        return result
    if result.tree.n_clusters == result.sums.K:
        return result
    other = with_tree(n_clusters, job, search.fit(job, replace(spec, n_clusters=None)))
    assert other.tree is not None
    return other if other.tree.n_clusters >= number else result


def with_tree(n_clusters: Any, job: Job, result: search.CraftFit) -> search.CraftFit:
    """The same with the tree of its components, unless each is to be a cluster."""
    if n_clusters is None:
        return result
    between = look_between(job, result.model, result.clusters, result.sums)
    tree = tree_of(result.model, result.clusters, result.sums, between)
    return replace(result, between=between, tree=tree)


def stream(
    job: Job,
    spec: search.CraftSpec,
    model: CraftModel,
    sums: ClusterSums,
    between: Between | None,
    *,
    keep: bool,
) -> search.CraftFit:
    """Go on with a batch of rows; what lies between components adds to what did.

    With `keep` there is a tree: components keep their numbers and none are merged, as
    the tree does that.
    """
    result = search.fit_from(job, spec, model, sums, base=sums, keep=keep)
    if not keep:
        return result
    if between is not None:
        borders = borders_of(job, result.model, result.clusters, between.along)
        borders += between.borders
        between = Between(between.along, borders)
    tree = tree_of(result.model, result.clusters, result.sums, between)
    return replace(result, between=between, tree=tree)


def attributes(n_clusters: Any, result: search.CraftFit) -> dict[str, Any]:
    """Fitted attributes of clusters and components, by name."""
    tree, sums = result.tree, result.sums
    cluster: IntArray = np.arange(sums.K, dtype=np.int32)
    if tree is not None:
        number = wished(n_clusters)
        cluster = tree.cut(None if number is None else min(number, sums.K))
        order = by_size(joined(sums, cluster))
        cluster = order[cluster].astype(np.int32)
    return {
        "n_clusters_": int(cluster.max()) + 1,
        "n_components_": sums.K,
        "labels_": cluster[result.labels],
        "component_labels_": result.labels.astype(np.int32),
        "cluster_of_component_": cluster,
        "cluster_tree_": tree,
    }


def joined(sums: ClusterSums, cluster: IntArray) -> ClusterSums:
    """The sums of clusters: those of their components, added up."""
    return sums.regroup(cluster.astype(np.int64), int(cluster.max()) + 1)


def scores_of(cluster: IntArray, scores: Array) -> Array:
    """A row's score in a cluster is its highest in a component of it."""
    K = int(cluster.max()) + 1
    out = np.full((len(scores), K), -np.inf)
    for k, c in enumerate(cluster):
        np.maximum(out[:, c], scores[:, k], out=out[:, c])
    return out


def restore(craft: Any, K: int) -> None:
    """Check the clusters of a model from a file against its components."""
    tree: ClusterTree | None = getattr(craft, "cluster_tree_", None)
    if not hasattr(craft, "cluster_of_component_"):  # kept before there were any
        craft.cluster_of_component_ = np.arange(K, dtype=np.int32)
        craft.component_labels_, craft.n_components_ = craft.labels_, K
    cluster = craft.cluster_of_component_
    check_shapes({"cluster_of_component_": (cluster, (K,))})
    check_clusters("cluster_of_component_", cluster, craft.n_clusters_, tree)
