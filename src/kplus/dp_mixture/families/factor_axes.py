"""The principal axes of a wide table, from no more than its smaller side squared."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from kplus.core.types import Array
from kplus.dp_mixture.families.columns import column_moments, row_weights
from kplus.dp_mixture.families.factor_gaps import Reference, hidden, parts_of
from kplus.dp_mixture.families.gaps import normals_of_rows
from kplus.dp_mixture.families.learning import resolutions

__all__ = ["Axes", "principal_axes"]

_VALUES = 4_000_000  # of a sample that axes are found on ...
_LEAST_ROWS = 1_000  # ... and rows that it has at least
_GAP_ROWS = 2_000  # rows at most, where values are missing ...
_FILLS = 4  # ... and how often they are filled with what axes say
_CHUNK = 2**21  # values in a chunk: copies of a wide table are never whole
_NEGLIGIBLE = 1e-9  # variance along an axis that has none, as a share of the largest
_FLOOR = 1e-4  # least noise, as a share of the columns' mean variance


class Axes(NamedTuple):
    """Rows in units of their noise, y = (x - origin) · inv, and where they spread most.

    Attributes
    ----------
    origin, inv : arrays of shape (D,)
    basis : array of shape (D, p)
        Orthonormal axes of y.
    resolution : array of shape (D,)
        Variance of rounding of y, see `learning.resolutions`.
    rows : array of shape (n, D)
        Those of the sample that they were found on.
    weights : array of shape (n,)
    """

    origin: Array
    inv: Array
    basis: Array
    resolution: Array
    rows: Array
    weights: Array

    def scores(self) -> Array:
        """The rows along the axes, (n, p)."""
        out = np.zeros((len(self.rows), self.basis.shape[1]))
        for part in _chunks(self.rows.shape[1], len(self.rows)):
            Y = (self.rows[:, part] - self.origin[part]) * self.inv[part]
            out += Y @ self.basis[part]
        return out


def principal_axes(sample: Array, weights: Array | None, most: int) -> Axes:
    """At most so many axes, fewer where there are few rows, and the noise they leave.

    The noise of a column is in proportion to m₄/m₂, its variance times its kurtosis.
    This follows the column's unit, as its variance does. But a column that hardly ever
    varies, as a pixel at the edge of images does, has little variance and a high
    kurtosis: in units of its standard deviation it would count for as much as any
    other, and a single rare value for more than all of them.
    """
    gaps = np.isnan(sample).any()
    most_rows = _GAP_ROWS if gaps else max(_LEAST_ROWS, _VALUES // sample.shape[1])
    step = -(-len(sample) // most_rows)
    rows = sample[::step]
    heavy = row_weights(rows, None if weights is None else weights[::step])
    rounding = resolutions(rows[:_LEAST_ROWS])
    if not gaps:
        return _axes_of(rows, heavy, most, rounding)
    missing = np.isnan(rows)
    filled = np.where(missing, column_moments(rows, heavy)[0], rows)
    for _ in range(_FILLS):
        axes = _axes_of(filled, heavy, most, rounding)
        filled[missing] = _likely(rows, axes)[missing]
    return _axes_of(filled, heavy, most, rounding)


def _likely(rows: Array, axes: Axes) -> Array:
    """Rows whose gaps are filled with draws from one Gaussian of all of them.

    A draw of the whole row, moved by what is observed, follows the values observed; and
    so that these alone decide it, all columns have draws of their own.
    """
    deviations = np.sqrt(np.maximum(np.mean(axes.scores() ** 2, axis=0), 1e-300))
    Y = (rows - axes.origin) * axes.inv
    drawn = normals_of_rows(Y)
    drawn += drawn @ axes.basis * (deviations - 1.0) @ axes.basis.T
    reference = Reference(axes.basis, np.empty(0))
    Y -= drawn
    found = reference.reduce(Y)
    pull = np.zeros((len(Y), len(deviations)))
    for part in parts_of(len(Y), len(deviations)):
        some = found.some(np.arange(len(Y))[part])
        means = hidden(some, 0.0 * deviations, np.diag(1.0 / deviations)).means
        pull[part] = means - means / deviations**2
    drawn += reference.filled(Y, pull)
    return drawn / axes.inv + axes.origin


def _axes_of(rows: Array, heavy: Array, most: int, rounding: Array) -> Axes:
    """Of rows without gaps; `rounding` is the variance of it in their columns."""
    share = heavy / heavy.sum()
    n, D = rows.shape
    origin, inv = np.empty(D), np.empty(D)
    for part in _chunks(D, n):
        origin[part], variances = column_moments(rows[:, part], heavy)
        deviations = np.sqrt(variances)
        Y = (rows[:, part] - origin[part]) / deviations
        kurtosis = np.maximum(share @ Y**4, 1.0)
        inv[part] = 1.0 / (deviations * np.sqrt(kurtosis))
    # As many rows as axes would leave no noise.
    different = len({row.tobytes() for row in rows[heavy > 0.0]})
    most = min(most, D if different >= 2 * D else max(1, different // 2))
    values, basis, total = _leading(rows, share, origin, inv, most)
    resolution = rounding * inv**2
    rest = (total - values.sum()) / max(D - len(values), 1)
    noise = max(rest, _FLOOR * total / D, float(resolution.mean()), 1e-300)
    noise = noise if total > 0.0 else 1.0
    inv /= np.sqrt(noise)
    return Axes(origin, inv, basis, resolution / noise, rows, heavy)


def _leading(
    rows: Array, share: Array, origin: Array, inv: Array, most: int
) -> tuple[Array, Array, float]:
    """Variances along the foremost axes, the axes, and the variance in all.

    By the products of rows where there are more columns, else by those of columns.
    """
    n, D = rows.shape
    wide = n < D
    G = np.zeros((n, n) if wide else (D, D))
    for part in _chunks(D, n) if wide else _chunks(n, D):
        Y = _scaled(rows, share, origin, inv, part, wide)
        G += Y @ Y.T if wide else Y.T @ Y
    total = float(np.trace(G))
    if not total > 0.0:  # one row, or all alike
        return np.zeros(1), np.eye(D, 1), total
    values, vectors = eigh(G, subset_by_index=(len(G) - most, len(G) - 1))
    kept = values > _NEGLIGIBLE * values[-1]
    values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
    if wide:
        basis = np.empty((D, len(values)))
        for part in _chunks(D, n):
            basis[part] = _scaled(rows, share, origin, inv, part, wide).T @ vectors
        vectors, _ = np.linalg.qr(basis / np.sqrt(values))
    # An axis has two ends; its largest entry is to be above 0.
    top = np.argmax(np.abs(vectors), axis=0)
    vectors = vectors * np.sign(vectors[top, np.arange(len(values))])
    return values, np.ascontiguousarray(vectors), total


def _scaled(
    rows: Array, share: Array, origin: Array, inv: Array, part: slice, wide: bool
) -> Array:
    """√share · y of some of the columns (`wide`), or of some of the rows."""
    some, of = (slice(None), part) if wide else (part, slice(None))
    Y: Array = (rows[some, of] - origin[of]) * inv[of]
    Y *= np.sqrt(share[some])[:, None]
    return Y


def _chunks(length: int, others: int) -> list[slice]:
    """Parts of one side of a table, for the length of the other."""
    size = max(1, _CHUNK // max(others, 1))
    return [slice(i, i + size) for i in range(0, length, size)]
