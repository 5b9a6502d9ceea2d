"""A picture of what rows have of each group."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kplus.plots.belonging import feature_shares, shares_of
from kplus.plots.display import Display, final_step, some_rows
from kplus.plots.style import GREY, SEQUENTIAL, color_scale, number_groups

__all__ = ["MembershipDisplay"]

_NOISE = 1e-9  # what clusters leave of a row, and is more than rounding
_LINES_UP_TO, _STEPS_UP_TO = 60, 20  # groups


class MembershipDisplay(Display):
    """Rows and groups, the rows sorted: dark where a row belongs.

    Of clusters, the rows of one lie together, the surest first, so that what is dark
    beside the steps are rows between clusters. Of features, rows with the same features
    lie together; the first feature sorts first.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    memberships : array-like of shape (n_drawn, n_groups)
        From 0 to 1: probabilities of clusters, or features that rows have.
    kind : {"cluster", "feature"}, default="cluster"
        Clusters share out a row between them, features do not.
    n_rows : int or None, default=None
        Rows of the table, if these are some of them.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    rows_ : ndarray of int
        The rows from top to bottom.
    has_noise_ : bool
        Whether clusters leave something of some rows, which has a column of its own.

    See Also
    --------
    SurenessDisplay : How surely rows belong to their own cluster.
    CombinationDisplay : How many rows have which features together.

    Examples
    --------
    >>> import numpy as np
    >>> from kplus.plots import MembershipDisplay
    >>> shares = np.array([[0.6, 0.4], [0.1, 0.9], [1.0, 0.0]])
    >>> MembershipDisplay.from_predictions(shares).rows_
    array([2, 0, 1])
    """

    def __init__(
        self,
        memberships: ArrayLike,
        *,
        kind: str = "cluster",
        n_rows: int | None = None,
    ) -> None:
        self.memberships = np.asarray(memberships, dtype=np.float64)
        self.kind = kind
        self.n_rows = len(self.memberships) if n_rows is None else n_rows
        left = 1.0 - self.memberships.sum(axis=1)
        self.has_noise_ = kind == "cluster" and bool((left > 1e-6).any())
        self._shown = self.memberships
        if self.has_noise_:
            left = np.where(left > _NOISE, left, 0.0)
            self._shown = np.column_stack([self.memberships, left])
        by_cluster = kind == "cluster"
        self.rows_ = _by_cluster(self._shown) if by_cluster else _by_bits(self._shown)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ax: Any = None,
        max_rows: int = 2000,
        random_state: int = 0,
    ) -> Self:
        """Draw what a fitted estimator says of rows.

        Parameters
        ----------
        estimator : fitted estimator
            DPMixture, CRAFT, one of features, what else has `predict_proba`, or a
            pipeline that ends in one.
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            The rows.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.
        max_rows : int
            Of more rows a random sample of this size is drawn.
        random_state : int
            Seed of the sample.

        Returns
        -------
        display : MembershipDisplay
        """
        part, n_rows = some_rows(X, max_rows, random_state)
        features = feature_shares(estimator, part)
        if features is not None:
            return cls(features, kind="feature", n_rows=n_rows).plot(ax=ax)
        shares = shares_of(estimator, part)
        if shares is None:
            raise ValueError(
                f"{type(final_step(estimator)).__name__} puts each row in one cluster: "
                f"it has no shares. SurenessDisplay shows how sure that is."
            )
        return cls(shares, n_rows=n_rows).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls, memberships: ArrayLike, *, kind: str = "cluster", ax: Any = None
    ) -> Self:
        """Draw shares of your own.

        Parameters
        ----------
        memberships, kind
            As for the class.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : MembershipDisplay
        """
        return cls(memberships, kind=kind).plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        return float(np.clip(2.6 + 0.22 * self._shown.shape[1], 4.2, 13.0)), 4.8

    def _check(self) -> None:
        if self.kind not in ("cluster", "feature"):
            raise ValueError(f'kind must be "cluster" or "feature", not {self.kind!r}.')
        if not self._shown.size:
            raise ValueError(f"There is no row, or no {self.kind}, to draw.")

    def _draw(self) -> None:
        ax, K = self.ax_, self.memberships.shape[1]
        n, n_columns = self._shown.shape
        shown = np.clip(self._shown[self.rows_], 0.0, 1.0)
        # Rows are many: some are left out, which does no harm as they are sorted.
        style = {"cmap": SEQUENTIAL, "vmin": 0.0, "vmax": 1.0, "aspect": "auto"}
        image = ax.imshow(shown, interpolation="nearest", **style)
        number_groups(ax.xaxis, range(K))
        if self.has_noise_:
            places, words = list(ax.get_xticks()), ax.get_xticklabels()
            words = [*(word.get_text() for word in words), "noise"]
            ax.set_xticks([*places, K], words, fontsize="small")
        if n_columns <= _LINES_UP_TO:
            across = np.arange(1, n_columns) - 0.5
            ax.vlines(across, -0.5, n - 0.5, color="white", lw=1.0)
        if self.kind == "cluster" and n_columns <= _STEPS_UP_TO:
            ends = np.cumsum(np.bincount(self._shown.argmax(1), minlength=n_columns))
            ax.hlines(ends[:-1] - 0.5, -0.5, n_columns - 0.5, color=GREY, lw=0.4)
        ax.set(xlim=(-0.5, n_columns - 0.5), ylim=(n - 0.5, -0.5))
        ax.set(xlabel=self.kind, ylabel="rows, sorted")
        words = "probability" if self.kind == "cluster" else "has the feature"
        color_scale(ax, image, words)
        rows = f"{n:,} of {self.n_rows:,} rows" if n < self.n_rows else f"{n:,} rows"
        many = f"{K} {self.kind}{'s' * (K != 1)}"
        ax.set_title(f"{rows}, {many}", fontsize="medium")


def _by_cluster(shares: NDArray[Any]) -> NDArray[np.int64]:
    """By cluster, and the surest of each first."""
    if not shares.size:
        return np.arange(len(shares))
    order = np.lexsort((-shares.max(axis=1), shares.argmax(axis=1)))
    return np.asarray(order, np.int64)


def _by_bits(shares: NDArray[Any]) -> NDArray[np.int64]:
    """By which features rows have, the first feature first."""
    if not shares.size:
        return np.arange(len(shares))
    keys = np.where(shares > 0.5, 0, 1).T[::-1]
    return np.asarray(np.lexsort(keys), np.int64)
