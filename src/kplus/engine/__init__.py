"""How work is spread over blocks of rows."""

from pathlib import Path
from typing import Any

from kplus.core.types import Array, Blocks
from kplus.engine.engine import BlockEngine, SerialEngine, ThreadEngine
from kplus.engine.meter import Meter, resident_bytes
from kplus.engine.resources import Resources
from kplus.engine.state_store import FolderStore, LimitedStore, StateStore

__all__ = ["BlockEngine", "SerialEngine", "ThreadEngine", "make_engine"]

_THREAD_BYTES = 64 * 2**20  # for blocks and what is computed of them


def make_engine(
    source: Blocks,
    weights: Array | None = None,
    n_threads: int = 1,
    resources: Resources | None = None,
    meter: Meter | None = None,
) -> BlockEngine:
    """Return the engine for a number of threads, or for the workers of a client.

    Workers are for rows that they can read themselves; rows in memory stay here.
    """
    if resources is None:
        resources = Resources()
    few = source.n_rows <= source.block_rows
    if resources.client is not None and getattr(source, "remote", False) and not few:
        return _dask_engine(source, weights, resources, meter)
    store = _limited(resources, n_threads)
    engine: BlockEngine
    if n_threads == 1 or few:
        engine = SerialEngine(source, weights, store=store, meter=meter)
    else:
        engine = ThreadEngine(
            source, weights, n_threads=n_threads, store=store, meter=meter
        )
    engine.sparing = resources.memory_limit is not None
    return engine


def _limited(resources: Resources, n_threads: int) -> StateStore | None:
    limit = resources.memory_limit
    if limit is None:
        return None
    scratch: list[Any] = []  # kept for as long as the store is

    def folder() -> Path:
        scratch.append(resources.folder())
        path: Path = scratch[0].path
        return path

    share = (limit - resident_bytes()) // resources.sharers
    spare = share - n_threads * _THREAD_BYTES
    return LimitedStore(max(0, spare), folder)


def _dask_engine(
    source: Blocks, weights: Array | None, resources: Resources, meter: Meter | None
) -> BlockEngine:
    from kplus.engine.cluster import check_shared
    from kplus.engine.dask import DaskEngine

    if resources.scratch is None:
        check_shared(resources.client)
    scratch = resources.folder()
    store = FolderStore(scratch.path)
    return DaskEngine(
        source,
        weights,
        client=resources.client,
        store=store,
        scratch=scratch,
        meter=meter,
    )
