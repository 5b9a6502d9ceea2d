"""Blocks that are made of those of another table."""

from typing import Any

from kplus.core.types import Blocks
from kplus.sources.blocks import Cut

__all__ = ["WrappedBlocks"]


class WrappedBlocks(Cut):
    """As many rows as those of `source`, which can be sent where those can."""

    def __init__(self, source: Blocks) -> None:
        super().__init__(source.n_rows, source.n_features, source.block_rows)
        self._source: Any = source
        self.remote = getattr(source, "remote", False)
        self.stamps = getattr(source, "stamps", None)

    def release(self, start: int, stop: int) -> None:
        """Let go of the memory of some mapped rows; they can be read again."""
        if hasattr(self._source, "release"):
            self._source.release(start, stop)
