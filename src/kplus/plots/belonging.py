"""How far rows belong to groups, by the public methods of whatever was fitted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from kplus.plots.display import final_step

__all__ = ["feature_shares", "shares_of", "surenesses"]

_BY_DISTANCE = "1 − distance to its own centre / to the next"


def shares_of(estimator: Any, X: Any) -> NDArray[Any] | None:
    """The probability of each cluster for each row; None where there are none."""
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X), dtype=np.float64)
    last = final_step(estimator)
    if hasattr(last, "feature_scores_"):  # CRAFT, whose scores are log likelihoods
        if getattr(last, "variant", None) == "paper":
            raise ValueError(
                'CRAFT with variant="paper" has costs, and no probabilities, of rows; '
                'fit with variant="likelihood".'
            )
        return np.asarray(softmax(np.asarray(estimator.transform(X)), axis=1))
    return None


def feature_shares(estimator: Any, X: Any) -> NDArray[Any] | None:
    """What rows have of each feature; None where there are clusters."""
    if not hasattr(final_step(estimator), "components_"):
        return None
    Z = estimator.transform(X)
    return np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)


def surenesses(
    estimator: Any, X: Any, labels: NDArray[Any]
) -> tuple[NDArray[Any], str]:
    """How surely each row belongs where it is put, 0 to 1, and what that is.

    Its probability; of rows in no cluster what all clusters leave; and where there are
    centres instead 1 - a/b, of the distances to its own and to the next.
    """
    rows = np.arange(len(labels))
    shares = shares_of(estimator, X)
    if shares is not None:
        own = shares[rows, np.maximum(labels, 0)]
        sure = np.where(labels >= 0, own, 1.0 - shares.sum(axis=1))
        return np.clip(sure, 0.0, 1.0), "probability of its cluster"
    last = final_step(estimator)
    if not hasattr(last, "cluster_centers_") or not hasattr(estimator, "transform"):
        raise ValueError(
            f"{type(last).__name__} tells neither probabilities nor distances of rows: "
            f"use from_predictions with numbers of your own."
        )
    distances = np.array(estimator.transform(X), dtype=np.float64)
    own = distances[rows, labels].copy()
    if distances.shape[1] == 1:
        return np.ones(len(labels)), _BY_DISTANCE
    distances[rows, labels] = np.inf
    nearest = distances.min(axis=1)
    ratio = np.divide(own, nearest, out=np.ones_like(own), where=nearest > 0.0)
    return np.clip(1.0 - ratio, 0.0, 1.0), _BY_DISTANCE
