"""What all displays share: axes, colours, markers, and the import of matplotlib."""

from typing import Any, Self

from kplus.core.errors import MissingPackageError

__all__ = ["GREY", "HIGHLIGHT", "Display", "cluster_style", "require_matplotlib"]

# Okabe and Ito's palette, which people with colour blindness can tell apart, less
# black (the text's colour) and yellow (too faint on white).
_COLORS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#7F6B3B"]
_MARKERS = ["o", "s", "^", "D", "v", "P"]
HIGHLIGHT = "#D55E00"
GREY = "#808080"


class Display:
    """A picture that can be drawn again, in the manner of scikit-learn's displays.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of that.
    """

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


def require_matplotlib() -> None:
    """Raise an error that says what to install if matplotlib is not there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(
            "Pictures need matplotlib, which is not installed: "
            "pip install 'kplus[plot]'"
        ) from error


def cluster_style(cluster: int) -> tuple[str, str]:
    """Colour and marker of a cluster; 42 differ, then they repeat. Noise is grey."""
    if cluster < 0:
        return GREY, "."
    turn, color = divmod(cluster, len(_COLORS))
    return _COLORS[color], _MARKERS[turn % len(_MARKERS)]
