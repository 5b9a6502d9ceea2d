"""Sums whose rounding does not depend on who adds up what."""

from dataclasses import dataclass
from typing import Any

from kplus.core.memo import add_up

__all__ = ["PairwiseSum"]


@dataclass
class _Part:
    start: int
    size: int
    summary: Any


class PairwiseSum:
    """A sum of neighbours by two, of these by two, and so on, as their places have it.

    Whoever adds, in whichever portions, gets the same bits. Of n summaries no more than
    about 2 log n are ever held.

    Parameters
    ----------
    start : int
        The place of the first summary.

    Examples
    --------
    >>> whole, left, right = PairwiseSum(), PairwiseSum(), PairwiseSum(3)
    >>> for value in (0.1, 0.2, 0.3, 0.4, 0.5):
    ...     whole.add(value)
    >>> for value in (0.1, 0.2, 0.3):
    ...     left.add(value)
    >>> for value in (0.4, 0.5):
    ...     right.add(value)
    >>> left.portions, right.portions
    ([(2, 0.30000000000000004), (1, 0.3)], [(1, 0.4), (1, 0.5)])
    >>> for size, value in right.portions:
    ...     left.add(value, size)
    >>> whole.total() == left.total()
    True
    """

    def __init__(self, start: int = 0) -> None:
        self._place = start
        self._parts: list[_Part] = []

    def add(self, summary: Any, size: int = 1) -> None:
        """Add the next, or a portion of `size` of them; it may be changed in place."""
        self._parts.append(_Part(self._place, size, summary))
        self._place += size
        while len(self._parts) > 1 and self._is_pair(*self._parts[-2:]):
            last = self._parts.pop()
            self._parts[-1].summary += last.summary
            self._parts[-1].size *= 2

    @staticmethod
    def _is_pair(left: _Part, right: _Part) -> bool:
        return left.size == right.size and left.start % (2 * left.size) == 0

    @property
    def portions(self) -> list[tuple[int, Any]]:
        """What was added so far, as sizes and sums: as few as places allow."""
        return [(part.size, part.summary) for part in self._parts]

    def total(self) -> Any:
        """The sum of all; None if nothing was added. Add nothing more then."""
        return add_up(summary for _, summary in self.portions)
