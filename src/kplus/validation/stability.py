"""Stability: whether groups come back in fits to other rows."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kplus.base.checks import check_weights
from kplus.base.estimator import warn
from kplus.core.types import Array, IntArray
from kplus.data.rows import Rows, drawn
from kplus.validation.matching import Match, match_features, match_labels
from kplus.validation.resampling import (
    METHODS,
    Draw,
    Fit,
    Method,
    Progress,
    as_bits,
    as_fitted,
    draws,
    fits,
    found_by,
    fresh,
    is_for_features,
)
from kplus.validation.stability_result import Stability

__all__ = ["stability"]

_FEWEST_ROWS = 4


def stability(
    estimator: Any,
    X: Any,
    *,
    n_resamples: int = 20,
    method: Method = "bootstrap",
    max_rows: int = 5_000,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Stability:
    """Return how far clusters, or features, come back in fits to other rows.

    The estimator is fitted again and again to rows drawn from `X`. Each of its clusters
    is compared with the one most like it in every such fit, by Jaccard's index: the
    rows that are in both, as a share of those that are in either. This is the
    bootstrap of Hennig (2007), the ``clusterboot`` of R's fpc. A cluster's stability is
    the mean of this index less what chance alone would give, scaled to reach 1. As a
    rule of thumb, a cluster of .75 and more is there, and one below .6 is not to be
    trusted; in a fit with an index below .5 it has dissolved.

    Stable is not the same as true: two halves of one long group are cut in the same
    place each time. `validate` tells whether there is anything between them.

    Parameters
    ----------
    estimator : estimator
        Of clusters or of features; also a pipeline that ends in one. If it is fitted,
        its own answer is judged; if not, a fit to the sample.
    X : array-like, sparse matrix, data frame, path or blocks
        The rows that it was fitted to.
    n_resamples : int, default=20
        Number of fits.
    method : {"bootstrap", "subsample", "seeds"}, default="bootstrap"
        What the fits differ in. Rows drawn with replacement, each of them used once;
        half of the rows; or the same rows with other random numbers, which
        tells how much the search leaves to chance.
    max_rows : int, default=5000
        Of more rows a sample of this size is drawn once, and all fits are to rows of
        it. So a small group of a large table may be gone from every fit.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, for the fits and in the index.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws and of the fits.
    n_jobs : int or None, default=None
        Fits at a time; -1 uses all cores. The result does not depend on it.
    progress : callable, optional
        Called after each fit with the number of those done and of all.

    Returns
    -------
    stability : Stability

    See Also
    --------
    validate : How good clusters are, without fitting again.

    References
    ----------
    C. Hennig. "Cluster-wise assessment of cluster stability." Computational Statistics
    & Data Analysis 52, 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from kplus import DPMeans, stability
    >>> X, _ = make_blobs(300, centers=3, random_state=1)
    >>> model = DPMeans(random_state=0).fit(X)
    >>> print(stability(model, X, random_state=0))
    Stable: all 3 clusters come back.
    """
    _check(n_resamples, method, max_rows)
    seed = check_random_state(random_state).randint(2**31 - 1)
    rng = np.random.default_rng(seed)
    table = Rows(X)
    weights = check_weights(sample_weight, table.n_rows)
    rows = _sample(table.n_rows, weights, max_rows, rng)
    sample = table.take(rows)
    own = None if weights is None else weights[rows]
    groups, model = _reference(estimator, sample, rows, table.n_rows, own, seed)
    sample = as_fitted(model, sample)
    todo = draws(method, len(rows), n_resamples, rng)
    n_threads = min(effective_n_jobs(n_jobs), n_resamples)
    done = list(fits(estimator, sample, todo, own, n_threads, progress))
    return _compared(groups, todo, done, own, _Asked(method, table.n_rows, rows))


class _Asked(NamedTuple):
    """What is told of the request beside the numbers."""

    method: str
    n_rows: int
    rows: IntArray


def _check(n_resamples: Any, method: Any, max_rows: Any) -> None:
    least = {"n_resamples": (n_resamples, 1), "max_rows": (max_rows, _FEWEST_ROWS)}
    for name, (value, lowest) in least.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not whole or value < lowest:
            raise ValueError(
                f"{name} must be an int of at least {lowest}, not {value!r}."
            )
    if method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise ValueError(f"method must be one of {known}, not {method!r}.")


def _sample(
    n_rows: int, weights: Array | None, most: int, rng: np.random.Generator
) -> IntArray:
    """The numbers of the rows that all fits draw from; those of no weight are out."""
    known = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
    if len(known) < _FEWEST_ROWS:
        raise ValueError(
            f"Stability needs {_FEWEST_ROWS} or more rows that count, not {len(known)}."
        )
    return known[drawn(len(known), most, rng)]


def _reference(
    estimator: Any,
    sample: Any,
    rows: IntArray,
    n_rows: int,
    weights: Array | None,
    seed: int,
) -> tuple[Any, Any]:
    """The groups to judge, and the model that found them, fitted here if need be."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        given = getattr(estimator, "random_state", None)
        other = fresh(estimator, seed if given is None else None)
        return found_by(other, sample, weights), other
    if is_for_features(estimator):
        return as_bits(estimator.transform(sample)), estimator
    if hasattr(estimator, "predict"):
        return np.asarray(estimator.predict(sample)), estimator
    labels = np.asarray(estimator.labels_)
    if len(labels) != n_rows:
        raise ValueError(
            f"{type(estimator).__name__} has no predict, and its labels_ are those of "
            f"{len(labels)} rows, not of the {n_rows} of X: give the rows of its fit."
        )
    return labels[rows], estimator


