"""A picture of clusters."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kplus.data.open import read_as_fitted
from kplus.plots.coordinates import Rows, discriminant
from kplus.plots.display import Display, cluster_style

__all__ = ["ClusterDisplay"]

_MAX_LEGEND = 12
_MAX_NUMBERED = 60


class ClusterDisplay(Display):
    """Scatter plot of clustered rows, with the centres.

    Two columns are drawn as they are, one column as a histogram, and more in the two
    coordinates that separate the clusters best: Fisher's discriminant axes, of columns
    on one scale, named by the columns that count most. Categories take part, jittered,
    and a missing value stands in the middle of its column. Every centre carries the
    number of its cluster as long as there are no more than 60, and up to 12 clusters
    have a legend with their sizes.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    points : ndarray of shape (n_points, 1 or 2)
        What is drawn.
    labels : ndarray of shape (n_points,)
        Cluster of each point.
    centers : ndarray of shape (n_clusters, 1 or 2)
        Where the centres are drawn.
    sizes : ndarray of shape (n_clusters,)
        Rows of each cluster, drawn or not.
    axis_names : sequence of str
        One or two names.
    n_noise : int
        Rows that are in no cluster, whose label is -1, drawn or not.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.

    See Also
    --------
    PenaltyPathDisplay : Picture of the number of clusters against the penalty.

    Examples
    --------
    >>> from kplus import DPMeans
    >>> from kplus.plots import ClusterDisplay
    >>> X = [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]]
    >>> model = DPMeans(penalty=10.0).fit(X)
    >>> display = ClusterDisplay.from_estimator(model, X)
    >>> display.ax_.get_xlabel()
    'column 0'
    """

    def __init__(
        self,
        *,
        points: NDArray[Any],
        labels: NDArray[Any],
        centers: NDArray[Any],
        sizes: NDArray[Any],
        axis_names: Sequence[str],
        n_noise: int = 0,
    ) -> None:
        self.points = points
        self.labels = labels
        self.centers = centers
        self.sizes = sizes
        self.axis_names = axis_names
        self.n_noise = n_noise

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ax: Any = None,
        max_points: int = 5000,
        random_state: int = 0,
    ) -> Self:
        """Draw rows in the clusters that a fitted estimator predicts for them.

        Parameters
        ----------
        estimator : fitted clusterer
            Must have `predict`; a pipeline that ends in a clusterer is one, too.
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            The rows, with categories or without; they may be others than those of the
            fit.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.
        max_points : int
            Of more rows a random sample of this size is drawn.
        random_state : int
            Seed of the sample.

        Returns
        -------
        display : ClusterDisplay
        """
        return cls.from_predictions(
            read_as_fitted(estimator, X),
            estimator.predict(X),
            centers=getattr(estimator, "cluster_centers_", None),
            feature_names=getattr(estimator, "feature_names_in_", None),
            ax=ax,
            max_points=max_points,
            random_state=random_state,
        )

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: ArrayLike,
        *,
        centers: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
        max_points: int = 5000,
        random_state: int = 0,
    ) -> Self:
        """Draw rows in given clusters.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            The rows, with categories or without.
        labels : array-like of shape (n_samples,)
            Cluster of each row, from 0; -1 for none.
        centers : array-like of shape (n_clusters, n_features) or None
            Centres of the clusters; by default the means of the rows drawn.
        feature_names : sequence of str or None
            Names of the columns; by default those of `X`, or their numbers.
        ax, max_points, random_state
            As for :meth:`from_estimator`.

        Returns
        -------
        display : ClusterDisplay
        """
        labels = np.asarray(labels)
        n_clusters = int(labels.max(initial=-1)) + 1
        if centers is not None:
            n_clusters = max(n_clusters, len(np.asarray(centers)))
        rows = _sample(len(labels), max_points, random_state)
        X, names = Rows.of(X, rows)
        if feature_names is not None and len(feature_names) == len(names):
            names = [str(name) for name in feature_names]
        drawn = labels[rows]
        if centers is None:
            centers = _means(X, drawn, n_clusters)
        points, centers, axis_names = _flatten(
            Rows(X, names), np.asarray(centers, dtype=np.float64), drawn
        )
        display = cls(
            points=points,
            labels=drawn,
            centers=centers,
            sizes=np.bincount(labels[labels >= 0], minlength=n_clusters),
            axis_names=axis_names,
            n_noise=int(np.count_nonzero(labels < 0)),
        )
        return display.plot(ax=ax)

    def _draw(self) -> None:
        if self.points.shape[1] == 1:
            self._histogram()
        else:
            self._scatter()
        K = len(self.sizes)
        drawn, total = len(self.points), self._n_rows
        sample = f", {drawn:,} of them drawn" if drawn < total else ""
        self.ax_.set_title(
            f"{K} cluster{'s' * (K != 1)} of {total:,} rows{sample}", fontsize="medium"
        )
        if K <= _MAX_LEGEND:
            self._legend()

    def _legend(self) -> None:
        legend = self.ax_.legend(
            title="cluster: rows",
            loc="center left",
            bbox_to_anchor=(1.01, 0.5),
            frameon=False,
        )
        for handle in legend.legend_handles:
            if hasattr(handle, "set_sizes"):  # a scatter's marker, however small
                handle.set_sizes([30])

    @property
    def _n_rows(self) -> int:
        return int(self.sizes.sum()) + self.n_noise

    def _name(self, cluster: int) -> str:
        size = self.n_noise if cluster < 0 else int(self.sizes[cluster])
        name = "noise" if cluster < 0 else str(cluster)
        return f"{name}: {size:,} ({size / self._n_rows:.0%})"

    @property
    def _shown(self) -> list[int]:
        """The clusters in the order they are drawn; noise, -1, is below all."""
        return [-1] * (self.n_noise > 0) + list(range(len(self.sizes)))

    def _scatter(self) -> None:
        # Small dots for many points, so that dense places keep their shape.
        area = float(np.clip(20_000 / max(len(self.points), 1), 5, 30))
        for k in self._shown:
            color, marker = cluster_style(k)
            points = self.points[self.labels == k]
            self.ax_.scatter(
                *points.T,
                s=area,
                c=color,
                marker=marker,
                alpha=0.7,
                linewidths=0,
                label=self._name(k),
                rasterized=True,
            )
        self.ax_.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        # Text, unlike points, does not make the axes reach as far as it does.
        self.ax_.update_datalim(self.centers[np.isfinite(self.centers).all(axis=1)])
        self.ax_.autoscale_view()
        for k, (x, y) in enumerate(self.centers):
            self._mark(k, x, y, self.ax_.transData)

    def _histogram(self) -> None:
        shown = self._shown
        values = [self.points[self.labels == k, 0] for k in shown]
        self.ax_.hist(
            values,
            bins=int(np.clip(np.sqrt(len(self.points)) * 2, 10, 80)),
            stacked=True,
            color=[cluster_style(k)[0] for k in shown],
            label=[self._name(k) for k in shown],
        )
        self.ax_.margins(y=0.12)
        self.ax_.set(xlabel=self.axis_names[0], ylabel="rows")
        for k, x in enumerate(self.centers[:, 0]):
            self.ax_.axvline(x, color=cluster_style(k)[0], linewidth=0.8, zorder=0)
            self._mark(k, x, 0.95, self.ax_.get_xaxis_transform())

    def _mark(self, cluster: int, x: float, y: float, transform: Any) -> None:
        """Mark a centre: a disc with its number, or a cross if there are too many."""
        color, _ = cluster_style(cluster)
        if len(self.sizes) > _MAX_NUMBERED:
            style = {"marker": "x", "color": "black", "markersize": 4}
            self.ax_.plot(x, y, transform=transform, **style)
            return
        self.ax_.text(
            x,
            y,
            str(cluster),
            transform=transform,
            ha="center",
            va="center",
            fontsize=9 if len(self.sizes) <= _MAX_LEGEND else 7,
            fontweight="bold",
            bbox={
                "boxstyle": "circle,pad=0.2",
                "facecolor": "#ffffffd0",
                "edgecolor": color,
                "linewidth": 1.5,
            },
        )


def _sample(n_rows: int, max_points: int, random_state: int) -> NDArray[Any]:
    if n_rows <= max_points:
        return np.arange(n_rows)
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n_rows, max_points, replace=False))


def _means(X: NDArray[Any], labels: NDArray[Any], n_clusters: int) -> NDArray[Any]:
    """Means of what is there; NaN in a cluster without rows."""
    seen = ~np.isnan(X)
    mean = np.where(seen, X, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    kept = labels >= 0
    sums = np.zeros((n_clusters, X.shape[1]))
    np.add.at(sums, labels[kept], np.where(seen, X, mean)[kept])
    with np.errstate(invalid="ignore"):
        return sums / np.bincount(labels[kept], minlength=n_clusters)[:, None]


def _flatten(
    rows: Rows, centers: NDArray[Any], labels: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    """Bring rows and centres to one or two dimensions, and name these."""
    X, names = rows
    if X.shape[1] <= 2:
        return X, centers, names
    flat = discriminant(rows, labels)
    lost = np.isnan(centers).all(axis=1)
    return flat(X), np.where(lost[:, None], np.nan, flat(centers)), flat.names
