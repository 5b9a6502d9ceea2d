"""Two coordinates in which groups of rows lie apart, for a map of them.

Columns are brought to one scale, categories become columns of 0 and 1 with some jitter,
a gap the mean of its column. Of all directions Fisher's discriminant axes have the most
variance between the groups for that inside; where there are two groups only, the second
axis is that of most variance among those on which the groups agree.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from kplus.data.open import Coder
from kplus.plots.style import plain

__all__ = ["Coordinates", "Points", "discriminant"]

_MOST_LEVELS = 12  # categories of a column that count, the commonest
_JITTER = 0.25  # about the 0 and 1 of a category: equal rows would be one dot
_WIDE = 200  # columns of which no covariance is made: their leading axes stand for them
_RIDGE = 1e-3  # of the variance of a column, in what varies inside of groups
_FEWEST_NAMED, _LEAST = 2, 0.4  # columns that name an axis; a share of the largest


class Points(NamedTuple):
    """Some rows of a table as numbers, and the names of their columns."""

    values: NDArray[Any]
    names: list[str]

    @classmethod
    def of(cls, X: Any, numbers: NDArray[Any]) -> "Points":
        """The given rows of a table of any kind; categories as columns of 0 and 1."""
        blocks, coding = Coder().open(X)
        plain = [f"column {i}" for i in range(blocks.n_features)]
        names = getattr(blocks, "feature_names", None)
        names = plain if names is None else list(map(str, names))
        values = np.asarray(blocks.take(numbers), dtype=np.float64)
        if coding is None:
            return cls(values, names)
        rng = np.random.default_rng(0)
        parts, called = [], []
        for j, levels in enumerate(coding.categories):
            if levels is None:
                parts.append(values[:, [j]])
                called.append(names[j])
                continue
            codes, counts = np.unique(values[:, j], return_counts=True)
            known = ~np.isnan(codes)
            order = np.argsort(-counts[known], kind="stable")[:_MOST_LEVELS]
            for code in codes[known][order]:
                jitter = rng.uniform(-_JITTER, _JITTER, (len(values), 1))
                parts.append((values[:, [j]] == code) + jitter)
                called.append(f"{names[j]} = {levels[int(code)]}")
        return cls(np.concatenate(parts, axis=1), called)


class Coordinates(NamedTuple):
    """An affine map to two coordinates, with their names.

    `leading` has the columns that each axis is named by, and whether less of them is
    further right.
    """

    mean: NDArray[Any]
    directions: NDArray[Any]
    names: list[str]
    leading: list[list[tuple[int, bool]]]

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        filled = np.where(np.isnan(values), self.mean, values)
        return np.asarray((filled - self.mean) @ self.directions)


def discriminant(rows: Points, labels: NDArray[Any]) -> Coordinates:
    """Coordinates that tell the groups apart; those of one group by variance alone."""
    X, names = rows
    seen = ~np.isnan(X)
    n = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, X, 0.0).sum(axis=0) / n
    Y = np.where(seen, X - mean, 0.0)
    scale = np.sqrt(np.square(Y).sum(axis=0) / n)
    scale[scale <= 1e-12 * np.abs(mean)] = np.inf  # constant columns say nothing
    scale[scale == 0.0] = np.inf
    Y /= scale
    basis = _leading(Y)
    axes = basis @ _axes(Y @ basis, labels)
    leading = [_leading_columns(axis) for axis in axes.T]
    called = [_called(i, columns, names) for i, columns in enumerate(leading)]
    return Coordinates(mean, axes / scale[:, None], called, leading)


def _leading(Y: NDArray[Any]) -> NDArray[Any]:
    """Axes that hold what there is to see: all, or of wide tables the leading ones."""
    D = Y.shape[1]
    if D <= _WIDE:
        return np.eye(D)
    from sklearn.utils.extmath import randomized_svd

    most = min(_WIDE // 2, len(Y))
    axes: NDArray[Any] = randomized_svd(Y, most, n_iter=2, random_state=0)[2].T
    return axes


def _axes(Y: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """The two best directions, as columns of unit variance inside the groups."""
    D, inside = Y.shape[1], labels >= 0
    groups, owner = np.unique(labels[inside], return_inverse=True)
    K = len(groups)
    counts = np.maximum(np.bincount(owner, minlength=K), 1)[:, None]
    means = np.zeros((K, D))
    np.add.at(means, owner, Y[inside])
    means /= counts
    centred = Y.copy()
    centred[inside] -= means[owner]
    within = centred.T @ centred / max(len(Y), 1) + _RIDGE * np.eye(D)
    if K == 0:
        between = np.zeros((D, D))
    else:
        off = means - np.average(means, axis=0, weights=counts[:, 0])
        between = (off * counts).T @ off / max(counts.sum(), 1)
    first = eigh(between, within)[1][:, ::-1][:, : min(2, max(K - 1, 0), D)]
    if first.shape[1] < min(2, D):
        first = np.column_stack([first, _spread(within, first)])
    return _signed(first)


def _spread(within: NDArray[Any], found: NDArray[Any]) -> NDArray[Any]:
    """Of the directions uncorrelated with those found, the ones of most variance."""
    D = len(within)
    taken = within @ found
    free = np.linalg.svd(np.eye(D) - taken @ np.linalg.pinv(taken))[0]
    free = free[:, : D - found.shape[1]]
    values, vectors = np.linalg.eigh(free.T @ within @ free)
    axes = free @ vectors[:, ::-1][:, : min(2, D) - found.shape[1]]
    scale = np.sqrt(np.maximum(values[::-1][: axes.shape[1]], 1e-300))
    return np.asarray(axes / scale)


def _signed(axes: NDArray[Any]) -> NDArray[Any]:
    """The largest entry of each axis is positive: the same picture each time."""
    largest = np.abs(axes).argmax(axis=0)
    signs = np.sign(axes[largest, np.arange(axes.shape[1])])
    return axes * np.where(signs == 0.0, 1.0, signs)


def _leading_columns(axis: NDArray[Any]) -> list[tuple[int, bool]]:
    share = np.abs(axis) / max(float(np.abs(axis).max(initial=0.0)), 1e-300)
    order = np.argsort(-share, kind="stable")[:_FEWEST_NAMED].tolist()
    return [(j, bool(axis[j] < 0.0)) for j in order if share[j] >= _LEAST]


def _called(
    number: int, leading: Sequence[tuple[int, bool]], names: Sequence[str]
) -> str:
    """As in "axis 1: flavanoids, proline"; a minus where less is further right."""
    told = [f"{'−' * less}{plain(names[j])}" for j, less in leading]
    return f"axis {number + 1}: {', '.join(told)}" if told else f"axis {number + 1}"
