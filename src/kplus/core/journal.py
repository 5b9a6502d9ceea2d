"""The journal of a search, from which it resumes after a crash.

A search does the same again, given the rows, the parameters and the random numbers. So
the states of its loops over all rows suffice. A resumed search runs from the top:
samples are searched once more, loops that had ended are not repeated, and the one under
way resumes from its last state, to the same bits.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from kplus.core.declared import check, type_of
from kplus.core.errors import CheckpointError

__all__ = [
    "EndedLoop",
    "Journal",
    "LoopCheckpoint",
    "RngState",
    "RunningLoop",
    "Stateful",
    "checkpointed",
]

T = TypeVar("T")

_MOST_SPAWNED = 2**20
_MOST_STATE = 2**128  # of PCG64


class Journal(Protocol):
    """Where entries are written, one for each loop, in the order they begin.

    Attributes
    ----------
    rows : Path or None
        A folder for the state of rows, where an engine keeps it in files.
    """

    rows: Path | None

    def next(self) -> int:
        """The number of the loop that begins now."""

    def find(self, number: int) -> Any:
        """The entry of a loop; None if there is none."""

    def save_result(self, number: int, entry: Any) -> None:
        """Remember the result of a loop; written down with the next that is kept."""

    def save(self, number: int, entry: Callable[[], Any]) -> None:
        """Write down the state of a loop, if it is time to."""

    def part(self, number: int) -> "Journal":
        """A journal of its own for one of several searches."""


class Stateful(Protocol):
    """What a loop changes, as plain values."""

    state: Any


@dataclass(frozen=True)
class EndedLoop:
    """A loop that has ended: its result, and the states of others then."""

    value: Any
    others: list[Any]


@dataclass(frozen=True)
class RunningLoop:
    """A loop under way: its state, and those of others."""

    state: Any
    others: list[Any]


class RngState:
    """The state of a random generator, and how many others came of it."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    @property
    def state(self) -> dict[str, Any]:
        return {"state": self.rng.bit_generator.state, "spawned": self._spawned}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        state: Any = value.get("state")
        spawned: Any = value.get("spawned")
        check(spawned, int, {}, "a number of random generators")
        missing = spawned - self._spawned
        if missing > _MOST_SPAWNED:
            raise CheckpointError(f"there are {missing} more random generators")
        _check_like(state, self.rng.bit_generator.state)
        if missing > 0:
            self.rng.spawn(missing)
        self.rng.bit_generator.state = state

    @property
    def _spawned(self) -> int:
        seeds: Any = self.rng.bit_generator.seed_seq
        return int(seeds.n_children_spawned)


def _check_like(state: Any, like: Any) -> None:
    """Refuse what is no state of a random generator of the same kind."""
    if isinstance(like, dict):
        if not isinstance(state, dict) or state.keys() != like.keys():
            raise CheckpointError("the state of a random generator is of another kind")
        for key, value in like.items():
            _check_like(state[key], value)
    elif isinstance(like, int):
        if not isinstance(state, int) or not 0 <= state < _MOST_STATE:
            raise CheckpointError("the state of a random generator holds no number")
    elif state != like:
        raise CheckpointError(f"random numbers are those of {str(state)[:20]!r}")


class LoopCheckpoint:
    """The entry of one loop in a journal: the `Checkpointer` of that loop.

    Parameters
    ----------
    journal : Journal
    others : sequence of Stateful
        What the loop changes besides its own state and that of its moves.

    Attributes
    ----------
    ended : bool
        Whether the loop ended before a crash, so that `result` has its result.
    """

    def __init__(self, journal: Journal, others: Sequence[Stateful]) -> None:
        self.journal, self.others = journal, others
        self.number = journal.next()
        self._entry = journal.find(self.number)
        self.ended = isinstance(self._entry, EndedLoop)

    def result(self, check_value: Callable[[Any], None]) -> Any:
        """The result from before a crash.

        `check_value` raises `CheckpointError` if it is not what the loop returns.
        """
        with _naming(self.journal):
            _restore(self.others, self._entry.others)
            check_value(self._entry.value)
        return self._entry.value

    def load(self, restore: Callable[[Any], Any]) -> Any:
        if self._entry is None:
            return None
        with _naming(self.journal):
            check(self._entry, RunningLoop, {}, "an entry")
            _restore(self.others, self._entry.others)
            return restore(self._entry.state)

    def save(self, state: Callable[[], Any]) -> None:
        self.journal.save(
            self.number, lambda: RunningLoop(state(), _states(self.others))
        )

    def save_result(self, value: Any) -> None:
        """Note the result of the loop."""
        self.journal.save_result(self.number, EndedLoop(value, _states(self.others)))


def checkpointed(
    journal: Journal | None,
    others: Sequence[Stateful],
    loop: Callable[..., T],
    check_value: Callable[[Any], None],
) -> T:
    """The result of ``loop(checkpointer=...)``, or its result before a crash."""
    if journal is None:
        return loop(checkpointer=None)
    checkpointer = LoopCheckpoint(journal, others)
    if checkpointer.ended:
        return checkpointer.result(check_value)  # type: ignore[no-any-return]
    result = loop(checkpointer=checkpointer)
    checkpointer.save_result(result)
    return result


def _states(others: Sequence[Stateful]) -> list[Any]:
    return [other.state for other in others]


def _restore(others: Sequence[Stateful], states: Sequence[Any]) -> None:
    if len(others) != len(states):
        raise CheckpointError(f"there are states of {len(states)} things")
    for other, state in zip(others, states, strict=True):
        name = f"the state of {type(other).__name__.lstrip('_')}"
        check(state, type_of(other, "state"), {}, name)
        other.state = state


@contextmanager
def _naming(journal: Journal) -> Iterator[None]:
    """Name the journal whose contents are refused, and the remedy."""
    try:
        yield
    except CheckpointError as error:
        where = getattr(journal, "folder", "its journal")
        raise CheckpointError(
            f"The fit cannot resume from {where}: what it holds does not fit together "
            f"({error}). It was altered; delete the folder, and fit anew."
        ) from error
