"""Where labels stand that would lie on top of each other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["apart", "spread"]

_ROUNDS = 150
_HOME = 0.05  # of the way back that a round draws a label that was pushed
_CLEAR = 0.02  # of the diameter: an overlap that nobody sees


def apart(ax: Any, places: NDArray[Any], diameter: float) -> NDArray[Any]:
    """Places in data coordinates, moved until discs of a diameter (inches) are clear.

    The limits of the axes have to be those of the picture.
    """
    moved = np.array(places, dtype=np.float64)
    known = np.isfinite(moved).all(axis=1)
    scale = ax.figure.dpi
    inches = ax.transData.transform(moved[known]) / scale
    low, high = ax.bbox.min / scale, ax.bbox.max / scale
    shown = spread(inches, diameter, low + diameter / 2.0, high - diameter / 2.0)
    moved[known] = ax.transData.inverted().transform(shown * scale)
    return moved


def spread(
    places: NDArray[Any], diameter: float, low: NDArray[Any], high: NDArray[Any]
) -> NDArray[Any]:
    """Discs that overlap are pushed apart, as near to their places as there is room.

    Examples
    --------
    >>> places = np.array([[1.0, 1.0], [1.0, 1.0], [3.0, 1.0]])
    >>> moved = spread(places, 1.0, np.zeros(2), np.full(2, 4.0))
    >>> float(np.linalg.norm(moved[0] - moved[1]).round(1)), moved[2].tolist()
    (1.0, [3.0, 1.0])
    """
    around = 2.4 * np.arange(len(places))  # equal places part in different directions
    now = places + 1e-3 * diameter * np.column_stack([np.cos(around), np.sin(around)])
    least, most = np.minimum(low, places), np.maximum(high, places)
    for left in range(_ROUNDS, 0, -1):
        off = now[:, None] - now
        far = np.hypot(off[..., 0], off[..., 1])
        np.fill_diagonal(far, np.inf)
        over = np.maximum(diameter - far, 0.0)
        moves = over.any(axis=1)
        if over.max(initial=0.0) <= _CLEAR * diameter:
            break
        push = np.einsum("ij,ijd->id", over / np.maximum(far, 1e-12), off) / 2.0
        length = np.maximum(np.hypot(*push.T) / (0.3 * diameter), 1.0)
        now = now + push / length[:, None]
        if left > _ROUNDS // 3:  # at last only apart
            now[moves] += _HOME * (places - now)[moves]
        now = np.clip(now, least, most)
    touched = np.hypot(*(now - places).T) > 2e-3 * diameter
    return np.where(touched[:, None], now, places)
