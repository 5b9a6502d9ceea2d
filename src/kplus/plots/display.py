"""What all displays share: axes, panels, and the import of matplotlib."""

from typing import Any, Self

import numpy as np

from kplus.core.errors import MissingPackageError
from kplus.data.rows import Rows, drawn

__all__ = ["Display", "final_step", "require_matplotlib", "some_rows"]


class Display:
    """A picture that can be drawn again, in the manner of scikit-learn's displays.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of that.
    """

    axes_: list[Any]

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        return 7.2, 4.8

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : Display
            This object.
        """
        require_matplotlib()
        self._check()
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=self.figsize, layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw()
        return self

    def _check(self) -> None:
        """Refuse what cannot be drawn, before there is a figure."""

    def _draw(self) -> None:
        """Draw in `ax_`."""
        raise NotImplementedError

    def _frame(self, title: str, **style: Any) -> None:
        """Let `ax_` be a frame with a title, for panels within it."""
        self.ax_.set_axis_off()
        self.ax_.set_title(title, **{"fontsize": "medium", "parse_math": False} | style)
        self.axes_ = []

    def _panel(self, left: float, bottom: float, width: float, height: float) -> Any:
        """Axes within the given ones, so that all stays where the user wants it."""
        ax = self.ax_.inset_axes([left, bottom, width, height])
        self.axes_.append(ax)
        return ax


def require_matplotlib() -> None:
    """Raise an error that says what to install if matplotlib is not there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(
            "Pictures need matplotlib, which is not installed: "
            "pip install 'kplus[plot]'"
        ) from error


def final_step(estimator: Any) -> Any:
    """The estimator at the end of a pipeline, or the estimator itself."""
    return estimator[-1] if hasattr(estimator, "steps") else estimator


def some_rows(X: Any, most: int, random_state: int) -> tuple[Any, int]:
    """At most so many rows of any table, in the order they have, and of how many."""
    table = Rows(X)
    if table.n_rows <= most:
        return X, table.n_rows
    rng = np.random.default_rng(random_state)
    return table.take(drawn(table.n_rows, most, rng)), table.n_rows
