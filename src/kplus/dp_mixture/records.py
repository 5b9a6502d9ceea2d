"""A record of every proposal of a fit."""

import operator
from dataclasses import dataclass, field

__all__ = ["MoveRecord", "MoveRecords"]


@dataclass
class MoveRecord:
    """One proposal.

    Attributes
    ----------
    iteration : int
        The pass after which it was made.
    kind : str
        "birth", "merge" or "delete".
    target : tuple of int
        The components it was about, numbered as they were then.
    accepted : bool
    change : float
        Change of the bound: exact for merges; for births and deletes that of the pass
        that followed, with everything else that happened in it.
    """

    iteration: int
    kind: str
    target: tuple[int, ...]
    accepted: bool
    change: float

    def __post_init__(self) -> None:
        """Plain values, also of a record from a file, or an error."""
        self.iteration, self.kind = operator.index(self.iteration), str(self.kind)
        self.target = tuple(map(operator.index, self.target))
        self.accepted, self.change = bool(self.accepted), float(self.change)


@dataclass
class MoveRecords:
    """What the moves of one fit write to."""

    entries: list[MoveRecord] = field(default_factory=list)

    @property
    def state(self) -> list[MoveRecord]:
        return self.entries

    @state.setter
    def state(self, value: list[MoveRecord]) -> None:
        self.entries[:] = value

    def note(
        self,
        visits: int,
        kind: str,
        target: tuple[int, ...],
        accepted: bool,
        change: float,
    ) -> None:
        self.entries.append(MoveRecord(visits, kind, target, accepted, change))
