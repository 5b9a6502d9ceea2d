"""What the parameters of `DPMeans` ask for: checks, and which search."""

from dataclasses import replace
from typing import Any

import numpy as np

from kplus.base.checks import refuse_other_columns
from kplus.core.job import Job, best_of
from kplus.core.types import Array
from kplus.dp_means import full_covariance_search as full_covariance
from kplus.dp_means import search
from kplus.dp_means import sequential_search as sequential
from kplus.dp_means.full_covariance import Ellipsoids
from kplus.dp_means.search import Fitted

__all__ = ["cap", "check", "check_stream", "find_clusters"]


def check(dp: Any) -> None:
    """Refuse parameters that do not go together."""
    if dp.n_clusters is not None and dp.max_clusters is not None:
        raise ValueError(
            "max_clusters goes with penalty; with n_clusters the number is fixed."
        )
    free = dp.n_clusters is None and not isinstance(dp.penalty, str)
    for name, asked in (
        ("algorithm='serial'", dp.algorithm == "serial"),
        ("covariance='full'", dp.covariance == "full"),
    ):
        if asked and not free:
            raise ValueError(f"{name} needs a number as penalty, and n_clusters=None.")
    if dp.collapsed and not free and dp.n_clusters is None:
        raise ValueError("collapsed=True needs a number as penalty, or n_clusters.")
    chosen = [dp.algorithm == "serial", dp.collapsed, dp.covariance == "full"]
    if sum(chosen) > 1:
        raise ValueError(
            "algorithm='serial', collapsed=True and covariance='full' are three "
            "different algorithms; choose one."
        )


def check_stream(dp: Any) -> None:
    """Streams need statistics that only the fast algorithm keeps."""
    for setting, asked in (
        ("algorithm='serial'", dp.algorithm == "serial"),
        ("collapsed=True", dp.collapsed),
        ("covariance='full'", dp.covariance == "full"),
        ("a fit with covariances_", hasattr(dp, "covariances_")),
    ):
        if asked:
            raise ValueError(
                f"partial_fit does not go with {setting}: streams need "
                f"algorithm='fast', collapsed=False and covariance='spherical'."
            )


def find_clusters(dp: Any, job: Job) -> Fitted:
    """Fit in the way that the parameters ask for; clusters come by falling size."""
    path, K, penalty = None, dp.n_clusters, dp.penalty
    start = _start(dp)
    if K is None and not isinstance(penalty, str):
        return best_of(
            dp.n_init, job, lambda part, again: _by_penalty(dp, part, start, again)
        )
    if K is None:
        path = search.find_path(job, cap(dp))
        K, penalty = int(path.n_clusters[path.chosen]), path.penalty
    if start is not None and len(start) != K:
        start = None
    by_number = sequential.collapsed_number if dp.collapsed else search.by_number
    fitted = best_of(
        dp.n_init,
        job,
        lambda part, again: by_number(part, K, start=start, random_start=again),
    )
    if not isinstance(penalty, str):
        fitted = fitted.at_penalty(penalty)
    return replace(fitted, path=path)


def _by_penalty(dp: Any, job: Job, start: Array | None, random_start: bool) -> Fitted:
    if dp.covariance == "full":
        return full_covariance.by_penalty(
            job,
            dp.penalty,
            dp.min_covariance,
            cap(dp),
            start=None if start is None else _ellipsoids(dp, start),
            random_start=random_start,
        )
    fit = search.by_penalty
    if dp.algorithm == "serial":
        fit = sequential.serial
    elif dp.collapsed:
        fit = sequential.collapsed
    return fit(job, dp.penalty, cap(dp), start=start, random_start=random_start)


def cap(dp: Any) -> float:
    """The most clusters allowed."""
    return np.inf if dp.max_clusters is None else dp.max_clusters


def _start(dp: Any) -> Array | None:
    """With `warm_start` after a fit: its centres, as many as the cap allows."""
    if not dp.warm_start or not hasattr(dp, "cluster_centers_"):
        return None
    start: Array = dp.cluster_centers_
    refuse_other_columns(dp.n_features_in_, start.shape[1])
    return start[: int(min(len(start), cap(dp)))]


def _ellipsoids(dp: Any, centers: Array) -> Ellipsoids:
    """The last fit's matrices; spheres after a spherical fit."""
    if hasattr(dp, "covariances_"):
        return Ellipsoids(centers, dp.covariances_[: len(centers)])
    return Ellipsoids.spheres(centers, dp.min_covariance)
