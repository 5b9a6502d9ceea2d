"""How well clusters agree with classes, and subspaces with the true ones."""

from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import (
    adjusted_rand_score,
    f1_score,
    normalized_mutual_info_score,
)
from sklearn.metrics.cluster import contingency_matrix


def purity(classes: np.ndarray, labels: np.ndarray) -> float:
    """Share of rows whose class is the most frequent one of their cluster."""
    return float(contingency_matrix(classes, labels).max(axis=0).sum() / len(classes))


def nmi(classes: np.ndarray, labels: np.ndarray) -> float:
    """Mutual information over the geometric mean of the entropies."""
    return float(
        normalized_mutual_info_score(classes, labels, average_method="geometric")
    )


def ari(classes: np.ndarray, labels: np.ndarray) -> float:
    return float(adjusted_rand_score(classes, labels))


def f1_majority(classes: np.ndarray, labels: np.ndarray) -> float:
    """Mean F1 of the classes, each cluster named after its most frequent class."""
    return macro_f1(classes, labels, contingency_matrix(classes, labels).argmax(axis=0))


def f1_matched(classes: np.ndarray, labels: np.ndarray) -> float:
    """Mean F1 of the classes, each the name of one cluster at most.

    As many rows as possible agree; rows of further clusters are of no class.
    """
    table = contingency_matrix(classes, labels)
    old_to_new = np.full(table.shape[1], -1)
    rows, columns = linear_sum_assignment(-table)
    old_to_new[columns] = rows
    return macro_f1(classes, labels, old_to_new)


def macro_f1(classes: np.ndarray, labels: np.ndarray, old_to_new: np.ndarray) -> float:
    """Mean F1 of the classes; cluster k is called class ``into[k]``."""
    names, true = np.unique(classes, return_inverse=True)
    named = old_to_new[np.unique(labels, return_inverse=True)[1]]
    kinds = np.arange(len(names))
    scores = f1_score(true, named, labels=kinds, average="macro", zero_division=0.0)
    return float(scores)


def mean_pairwise_ari(labels: list[np.ndarray]) -> float:
    """Agreement of runs with each other; 1 if there is one run only."""
    values = [ari(a, b) for a, b in combinations(labels, 2)]
    return float(np.mean(values)) if values else 1.0


def same_partition(classes: np.ndarray, labels: np.ndarray) -> bool:
    table = contingency_matrix(classes, labels)
    return bool(
        table.shape[0] == table.shape[1] and np.count_nonzero(table) == len(table)
    )


def same_subspaces(
    classes: np.ndarray,
    labels: np.ndarray,
    subspaces: np.ndarray,
    selected: np.ndarray,
    at_most: int | None = None,
) -> bool:
    """Whether clusters, which are the classes, have the true features.

    With a budget of ``at_most`` features, a subspace that is larger counts as found if
    all that are selected belong to it.
    """
    for k, own in enumerate(subspaces):
        found = selected[labels[np.argmax(classes == k)]]
        if at_most is not None and own.sum() > at_most:
            if found.sum() != at_most or (found & ~own).any():
                return False
        elif not np.array_equal(found, own):
            return False
    return True
