"""Which rows have which features: Z."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import IntArray

__all__ = ["Allocation", "regroup_columns"]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Z of a block's rows, eight bits per byte."""

    shapes: ClassVar[dict[str, str]] = {"packed": "N b", "K": "K"}

    packed: NDArray[np.uint8]
    K: int

    def consistent(self) -> bool:
        """Whether there are as many bits as features; see `core.declared`."""
        return bool(self.packed.shape[1] == -(-self.K // 8))

    @classmethod
    def of(cls, Z: NDArray[np.uint8]) -> "Allocation":
        N, K = Z.shape
        n_bytes = -(-K // 8)
        padded = np.zeros((N, 8 * n_bytes), dtype=np.uint8)  # packs in one go
        padded[:, :K] = Z
        return cls(np.packbits(padded).reshape(N, n_bytes), K)

    def unpack(self) -> NDArray[np.uint8]:
        return np.unpackbits(self.packed, axis=1, count=self.K)

    def regroup(self, old_to_new: IntArray, K: int) -> "Allocation":
        return Allocation.of(regroup_columns(self.unpack(), old_to_new, K))


def regroup_columns(
    Z: NDArray[np.uint8], old_to_new: IntArray, K: int
) -> NDArray[np.uint8]:
    """Columns of Z after a renumbering; a new one begins empty."""
    new = np.zeros((len(Z), K), dtype=np.uint8)
    for old, number in enumerate(old_to_new):
        if number >= 0:
            new[:, number] |= Z[:, old]
    return new
