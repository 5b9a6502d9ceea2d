"""What users pass that is not in memory, as a table."""

from typing import Any

from kplus.sources.blocks import Cut
from kplus.sources.files import has_columns
from kplus.sources.own import OwnBlocks, looks_like_blocks

__all__ = ["as_table"]


def as_table(X: Any) -> Any:
    """Open tables, Dask collections and blocks of people's own; None for the rest."""
    if has_columns(X) or isinstance(X, Cut):
        return X
    if type(X).__module__.startswith("dask"):
        from kplus.sources.dask import open_collection

        return open_collection(X)
    return OwnBlocks(X) if looks_like_blocks(X) else None
