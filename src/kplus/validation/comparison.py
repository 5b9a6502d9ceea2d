"""What `kplus.compare` returns: models side by side, and how far they agree."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from kplus.core.types import Array, IntArray
from kplus.data.frames import frame_of
from kplus.validation.stability_result import STABLE, UNSTABLE, Stability
from kplus.validation.validate import Validation

__all__ = ["Candidate", "Comparison"]

_SAME, _OTHER = 0.9, 0.5  # adjusted Rand indices: the same groups, another story
_APART = 0.25  # silhouette or density validity below which groups are hardly apart
_MANY_OUTSIDE = 0.1  # share of rows in no group that is worth a word
_MOST_OTHERS = 3  # numbers of groups that are named


@dataclass(frozen=True, eq=False)
class Candidate:
    """One model of a comparison.

    Attributes
    ----------
    name : str
    why_not : str
        Why it could not be fitted; empty if it was.
    model : estimator or None
        The fitted one.
    groups : ndarray or None
        Cluster of each row, -1 for none; of features, lines of bits.
    seconds : float
        CPU time of the fit.
    validation : Validation or None
        How good the clusters are; None for features.
    stability : Stability or None
        Whether the groups come back in fits to drawn rows.
    """

    name: str
    why_not: str = ""
    model: Any = None
    groups: Any = None
    seconds: float = float("nan")
    validation: Validation | None = None
    stability: Stability | None = None

    @property
    def is_clustering(self) -> bool:
        """Whether each row has one group at most."""
        return self.groups is not None and self.groups.ndim == 1

    @cached_property
    def n_groups(self) -> int:
        """Number of clusters, or of features."""
        if not self.is_clustering:
            return 0 if self.groups is None else int(self.groups.shape[1])
        return len(np.unique(self.groups[self.groups >= 0]))

    @property
    def is_clear(self) -> bool | None:
        """Whether the number of groups stands out; None: the model does not say."""
        for name in ("path_", "cluster_tree_"):
            clear = getattr(getattr(self.model, name, None), "is_clear", None)
            if clear is not None:
                return bool(clear)
        return None

    @property
    def runners_up(self) -> list[int]:
        """Other numbers of groups that are nearly as good, the likeliest first."""
        path = getattr(self.model, "path_", None)
        others = () if self.is_clear else getattr(path, "runners_up", ())
        return [int(K) for K in others if self.n_groups != K][:_MOST_OTHERS]

    @property
    def apart(self) -> float:
        """How far clusters are apart: silhouette, or density validity if higher."""
        if self.validation is None or self.n_groups < 2:
            return float("nan")
        return float(np.nanmax([self.validation.silhouette, self.validation.density]))

    @property
    def outside(self) -> float:
        """Share of the rows that are in no group."""
        return float(np.mean(self.groups < 0)) if self.is_clustering else 0.0

    @property
    def held_out(self) -> float:
        """Mean log density of rows held out; NaN if the model is no density."""
        scores = None if self.validation is None else self.validation.held_out
        return float("nan") if scores is None else float(scores.mean())

    @property
    def overall_stability(self) -> float:
        """Mean stability of the groups, by their rows; NaN if it is not known."""
        return float("nan") if self.stability is None else self.stability.overall

    @property
    def rank(self) -> tuple[bool, bool, int, float]:
        """What the best of several candidates has the highest of."""
        steady = np.nan_to_num(self.overall_stability)
        return (
            self.n_groups > 1,
            self.is_clear is not False
            and not self.apart < _APART
            and self.outside < _MANY_OUTSIDE,
            int(steady >= UNSTABLE) + int(steady >= STABLE),
            round(float(np.nan_to_num(self.apart)), 1),
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models side by side; see `kplus.compare`. It prints as a table.

    Attributes
    ----------
    candidates : tuple of Candidate
        In the order in which they were asked for, those that do not take the table as
        well.
    n_rows : int
        Rows of the table.
    rows : ndarray of shape (n_sampled,)
        Numbers of the rows that were compared: all, or a sample.
    """

    candidates: tuple[Candidate, ...]
    n_rows: int
    rows: IntArray

    @property
    def fitted(self) -> list[Candidate]:
        """The candidates that could be fitted."""
        return [c for c in self.candidates if c.model is not None]

    @property
    def clusterings(self) -> list[Candidate]:
        """Those of them that find clusters."""
        return [c for c in self.fitted if c.is_clustering]

    @cached_property
    def best(self) -> Candidate:
        """Where to start: several groups that are clear, come back, and lie apart.

        Of equals the first. Features and clusters answer different questions; the best
        is a clustering if there is one.
        """
        return max(self.clusterings or self.fitted, key=lambda c: c.rank)

    @cached_property
    def agreement(self) -> Array:
        """Adjusted Rand index of each two of `clusterings`: 1 the same, 0 chance.

        Rows that are in no cluster count as one more.
        """
        labels = [c.groups for c in self.clusterings]
        out = np.ones((len(labels), len(labels)))
        for i, one in enumerate(labels):
            for j in range(i):
                out[i, j] = out[j, i] = adjusted_rand_score(labels[j], one)
        return out

    def advice(self, candidate: Candidate) -> str:
        """A line about a candidate, beside the best one."""
        if candidate.model is None:
            return f"Not fitted: {candidate.why_not}"
        words = [self._place(candidate), *_doubts(candidate)]
        return " ".join(filter(None, words))

    def _place(self, candidate: Candidate) -> str:
        if candidate is self.best:
            return "Start here." if candidate.n_groups > 1 else ""
        if not candidate.is_clustering:
            return "Features: a row may have several."
        if not self.best.is_clustering or candidate.n_groups < 2:
            return ""
        places = self.clusterings
        agreed = self.agreement[places.index(candidate), places.index(self.best)]
        if agreed >= _SAME:
            return f"The same groups as {self.best.name}."
        if agreed < _OTHER:
            return f"Another story than {self.best.name}: look at both."
        return f"Much as {self.best.name}."

    def summary(self) -> Any:
        """Return a frame with a line for each candidate.

        Returns
        -------
        frame : DataFrame
            Columns "model"; "groups"; "clear", whether that number stands out;
            "stability", 0 to 1; "apart", the larger of silhouette and density-based
            validity; "held_out", the mean log density of rows held out; "cpu_seconds"
            of the fit; "advice". What is not known is missing. pandas, or polars or
            Arrow where there is no pandas.
        """
        shown = self.candidates
        columns = {
            "model": [c.name for c in shown],
            "groups": [c.n_groups for c in shown],
            "clear": [c.is_clear for c in shown],
            "stability": [c.overall_stability for c in shown],
            "apart": [c.apart for c in shown],
            "held_out": [c.held_out for c in shown],
            "cpu_seconds": [c.seconds for c in shown],
            "advice": [self.advice(c) for c in shown],
        }
        return frame_of(columns, "summary()")

    def report(self, path: Any) -> Any:
        """Write a page to send to a colleague: HTML that needs nothing else.

        Parameters
        ----------
        path : str or path-like
            Such as "comparison.html"; a file that is there is replaced.

        Returns
        -------
        path : Path
        """
        # The layer of reports is above this one.
        return import_module("kplus.report.comparison").report_comparison(self, path)

    def lines(self) -> list[tuple[str, ...]]:
        """The headings and a line for each candidate, as people write them."""
        out: list[tuple[str, ...]] = [
            ("model", "groups", "clear", "stability", "apart", "CPU s", "advice")
        ]
        clear = {True: "yes", False: "no", None: "-"}
        for c in self.candidates:
            known = c.model is not None
            out.append(
                (
                    c.name,
                    f"{c.n_groups}" if known else "-",
                    clear[c.is_clear],
                    _two(c.overall_stability),
                    _two(c.apart),
                    _two(c.seconds),
                    self.advice(c),
                )
            )
        return out

    def __str__(self) -> str:
        lines = self.lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = [
            "  ".join(
                cell.ljust(width) if j in (0, len(line) - 1) else cell.rjust(width)
                for j, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*rows, *self.notes()])

    __repr__ = __str__

    def notes(self) -> list[str]:
        """What else is to be said, a line each."""
        out = []
        if len(self.rows) < self.n_rows:
            out.append(f"Compared on {len(self.rows):,} of {self.n_rows:,} rows.")
        scored = [c for c in self.fitted if not np.isnan(c.held_out)]
        if len(scored) > 1:
            first = max(scored, key=lambda c: c.held_out)
            out.append(f"{first.name} predicts rows held out best.")
        return out


def _doubts(candidate: Candidate) -> list[str]:
    """What speaks against an answer."""
    if candidate.n_groups == 0:
        return ["It finds nothing."]
    if candidate.is_clustering and candidate.n_groups == 1:
        return ["It sees one group only."]
    out = []
    if candidate.is_clear is False:
        others = " or ".join(map(str, candidate.runners_up))
        out.append(f"The number is open{f': perhaps {others}' if others else ''}.")
    steady = candidate.overall_stability
    if steady < UNSTABLE:
        out.append("It does not come back on other rows.")
    elif steady < STABLE:
        out.append("It comes back in part only.")
    if candidate.apart < _APART:
        out.append("The groups are hardly apart.")
    if candidate.outside >= _MANY_OUTSIDE:
        out.append(f"{candidate.outside:.0%} of the rows are in no group.")
    return out


def _two(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"
