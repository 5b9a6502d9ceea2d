"""Data frames of whichever library is there."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw

__all__ = ["frame_of"]

_LIBRARIES = ("pandas", "polars", "pyarrow")


def frame_of(columns: Mapping[str, Any], what: str) -> Any:
    """A frame of columns: of pandas, or else of polars or Arrow.

    `what` begins the error that is raised where none of them is installed.
    """
    library: Any = next((name for name in _LIBRARIES if find_spec(name)), None)
    if library is None:
        raise ImportError(f"{what} needs pandas, polars or pyarrow; install one.")
    return nw.from_dict(dict(columns), backend=library).to_native()
