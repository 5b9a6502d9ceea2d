"""The sums over rows that the factors of an Indian buffet process need."""

from dataclasses import dataclass
from typing import Self

from kplus.linear.sums import LinearSums

__all__ = ["IBPSums"]


@dataclass
class IBPSums(LinearSums):
    """Sums over rows, and the number of values that these have."""

    observed: float = 0.0

    def _plus(self, other: Self, sign: float) -> Self:
        self.observed += sign * other.observed
        return super()._plus(other, sign)
