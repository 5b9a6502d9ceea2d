"""What tells a table from others, so that a fit goes on with the rows it began with."""

import hashlib
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from kplus.core.reading import n_blocks
from kplus.core.types import Array, Blocks
from kplus.engine.resources import resources_now

__all__ = ["Fingerprint"]

_SAMPLE_BYTES = 32 * 2**20  # of rows as float64


class Fingerprint:
    """What is known of the rows of a fit.

    To read all rows only to know them again takes as long as a pass. So at first there
    is a digest of some blocks, spread evenly from the first to the last: all of small
    tables, 32 MB of others. The digest of all rows is made before the first checkpoint
    is written. Sizes and times of change tell whether files are the same, too; so with
    them it is put off until it takes less than a hundredth of the time.

    Attributes
    ----------
    plain : dict
        It as plain values, with ``"values"`` None while there is no digest of all rows,
        and ``"files"`` None where the rows are not in files.
    seconds : float
        Time that digests took.
    """

    def __init__(self, source: Blocks, weights: Array | None) -> None:
        self._source: Any = source
        # Mapped rows are let go of as engines do; asked here, as threads are not told.
        sparing = resources_now().memory_limit is not None
        self._release = getattr(source, "release", None) if sparing else None
        self.seconds = 0.0
        names = getattr(source, "feature_names", None)
        stamps = getattr(source, "stamps", None)
        blocks = _spread(source)
        sample = self._digest(blocks)
        whole = len(blocks) == n_blocks(source)
        self._expected = self.seconds * n_blocks(source) / max(len(blocks), 1)
        self.plain: dict[str, Any] = {
            "n_rows": source.n_rows,
            "n_features": source.n_features,
            "block_rows": source.block_rows,
            "columns": None if names is None else list(names),
            "weights": None if weights is None else _hex(weights),
            "sample": sample,
            "files": None if stamps is None else stamps.plain,
            "values": sample if whole else None,
        }

    def complete(self, seconds: float = np.inf) -> bool:
        """Whether there is a digest of all rows, made now if it takes no more time.

        Rows that are not in files have nothing else to be told by.
        """
        if self.plain["values"] is None and (
            self.plain["files"] is None or self._expected <= seconds
        ):
            self.plain["values"] = self._digest(range(n_blocks(self._source)))
        return self.plain["values"] is not None

    def _digest(self, blocks: Iterable[int]) -> str:
        begun = time.perf_counter()
        source, release = self._source, self._release
        digest = hashlib.sha256()  # the quickest sound one where processors know it
        for index in blocks:
            digest.update(np.ascontiguousarray(source.read(index)).data)
            if release is not None:
                start = index * source.block_rows
                release(start, min(start + source.block_rows, source.n_rows))
        self.seconds += time.perf_counter() - begun
        return digest.hexdigest()


def _spread(source: Blocks) -> list[int]:
    """Some blocks from the first to the last."""
    n, size = n_blocks(source), 8 * source.block_rows * source.n_features
    most = max(2, _SAMPLE_BYTES // max(size, 1))
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int)).tolist()


def _hex(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
