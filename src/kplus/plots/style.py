"""The one style of all pictures: colours, markers, names, grids of cells.

Colours are told apart by people with colour blindness; neighbours in number differ in
lightness and in their marker, so that a print in grey can be read. Colours of values
are light for little and dark for much; where they go both ways, a sign goes with them.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AMBER",
    "BLUE",
    "COLORS",
    "DIVERGING",
    "GREY",
    "HIGHLIGHT",
    "INK",
    "LIGHT",
    "MAX_NAME",
    "SEQUENTIAL",
    "cell_grid",
    "cluster_style",
    "color_scale",
    "group_name",
    "ink_on",
    "integer_ticks",
    "label_groups",
    "name_columns",
    "number_groups",
    "plain",
    "share_words",
    "write_cells",
]

# Begins with colours of Okabe and Ito. Any two are .07 or more apart in OKLab, also as
# people without red or green cones see them.
COLORS = (
    "#0072B2", "#E69F00", "#882255", "#009E73", "#CC79A7", "#332288",
    "#D55E00", "#A5C387", "#5A5A00", "#7FB8E8", "#691E00", "#9687FF",
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # 7 and 12 have no common divisor
BLUE, AMBER, HIGHLIGHT = "#0072B2", "#E69F00", "#D55E00"
GREY, LIGHT, INK = "#808080", "#D9D9D9", "#404040"
SEQUENTIAL, DIVERGING = "Blues", "RdBu_r"

MAX_NAME = 24  # letters of a name
_MAX_CELLS = 720  # with numbers in them: more would not be legible
_MAX_ACROSS = 20
_MAX_SIGNED = 2400  # with signs
_MAX_NUMBERED = 80  # groups whose number stands at an axis
_SCALE = 5.0  # inches of the highest scale of colours
_MANY_CELLS = 60  # rows or columns of a grid from which on it would hide the cells


def cluster_style(cluster: int) -> tuple[str, str]:
    """Colour and marker of a cluster; 84 differ, then they repeat. Noise is grey."""
    if cluster < 0:
        return GREY, "."
    return COLORS[cluster % len(COLORS)], _MARKERS[cluster % len(_MARKERS)]


# -------------------------------------------------------------------------- words


def plain(name: object, most: int = MAX_NAME) -> str:
    """A name on one line; of a long one the beginning and the end.

    Of a category that goes for the column and the value, for both tell it from others.

    Examples
    --------
    >>> plain("price per\\nunit, in thousands of euros, 2024")
    'price per unit,…os, 2024'
    >>> plain("profession of the father = self-employed")
    'profess…her = self-e…yed'
    """
    words = " ".join("".join(c if c.isprintable() else " " for c in str(name)).split())
    if len(words) <= most:
        return words
    column, equals, value = words.partition(" = ")
    if equals:
        room = most - len(equals)
        value = plain(value, max(room // 2, room - len(column)))
        return f"{plain(column, room - len(value))}{equals}{value}"
    end = most // 3
    return f"{words[: most - 1 - end]}…{words[-end:]}"


def share_words(share: float) -> str:
    """A share in per cent, and what is not nothing not as 0."""
    if not np.isfinite(share):
        return "-"
    words = f"{share:.0%}"
    return "<1%" if words == "0%" and share > 0.0 else words


def group_name(k: int, size: float, total: float) -> str:
    """As in "3: 1,200 (12%)"; -1 is noise."""
    words = share_words(size / max(total, 1e-300))
    return f"{k if k >= 0 else 'noise'}: {size:,.0f} ({words})"


# --------------------------------------------------------------------------- axes


def name_columns(ax: Any, names: Sequence[str]) -> None:
    """Names under the columns of a picture, aslant where they are long."""
    labels = [plain(name) for name in names]
    small = "small" if len(labels) <= 25 else "x-small"
    style: dict[str, Any] = {"fontsize": small, "parse_math": False}
    if max(map(len, labels), default=0) > 3:
        style |= {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(labels)), labels, **style)


def number_groups(axis: Any, numbers: Sequence[int]) -> None:
    """Numbers of groups along an axis, so many of them as there is room for."""
    n = len(numbers)
    step = 1 if n <= 30 else 2 if n <= _MAX_NUMBERED else max(1, round(n / 200)) * 10
    places = range(0, n, step)
    axis.set_ticks(places, [str(numbers[i]) for i in places], fontsize="small")


def label_groups(ax: Any, names: Sequence[str], places: Any = None) -> None:
    """Names beside the rows of a picture; those of many are smaller."""
    places = range(len(names)) if places is None else places
    size = "small" if len(names) <= 25 else "x-small"
    ax.set_yticks(places, names, fontsize=size, parse_math=False)


def integer_ticks(axis: Any, most: int = 9) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, integer=True, min_n_ticks=1))


def cell_grid(ax: Any, n_down: int, n_across: int) -> None:
    """White lines between cells, as long as cells are large."""
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if n_down <= _MANY_CELLS and n_across <= _MANY_CELLS:
        down, across = np.arange(1, n_down) - 0.5, np.arange(1, n_across) - 0.5
        wide = 2.0 if n_down <= 25 else 0.8
        ax.hlines(down, -0.5, n_across - 0.5, color="white", lw=wide)
        ax.vlines(across, -0.5, n_down - 0.5, color="white", lw=0.8)


def color_scale(ax: Any, image: Any, words: str, **style: Any) -> None:
    """The scale of an image's colours beside it, no larger for a tall picture."""
    tall = float(ax.figure.get_figheight())
    share = min(1.0, _SCALE / tall)
    place = {"shrink": share, "anchor": (0.0, 1.0)} if share < 1.0 else {}
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, aspect=16, **place, **style)
    bar.set_label("\n".join(wrap(words, 24)), fontsize="small")
    bar.ax.tick_params(labelsize="small")
    bar.outline.set_visible(False)


# -------------------------------------------------------------------------- cells


def ink_on(color: Any) -> str:
    """Black or white, whichever is read better on a colour."""
    from matplotlib.colors import to_rgb

    rgb = np.asarray(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return "white" if linear @ (0.2126, 0.7152, 0.0722) < 0.2 else "black"


def write_cells(ax: Any, image: Any, values: NDArray[Any], bold: Any = None) -> None:
    """The numbers in the cells of a map, or signs of the large ones if it has many.

    A value that is missing is a dash.
    """
    K, D = values.shape
    if K * D > _MAX_CELLS or D > _MAX_ACROSS:
        if K * D <= _MAX_SIGNED and (values < 0.0).any():
            _write_signs(ax, image, values)
        return
    for (k, d), value in np.ndenumerate(values):
        known = bool(np.isfinite(value))
        heavy = bold is not None and bool(bold[k, d])
        ax.text(
            d, k, _number_words(value) if known else "–",
            ha="center", va="center", size="x-small",
            color=ink_on(image.cmap(image.norm(value))) if known else INK,
            weight="bold" if heavy else "normal",
        )  # fmt: skip


def _write_signs(ax: Any, image: Any, values: NDArray[Any]) -> None:
    """In grey, much more and much less look alike but for their signs."""
    size = 5 if len(values) > 30 else 6
    for k, d in np.argwhere(np.abs(values) > 0.5 * image.norm.vmax):
        value = values[k, d]
        ax.text(
            d, k, "+" if value > 0.0 else "−", ha="center", va="center", size=size,
            color=ink_on(image.cmap(image.norm(value))),
        )  # fmt: skip


def _number_words(value: float) -> str:
    words = f"{value:.1f}" if abs(value) < 100 else f"{value:.3g}"
    return "0" if words in ("0.0", "-0.0") else words.replace("-", "−")
