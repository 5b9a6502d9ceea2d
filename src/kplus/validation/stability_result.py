"""What `kplus.stability` returns: numbers, a frame and a sentence."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.data.frames import frame_of

__all__ = ["DISSOLVED", "STABLE", "UNSTABLE", "Stability"]

STABLE, UNSTABLE, DISSOLVED = 0.75, 0.6, 0.5
"""Groups that are there and that are not; Jaccard's index of one that has dissolved."""

_LISTED = 5


@dataclass(frozen=True, repr=False)
class Stability:
    """How far groups come back in fits to other rows; see `kplus.stability`.

    ``print(result)`` gives a sentence, `summary` a line for each group.

    Attributes
    ----------
    method : str
        What the fits differed in.
    n_rows : int
        Rows of the table.
    rows : ndarray of shape (n_drawn,)
        Numbers of the rows that the fits drew from: all, or a sample.
    kind : {"clusters", "features"}
    sizes : ndarray of shape (n_groups,)
        Rows, or their weights, of each group in the sample.
    jaccard : ndarray of shape (n_fits, n_groups)
        Jaccard's index of each group with its best match in each fit; NaN where none of
        its rows was drawn.
    by_chance : ndarray of shape (n_fits, n_groups)
        What that would be if the match had as many rows, drawn at random.
    noise_jaccard : ndarray of shape (n_fits,) or None
        The same for the rows that are in no cluster (label -1).
    row_agreement : ndarray of shape (n_drawn,)
        In what share of the fits that had it a row was in the group that matches its
        own; NaN where no fit had it. Of features, the mean share of those that are the
        same.
    n_found : ndarray of shape (n_fits,)
        The number of groups that each fit found.
    noise_size : float
        Rows, or their weights, that are in no cluster.
    n_failed : int
        Fits that were not possible, such as with a column without values.
    n_unconverged : int
        Fits that did not converge.
    """

    method: str
    n_rows: int
    rows: IntArray
    kind: str
    sizes: Array
    jaccard: Array
    by_chance: Array
    noise_jaccard: Array | None
    row_agreement: Array
    n_found: IntArray
    noise_size: float = 0.0
    n_failed: int = 0
    n_unconverged: int = 0

    @property
    def n_groups(self) -> int:
        """Number of the groups that are judged."""
        return len(self.sizes)

    @property
    def n_resamples(self) -> int:
        """Number of fits that there are."""
        return len(self.n_found)

    @property
    def is_sampled(self) -> bool:
        """Whether the fits drew from a sample of the table."""
        return len(self.rows) < self.n_rows

    @cached_property
    def group_jaccard(self) -> Array:
        """Mean Jaccard's index of each group; NaN where it was never drawn."""
        return _mean_of_fits(self.jaccard)

    @cached_property
    def fit_stability(self) -> Array:
        """The index of each fit and group corrected for chance.

        1 is the same rows, 0 as good as any rows; NaN where none was drawn.
        """
        chance = self.by_chance
        above, room = self.jaccard - chance, 1.0 - chance
        # A group of all rows that was found again leaves no room.
        whole = np.where(np.isnan(above), np.nan, 1.0)
        return np.where(room > 1e-12, above / np.maximum(room, 1e-12), whole)

    @cached_property
    def group_stability(self) -> Array:
        """Means of `fit_stability` over the fits: the stability of each group."""
        return _mean_of_fits(self.fit_stability)

    @cached_property
    def dissolved(self) -> Array:
        """In what share of the fits each group had dissolved: an index below .5."""
        times = np.maximum((~np.isnan(self.jaccard)).sum(axis=0), 1)
        gone = np.nan_to_num(self.jaccard, nan=1.0) < DISSOLVED
        return np.asarray(gone.sum(axis=0) / times, np.float64)

    @cached_property
    def overall(self) -> float:
        """One number, at most 1: the mean stability of groups, by their rows."""
        known = ~np.isnan(self.group_stability) & (self.sizes > 0.0)
        if not known.any():
            return float("nan")
        return float(np.average(self.group_stability[known], weights=self.sizes[known]))

    @cached_property
    def number_counts(self) -> dict[int, int]:
        """How many fits found each number of groups."""
        return dict(sorted(Counter(self.n_found.tolist()).items()))

    @property
    def number_agreement(self) -> float:
        """In what share of the fits the number of groups is the one judged."""
        return float(np.mean(self.n_found == self.n_groups))

    @property
    def is_stable(self) -> bool:
        """Whether every group has a stability of .75 or more."""
        return not np.any(self.group_stability < STABLE) and self.n_groups > 0

    # ------------------------------------------------------------------ in words

    @property
    def verdict(self) -> str:
        """One sentence, or two where the number of groups is not the same."""
        return " ".join(filter(None, (self._about_groups, self._about_number)))

    @property
    def _about_groups(self) -> str:
        noun, K, by_group = self.kind[:-1], self.n_groups, self.group_stability
        if K == 0:
            return f"There are no {self.kind} to judge."
        weak = np.flatnonzero(by_group < UNSTABLE)
        vague = np.flatnonzero(by_group < STABLE)
        if len(weak) == K:
            words = f"no {noun} comes" if K > 1 else f"the one {noun} does not come"
            return f"Not stable: {words} back."
        if len(weak):
            come = "comes and goes" if len(weak) == 1 else "come and go"
            return f"Not stable: {_named(noun, weak)} {come}."
        if len(vague):
            keep = "keeps its" if len(vague) == 1 else "keep their"
            return (
                f"Partly stable: {_named(noun, vague)} {keep} core, but not all rows."
            )
        if K == 1 and np.all(self.n_found == 1):
            return f"Stable: no fit finds a second {noun}."
        if K == 1:
            return f"Stable: the one {noun} comes back."
        return f"Stable: {'both' if K == 2 else f'all {K}'} {self.kind} come back."

    @property
    def _about_number(self) -> str:
        others = int(np.sum(self.n_found != self.n_groups))
        if not others:
            return ""
        low, high = int(self.n_found.min()), int(self.n_found.max())
        span = f"{low}" if low == high else f"{low} to {high}"
        return (
            f"The number is less sure: {others} of {self.n_resamples} fits find "
            f"another, {span} in all."
            if low != high
            else f"But all {self.n_resamples} fits find {span} {self.kind}."
        )

    def summary(self) -> Any:
        """Return a frame with a line for each group, in plain words.

        Returns
        -------
        frame : DataFrame
            Columns "cluster" (or "feature"), "rows", "stability", "jaccard" (before it
            is corrected for chance), "dissolved" (share of the fits) and "verdict";
            at last a line for noise, -1, if there is any. pandas, or polars or Arrow
            where there is no pandas.
        """
        columns: dict[str, list[Any]] = {
            self.kind[:-1]: list(range(self.n_groups)),
            "rows": self.sizes.tolist(),
            "stability": self.group_stability.tolist(),
            "jaccard": self.group_jaccard.tolist(),
            "dissolved": self.dissolved.tolist(),
            "verdict": [_word(value) for value in self.group_stability],
        }
        if self.noise_jaccard is not None:
            known = self.noise_jaccard[~np.isnan(self.noise_jaccard)]
            mean, gone = float(known.mean()), float(np.mean(known < DISSOLVED))
            line = (-1, self.noise_size, float("nan"), mean, gone, _word(mean))
            for name, value in zip(columns, line, strict=True):
                columns[name].append(value)
        return frame_of(columns, "summary()")

    def in_a_line(self) -> str:
        """The verdict with the number that stands for it.

        Returns
        -------
        line : str
        """
        number = "" if np.isnan(self.overall) else f" Stability {self.overall:.2f},"
        fits = "fit" if self.n_resamples == 1 else "fits"
        return f"{self.verdict}{number} {self.n_resamples} {fits} to drawn rows."

    def __str__(self) -> str:
        return self.verdict

    def __repr__(self) -> str:
        numbers = ", ".join(f"{k} in {n}" for k, n in self.number_counts.items())
        sample = f" of {len(self.rows):,} of its {self.n_rows:,} rows"
        about = sample if self.is_sampled else f" of {self.n_rows:,} rows"
        words = {
            "bootstrap": "bootstrap samples",
            "subsample": "halves",
            "seeds": "other seeds",
        }[self.method]
        lines = [
            self.verdict,
            f"  overall {self.overall:.2f}, {self.n_resamples} fits: {words}{about}",
            f"  number of {self.kind}: {numbers}",
        ]
        if self.n_unconverged:
            lines.append(f"  {self.n_unconverged} fits did not converge")
        if self.n_failed:
            lines.append(f"  {self.n_failed} fits were not possible")
        return "\n".join(lines)


def _mean_of_fits(values: Array) -> Array:
    """Means of columns without NaN; NaN where there is nothing else."""
    there = ~np.isnan(values)
    total, times = np.where(there, values, 0.0).sum(axis=0), there.sum(axis=0)
    return np.where(times > 0, total / np.maximum(times, 1), np.nan)


def _word(value: float) -> str:
    if np.isnan(value):
        return "never drawn"
    if value >= STABLE:
        return "stable"
    return "partly stable" if value >= UNSTABLE else "not stable"


def _named(noun: str, numbers: IntArray) -> str:
    """As in: cluster 3; clusters 2 and 5; clusters 1, 2, 3, 4, 5 and 7 more."""
    listed = [str(k) for k in numbers[:_LISTED]]
    left = len(numbers) - len(listed)
    if left:
        return f"{noun}s {', '.join(listed)} and {left} more"
    if len(listed) == 1:
        return f"{noun} {listed[0]}"
    return f"{noun}s {', '.join(listed[:-1])} and {listed[-1]}"
