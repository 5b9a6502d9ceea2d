"""A picture of the penalty path."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kplus.plots.display import Display, final_step
from kplus.plots.style import GREY, HIGHLIGHT

__all__ = ["PenaltyPathDisplay"]

_LOG_FROM = 30


class PenaltyPathDisplay(Display):
    """Number of clusters against the penalty, with the chosen plateau marked.

    It is recommended to use :meth:`from_path`.

    Parameters
    ----------
    path : PenaltyPath
        What :func:`kplus.penalty_path` returns.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.

    See Also
    --------
    ClusterDisplay : Picture of the clusters.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from kplus import DPMeans, penalty_path
    >>> from kplus.plots import PenaltyPathDisplay
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=2)
    >>> path = penalty_path(DPMeans(random_state=0), X)
    >>> display = PenaltyPathDisplay.from_path(path)
    >>> display.ax_.get_xlabel()
    'penalty λ² of a cluster'
    """

    def __init__(self, path: Any) -> None:
        self.path = path

    @classmethod
    def from_path(cls, path: Any, *, ax: Any = None) -> Self:
        """Draw a penalty path.

        Parameters
        ----------
        path : PenaltyPath
            What :func:`kplus.penalty_path` returns.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : PenaltyPathDisplay
        """
        return cls(path).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the path that a fitted `DPMeans` chose its penalty from.

        Parameters
        ----------
        estimator : DPMeans
            Fitted with ``penalty="auto"``; a pipeline that ends in one will do.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : PenaltyPathDisplay
        """
        check_is_fitted(estimator)
        last = final_step(estimator)
        path = getattr(last, "path_", None)
        if not hasattr(path, "penalty_low"):
            raise ValueError(
                f"This {type(last).__name__} keeps no penalty path: fit DPMeans with "
                f'penalty="auto" and no n_clusters, or draw kplus.penalty_path(...).'
            )
        return cls(path).plot(ax=ax)

    def _draw(self) -> None:
        K = np.asarray(self.path.n_clusters)
        low, high = _finite_ends(self.path)
        order = np.argsort(low)
        x = np.column_stack([low[order], high[order]]).ravel()
        y = np.repeat(K[order], 2)
        self.ax_.plot(x, y, color=GREY, linewidth=1.2)
        self._mark_chosen(low, high, K)
        self.ax_.set(
            xscale="log",
            xlabel="penalty λ² of a cluster",
            ylabel="best number of clusters",
        )
        self._ticks(K)

    def _mark_chosen(self, low: Any, high: Any, K: Any) -> None:
        chosen, penalty = int(self.path.chosen), float(self.path.penalty)
        ends = [low[chosen], high[chosen]]
        self.ax_.plot(ends, [K[chosen]] * 2, color=HIGHLIGHT, linewidth=4)
        label = f"chosen: K = {K[chosen]}, λ² = {penalty:.4g}"
        self.ax_.plot(penalty, K[chosen], "o", color=HIGHLIGHT, ms=8, label=label)
        self.ax_.legend(loc="upper right", frameon=False)  # a falling path leaves room

    def _ticks(self, K: Any) -> None:
        from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

        if K.max() > _LOG_FROM:
            self.ax_.set_yscale("log")
            self.ax_.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            self.ax_.yaxis.set_major_formatter("{x:.0f}")
            self.ax_.yaxis.set_minor_formatter(NullFormatter())
        else:
            self.ax_.set_ylim(0, K.max() + 1)
            self.ax_.yaxis.set_major_locator(MaxNLocator(integer=True))


def _finite_ends(path: Any) -> tuple[Any, Any]:
    """Let the outermost steps, which may reach to 0 and infinity, end in the picture.

    A factor of 3 beyond the last corner shows that the step goes on.
    """
    low = np.array(path.penalty_low, dtype=np.float64)
    high = np.array(path.penalty_high, dtype=np.float64)
    corners = np.concatenate([low, high, [path.penalty]])
    corners = corners[np.isfinite(corners) & (corners > 0)]
    low[low <= 0] = corners.min() / 3
    high[~np.isfinite(high)] = corners.max() * 3
    return low, high
