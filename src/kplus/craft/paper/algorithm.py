"""CRAFT as published: Algorithms 1 and 2 of Garg, Rudin & Jaakkola (2016), repaired
only where they cannot be run or say nothing. It exists for comparison.

What had to be decided, and why:

- **log 0.** A cluster opened by one row gives every other category probability 0. Here
  η is pulled towards the frequencies η0 of the whole table by `smoothing` rows; 0 is
  the paper's own rule. A category that the fit never saw is left out, as a missing
  value is: it would cost the same in every cluster.
- **σ = 0.** A column that is constant in a cluster divides by 0. σ² is at least
  `variance_floor` times the variance of the column. Features are still ranked by σ
  before the floor; columns without variance in the whole table come last.
- **Units.** "σ = 1" and "lowest σ" mean nothing where one column is in metres and
  another in grams. σ is counted in standard deviations of the whole column, so that
  the clusters do not depend on units. ε_v is in the units of the data, as printed.
- **F_Δ.** Algorithm 2 charges (Σ_d v_kd) F_Δ to every row, the objective once to every
  cluster. Both are done as printed: rows choose by the one, `objective` is the other.
- **m near 0 or 1.** The default ρ leaves (0, m(1−m)) where m(1−m) ≤ .01, and is halfway
  there then. m = 1 chooses all features: the F terms vanish, there is no ρ.
- **m |Num| and m |Cat|** are rounded, and are at least 1. A cluster that chose no
  number would cost rows nothing and take them all; hence a draw without any feature
  gets one, and so does a cluster in which no variance is below ε_v.
- **Empty clusters** are gone at the end of a pass, before the update.
- **The first centre** is the row (or mean) at which farthest-first starts.
- **Farthest-first** does not say which features count in the distance from a row. It
  is the cost in a cluster opened by that row, averaged over v ~ Bernoulli(m).
- **Missing values** are left out of a row's cost, of means and frequencies; a cluster
  that has none of a column takes those of the whole table.
- **Convergence.** The first centre is not a mean, so one pass never suffices. There is
  no proof of convergence: where a partition returns, and no features were drawn since,
  it would repeat for ever, and the fit stops. At the end each row goes to the cheapest
  cluster; after convergence this moves only rows that opened a cluster in each pass.
"""

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Self

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.craft.paper.kernels import (
    Clusters,
    Columns,
    Penalties,
    cost_table,
    walk_rows,
)
from kplus.craft.paper.table import (
    Constants,
    Mask,
    PaperSpec,
    PaperTable,
    constants,
    known_rows,
)

__all__ = [
    "Constants",
    "PaperFit",
    "PaperSpec",
    "assign",
    "constants",
    "farthest_first",
    "fit_paper",
    "row_costs",
    "sorted_by_size",
]


# ---------------------------------------------------------------------------- fit


