"""The parameters of feature models: the features themselves."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from kplus.core.types import Array
from kplus.features.kernels_allocate import Factored, factor

__all__ = ["EXACT_FEATURES", "Features"]

EXACT_FEATURES = 25  # up to so many, the best z of all 2^K is found fast enough


@dataclass(frozen=True)
class Features:
    """K features (rows of A), and what finding a row's z needs of them.

    Attributes
    ----------
    exact : bool
        Find the best z of all 2^K; otherwise flip single bits until none helps.
    most_steps : int
        Steps of that search allowed for a row; beyond, the best so far is taken. Only
        rows that many patterns fit about equally well need so many.
    """

    shapes: ClassVar[dict[str, str]] = {"A": "K D"}

    A: Array
    exact: bool = False
    most_steps: int = 10_000

    @property
    def K(self) -> int:
        return len(self.A)

    @cached_property
    def G(self) -> Array:
        """AAᵀ."""
        gram: Array = np.ascontiguousarray(self.A @ self.A.T)
        return gram

    @cached_property
    def factored(self) -> Factored:
        """A and G, with the order and the factor that an exact search uses."""
        order, R = np.empty(0, np.int64), np.empty((0, 0))
        if self.exact:
            order, R = factor(self.G)
        return Factored(self.A, self.G, order, R)
