"""One task after the other, in this thread."""

from kplus.engine.engine import BlockEngine

__all__ = ["SerialEngine"]


class SerialEngine(BlockEngine):
    """Runs every task where it is called."""
