"""The words of the architecture: block, summary, model, move, engine, result.

A **model** is pure functions over immutable values. An **engine** maps one of
them over blocks of rows and hands back the results in block order. One loop
(`kplus.core.loop.run`) serves every estimator.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "Block",
    "Blocks",
    "Checkpointer",
    "Engine",
    "FitResult",
    "IntArray",
    "Model",
    "Move",
    "PassInfo",
    "Position",
    "Proposal",
    "Summary",
]

Array = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]


class Blocks(Protocol):
    """A table cut into blocks of consecutive rows; the only view models have of data.

    Block ``i`` holds rows ``i * block_rows`` up to ``(i + 1) * block_rows``, whatever
    the source, so that results do not depend on where the rows are kept.

    Estimators take objects of people's own that have these attributes and `read`; with
    `take` random rows are quicker. An attribute `feature_names` names the columns.
    Blocks are read by several threads at once. With an attribute ``remote = True`` the
    object is pickled and sent to the workers of a cluster.

    Examples
    --------
    >>> import numpy as np
    >>> class Pairs:
    ...     n_rows, n_features, block_rows = 6, 1, 2
    ...     def read(self, index):
    ...         return np.array([[index], [index + 9.0]])
    >>> from kplus import DPMeans
    >>> DPMeans(penalty=10).fit(Pairs()).labels_
    array([0, 1, 0, 1, 0, 1], dtype=int32)
    """

    n_rows: int
    n_features: int
    block_rows: int

    def read(self, index: int) -> Array:
        """Return block `index`, C-contiguous float32 or float64; maybe read-only."""

    def take(self, rows: IntArray) -> Array:
        """Return the given rows (ascending row numbers), as `read` does."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows ``start:stop`` of a table, read only when a model asks for them."""

    source: Blocks
    index: int
    start: int
    stop: int
    weights: Array | None = None

    @property
    def n_rows(self) -> int:
        return self.stop - self.start

    def read(self) -> Array:
        return self.source.read(self.index)

    def take(self, rows: IntArray) -> Array:
        """Return rows given by their position inside the block, ascending."""
        return self.source.take(rows + self.start)


class Summary(Protocol):
    """What the parameters need to know of some rows.

    Two parts: statistics, which add and subtract, and the report of the last pass
    (rows moved, rows proposed for new groups), which only adds.
    """

    def begin_pass(self) -> None:
        """Clear the report, keep the statistics."""

    def __iadd__(self, other: Self) -> Self: ...

    def __isub__(self, other: Self) -> Self: ...

    def copy(self) -> Self: ...

    def regroup(self, old_to_new: IntArray, K: int) -> Self:
        """Carry over to `K` groups: old group k becomes ``old_to_new[k]``, -1: none."""


M = TypeVar("M")
P = TypeVar("P")
S = TypeVar("S", bound=Summary)


class Model(Protocol[P, S]):
    """Hyperparameters (a frozen dataclass) and pure functions.

    Attributes
    ----------
    incremental : bool
        False: `summarize` returns what the block contributes. True: it returns the
        change against what the block contributed at its last visit, which `local`
        remembers; with ``local=None`` the two are the same.
    """

    incremental: bool

    def summarize(self, params: P, block: Block, local: Any) -> tuple[S, Any]:
        """Assign the rows of a block and sum what they say; return the new local."""

    def update(self, params: P, total: S) -> P:
        """Return the best parameters for the summed statistics."""

    def advance(self, params: P, total: S, latest: S) -> P:
        """Return the parameters for the next group of blocks within a pass.

        `latest` is the summary of the group just visited.
        """

    def objective(self, params: P, total: S) -> float:
        """Return the objective on the whole data set, exactly, from the sums."""

    def converged(self, total: S) -> bool:
        """Whether the last pass changed nothing, so that the fit has converged."""

    def regroup_local(self, local: Any, old_to_new: IntArray, K: int) -> Any:
        """Renumber the groups in a block's per-row state."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change of structure: new parameters, and where old groups went.

    Attributes
    ----------
    exact : bool
        The sums stay true without another look at the rows, so that further moves may
        follow before the next pass.
    provisional : Summary or None
        Added to the total until the end of the next pass: rows counted twice, so that
        new groups last until they find rows of their own.
    trial : bool
        Taken back if the objective is higher after the next pass.
    note : object
        Something to remember it by; `Move.on_outcome` gets it back after the
        next pass. None: the move is not called.
    """

    params: Any
    old_to_new: IntArray
    K: int
    exact: bool = False
    provisional: Any = None
    trial: bool = False
    note: Any = None


@dataclass(frozen=True, slots=True)
class Position(Generic[M, P, S]):
    """A fit between two passes: what a move may go by.

    Attributes
    ----------
    params, total
        The parameters of the last pass, and the sums over rows under them.
    updated
        The parameters for the next pass, which a proposal replaces.
    converged : bool
        The fit would stop here if nothing is proposed.
    """

    model: M
    params: P
    total: S
    updated: P
    converged: bool


class Move(Protocol):
    """A change of the number of groups, tried between two passes.

    A move that makes proposals with a note has ``on_outcome(note, change, kept)``:
    how the objective changed over the next pass, and whether the change was kept. One
    that remembers anything from pass to pass keeps it in an attribute ``state``, a
    dataclass of plain values, which is what a checkpoint holds of it.
    """

    def propose(self, at: Position[Any, Any, Any]) -> Proposal | None:
        """Return a change that lowers the objective, or None."""


class Engine(Protocol):
    """Maps a model over blocks and keeps their per-row state."""

    n_blocks: int

    def sweep(self, model: Any, params: Any, block_ids: Sequence[int]) -> Any:
        """Visit blocks; return the sum of their summaries."""

    def regroup(self, old_to_new: IntArray, K: int) -> None:
        """Note that groups were renumbered; blocks catch up on their next visit."""

    def locals(self) -> Iterable[Any]:
        """Yield the per-row state of every block, in block order."""

    def snapshot(self) -> Any:
        """What `restore` needs to bring back the per-row state of this moment."""

    def restore(self, snapshot: Any) -> None:
        """Bring back an earlier per-row state."""

    def state(self, snapshot: Any) -> Any:
        """A snapshot as plain values, for a new engine on the same rows."""

    def resume(self, state: Any) -> None:
        """Resume from the state of another engine; CheckpointError for other blocks."""

    def states(self, K: int) -> Iterable[tuple[Any, int, int]]:
        """Per-row states with their rows and the groups they know, of which K are now.

        Blocks that have yet to catch up with renumberings know others.
        """


class Checkpointer(Protocol):
    """Keeps the state of a loop, so that a fit can resume after a crash."""

    def load(self, restore: Callable[[Any], Any]) -> Any:
        """What `restore` makes of what was kept last; None if nothing was.

        It raises `CheckpointError` where that is not what this fit keeps.
        """

    def save(self, state: Callable[[], Any]) -> None:
        """Called after each pass; asks for the state of the loop if it is time to."""


@dataclass(frozen=True, slots=True)
class PassInfo:
    """What a callback learns after each pass."""

    iteration: int
    objective: float
    params: Any


@dataclass(frozen=True, slots=True)
class FitResult:
    """What `loop.run` returns."""

    params: Any
    total: Any
    history: list[float]
    n_iter: int
    converged: bool


Callback = Callable[[PassInfo], bool]
