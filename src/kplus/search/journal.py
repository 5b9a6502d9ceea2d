"""A diary of a search, by which it can be taken up again after a crash.

A search does the same again, given the rows, the parameters and the random numbers. So
it is enough to write down where its loops over all rows stand. Taken up again, it runs
from the top: samples are searched once more, loops that had ended are not repeated, and
the one under way goes on from where it stood, to the same bits.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from typing import Any, Protocol, TypeVar

import numpy as np

from kplus.core.errors import CheckpointError, DataError, ModelFormatError

__all__ = ["Chance", "Done", "Journal", "Kept", "Remembering", "watched"]

T = TypeVar("T")

_MOST_SPAWNED = 2**20
# What comes of things that are not what they should be.
_RAW = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
_NAMED = (CheckpointError, DataError, ModelFormatError)


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

    def note(self, number: int, entry: Any) -> None:
        """Remember what a loop found; written down with the next that is kept."""

    def keep(self, number: int, entry: Callable[[], Any]) -> None:
        """Write down where a loop stands, if it is time to."""

    def part(self, number: int) -> "Journal":
        """A journal of its own for one of several searches."""


class Remembering(Protocol):
    """What changes while a loop goes on, as plain values."""

    memory: Any


@dataclass(frozen=True)
class Done:
    """A loop that has ended: what it found, and what others remembered then."""

    value: Any
    memories: list[Any]


@dataclass(frozen=True)
class Kept:
    """A loop under way: where it stands, and what others remember."""

    standing: Any
    memories: list[Any]


class Chance:
    """The state of a random generator, and how many others came of it."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    @property
    def memory(self) -> dict[str, Any]:
        return {"state": self.rng.bit_generator.state, "spawned": self._spawned}

    @memory.setter
    def memory(self, value: dict[str, Any]) -> None:
        missing = value["spawned"] - self._spawned
        if missing > _MOST_SPAWNED:
            raise ValueError(f"{missing} random generators")
        if missing > 0:
            self.rng.spawn(missing)
        self.rng.bit_generator.state = value["state"]

    @property
    def _spawned(self) -> int:
        seeds: Any = self.rng.bit_generator.seed_seq
        return int(seeds.n_children_spawned)


def watched(
    journal: Journal | None,
    others: Sequence[Remembering],
    loop: Callable[..., T],
) -> T:
    """What a loop finds, or found before a crash.

    Parameters
    ----------
    others : sequence of Remembering
        What the loop changes besides its own state and that of its moves.
    loop : callable
        Runs the loop with a ``keeper``, a `Keeper` or None.
    """
    if journal is None:
        return loop(keeper=None)
    number = journal.next()
    entry = journal.find(number)
    if isinstance(entry, Done):
        with _explaining(journal):
            _remind(others, entry.memories)
        return entry.value  # type: ignore[no-any-return]
    keeper = _LoopKeeper(journal, number, others)
    if entry is None:
        found = loop(keeper=keeper)
    else:
        with _explaining(journal):
            found = loop(keeper=keeper)
    journal.note(number, Done(found, _memories(others)))
    return found


@dataclass(frozen=True)
class _LoopKeeper:
    journal: Journal
    number: int
    others: Sequence[Remembering]

    def recall(self) -> Any:
        entry = self.journal.find(self.number)
        if entry is None:
            return None
        if not isinstance(entry, Kept):
            raise TypeError(f"a {type(entry).__name__} tells of no loop")
        _remind(self.others, entry.memories)
        return entry.standing

    def keep(self, standing: Callable[[], Any]) -> None:
        self.journal.keep(self.number, lambda: Kept(standing(), _memories(self.others)))


def _memories(others: Sequence[Remembering]) -> list[Any]:
    return [other.memory for other in others]


def _remind(others: Sequence[Remembering], memories: Sequence[Any]) -> None:
    for other, memory in zip(others, memories, strict=True):
        if type(memory) is not type(other.memory):
            raise TypeError(f"a {type(memory).__name__} to remember")
        other.memory = memory


@contextmanager
def _explaining(journal: Journal) -> Iterator[None]:
    """Name the journal where a loop that goes on from it meets what cannot be."""
    try:
        yield
    except _NAMED:
        raise
    except _RAW as error:
        if _of_a_callback(error):
            raise
        where = getattr(journal, "folder", "its journal")
        raise CheckpointError(
            f"The fit cannot go on from {where}: what it holds does not fit together "
            f"({type(error).__name__}: {error}). It was altered; delete the "
            f"folder, and fit anew."
        ) from error


def _of_a_callback(error: BaseException) -> bool:
    """Estimators do not take part in loops but to call what users gave them."""
    modules = (f.f_globals.get("__name__", "") for f, _ in walk_tb(error.__traceback__))
    return any(module.startswith("kplus.estimators.") for module in modules)
