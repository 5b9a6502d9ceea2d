"""A picture of how surely rows belong to their clusters."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kplus.plots.belonging import surenesses
from kplus.plots.display import Display, some_rows
from kplus.plots.style import (
    GREY,
    INK,
    LIGHT,
    cluster_style,
    group_name,
    label_groups,
    share_words,
)

__all__ = ["SurenessDisplay"]

_LEAST, _LEAST_OF_MANY = 0.45, 0.7  # height of a block, as a share of the mean one
_MANY = 25
_BETWEEN = 0.12  # space between blocks, the same
_UNSURE = 0.5


class SurenessDisplay(Display):
    """How surely the rows of each cluster belong there, sorted: a block for a cluster.

    In the manner of a silhouette plot. A block that is full to the right is a cluster
    of which every row is sure; one with a long slope has many rows that might as well
    be elsewhere. A thin line marks the mean of a cluster. Thick blocks have many rows;
    those of few are drawn thicker than they are.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    sureness : array-like of shape (n_drawn,)
        How surely each row belongs to its cluster, from 0 to 1; NaN is left out.
    labels : array-like of shape (n_drawn,)
        The clusters, from 0; -1 for none.
    n_rows : int or None, default=None
        Rows of the table, if these are some of them.
    meaning : str, default="sureness"
        What the numbers are, for the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    means_ : dict of int to float
        Mean of each cluster that has rows, -1 for noise.

    See Also
    --------
    MembershipDisplay : The shares of all clusters in each row.
    StabilityDisplay : Whether clusters come back in other rows.

    Examples
    --------
    >>> from kplus import DPMeans
    >>> from kplus.plots import SurenessDisplay
    >>> X = [[0.0], [1.0], [2.0], [10.0], [12.0]]
    >>> model = DPMeans(n_clusters=2, random_state=0).fit(X)
    >>> display = SurenessDisplay.from_estimator(model, X)
    >>> display.sureness.round(2)
    array([0.91, 1.  , 0.89, 0.89, 0.91])
    """

    def __init__(
        self,
        sureness: ArrayLike,
        labels: ArrayLike,
        *,
        n_rows: int | None = None,
        meaning: str = "sureness",
    ) -> None:
        self.sureness = np.asarray(sureness, dtype=np.float64)
        self.labels = np.asarray(labels)
        self.n_rows = len(self.labels) if n_rows is None else n_rows
        self.meaning = meaning
        known = ~np.isnan(self.sureness)
        owner, values = self.labels[known], self.sureness[known]
        clusters = sorted(set(owner.tolist()), key=lambda k: (k < 0, k))  # noise last
        self._blocks = {k: np.sort(values[owner == k]) for k in clusters}
        self.means_ = {k: float(part.mean()) for k, part in self._blocks.items()}

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ax: Any = None,
        max_rows: int = 5000,
        random_state: int = 0,
    ) -> Self:
        """Draw rows by what a fitted clusterer says of them.

        With probabilities (`DPMixture`, `CRAFT`) it is that of a row's own cluster,
        for noise what all clusters leave. With centres (`DPMeans`) it is 1 - a/b, with
        the distances a to its own and b to the next: the simplified silhouette.

        Parameters
        ----------
        estimator : fitted clusterer
            A pipeline that ends in one will do.
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
        display : SurenessDisplay
        """
        part, n_rows = some_rows(X, max_rows, random_state)
        if not hasattr(estimator, "predict"):
            raise ValueError(
                f"{type(estimator).__name__} has no clusters to which rows belong; "
                f"MembershipDisplay shows features."
            )
        labels = np.asarray(estimator.predict(part))
        values, meaning = surenesses(estimator, part, labels)
        return cls(values, labels, n_rows=n_rows, meaning=meaning).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        sureness: ArrayLike,
        labels: ArrayLike,
        *,
        meaning: str = "sureness",
        ax: Any = None,
    ) -> Self:
        """Draw numbers of your own, such as silhouettes.

        Parameters
        ----------
        sureness, labels, meaning
            As for the class.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : SurenessDisplay
        """
        return cls(sureness, labels, meaning=meaning).plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        return 6.4, float(np.clip(1.4 + 0.32 * len(self._blocks), 2.4, 12.0))

    def _check(self) -> None:
        if not self._blocks:
            raise ValueError("There is no row whose sureness could be drawn.")

    def _draw(self) -> None:
        ax, blocks = self.ax_, self._blocks
        n = sum(map(len, blocks.values()))
        sizes = np.array([len(part) for part in blocks.values()], float)
        least = _LEAST if len(blocks) <= _MANY else _LEAST_OF_MANY
        heights = least + (1.0 - least) * sizes * len(blocks) / n  # 1 on average
        tops = np.concatenate([[0.0], np.cumsum(heights + _BETWEEN)])
        for (k, part), top, height in zip(
            blocks.items(), tops[:-1], heights, strict=True
        ):
            self._draw_block(k, part, top, height)
        words = [group_name(k, len(part), n) for k, part in blocks.items()]
        label_groups(ax, words, tops[:-1] + heights / 2.0)
        low = min(0.0, min(float(part[0]) for part in blocks.values()))
        ax.set(ylim=(tops[-1], -_BETWEEN), xlim=(low, 1.0), xlabel=self.meaning)
        ax.set_ylabel("cluster: rows")
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.axvline(_UNSURE, color=GREY, lw=0.8, ls=":", zorder=0)
        self._title(n)

    def _draw_block(self, k: int, part: Any, top: float, height: float) -> None:
        """Rows from the surest down, and a line at their mean."""
        color = cluster_style(k)[0]
        places = top + height * (np.arange(len(part) + 1) / len(part))
        values = np.append(part[::-1], part[0])  # steps: the last has its height, too
        base = min(0.0, float(part[0]))
        self.ax_.fill_betweenx(places, base, values, step="post", color=color, lw=0)
        self.ax_.add_patch(_frame(top, height, base))
        mean = self.means_[k]
        self.ax_.plot([mean, mean], [top, top + height], color=INK, lw=1.0)
        self.ax_.text(
            1.01, top + height / 2.0, f"{mean:.2f}", va="center", color=INK,
            transform=self.ax_.get_yaxis_transform(),
            fontsize="small" if len(self._blocks) <= _MANY else "x-small",
        )  # fmt: skip

    def _title(self, n: int) -> None:
        known = self.sureness[~np.isnan(self.sureness)]
        unsure = float(np.mean(known < _UNSURE))
        drawn = f"{n:,} rows"
        if n < self.n_rows:
            drawn = f"{n:,} of {self.n_rows:,} rows"
        self.ax_.set_title(
            f"{drawn}: mean {known.mean():.2f}, {share_words(unsure)} below {_UNSURE}",
            fontsize="medium",
        )


def _frame(top: float, height: float, base: float) -> Any:
    """Where a block would reach if all its rows were sure."""
    from matplotlib.patches import Rectangle

    wide = 1.0 - base
    return Rectangle((base, top), wide, height, fc=LIGHT, alpha=0.4, lw=0, zorder=0)
