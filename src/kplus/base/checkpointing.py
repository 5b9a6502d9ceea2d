"""Which fit and which rows a checkpoint belongs to, and whether a fit may resume."""

import hashlib
import os
import time
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from kplus import __version__
from kplus.core.errors import CheckpointError
from kplus.core.reading import n_blocks
from kplus.core.types import Array, Blocks
from kplus.engine.resources import resources_now
from kplus.persist.checkpoint import Checkpoint

__all__ = [
    "Fingerprint",
    "begin",
    "check_rows",
    "open_for",
    "resume_fit",
]

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
        # Mapped rows are let go of as engines do; asked here: threads have no context.
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

        Rows that are not in files have no other mark.
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


def begin(
    path: str | os.PathLike[str], estimator: Any, source: Blocks, weights: Array | None
) -> Checkpoint:
    """A checkpoint for a fit that begins."""
    if not isinstance(estimator.random_state, Integral):
        raise CheckpointError(
            "checkpoint needs a fit that can be repeated: set random_state to a whole "
            f"number (it is {estimator.random_state})."
        )
    if getattr(estimator, "warm_start", False):
        raise CheckpointError(
            "checkpoint does not go with warm_start=True: what the fit began from "
            "would be gone after a crash. Set one of the two."
        )
    fingerprint = Fingerprint(source, weights)
    fit = {
        "class": type(estimator).__name__,
        "kplus": __version__,
        "params": estimator.get_params(deep=False),
        "rows": fingerprint.plain,
    }
    try:
        checkpoint = Checkpoint.begin(path, fit)
    except TypeError as error:
        raise CheckpointError(
            f"A parameter cannot be written to a checkpoint: {error}"
        ) from error
    checkpoint.spent += fingerprint.seconds
    _complete_later(checkpoint, fingerprint)
    return checkpoint


def open_for(cls: type, path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint of an interrupted fit of a class."""
    checkpoint = Checkpoint.open(path)
    fit = checkpoint.fit
    if fit["class"] != cls.__name__:
        raise CheckpointError(
            f"{path} is the checkpoint of a {fit['class']}; resume it by "
            f"{fit['class']}.resume."
        )
    if fit["kplus"] != __version__:
        raise CheckpointError(
            f"{path} was written by kplus {fit['kplus']}, and this is {__version__}: "
            f"results might differ. Resume with that version, or fit anew."
        )
    _check_params(cls, path, fit["params"])
    return checkpoint


def resume_fit(
    estimator: Any, path: str | os.PathLike[str], X: Any, sample_weight: Any = None
) -> None:
    """Resume an interrupted fit in an estimator that has its parameters."""
    estimator._resume(path, X, sample_weight)


def _check_params(cls: Any, path: Any, params: dict[str, Any]) -> None:
    """Refuse parameters that this class did not write."""
    try:
        odd = sorted(set(params) ^ set(cls._get_param_names()))
        if odd:
            raise ValueError(f"{odd[0][:60]!r} is missing or unknown")
        made = cls(**params)
        made._validate_params()
        made._check_settings()
        effective_n_jobs(getattr(made, "n_jobs", None))
    except (TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{path} does not hold the parameters of a {cls.__name__} ({error}). It "
            f"was altered; delete the folder, and fit anew."
        ) from error


def check_rows(checkpoint: Checkpoint, source: Blocks, weights: Array | None) -> None:
    """Refuse rows other than those of the interrupted fit; then take it up.

    Files that have neither been changed nor copied since, and of which some blocks are
    the same, are taken to be the same. Otherwise all rows are read to decide.
    """
    known, fingerprint = checkpoint.fit["rows"], Fingerprint(source, weights)
    same_files = known.get("files") == fingerprint.plain["files"]
    if known.get("values") is not None and not (same_files and known.get("files")):
        fingerprint.complete()
    checkpoint.spent += fingerprint.seconds
    for name, what in _WHAT.items():
        then, now = known.get(name), fingerprint.plain[name]
        if then != now and not (name == "values" and None in (then, now)):
            raise CheckpointError(
                f"{checkpoint.folder} belongs to other data: {what} differ "
                f"({then} then, {now} now). Give the same rows, in the "
                f"same order, or fit anew."
            )
    if known.get("values") is None and not same_files:
        raise CheckpointError(
            f"{checkpoint.folder} may belong to other data: the files were changed or "
            f"copied, and the fit was too short to look at all rows. Give files with "
            f"the same times of change (cp -p keeps them), or fit anew."
        )
    _complete_later(checkpoint, fingerprint)
    checkpoint.restore()


_WHAT = {
    "n_rows": "the numbers of rows",
    "n_features": "the numbers of columns",
    "block_rows": "the rows of a block (batch_size)",
    "columns": "the names of columns",
    "weights": "the digests of the weights",
    "sample": "the digests of the values",
    "values": "the digests of the values",
}


def _complete_later(checkpoint: Checkpoint, fingerprint: Fingerprint) -> None:
    """Let the checkpoint have the digest of all rows when there is time for it."""
    rows = checkpoint.fit["rows"]

    def complete(seconds: float) -> bool:
        before = fingerprint.seconds
        done = fingerprint.complete(seconds)
        checkpoint.spent += fingerprint.seconds - before
        rows["values"] = fingerprint.plain["values"]
        return done

    if rows.get("values") is None:
        checkpoint.complete = complete
