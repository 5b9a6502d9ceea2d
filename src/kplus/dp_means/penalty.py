"""Choosing λ²: a penalty for a given number of clusters, and the whole path."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from kplus.base.checks import check_weights, refuse_fewer_rows
from kplus.base.tables import open_table
from kplus.core.job import Job
from kplus.core.types import Array, Blocks
from kplus.dp_means.estimator import DPMeans
from kplus.dp_means.params import Scaling
from kplus.dp_means.penalty_path import PenaltyPath
from kplus.dp_means.resolutions import choose
from kplus.dp_means.search import scaled
from kplus.dp_means.standard import Standard

__all__ = ["penalty_for", "penalty_path"]


def penalty_for(X: Any, n_clusters: int, *, sample_weight: Any = None) -> float:
    """Return a penalty for `DPMeans` that may give about `n_clusters` clusters.

    The heuristic of Kulis & Jordan (2012): from the mean of the data, take the
    farthest row again and again; the penalty is the squared distance of the last one
    to those before it. It suits well separated clusters and otherwise only hints at
    the number: ``DPMeans(n_clusters=...)`` gives exactly that many.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
        The data.
    n_clusters : int
        Number of clusters.
    sample_weight : array-like of shape (n_samples,), optional
        Rows of weight 0 are left out, and the mean is weighted.

    Returns
    -------
    penalty : float

    Examples
    --------
    >>> from kplus import DPMeans, penalty_for
    >>> X = [[0.0], [1.0], [10.0], [11.0], [30.0], [31.0]]
    >>> penalty = penalty_for(X, n_clusters=3)
    >>> DPMeans(penalty).fit(X).n_clusters_
    3
    """
    probe = DPMeans(n_clusters=n_clusters)
    source = open_table(probe, X, reset=True)
    weights = check_weights(sample_weight, source.n_rows)
    _check_number("n_clusters", n_clusters)
    refuse_fewer_rows(probe, "n_clusters", source.n_rows)
    with probe._explaining(source):
        return _farthest_first(source, weights, int(n_clusters))


def _farthest_first(source: Blocks, weights: Array | None, n_clusters: int) -> float:
    """Squared distance of the K-th farthest row, taken in turn from the mean on."""
    job = Job(source, weights, np.random.default_rng(0))
    everything = job.sample(source.n_rows)
    scaling = Scaling.fit(everything.rows)
    sample = scaled(everything, scaling)
    Y = sample.rows
    costs = np.sum((Y - np.average(Y, axis=0, weights=sample.weights)) ** 2, axis=1)
    for _ in range(n_clusters - 1):
        far = Y[np.argmax(costs)]
        costs = np.minimum(costs, np.sum((Y - far) ** 2, axis=1))
    if costs.max() <= 0.0:
        raise ValueError(
            f"n_clusters={n_clusters} is more than X has distinct rows; ask for fewer."
        )
    return float(scaling.inverse_transform_squared(costs.max()))


def penalty_path(
    estimator: DPMeans,
    X: Any,
    *,
    max_clusters: int | None = None,
    sample_weight: Any = None,
) -> PenaltyPath:
    """Return the best number of clusters for each penalty.

    Small clusters of at most 5,000 rows are merged, the cheapest pair first (Ward); the
    corners of the lower hull of SSE(K) are the numbers that some penalty prefers. A
    number that a wide range of penalties prefers is well supported by the data.

    Parameters
    ----------
    estimator : DPMeans
        Its `random_state` decides the sample of a large table.
    X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
        The data.
    max_clusters : int, optional
        How far to go; by default 2√n, at most 200.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows.

    Returns
    -------
    path : PenaltyPath

    Examples
    --------
    >>> import numpy as np
    >>> from kplus import DPMeans, penalty_path
    >>> X = np.repeat([[0.0], [10.0], [25.0]], 50, axis=0)
    >>> X += np.linspace(-1, 1, 150)[:, None]
    >>> path = penalty_path(DPMeans(), X)
    >>> int(path.n_clusters[path.chosen])
    3
    """
    if not isinstance(estimator, DPMeans):
        raise TypeError(f"estimator must be a DPMeans(...), not {estimator!r}.")
    probe = clone(estimator)
    source = open_table(probe, X, reset=True, block_rows=probe.batch_size)
    weights = check_weights(sample_weight, source.n_rows)
    if max_clusters is not None:
        _check_number("max_clusters", max_clusters)
    seed = check_random_state(probe.random_state).randint(2**31 - 1)
    with probe._explaining(source):
        table: Blocks = source
        if probe.scale:
            table = Standard.of(source, weights).blocks(source)
        job = Job(table, weights, np.random.default_rng(seed))
        most = np.inf if max_clusters is None else max_clusters
        return choose(job, most, probe.cells == "if_needed").path


def _check_number(name: str, value: Any) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ValueError(f"{name} must be an int of at least 1, not {value!r}.")
