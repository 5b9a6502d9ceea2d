"""Warnings at the line of the user's that called."""

import sys
import warnings

__all__ = ["warn"]


def warn(text: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's that called, whatever lies in between."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and _ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)


def _ours(module: str) -> bool:
    return module.startswith(("kplus.", "sklearn.", "contextlib"))