def _compared(
    groups: Any,
    todo: list[Draw],
    done: list[Fit],
    weights: Array | None,
    asked: _Asked,
) -> Stability:
    """Match what each fit found with the groups."""
    K = groups.shape[1] if groups.ndim == 2 else int(groups.max(initial=-1)) + 1
    n, failed = len(groups), [fit.error for fit in done if fit.groups is None]
    if len(failed) == len(done):
        raise ValueError(f"None of {len(done)} fits was possible: {failed[0]}")
    if failed:
        warn(
            f"{len(failed)} of {len(done)} fits to drawn rows were not possible and "
            f"are left out; the first: {failed[0]}"
        )
    pairs = [(d, f) for d, f in zip(todo, done, strict=True) if f.groups is not None]
    matches = [_match(groups, K, draw.rows, fit.groups, weights) for draw, fit in pairs]
    agreed, times = np.zeros(n), np.zeros(n)
    for (draw, _), match in zip(pairs, matches, strict=True):
        agreed[draw.rows] += match.agreement
        times[draw.rows] += 1.0
    counts = np.ones(n) if weights is None else weights
    of_groups = groups.T if groups.ndim == 2 else np.equal.outer(np.arange(K), groups)
    noise = np.array([match.noise for match in matches])
    return Stability(
        method=asked.method,
        n_rows=asked.n_rows,
        rows=asked.rows,
        kind="features" if groups.ndim == 2 else "clusters",
        sizes=of_groups @ counts,
        jaccard=np.stack([match.jaccard for match in matches]),
        by_chance=np.stack([match.by_chance for match in matches]),
        noise_jaccard=noise if np.any(~np.isnan(noise)) else None,
        noise_size=0.0 if groups.ndim == 2 else float(counts @ (groups < 0)),
        row_agreement=np.divide(
            agreed, times, out=np.full(n, np.nan), where=times > 0.0
        ),
        n_found=np.array([fit.n_found for _, fit in pairs]),
        n_failed=len(failed),
        n_unconverged=sum(not fit.converged for _, fit in pairs),
    )


def _match(
    groups: Any, K: int, rows: IntArray, found: Any, weights: Array | None
) -> Match:
    own = None if weights is None else weights[rows]
    if groups.ndim == 2:
        return match_features(groups[rows], found, own)
    return match_labels(groups[rows], found, K, own)
