"""How work is spread over blocks of rows."""

from kplus.core.types import Array, Blocks
from kplus.engine.engine import BlockEngine
from kplus.engine.serial import SerialEngine
from kplus.engine.threads import ThreadEngine

__all__ = ["BlockEngine", "SerialEngine", "ThreadEngine", "make_engine"]


def make_engine(
    source: Blocks, weights: Array | None = None, n_threads: int = 1
) -> BlockEngine:
    """Return the engine for a number of threads."""
    if n_threads == 1 or source.n_rows <= source.block_rows:
        return SerialEngine(source, weights)
    return ThreadEngine(source, weights, n_threads=n_threads)
