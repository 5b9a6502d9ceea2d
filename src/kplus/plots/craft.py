"""A picture of clusters and their features."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kplus.plots.display import Display

__all__ = ["CraftDisplay"]

_CHOSEN, _OTHERS = "Blues", "Greys"
_MAX_CLUSTERS = 40
_MAX_NAME = 24
_MAX_NUMBERS = 260  # more would not be legible
_LEAST_LIMIT = 1e-12
_FAINT = "#606060"  # legible on the greys


class CraftDisplay(Display):
    """Map of clusters and features: how much each feature says about each cluster.

    A deeper colour means a higher score. Blue features are reported for the cluster:
    its rows agree in them; the others are grey. Features are sorted by the cluster in
    which their score is highest, so that those of a cluster form a block.

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
        The clusters drawn, from top to bottom. Of more than 40 these are the largest.
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
        names = max(map(len, self._labels()), default=0)
        width = min(max(3.5 + (0.5 if self._has_numbers else 0.28) * D, 6.5), 14.0)
        return width, min(max(0.36 * K, 1.2), 10.0) + 1.0 + 0.06 * names

    def _draw(self) -> None:
        image = self._draw_map()
        self._name_clusters()
        self._name_features()
        self._draw_grid()
        if self._has_numbers:
            self._write_numbers()
        scale = self.figure_.colorbar(image, ax=self.ax_, pad=0.02)
        scale.set_label("nats per row", fontsize="small")
        scale.outline.set_visible(False)
        self.ax_.set_title(self._title(), fontsize="medium", loc="left")
        words = "blue: features of the cluster"
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
        """Score of the deepest colours: the largest that is reported."""
        scores, selected = self._drawn
        reported = scores[selected] if selected.any() else scores
        return max(float(reported.max(initial=0.0)), _LEAST_LIMIT)

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
        self.ax_.imshow(others, cmap=_OTHERS, alpha=0.4, **style)  # not to outshine
        own = np.ma.masked_where(~selected, scores)
        return self.ax_.imshow(own, cmap=_CHOSEN, **style)

    def _name_clusters(self) -> None:
        total = max(float(self.sizes.sum()), 1.0)
        names = [
            f"{k}: {self.sizes[k]:,.0f} ({self.sizes[k] / total:.0%})"
            for k in self.clusters_
        ]
        self.ax_.set_yticks(range(len(names)), names, fontsize="small")
        self.ax_.set_ylabel("cluster: rows")

    def _name_features(self) -> None:
        labels = self._labels()
        style: dict[str, Any] = {"fontsize": "small", "parse_math": False}
        if max(map(len, labels), default=0) > 3:
            style |= {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        self.ax_.set_xticks(range(len(labels)), labels, **style)
        if self.feature_names is None:
            self.ax_.set_xlabel("feature")

    def _labels(self) -> list[str]:
        names = self.feature_names
        full = [str(d) if names is None else names[d] for d in self.features_]
        return [
            name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"
            for name in full
        ]

    def _draw_grid(self) -> None:
        """White lines between cells."""
        K, D = len(self.clusters_), len(self.features_)
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)
        self.ax_.hlines(np.arange(1, K) - 0.5, -0.5, D - 0.5, color="white", lw=2)
        self.ax_.vlines(np.arange(1, D) - 0.5, -0.5, K - 0.5, color="white", lw=0.8)

    def _write_numbers(self) -> None:
        scores, selected = self._drawn
        for (k, d), score in np.ndenumerate(scores):
            style = {"color": _FAINT}
            if selected[k, d]:
                dark = score > 0.55 * self._limit
                style = {"color": "white" if dark else "black", "weight": "bold"}
            self.ax_.text(
                d, k, _words(score), ha="center", va="center", size="x-small", **style
            )

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
