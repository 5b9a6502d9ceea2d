"""The penalty path: the best number of clusters for each penalty.

For a penalty λ² the best K minimises SSE(K) + λ²K, so K changes only at the corners
of the lower convex hull of SSE(K). A corner is the best K between two slopes of the
hull; the length of that interval in log λ² measures how well the data support it.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.dp_means.params import Scaling
from kplus.dp_means.splits import Growth

__all__ = ["PenaltyPath", "most_clusters", "trace"]


@dataclass(frozen=True)
class PenaltyPath:
    """Corners of the lower hull of SSE(K), on the scale of the whole data set.

    Attributes
    ----------
    n_clusters : array of shape (n_corners,)
        K of each corner, ascending.
    sse : array of shape (n_corners,)
        Sum of squared distances at that K.
    penalty_low, penalty_high : arrays of shape (n_corners,)
        Penalties between which that K is the best; ``inf`` above K = 1, 0 below the
        last one.
    log_length : array of shape (n_corners,)
        ``log(penalty_high / penalty_low)``: the length of the plateau.
    bic : array of shape (n_corners,)
        Bayesian information criterion of a spherical mixture; lower is better.
    chosen : int
        Place of the corner that the automatic rule takes.
    penalty : float
        The middle (geometric mean) of its plateau.
    runners_up : array of int
        Other numbers that the automatic choice might have taken, the likeliest first.
    is_clear : bool
        Whether the choice stands out: most resolutions agree, and no other number
        comes near.

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

    n_clusters: IntArray
    sse: Array
    penalty_low: Array
    penalty_high: Array
    log_length: Array
    bic: Array
    chosen: int
    penalty: float
    runners_up: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    is_clear: bool = True

    def at(self, n_clusters: int) -> "PenaltyPath":
        """The same path, at the corner of another number, or the nearest there is."""
        corner = int(np.argmin(np.abs(self.n_clusters - n_clusters)))
        middle = _middle(self.penalty_low[corner], self.penalty_high[corner])
        return replace(self, chosen=corner, penalty=middle)

    def met_by(self, n_clusters: int) -> "PenaltyPath":
        """The path of a fit that ended with a number: unclear if that is another."""
        if n_clusters == self.n_clusters[self.chosen]:
            return self
        chosen = int(self.n_clusters[self.chosen])
        others = np.concatenate(
            [[chosen], self.runners_up[self.runners_up != n_clusters]]
        )
        return replace(self.at(n_clusters), runners_up=others, is_clear=False)

    @property
    def by_bic(self) -> int:
        """The number of clusters that the information criterion prefers."""
        return int(self.n_clusters[np.argmin(self.bic)])


def most_clusters(n: float) -> int:
    """How far the path goes for n rows: 2√n, at most 200, at least two rows each."""
    return int(max(1, min(2.0 * np.sqrt(n), 200.0, n / 2.0)))


def trace(
    growth: Growth, n: float, n_features: int, scaling: Scaling, scale: float
) -> PenaltyPath:
    """Build the path from SSE(K) of a sample of weight n; `scale` lifts it to all rows.

    The rule: the longest plateau in log λ², leaving out the two ends of the path,
    which have one slope only, and numbers to which the information criterion prefers a
    single cluster.
    """
    corner = _lower_hull(growth.K, growth.sse)
    K, sse = growth.K[corner], growth.sse[corner]
    slopes = -np.diff(sse) / np.diff(K)
    high = np.concatenate([[np.inf], slopes])
    low = np.concatenate([slopes, [0.0]])
    with np.errstate(divide="ignore"):
        length = np.log(high) - np.log(low)
    bic = _bic(K, sse, growth.entropy[corner], n, n_features)
    chosen = _choose(K, sse, length, bic)
    return PenaltyPath(
        n_clusters=K,
        sse=scaling.inverse_transform_squared(sse * scale),
        penalty_low=scaling.inverse_transform_squared(low * scale),
        penalty_high=scaling.inverse_transform_squared(high * scale),
        log_length=length,
        bic=bic,
        chosen=chosen,
        penalty=float(
            scaling.inverse_transform_squared(
                _middle(low[chosen], high[chosen]) * scale
            )
        ),
    )


def _choose(K: IntArray, sse: Array, length: Array, bic: Array) -> int:
    if len(K) == 1:
        return 0
    if sse[-1] <= 1e-12 * sse[0]:
        return len(K) - 1  # as many distinct rows as clusters: nothing left to explain
    if len(K) == 2:
        return 0
    pays = np.where(bic[1:-1] < bic[0], length[1:-1], -np.inf)
    return 1 + int(np.argmax(pays)) if np.any(pays > -np.inf) else 0


def _middle(low: float, high: float) -> float:
    """Geometric mean of the ends of a plateau; a step beyond the end that it has."""
    if np.isinf(high):
        return 2.0 * low if low > 0.0 else 1.0
    return float(low * np.sqrt(high / low)) if low > 0.0 else 0.5 * high


def _bic(K: IntArray, sse: Array, entropy: Array, n: float, D: int) -> Array:
    """-2 log likelihood of hard spherical clusters of one variance, penalised."""
    floor = np.finfo(np.float64).tiny
    fit = n * D * np.log(np.maximum(sse / (n * D), floor)) + 2.0 * entropy
    bic: Array = fit + K * (D + 1.0) * np.log(n)
    return bic


def _lower_hull(K: IntArray, sse: Array) -> IntArray:
    """Places of the corners of the lower convex hull of (K, sse)."""
    hull: list[int] = []
    for i in range(len(K)):
        if hull and sse[i] >= sse[hull[-1]]:
            continue
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            before = (sse[a] - sse[b]) * (K[i] - K[b])
            after = (sse[b] - sse[i]) * (K[b] - K[a])
            if before > after:
                break
            hull.pop()
        hull.append(i)
    return np.array(hull)