@dataclass(frozen=True)
class PaperFit:
    """Clusters and all that is needed to assign further rows.

    Attributes
    ----------
    labels : array of shape (N,)
    penalty : float
        λ.
    objective : float
        As printed, rows counted by their weights.
    history : array
        The objective after each iteration.
    converged, revisited : bool
        Whether the last iteration changed nothing; whether a partition came back after
        others.
    clusters : Clusters
        v, ζ, σ² and −log η; ζ and σ² mean nothing where columns are categories.
    columns : Columns
        What is known of the whole table; −log η0 is infinite for unseen categories.
    feature_cost : float
        F_Δ.
    """

    labels: IntArray
    penalty: float
    objective: float
    history: Array
    converged: bool
    revisited: bool
    clusters: Clusters
    columns: Columns
    feature_cost: float

    @property
    def chosen(self) -> Mask:
        """v, of shape (K, D): the features of each cluster."""
        return self.clusters.chosen

    @property
    def zeta(self) -> Array:
        """Means of numbers, (K, D)."""
        return self.clusters.means

    @property
    def sigma2(self) -> Array:
        """Variances of numbers, (K, D)."""
        return self.clusters.variances

    @property
    def eta(self) -> Array:
        """Frequencies of all categories of all columns, in order, (K, categories)."""
        eta: Array = np.exp(-self.clusters.costs)
        return eta

    @property
    def eta0(self) -> Array:
        """The same in the whole table, (categories,)."""
        eta0: Array = np.exp(-self.columns.costs)
        return eta0

    def to_state(self) -> dict[str, Any]:
        """What assigns further rows, for a model file."""
        return {
            "clusters": dict(self.clusters._asdict()),
            "columns": dict(self.columns._asdict()),
            "feature_cost": float(self.feature_cost),
            "penalty": float(self.penalty),
        }

    @classmethod
    def from_state(cls, kept: dict[str, Any], K: int, D: int) -> Self:
        """Restore what `to_state` returned; refuse parts that do not fit together."""
        columns, clusters = Columns(**kept["columns"]), Clusters(**kept["clusters"])
        T = len(columns.costs)
        for name, part in columns._asdict().items():
            if part.shape != ((T,) if name == "costs" else (D,)):
                raise ValueError(f"columns.{name} has shape {part.shape}.")
        for name, part in clusters._asdict().items():
            if part.shape != ((K, T) if name == "costs" else (K, D)):
                raise ValueError(f"clusters.{name} has shape {part.shape}.")
        if np.any(columns.widths < 0) or np.any(columns.first + columns.widths > T):
            raise ValueError("columns.widths are not those of the categories.")
        return cls(
            labels=np.empty(0, np.int64),
            penalty=float(kept["penalty"]),
            objective=np.nan,
            history=np.empty(0),
            converged=False,
            revisited=False,
            clusters=clusters,
            columns=columns,
            feature_cost=float(kept["feature_cost"]),
        )


def fit_paper(
    X: Array, weights: Array | None, spec: PaperSpec, rng: np.random.Generator
) -> PaperFit:
    """Algorithm 1.

    Parameters
    ----------
    X : array of shape (N, D)
        Numbers, and codes 0, 1, ... in columns of categories; NaN is missing.
    weights : array of shape (N,) or None
    spec : PaperSpec
    rng : Generator

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat([[0.0, 5.0, 0.0], [1.0, 9.0, 2.0]], 3, axis=0)
    >>> spec = PaperSpec((2, None, 3), fraction=1.0, penalty=3.0)
    >>> fit_paper(X, None, spec, np.random.default_rng(2)).labels
    array([0, 0, 0, 1, 1, 1])
    """
    table = PaperTable.of(X, weights, spec)
    start = table.start(rng)
    penalty = spec.penalty
    if penalty is None:
        penalty = _farthest(table, start, spec.n_clusters or 1)
    clusters, history, converged, revisited = _caf(table, start, penalty, rng)
    labels = np.empty(len(table.X), dtype=np.int64)
    table.walk(0, clusters, len(clusters.chosen), np.inf, labels)
    used, labels = np.unique(labels, return_inverse=True)
    clusters = Clusters(*(part[used] for part in clusters))
    history[-1] = table.objective(clusters, labels, penalty)
    fitted = PaperFit(
        labels, penalty, history[-1], np.array(history), converged, revisited,
        clusters, table.columns, table.constants.F_delta,
    )  # fmt: skip
    return replace(fitted, labels=assign(X, fitted))  # rows of weight 0, too


def sorted_by_size(fit: PaperFit, weights: Array) -> PaperFit:
    """The same clusters, numbered by their weight, largest first."""
    K = len(fit.chosen)
    sizes = np.bincount(fit.labels, weights=weights, minlength=K)
    order = np.argsort(-sizes, kind="stable")
    old_to_new = np.argsort(order)
    clusters = Clusters(*(np.ascontiguousarray(part[order]) for part in fit.clusters))
    return replace(fit, labels=old_to_new[fit.labels], clusters=clusters)


def assign(X: Array, fit: PaperFit) -> IntArray:
    """The cheapest cluster of each row, ties to the lower number.

    Categories that the fit did not see are left out, as missing values are.
    """
    X = known_rows(X, fit.columns)
    labels = np.empty(len(X), dtype=np.int64)
    walk_rows(
        X, np.ones(len(X)), 0, fit.clusters, len(fit.chosen), fit.columns,
        Penalties(fit.feature_cost, np.inf), labels,
    )  # fmt: skip
    return labels


