"""What a search for features is asked for."""

from dataclasses import dataclass

from kplus.features.params import EXACT_FEATURES

__all__ = ["FeatureSpec"]


@dataclass(frozen=True)
class FeatureSpec:
    """What is wanted.

    Attributes
    ----------
    penalty : float or None
        λ²; None: choose it.
    n_components : int or None
        Exactly so many; None: the penalty decides.
    max_components : int or None
        Never more.
    stepwise : bool
        Look for the number by K-features with K = 1, 2, ... until Eq. 6 rises.
    collapsed : bool
        End with a collapsed local search over all rows, in memory.
    init : {"auto", "++", "split", "ica", "random"}
    assignment : {"auto", "flips", "exact"}
    effort : float
        How long to search; 0: passes from the seed only, as in the paper.
    n_init : int
        Starts, of which the best is kept.
    """

    penalty: float | None
    n_components: int | None
    max_components: int | None
    stepwise: bool
    collapsed: bool
    init: str
    assignment: str
    effort: float
    n_init: int

    @property
    def most(self) -> int:
        """The number of features allowed."""
        wanted = [n for n in (self.n_components, self.max_components) if n is not None]
        if self.assignment == "exact":
            wanted.append(EXACT_FEATURES)
        return min(wanted, default=10**6)
