"""A picture of clusters and their features."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kplus.plots.display import Display
from kplus.plots.style import (
    SEQUENTIAL,
    cell_grid,
    color_scale,
    group_name,
    ink_on,
    label_groups,
    name_columns,
    plain,
)

__all__ = ["CraftDisplay"]

_OTHERS, _VEIL = "Greys", 0.4  # not to outshine the blues
_MAX_CLUSTERS = 60
_MAX_NUMBERS = 720  # more would not be legible
_LEAST_LIMIT = 1e-12


class CraftDisplay(Display):
    """Map of clusters and features: how much each feature says about each cluster.

    A deeper colour means a higher score. Blue features are reported for the cluster:
    its rows agree in them; the others are grey. Numbers of blue features are bold, and
    where there is no room for numbers a dot stands for one. Features are sorted by the
    cluster in which their score is highest, so that those of a cluster form a block.

    It is recommended to use :meth:`from_estimator`.

    Parameters
    ----------
    scores : array-like of shape (n_clusters, n_features)
        Nats per row by which a feature distinguishes the cluster from the whole table.
    selected : array-like of bool, (n_clusters, n_features)
        Which features are reported.
    sizes : array-like of shape (n_clusters,)
        Rows of each cluster.
    feature_names : sequence of str or None
        By default features are numbered.
    max_features : int
        Of more features those with the highest scores are drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    clusters_ : ndarray of int
        The clusters drawn, from top to bottom. Of more than 60 these are the largest.
    features_ : ndarray of int
        The features drawn, from left to right.

    See Also
    --------
    ClusterDisplay : Picture of the rows of clusters.

    Examples
    --------
    >>> from kplus import CRAFT
    >>> from kplus.datasets import make_subspace_clusters
    >>> from kplus.plots import CraftDisplay
    >>> X, _, _ = make_subspace_clusters("3a", random_state=0)
    >>> craft = CRAFT(random_state=0).fit(X)
    >>> display = CraftDisplay.from_estimator(craft)
    >>> display.ax_.get_title(loc="left")
    '3 clusters, 36 features'
    """

    def __init__(
        self,
        *,
        scores: ArrayLike,
        selected: ArrayLike,
        sizes: ArrayLike,
        feature_names: Sequence[str] | None = None,
        max_features: int = 40,
    ) -> None:
        self.scores = np.asarray(scores, dtype=np.float64)
        self.selected = np.asarray(selected, dtype=np.bool_)
        self.sizes = np.asarray(sizes, dtype=np.float64)
        self.feature_names = feature_names
        self.max_features = max_features
        self.clusters_ = np.sort(np.argsort(-self.sizes, kind="stable")[:_MAX_CLUSTERS])
        self.features_ = self._in_order()

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, ax: Any = None, max_features: int = 40
    ) -> Self:
        """Draw the clusters of a fitted estimator and their features.

        Parameters
        ----------
        estimator : CRAFT
            Fitted.
        X : data frame, array-like or path, or None
            Rows to count by the clusters predicted for them; by default sizes are
            those of the fit. Scores and selected features are always those of the fit.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.
        max_features : int
            Of more features those with the highest scores are drawn.

        Returns
        -------
        display : CraftDisplay
        """
        check_is_fitted(estimator, "feature_scores_")
        sizes = estimator.cluster_sizes_
        if X is not None:
            sizes = np.bincount(estimator.predict(X), minlength=len(sizes))
        names = getattr(estimator, "feature_names_in_", None)
        display = cls(
            scores=estimator.feature_scores_,
            selected=estimator.selected_features_,
            sizes=sizes,
            feature_names=None if names is None else [str(name) for name in names],
            max_features=max_features,
        )
        return display.plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        K, D = len(self.clusters_), len(self.features_)
        names = max((len(plain(name)) for name in self._labels()), default=0)
        width = min(max(3.5 + (0.5 if self._has_numbers else 0.28) * D, 6.5), 14.0)
        tall = 0.36 * K if K <= 25 else 4.5 + 0.18 * K
        return width, max(tall, 1.2) + 1.0 + 0.06 * names

    def _draw(self) -> None:
        image = self._draw_map()
        total = float(self.sizes.sum())
        names = [group_name(k, self.sizes[k], total) for k in self.clusters_]
        label_groups(self.ax_, names)
        self.ax_.set_ylabel("cluster: rows")
        name_columns(self.ax_, self._labels())
        if self.feature_names is None:
            self.ax_.set_xlabel("feature")
        cell_grid(self.ax_, len(self.clusters_), len(self.features_))
        self._mark_cells(image)
        color_scale(self.ax_, image, "score (nats per row)")
        self.ax_.set_title(self._title(), fontsize="medium", loc="left")
        marked = "bold" if self._has_numbers else "dotted"
        words = f"blue, {marked}: features of the cluster"
        self.ax_.set_title(words, fontsize="small", loc="right", color="#2171b5")

    # -------------------------------------------------------------------- order

    def _in_order(self) -> NDArray[np.int64]:
        """The features to draw, those of one cluster side by side."""
        own = np.where(self.selected, self.scores, -np.inf)
        unselected = ~self.selected.any(axis=0)
        # A feature that is reported nowhere goes by its score alone, after the others.
        score = np.where(
            unselected, self.scores.max(axis=0), own.max(axis=0, initial=0.0)
        )
        drawn = np.lexsort((-score, unselected))[: self.max_features]
        best_cluster = np.where(unselected, len(self.scores), own.argmax(axis=0))[drawn]
        keys = [-score[drawn]]
        # Features of the same further clusters are next to each other.
        keys += [~line for line in self.selected[::-1, drawn]]
        order: NDArray[np.int64] = drawn[np.lexsort((*keys, best_cluster))]
        return order

    # ------------------------------------------------------------------ drawing

    @property
    def _drawn(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scores and selected features, as they are drawn."""
        part = np.ix_(self.clusters_, self.features_)
        return np.maximum(self.scores[part], 0.0), self.selected[part]

    @property
    def _limit(self) -> float:
        """Score of the deepest colours."""
        return max(float(self._drawn[0].max(initial=0.0)), _LEAST_LIMIT)

    @property
    def _has_numbers(self) -> bool:
        K, D = len(self.clusters_), len(self.features_)
        return K * D <= _MAX_NUMBERS and D <= 20

    def _draw_map(self) -> Any:
        scores, selected = self._drawn
        style: dict[str, Any] = {
            "vmin": 0.0,
            "vmax": self._limit,
            "aspect": "auto",
            "interpolation": "nearest",
        }
        others = np.ma.masked_where(selected, scores)
        self.ax_.imshow(others, cmap=_OTHERS, alpha=_VEIL, **style)
        own = np.ma.masked_where(~selected, scores)
        return self.ax_.imshow(own, cmap=SEQUENTIAL, **style)

    def _labels(self) -> list[str]:
        names = self.feature_names
        return [str(d) if names is None else names[d] for d in self.features_]

    def _mark_cells(self, image: Any) -> None:
        """Numbers, those of the cluster bold; or, of very many cells, dots in these."""
        from matplotlib import colormaps

        scores, selected = self._drawn
        for (k, d), score in np.ndenumerate(scores):
            if not selected[k, d] and not self._has_numbers:
                continue
            depth = image.norm(score)
            grey = 1.0 - _VEIL * (1.0 - np.array(colormaps[_OTHERS](depth)[:3]))
            self.ax_.text(
                d, k, _words(score) if self._has_numbers else "•",
                ha="center", va="center", size="x-small",
                color=ink_on(image.cmap(depth) if selected[k, d] else grey),
                weight="bold" if selected[k, d] else "normal",
            )  # fmt: skip

    def _title(self) -> str:
        K, D = self.scores.shape
        n_drawn_K, n_drawn_D = len(self.clusters_), len(self.features_)
        clusters = f"{K} cluster{'s' * (K != 1)}"
        if n_drawn_K < K:
            clusters = f"the largest {n_drawn_K} of {clusters}"
        features = f"{D} feature{'s' * (D != 1)}"
        if n_drawn_D < D:
            features = f"the best {n_drawn_D} of {features}"
        return f"{clusters}, {features}"


def _words(score: float) -> str:
    words = f"{score:.2f}" if score < 9.995 else f"{score:.3g}"
    return "0" if words == "0.00" else words.removeprefix("0")