def row_costs(X: Array, fit: PaperFit) -> Array:
    """d_nk of Algorithm 2: what each row costs in each cluster."""
    X = known_rows(X, fit.columns)
    out = np.empty((len(X), len(fit.chosen)))
    cost_table(X, fit.clusters, fit.columns, fit.feature_cost, out)
    return out


def farthest_first(
    X: Array,
    weights: Array | None,
    spec: PaperSpec,
    k: int,
    rng: np.random.Generator,
) -> float:
    """The penalty λ for which about `k` clusters open.

    k times the row that is farthest from those taken so far is taken, too; λ is how
    far the last one was.
    """
    table = PaperTable.of(X, weights, spec)
    return _farthest(table, table.start(rng), k)


def _farthest(table: PaperTable, start: Array, k: int) -> float:
    if not 1 <= k <= len(table.X):
        raise ValueError(
            f"n_clusters must be from 1 to the number of rows, {len(table.X)}; got {k}."
        )
    nearest, penalty = table.mean_costs(start), 0.0
    for _ in range(k):
        row = int(np.argmax(nearest))
        penalty = float(nearest[row])
        nearest = np.minimum(nearest, table.mean_costs(table.X[row]))
    if not np.isfinite(penalty):
        raise ValueError(
            "Without smoothing rows are infinitely far from each other, so that "
            "n_clusters finds no penalty; give a penalty, or smoothing above 0."
        )
    return max(penalty, 0.0)


# -------------------------------------------------------------------- Algorithm 2


def _caf(
    table: PaperTable, start: Array, penalty: float, rng: np.random.Generator
) -> tuple[Clusters, list[float], bool, bool]:
    """Cluster assignment and feature selection, until a partition comes back."""
    everywhere = np.full(table.D, table.spec.fraction)
    clusters = table.opened(start, _draw_features(everywhere, rng))
    last_seen: dict[bytes, int] = {}
    history: list[float] = []
    last_draw, revisited = 0, False
    for step in range(table.spec.max_iter):
        labels, opened = _walk(table, clusters, penalty, rng)
        labels = np.unique(labels, return_inverse=True)[1]  # without empty clusters
        clusters = table.update(labels, int(labels.max()) + 1)
        history.append(table.objective(clusters, labels, penalty))
        key = _fingerprint(labels)
        before, last_seen[key] = last_seen.get(key), step
        last_draw = step if opened else last_draw
        if before is None:
            continue
        if before == step - 1:
            return clusters, history, True, revisited
        revisited = True
        if last_draw <= before:  # the same again, for ever
            break
    return clusters, history, False, revisited


def _walk(
    table: PaperTable, clusters: Clusters, penalty: float, rng: np.random.Generator
) -> tuple[IntArray, bool]:
    """One pass over the rows; each may open a cluster that the next ones see."""
    a0, b0, a1, _ = table.constants[2:]
    limit = penalty + table.D * table.constants.F0
    labels = np.empty(len(table.X), dtype=np.int64)
    K_before = K = len(clusters.chosen)
    row = 0
    while (row := table.walk(row, clusters, K, limit, labels)) < len(labels):
        pooled = np.where(clusters.chosen[:K], a1, a0).mean(axis=0) / (a0 + b0)
        new = table.opened(table.X[row], _draw_features(pooled, rng))
        clusters = _append(clusters, K, new)
        labels[row] = K
        K, row = K + 1, row + 1
    return labels, K_before < K


def _draw_features(chances: Array, rng: np.random.Generator) -> Mask:
    chosen: Mask = rng.random(len(chances)) < chances
    if not chosen.any():
        chosen[rng.choice(len(chances), p=chances / chances.sum())] = True
    return chosen


def _append(clusters: Clusters, K: int, new: Clusters) -> Clusters:
    """Put a cluster behind the first K, in twice the room if there is none."""
    if len(clusters.chosen) == K:
        clusters = Clusters(*(np.concatenate([part] * 2) for part in clusters))
    for part, values in zip(clusters, new, strict=True):
        part[K] = values[0]
    return clusters


def _fingerprint(labels: IntArray) -> bytes:
    """The same for the same partition, however its clusters are numbered."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    numbers = np.argsort(np.argsort(first))[inverse]
    return blake2b(numbers.tobytes(), digest_size=16).digest()
