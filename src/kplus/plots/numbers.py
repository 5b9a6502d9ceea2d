"""A picture of how good each number of groups is."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kplus.plots.display import Display, final_step
from kplus.plots.style import GREY, HIGHLIGHT, integer_ticks

__all__ = ["NumberDisplay"]


class NumberDisplay(Display):
    """The objective for each number of groups that the search looked at.

    A sharp lowest point is a clear choice. Where the curve is flat about it, more or
    fewer groups would be nearly as good.

    It is recommended to use :meth:`from_estimator`.

    Parameters
    ----------
    numbers : array-like of int, shape (n_steps,)
        Numbers of groups.
    values : array-like of shape (n_steps,)
        The objective of each, lower is better.
    chosen : int
        The number that was taken.
    kind : {"clusters", "components", "features"}, default="clusters"
        What was counted.
    measure : str, default="objective"
        What the values are, for the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.

    See Also
    --------
    PenaltyPathDisplay : The number of clusters of DPMeans against the penalty.
    TreeDisplay : Where else the clusters of DPMixture could be cut.

    Examples
    --------
    >>> import numpy as np
    >>> from kplus import KFeatures
    >>> from kplus.plots import NumberDisplay
    >>> X = np.array([[5, 0], [0, 3], [5, 3], [5, 0], [0, 0]])
    >>> display = NumberDisplay.from_estimator(KFeatures(penalty=1).fit(X))
    >>> display.numbers.tolist(), display.chosen
    ([0, 1, 2, 3], 2)
    """

    def __init__(
        self,
        numbers: ArrayLike,
        values: ArrayLike,
        *,
        chosen: int,
        kind: str = "clusters",
        measure: str = "objective",
    ) -> None:
        order = np.argsort(np.asarray(numbers), kind="stable")
        self.numbers = np.asarray(numbers)[order]
        self.values = np.asarray(values, dtype=np.float64)[order]
        self.chosen = int(chosen)
        self.kind = kind
        self.measure = measure

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the path that a fitted estimator keeps in `path_`.

        Parameters
        ----------
        estimator : CRAFT, BPMeans, KFeatures or DPMeans
            Fitted without a number of groups given.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : NumberDisplay
        """
        check_is_fitted(estimator)
        last = final_step(estimator)
        path = getattr(last, "path_", None)
        if path is None:
            raise ValueError(_no_path(last))
        if hasattr(path, "sse"):
            display = cls(
                path.n_clusters, path.sse, chosen=last.n_clusters_,
                measure="sum of squared distances",
            )  # fmt: skip
            return display.plot(ax=ax)
        features = "n_components" in path.dtype.names
        display = cls(
            path["n_components" if features else "n_clusters"],
            path["objective"],
            chosen=last.n_components_,
            kind="features" if features else "components",
        )
        return display.plot(ax=ax)

    def _check(self) -> None:
        if not len(self.numbers):
            raise ValueError("There is no number of groups that could be drawn.")

    def _draw(self) -> None:
        ax = self.ax_
        ax.plot(self.numbers, self.values, "o-", color=GREY, ms=3.5, lw=1.2)
        at = np.flatnonzero(self.numbers == self.chosen)
        kind = self.kind[:-1] if self.chosen == 1 else self.kind
        label = f"chosen: {self.chosen} {kind}"
        if len(at):
            ax.plot(
                self.chosen, self.values[at[0]], "D", color=HIGHLIGHT, ms=8, label=label
            )
        else:  # a fit to all rows may end with another number than that to a sample
            ax.axvline(self.chosen, color=HIGHLIGHT, ls="--", lw=1.2, label=label)
        ax.set(xlabel=f"number of {self.kind}", ylabel=self.measure)
        if self.values.min() > 0.0 and self.values.max() > 30.0 * self.values.min():
            ax.set_yscale("log")
        integer_ticks(ax.xaxis)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="best")


def _no_path(estimator: Any) -> str:
    name = type(estimator).__name__
    if name in ("CRAFT", "BPMeans", "KFeatures", "DPMeans"):
        return (
            f"This {name} keeps no path, for its number of groups or its penalty was "
            f"given: fit without either."
        )
    return (
        f"{name} keeps no path of numbers; CRAFT, BPMeans, KFeatures and DPMeans do. "
        f"TreeDisplay shows where clusters could be cut otherwise."
    )
