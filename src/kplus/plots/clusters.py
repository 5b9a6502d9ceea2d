"""A picture of clusters."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kplus.data.open import read_as_fitted
from kplus.data.rows import drawn
from kplus.plots.coordinates import Points, discriminant
from kplus.plots.display import Display, final_step
from kplus.plots.labels import apart
from kplus.plots.style import INK, cluster_style, group_name, plain

__all__ = ["ClusterDisplay"]

_A_COLUMN = 20  # lines of the legend
_MAX_LEGEND = 3 * _A_COLUMN
_MAX_NUMBERED = 60
_FEW = 12  # clusters, with large numbers
_MAX_AXIS = 60  # letters of the name of an axis
_REACH = 2.0  # standard deviations, of ellipses


class ClusterDisplay(Display):
    """Scatter plot of clustered rows, with the centres.

    Two columns are drawn as they are, one column as a histogram, and more in the two
    coordinates that separate the clusters best: Fisher's discriminant axes, of columns
    on one scale, named by the columns that count most. Categories take part, jittered,
    and a missing value stands in the middle of its column. Of mixtures each component
    has an ellipse: two standard deviations of its rows either way, as they are drawn.
    Every centre carries the number of its cluster as long as there are no more than 60,
    and the legend has the sizes of the 60 largest.

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
    components : ndarray of shape (n_points,) or None
        Component of each point, of those that have an ellipse.

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
        components: NDArray[Any] | None = None,
    ) -> None:
        self.points = points
        self.labels = labels
        self.centers = centers
        self.sizes = sizes
        self.axis_names = axis_names
        self.n_noise = n_noise
        self.components = components

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ellipses: bool = True,
        ax: Any = None,
        max_points: int = 5000,
        random_state: int = 0,
    ) -> Self:
        """Draw rows in the clusters that a fitted estimator predicts for them.

        Parameters
        ----------
        estimator : fitted clusterer
            Must have `predict`; a pipeline that ends in a clusterer is one, too. The
            components of one with `predict_components` have ellipses.
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            The rows, with categories or without; they may be others than those of the
            fit.
        ellipses : bool
            Whether components have ellipses.
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
            components=_components(estimator, X) if ellipses else None,
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
        components: ArrayLike | None = None,
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
        components : array-like of shape (n_samples,) or None
            Component of each row, if these shall have ellipses; -1 for none.
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
        rng = np.random.default_rng(random_state)
        rows = drawn(len(labels), max_points, rng)
        X, names = Points.of(X, rows)
        if feature_names is not None and len(feature_names) == len(names):
            names = [str(name) for name in feature_names]
        if centers is None:
            centers = _means(X, labels[rows], n_clusters)
        points, centers, axis_names = _flatten(
            Points(X, names), np.asarray(centers, dtype=np.float64), labels[rows]
        )
        display = cls(
            points=points,
            labels=labels[rows],
            centers=centers,
            sizes=np.bincount(labels[labels >= 0], minlength=n_clusters),
            axis_names=axis_names,
            n_noise=int(np.count_nonzero(labels < 0)),
            components=None if components is None else np.asarray(components)[rows],
        )
        return display.plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        return 7.2 + 0.9 * (self._n_columns - 1), 4.8

    def _draw(self) -> None:
        if self.points.shape[1] == 1:
            self._histogram()
        else:
            self._scatter()
        K = len(self.sizes)
        n_drawn, total = len(self.points), self._n_rows
        sample = f", {n_drawn:,} of them drawn" if n_drawn < total else ""
        self.ax_.set_title(
            f"{K} cluster{'s' * (K != 1)} of {total:,} rows{sample}", fontsize="medium"
        )
        self._legend()

    @property
    def _n_columns(self) -> int:
        """Columns of the legend."""
        listed = min(len(self.sizes), _MAX_LEGEND) + (self.n_noise > 0)
        return -(-listed // (_A_COLUMN + 1))

    def _legend(self) -> None:
        sizes, few = self.sizes, len(self.sizes) <= _FEW
        largest = set(np.argsort(-sizes, kind="stable")[:_MAX_LEGEND].tolist()) | {-1}
        handles = [self._handle(k) for k in self._shown if k in largest]
        left = len(sizes) - len(largest) + 1
        self.ax_.legend(
            handles=handles,
            title="cluster: rows" if left <= 0 else f"the largest {_MAX_LEGEND}: rows",
            loc="center left",
            bbox_to_anchor=(1.01, 0.5),
            frameon=False,
            ncols=self._n_columns,
            fontsize="medium" if few else "x-small",
            title_fontsize="medium" if few else "small",
            columnspacing=0.8,
            handletextpad=0.2,
        )

    def _handle(self, cluster: int) -> Any:
        """A marker with a name, as large however small the points are."""
        from matplotlib.lines import Line2D

        color, marker = cluster_style(cluster)
        size = 4.5 if len(self.sizes) > _FEW else 6 if cluster >= 0 else 8
        return Line2D(
            [], [], color=color, marker=marker, ls="", mew=0, ms=size,
            label=self._name(cluster),
        )  # fmt: skip

    @property
    def _n_rows(self) -> int:
        return int(self.sizes.sum()) + self.n_noise

    def _name(self, cluster: int) -> str:
        size = self.sizes[cluster] if cluster >= 0 else self.n_noise
        return group_name(cluster, float(size), self._n_rows)

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
                s=area if k >= 0 else 2.0 * area,  # a dot is smaller
                c=color,
                marker=marker,
                alpha=0.7,
                linewidths=0,
                label=self._name(k),
                rasterized=True,
            )
        self.ax_.set_xlabel(plain(self.axis_names[0], _MAX_AXIS), parse_math=False)
        self.ax_.set_ylabel(plain(self.axis_names[1], _MAX_AXIS), parse_math=False)
        # Text, unlike points, does not make the axes reach as far as it does.
        self.ax_.update_datalim(self.centers[np.isfinite(self.centers).all(axis=1)])
        self.ax_.autoscale_view()
        self._draw_ellipses()
        self._number(self._places())

    def _places(self) -> NDArray[Any]:
        """Where the numbers stand: at centres, or, where others are there, nearby.

        The centre of a ring lies in what it is around.
        """
        places = self.centers.copy()
        for k, center in enumerate(self.centers):
            own = np.flatnonzero(self.labels == k)
            away = np.linalg.norm(self.points - center, axis=1)
            if len(own) and self.labels[away.argmin()] != k:
                places[k] = self.points[own[away[own].argmin()]]
        return places

    def _number(self, places: NDArray[Any]) -> None:
        """Mark the clusters; from numbers that had to move a line leads back."""
        shown = places
        if len(places) <= _MAX_NUMBERED:
            shown = apart(self.ax_, places, 0.25 if len(places) <= _FEW else 0.165)
        for k, (place, at) in enumerate(zip(places, shown, strict=True)):
            if (place != at).any() and np.isfinite(place).all():
                ends = np.column_stack([place, at])
                self.ax_.plot(*ends, color=INK, lw=0.6, scalex=False, scaley=False)
            self._mark(k, at[0], at[1], self.ax_.transData)

    def _draw_ellipses(self) -> None:
        """Where the rows of each component are: two standard deviations either way."""
        from matplotlib.patches import Ellipse

        if self.components is None:
            return
        for c in np.unique(self.components[self.components >= 0]):
            inside = self.components == c
            points = self.points[inside]
            points = points[np.isfinite(points).all(axis=1)]
            if len(points) < 3:
                continue
            variances, axes = np.linalg.eigh(np.cov(points.T, bias=True))
            low, high = 2.0 * _REACH * np.sqrt(np.maximum(variances, 0.0))
            tilt = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
            owner = int(self.labels[inside].max())  # the others are noise, if any
            ellipse = Ellipse(
                points.mean(axis=0), high, low, angle=tilt, fill=False,
                lw=1.2 if len(self.sizes) <= _FEW else 0.7,
                edgecolor=cluster_style(owner)[0], gid=f"component {c}",
            )  # fmt: skip
            self.ax_.add_patch(ellipse)
        self.ax_.autoscale_view()

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
        self.ax_.margins(y=0.2)
        self.ax_.set_xlabel(plain(self.axis_names[0], _MAX_AXIS), parse_math=False)
        self.ax_.set_ylabel("rows")
        for k, x in enumerate(self.centers[:, 0]):
            wide = 0.8 if len(self.sizes) <= _FEW else 0.3
            self.ax_.axvline(x, color=cluster_style(k)[0], linewidth=wide, zorder=0)
        # In turn at three heights, so that neighbours do not hide each other.
        for place, k in enumerate(np.argsort(self.centers[:, 0], kind="stable")):
            height = 0.96 - 0.055 * (place % 3)
            self._mark(k, self.centers[k, 0], height, self.ax_.get_xaxis_transform())

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
            fontsize=9 if len(self.sizes) <= _FEW else 6,
            fontweight="bold",
            bbox={
                "boxstyle": "circle,pad=0.2",
                "facecolor": "#ffffffd0",
                "edgecolor": color,
                "linewidth": 1.5,
            },
        )


def _components(estimator: Any, X: Any) -> Any:
    """Component of each row, where there are some; pipelines bring rows to them."""
    last = final_step(estimator)
    if not hasattr(last, "predict_components"):
        return None
    if last is not estimator and len(estimator) > 1:
        X = estimator[:-1].transform(X)
    return last.predict_components(X)


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
    rows: Points, centers: NDArray[Any], labels: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    """Bring rows and centres to one or two dimensions, and name these."""
    X, names = rows
    if X.shape[1] <= 2:
        return X, centers, names
    flat = discriminant(rows, labels)
    lost = np.isnan(centers).all(axis=1)
    return flat(X), np.where(lost[:, None], np.nan, flat(centers)), flat.names
