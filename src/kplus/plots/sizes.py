"""A picture of how large groups are."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kplus.plots.display import Display
from kplus.plots.style import (
    BLUE,
    GREY,
    cluster_style,
    integer_ticks,
    number_groups,
    share_words,
)

__all__ = ["SizeDisplay"]

_LISTED_UP_TO = 30  # groups with a line of text each


class SizeDisplay(Display):
    """A bar for each cluster or feature: how many rows it has.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    sizes : array-like of shape (n_groups,)
        Rows of each group, or their summed weights.
    n_rows : float
        Rows of the table. Features may share rows, clusters do not.
    kind : {"cluster", "feature"}, default="cluster"
        What the groups are.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    n_noise : float
        Rows that are in no cluster. Features have none.

    See Also
    --------
    SurenessDisplay : How surely rows belong to their clusters.

    Examples
    --------
    >>> from kplus.plots import SizeDisplay
    >>> display = SizeDisplay.from_predictions([0, 0, 0, 1, 1, -1])
    >>> [text.get_text() for text in display.ax_.texts]
    ['3 (50%)', '2 (33%)', '1 (17%)']
    """

    def __init__(
        self, sizes: ArrayLike, *, n_rows: float, kind: str = "cluster"
    ) -> None:
        self.sizes = np.asarray(sizes, dtype=np.float64)
        self.n_rows = float(n_rows)
        self.kind = kind
        left = self.n_rows - float(self.sizes.sum()) if kind == "cluster" else 0.0
        self.n_noise = left if left > 1e-9 * max(self.n_rows, 1.0) else 0.0

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None) -> Self:
        """Draw the groups of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Of clusters or features.
        X : array-like, sparse matrix, data frame or path, or None
            Rows to count by what is predicted for them; by default those of the fit.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : SizeDisplay
        """
        check_is_fitted(estimator)
        if hasattr(estimator, "feature_counts_"):
            counts, n = estimator.feature_counts_, estimator.n_samples_seen_
            if X is not None:
                Z = estimator.transform(X)
                counts, n = np.asarray(Z.sum(axis=0)).ravel(), Z.shape[0]
            return cls(counts, n_rows=n, kind="feature").plot(ax=ax)
        if X is not None:
            return cls.from_predictions(
                estimator.predict(X),
                n_clusters=getattr(estimator, "n_clusters_", 0),
                ax=ax,
            )
        if hasattr(estimator, "cluster_sizes_"):
            sizes = estimator.cluster_sizes_
            return cls(sizes, n_rows=float(np.sum(sizes))).plot(ax=ax)
        if not hasattr(estimator, "labels_"):
            raise ValueError(
                f"This {type(estimator).__name__} keeps no labels: pass X, the rows "
                f"to count."
            )
        return cls.from_predictions(
            estimator.labels_, n_clusters=getattr(estimator, "n_clusters_", 0), ax=ax
        )

    @classmethod
    def from_predictions(
        cls, labels: ArrayLike, *, n_clusters: int = 0, ax: Any = None
    ) -> Self:
        """Draw clusters that are given row by row.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Cluster of each row, from 0; -1 for none.
        n_clusters : int, default=0
            So many clusters at least, if some have no row.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : SizeDisplay
        """
        labels = np.asarray(labels, dtype=np.int64)
        sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
        return cls(sizes, n_rows=len(labels)).plot(ax=ax)

    @property
    def _listed(self) -> bool:
        return len(self.sizes) <= _LISTED_UP_TO

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        n = len(self.sizes) + (self.n_noise > 0.0)
        return (6.4, 1.1 + 0.26 * n) if self._listed else (9.0, 3.6)

    def _check(self) -> None:
        if not len(self.sizes) and not self.n_noise:
            raise ValueError(f"There is no {self.kind} whose size could be drawn.")

    def _draw(self) -> None:
        K, noise = len(self.sizes), [self.n_noise] * (self.n_noise > 0.0)
        values = np.concatenate([self.sizes, noise])
        groups = [*range(K), *([-1] * len(noise))]
        colors = [
            cluster_style(k)[0] if self.kind == "cluster" else BLUE for k in groups
        ]
        names = [str(k) if k >= 0 else "noise" for k in groups]
        many = f"{K} {self.kind}{'s' * (K != 1)}"
        self.ax_.set_title(f"{many} of {self.n_rows:,.0f} rows", fontsize="medium")
        if self._listed:
            self._draw_across(values, colors, names)
        else:
            self._draw_up(values, colors, names)
        self.ax_.spines[["top", "right"]].set_visible(False)

    def _draw_across(self, values: Any, colors: Any, names: list[str]) -> None:
        ax, n = self.ax_, len(values)
        ax.barh(range(n), values, color=colors, height=0.75)
        ax.set(ylim=(n - 0.4, -0.6), xlabel="rows", ylabel=self.kind)
        ax.set_yticks(range(n), names)
        ax.margins(x=0.2)
        for place, value in enumerate(values):
            words = f"{value:,.0f} ({share_words(value / max(self.n_rows, 1e-300))})"
            ax.annotate(
                words, (value, place), xytext=(4, 0), textcoords="offset points",
                va="center", fontsize="small",
            )  # fmt: skip
        integer_ticks(ax.xaxis, 6)
        ax.xaxis.set_major_formatter("{x:,.0f}")

    def _draw_up(self, values: Any, colors: Any, names: list[str]) -> None:
        ax, K = self.ax_, len(self.sizes)
        ax.bar(range(len(values)), values, color=colors, width=0.8)
        ax.set(xlim=(-0.7, len(values) - 0.3), ylabel="rows", xlabel=self.kind)
        number_groups(ax.xaxis, range(K))
        ax.yaxis.set_major_formatter("{x:,.0f}")
        if len(values) > K:
            ax.annotate(
                names[-1], (K, values[-1]), xytext=(0, 3), textcoords="offset points",
                ha="center", fontsize="small", color=GREY,
            )  # fmt: skip
