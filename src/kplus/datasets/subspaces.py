"""Clusters that live in subspaces, after Garg, Rudin & Jaakkola (2016)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.datasets._arguments import Seed, check_sizes

__all__ = ["make_subspace_clusters"]


def _span(*parts: tuple[int, int]) -> list[int]:
    return [d for first, last in parts for d in range(first - 1, last)]


# Columns of the three clusters, counted from 1 as in the paper, where it says so, and
# sizes of the clusters as shares of the rows.
_EQUAL = (1 / 3, 1 / 3, 1 / 3)
_LAYOUTS: dict[str, tuple[str, int, list[list[int]], tuple[float, ...]]] = {
    "2a": ("binary", 24, [_span((1, 8)), _span((9, 16)), _span((17, 24))], _EQUAL),
    "2c": (
        "binary",
        24,
        [_span((1, 4), (9, 12)), _span((13, 20)), _span((5, 8), (17, 20))],
        (7 / 15, 5 / 15, 3 / 15),
    ),
    "3a": ("numeric", 36, [_span((1, 12)), _span((13, 24)), _span((22, 34))], _EQUAL),
    "3c": (
        "numeric",
        36,
        [_span((1, 12)), _span((9, 14), (27, 32)), _span((23, 34))],
        _EQUAL,
    ),
    "4a": (
        "binary",
        24,
        [_span((1, 9)), _span((9, 24)), _span((5, 8), (17, 20))],
        _EQUAL,
    ),
    "4c": (
        "numeric",
        36,
        [_span((1, 12)), _span((13, 32)), _span((9, 14), (25, 30))],
        _EQUAL,
    ),
}
_MEANS = (1.0, 5.0, 10.0)
_RARE = 0.1
_NOISY_COLUMN = 23  # of figure 2c: a coin


def make_subspace_clusters(
    figure: str = "2a", n_samples: int = 300, random_state: Seed = None
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.bool_]]:
    """Draw one of the six tables with which CRAFT was introduced.

    Each of three clusters has columns of its own. In "2a", "2c" and "4a" these are 1,
    and all others are 1 with probability .1. In "3a", "3c" and "4c" they are Gaussian
    with variance 1 and means 1, 5 and 10, and all others have mean 0 and variance 9.
    The paper shows "2c", "3c", "4a" and "4c" as pictures only; their columns are chosen
    here to have what its text says of them.

    Parameters
    ----------
    figure : {"2a", "2c", "3a", "3c", "4a", "4c"}
    n_samples : int
    random_state : int, Generator or None

    Returns
    -------
    X : array of shape (n_samples, 24) of 0 and 1, or (n_samples, 36) of numbers
    labels : array of shape (n_samples,)
    subspaces : array of shape (3, n_columns)
        Which columns each cluster has.

    Examples
    --------
    >>> from kplus.datasets import make_subspace_clusters
    >>> X, labels, subspaces = make_subspace_clusters("3a", random_state=0)
    >>> X.shape, subspaces.sum(axis=1)
    ((300, 36), array([12, 12, 13]))
    """
    if figure not in _LAYOUTS:
        figures = ", ".join(map(repr, _LAYOUTS))
        raise ValueError(f"figure must be one of {figures}; got {figure!r}.")
    check_sizes(n_samples=n_samples)
    rng = np.random.default_rng(random_state)
    kind, D, columns, shares = _LAYOUTS[figure]
    ends = np.round(np.cumsum(shares) * n_samples).astype(int)
    labels = np.searchsorted(ends, np.arange(n_samples), side="right").astype(np.int64)
    subspaces = np.zeros((3, D), dtype=bool)
    for k, own in enumerate(columns):
        subspaces[k, own] = True
    inside = subspaces[labels]
    if kind == "binary":
        X = np.where(inside, 1, rng.uniform(size=(n_samples, D)) < _RARE).astype(
            np.int64
        )
        if figure == "2c":
            X[:, _NOISY_COLUMN] = rng.uniform(size=n_samples) < 0.5
        return X, labels, subspaces
    means = np.array(_MEANS)[labels][:, None]
    noise = rng.standard_normal((n_samples, D))
    return np.where(inside, means + noise, 3.0 * noise), labels, subspaces
