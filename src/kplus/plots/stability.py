"""A picture of stability."""

from typing import Any, Self

import numpy as np

from kplus.plots.display import Display
from kplus.plots.style import AMBER, BLUE, GREY, HIGHLIGHT, INK

__all__ = ["StabilityDisplay"]

_MARKS = {0.75: ("stable", "bottom"), 0.6: ("not stable", "top")}
_DOTS_UP_TO, _NUMBERED_UP_TO = 20, 30  # groups


class StabilityDisplay(Display):
    """Stability of each group, and the numbers of groups that the fits found.

    On the left a bar for each cluster or feature: its mean over the fits, blue where
    it is stable, amber where it is partly so, red where it is not. Up to 20 groups have
    a dot for every fit. On the right how many fits found each number of groups.

    It is recommended to use :meth:`from_stability`.

    Parameters
    ----------
    stability : Stability
        What :func:`kplus.stability` returns.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`: the frame.
    axes_ : list of two matplotlib Axes
        After :meth:`plot`: the bars, and the numbers of groups.
    figure_ : matplotlib Figure
        After :meth:`plot`.

    See Also
    --------
    kplus.stability : Computes what is drawn.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from kplus import DPMeans, stability
    >>> from kplus.plots import StabilityDisplay
    >>> X, _ = make_blobs(300, centers=3, random_state=1)
    >>> result = stability(DPMeans(random_state=0), X, n_resamples=5, random_state=0)
    >>> display = StabilityDisplay.from_stability(result)
    >>> display.axes_[0].get_xlabel()
    'cluster'
    """

    def __init__(self, stability: Any) -> None:
        self.stability = stability

    @classmethod
    def from_stability(cls, stability: Any, *, ax: Any = None) -> Self:
        """Draw what :func:`kplus.stability` returned.

        Parameters
        ----------
        stability : Stability
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : StabilityDisplay
        """
        return cls(stability).plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        return float(np.clip(5.0 + 0.15 * self.stability.n_groups, 7.2, 12.0)), 4.0

    def _check(self) -> None:
        if self.stability.n_groups == 0:
            raise ValueError("There is no group whose stability could be drawn.")

    def _draw(self) -> None:
        self._frame(_lines(self.stability.verdict))
        bars = self._panel(0.0, 0.0, 0.69, 1.0)
        numbers = self._panel(0.86, 0.0, 0.14, 1.0)
        self._draw_bars(bars)
        self._draw_numbers(numbers)
        for ax in self.axes_:
            ax.spines[["top", "right"]].set_visible(False)
            ax.tick_params(labelsize="small")

    def _draw_bars(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        result = self.stability
        means, K = result.group_stability, result.n_groups
        known = np.nan_to_num(means)
        colors = np.where(known >= 0.75, BLUE, np.where(known < 0.6, HIGHLIGHT, AMBER))
        few = K <= _DOTS_UP_TO
        ax.bar(np.arange(K), known, color=colors, width=0.8, alpha=0.65 if few else 0.9)
        if few:
            self._draw_dots(ax)
        for level, (words, side) in _MARKS.items():  # words beside the bars
            ax.axhline(level, color=GREY, lw=0.8, ls="--")
            ax.text(
                1.01, level, words, transform=ax.get_yaxis_transform(), va=side,
                fontsize="x-small", color=INK,
            )  # fmt: skip
        low = min(0.0, float(known.min()))
        ax.set(xlabel=result.kind[:-1], xlim=(-0.7, max(K, 3) - 0.3), ylim=(low, 1.03))
        ax.set_ylabel("stability (Jaccard, corrected for chance)", fontsize="small")
        if K <= _NUMBERED_UP_TO:
            ax.set_xticks(np.arange(K))
        else:
            ax.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))

    def _draw_dots(self, ax: Any) -> None:
        """A dot for each fit, a little to the side where they would coincide."""
        values = self.stability.fit_stability
        R, K = values.shape
        aside = np.linspace(-0.25, 0.25, R) if R > 1 else np.zeros(1)
        x = np.arange(K)[None, :] + aside[:, None]
        ax.plot(x.ravel(), np.clip(values.ravel(), 0.0, None), "o", ms=2.5,
                color="#202020", alpha=0.6, mew=0)  # fmt: skip

    def _draw_numbers(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        result = self.stability
        counts = result.number_counts
        own = result.n_groups
        numbers = np.array(list(counts))
        colors = [BLUE if own == K else GREY for K in counts]
        ax.barh(numbers, list(counts.values()), color=colors, height=0.8)
        low, high = min(numbers.min(), own), max(numbers.max(), own)
        ax.set_ylim(low - 0.7, high + 0.7)
        ax.axhline(own, color=BLUE, lw=0.8, ls=":")
        ax.set_xlabel("fits", fontsize="small")
        ax.set_ylabel(f"number of {result.kind}", fontsize="small")
        ax.yaxis.set_label_position("right")  # "not stable" is on the left
        ax.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
        ax.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))


def _lines(words: str) -> str:
    """A sentence to a line."""
    return words.replace(". ", ".\n")
