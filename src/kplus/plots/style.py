"""What the pictures share: colours, markers, and where matplotlib is imported."""

from typing import Any

__all__ = ["GREY", "HIGHLIGHT", "cluster_style", "new_axes", "require_matplotlib"]

# Okabe and Ito's palette, which people with colour blindness can tell apart, less
# black (the text's colour) and yellow (too faint on white).
_COLORS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#7F6B3B"]
_MARKERS = ["o", "s", "^", "D", "v", "P"]
HIGHLIGHT = "#D55E00"
GREY = "#808080"


def cluster_style(cluster: int) -> tuple[str, str]:
    """Colour and marker of a cluster; 42 differ, then they repeat."""
    turn, color = divmod(cluster, len(_COLORS))
    return _COLORS[color], _MARKERS[turn % len(_MARKERS)]


def require_matplotlib() -> None:
    """Raise an error that says what to install if matplotlib is not there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib, which is not installed: "
            "pip install 'kplus[plot]'"
        ) from error


def new_axes(ax: Any, figsize: tuple[float, float] = (7.2, 4.8)) -> Any:
    """Return `ax`, or the axes of a new figure if it is None."""
    require_matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]
