"""The colours and markers of pictures."""

__all__ = ["GREY", "HIGHLIGHT", "cluster_style"]

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
