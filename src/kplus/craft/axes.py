"""An axis between two components, on which a valley between them would show.

In a component columns are taken to be independent. So a long and slanting group of rows
is cut into several, one after the other along its slope. To see whether rows lead from
one to the next, their correlations must count: the axis is Fisher's, in all columns of
numbers.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from kplus.base.checks import check_shapes
from kplus.core.types import Array, IntArray
from kplus.craft.layout import Layout, Rows
from kplus.craft.model import ClusterSums
from kplus.tree.borders import Axes

__all__ = ["PairAxes", "least_steps", "n_numbers"]

_MOST_DIMENSIONS = 64  # principal axes in which Fisher's are looked for
_ROWS_EACH = 8  # of a mean component, for each of these: else all lie apart by chance
_RIDGE = 1e-9  # of the mean variance: columns may be constant within components


@dataclass(frozen=True)
class PairAxes:
    """Axes of pairs of components, and where rows lie on them.

    Attributes
    ----------
    axes : Axes
    coefficients : (n_pairs, S)
        What takes the numbers of a row, in the units of the layout, to each axis.
    widths : (n_pairs,)
        Over how wide a part of an axis a row is spread: values that are rounded stand
        for intervals, and bins between them would be valleys.
    means : (K, S)
        Of the components, in place of values that are missing.
    volumes : (K,)
        ½ log of the determinants of the components' covariances.
    dimensions : int
        Of the space in which the axes lie.
    """

    axes: Axes
    coefficients: Array
    widths: Array
    means: Array
    volumes: Array
    dimensions: int

    @classmethod
    def none(cls, layout: Layout, K: int) -> "PairAxes":
        """Of no pairs."""
        S, two, one = n_numbers(layout), np.empty((0, 2)), np.empty(0)
        axes = Axes(np.empty((0, 2), np.int64), one, one, two, two)
        return cls(axes, np.empty((0, S)), one, np.zeros((K, S)), np.zeros(K), 1)

    @classmethod
    def of(
        cls, layout: Layout, sums: ClusterSums, rows: Rows, labels: IntArray,
        pairs: IntArray,
    ) -> "PairAxes":  # fmt: skip
        """The axes of some pairs, by rows that are in memory.

        Fisher's axis is ((Σ_a + Σ_b)/2)⁻¹ (μ_b − μ_a). Each Σ is that of the rows of a
        component, with the mean of all of them as a prior that counts as two more rows
        than there are columns. Of many columns the leading principal axes are enough.
        """
        means = _means(layout, sums)
        Y = _numbers(layout, rows, labels, means)
        basis = _principal_axes(Y, rows.weights, sums.K)
        steps = least_steps(layout, rows)
        covariances = _covariances(Y, rows.weights, labels, means, basis)
        covariances += np.diag((basis**2).T @ (steps**2 / 12.0))
        a, b = pairs.T
        pooled = 0.5 * (covariances[a] + covariances[b])
        inside = means @ basis
        lines = np.linalg.solve(pooled, (inside[b] - inside[a])[..., None])[..., 0]
        spreads = np.einsum("pi,psij,pj->ps", lines, covariances[pairs], lines)
        coefficients = lines @ basis.T
        axes = Axes.spanning(
            pairs,
            np.einsum("psi,pi->ps", means[pairs], coefficients),
            np.sqrt(np.maximum(spreads, 1e-300)),
        )
        volumes = 0.5 * np.linalg.slogdet(covariances)[1]
        widths = np.sqrt(coefficients**2 @ steps**2)
        return cls(axes, coefficients, widths, means, volumes, basis.shape[1])

    def numbers(self, layout: Layout, rows: Rows, labels: IntArray) -> Array:
        """The numbers of rows, (n, S)."""
        return _numbers(layout, rows, labels, self.means)

    def to_state(self) -> dict[str, Any]:
        """Arrays for model files."""
        return {
            **{f.name: getattr(self.axes, f.name) for f in fields(Axes)},
            **{f.name: getattr(self, f.name) for f in fields(self) if f.name != "axes"},
        }

    @classmethod
    def from_state(cls, kept: dict[str, Any], K: int, S: int) -> "PairAxes":
        """The same from a model file; refuses what does not fit together."""
        n = len(kept["pairs"])
        shapes = {
            "pairs": (n, 2), "low": (n,), "high": (n,), "centers": (n, 2),
            "spreads": (n, 2), "coefficients": (n, S), "widths": (n,),
            "means": (K, S), "volumes": (K,),
        }  # fmt: skip
        check_shapes({name: (kept[name], shape) for name, shape in shapes.items()})
        pairs = kept["pairs"]
        if not np.all((pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1])):
            raise ValueError("pairs are not of two components.")
        if not np.all(pairs < K) or not 1 <= int(kept["dimensions"]) <= max(S, 1):
            raise ValueError("pairs or dimensions are more than there are.")
        axes = Axes(**{f.name: kept[f.name] for f in fields(Axes)})
        rest = [f.name for f in fields(cls) if f.name != "axes"]
        return cls(axes, **{name: kept[name] for name in rest})


def n_numbers(layout: Layout) -> int:
    """How many columns of numbers there are; cut ones in their own units."""
    return layout.scored or layout.P


def _means(layout: Layout, sums: ClusterSums) -> Array:
    """Means of the numbers in each component, 0, that of all rows, without any."""
    S, P = n_numbers(layout), layout.P
    n = sums.sums[:, :S]
    total = sums.sums[:, P : P + S]
    return np.divide(total, n, np.zeros((len(n), S)), where=n > 0.0)


def _numbers(layout: Layout, rows: Rows, labels: IntArray, means: Array) -> Array:
    """The numbers of rows, the mean of their component where one is missing."""
    S, P = n_numbers(layout), layout.P
    there = rows.numbers[:, :S] > 0.0
    z = rows.numbers[:, P : P + S]
    return z.copy() if there.all() else np.where(there, z, means[labels])


def _principal_axes(Y: Array, weights: Array, K: int) -> Array:
    """A basis (S, m) of the space in which axes lie."""
    S = Y.shape[1]
    m = min(_MOST_DIMENSIONS, max(2, int(weights.sum() / (_ROWS_EACH * K))))
    if m >= S:
        return np.eye(S)
    apart = Y - np.average(Y, axis=0, weights=weights)
    _, vectors = np.linalg.eigh((apart * weights[:, None]).T @ apart)
    return np.ascontiguousarray(vectors[:, : -m - 1 : -1])


def _covariances(
    Y: Array, weights: Array, labels: IntArray, means: Array, basis: Array
) -> Array:
    """Covariances of the components in the basis, (K, m, m)."""
    K, m = len(means), basis.shape[1]
    out, counts = np.empty((K, m, m)), np.bincount(labels, weights, K)
    for k in range(K):
        mine = labels == k
        apart = (Y[mine] - means[k]) @ basis
        out[k] = (apart * weights[mine, None]).T @ apart
    total, strength = float(counts.sum()), m + 2.0
    within = out.sum(axis=0)
    # With few rows for the columns, correlations are chance: half as sure at m + 2.
    variances = np.diag(within) / max(total, 1e-300)
    within = (within + strength * np.diag(variances)) / (total + strength)
    within += np.eye(m) * max(_RIDGE * float(variances.mean()), 1e-300)
    out += strength * within
    out /= (counts + strength)[:, None, None]
    return out


def least_steps(layout: Layout, rows: Rows) -> Array:
    """The least step between two values of each column, 0 where it is rounding."""
    S, P = n_numbers(layout), layout.P
    out = np.zeros(S)
    for p in range(S):
        values = np.unique(rows.numbers[rows.numbers[:, p] > 0.0, P + p])
        step = float(np.min(np.diff(values), initial=np.inf))
        out[p] = step if 1e-9 < step < np.inf else 0.0
    return out
