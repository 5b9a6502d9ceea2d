"""How sure a mixture is of its rows, and log scores of rows that were held out."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.base.answers import parts_of
from kplus.core.types import Array
from kplus.data.open import Coder
from kplus.data.rows import MemoryRows, Rows, drawn, some_of
from kplus.data.selection import FROM_DTYPE
from kplus.validation.resampling import as_fitted, fresh

__all__ = ["Sureness", "completed_bound", "held_out_scores", "sureness"]


@dataclass(frozen=True)
class Sureness:
    """Sums over the responsibilities of all rows.

    Attributes
    ----------
    entropy : float
        Mean entropy of a row's shares, in nats.
    expected_error : float
        Mean of what the largest share of a row leaves.
    overlap : (K, K) array
        Of a row of cluster i, the mean share that cluster j has in it.
    """

    entropy: float
    expected_error: float
    overlap: Array


def sureness(estimator: Any, X: Any) -> Sureness:
    """One pass of `predict_proba` over the rows, part by part."""
    n, entropy, error, together = 0, 0.0, 0.0, np.zeros((1, 1))
    for part in parts_of(estimator, X)[1]:
        shares = np.asarray(estimator.predict_proba(part), np.float64)
        noise = np.maximum(1.0 - shares.sum(axis=1, keepdims=True), 0.0)
        every = np.concatenate([shares, noise], axis=1)
        entropy += _entropy(every)
        error += float(np.sum(1.0 - every.max(axis=1)))
        together = together + shares.T @ shares
        n += len(shares)
    mass = together.sum(axis=1, keepdims=True)
    overlap = np.divide(together, mass, out=np.zeros_like(together), where=mass > 0.0)
    return Sureness(entropy / n, error / n, overlap)


def _entropy(shares: Array) -> float:
    some = shares[shares > 0.0]
    return float(-(some @ np.log(some)))


def completed_bound(estimator: Any, X: Any) -> float:
    """The lower bound less the entropy of the components' shares (ICL)."""
    entropy = 0.0
    for part in parts_of(estimator, X)[1]:
        entropy += _entropy(np.asarray(estimator.predict_component_proba(part)))
    return float(estimator.lower_bound_) - entropy


def held_out_scores(
    estimator: Any, X: Any, cv: int, most: int, rng: np.random.Generator
) -> Array:
    """Mean `score_samples` of the rows that each of `cv` fits did not see.

    Categories are those of all rows, so that none is unknown to a fit.
    """
    table = Rows(X)
    rows = drawn(table.n_rows, most, rng)
    if len(rows) < 2 * cv:
        raise ValueError(f"cv={cv} needs at least {2 * cv} rows, not {len(rows)}.")
    sample = _coded(as_fitted(estimator, table.take(rows)), estimator)
    fold = rng.permutation(np.arange(len(rows)) % cv)
    seeds = rng.integers(2**31 - 1, size=cv)
    scores = np.empty(cv)
    for i in range(cv):
        model = fresh(estimator, int(seeds[i]))
        model.fit(some_of(sample, np.flatnonzero(fold != i)))
        held = some_of(sample, np.flatnonzero(fold == i))
        scores[i] = np.mean(model.score_samples(held))
    return scores


def _coded(sample: Any, estimator: Any) -> Any:
    """The same as codes if it has categories, so that all parts have the same ones."""
    if isinstance(sample, MemoryRows) or not hasattr(estimator, "cluster_tree_"):
        return sample
    categorical = getattr(estimator, "categorical_features", FROM_DTYPE)
    blocks, coding = Coder(categorical=categorical).open(sample)
    if coding is None:
        return sample
    return MemoryRows(blocks.take(np.arange(blocks.n_rows)), coding.names, coding)
