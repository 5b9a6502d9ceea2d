"""A picture of which features rows have together."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kplus.plots.belonging import feature_shares
from kplus.plots.display import Display, final_step, some_rows
from kplus.plots.style import BLUE, GREY, INK, LIGHT, integer_ticks, share_words

__all__ = ["CombinationDisplay"]

_MATRIX = 0.62  # share of the height, at most, that dots take
_ROW, _BARS = 0.2, 1.6  # inches of a row of dots, and of the bars above
_WORDS_UP_TO = 25  # bars
_STRIPE = "#F2F2F2"


class CombinationDisplay(Display):
    """The commonest combinations of features, and how many rows have each.

    Every column is a combination: dots for the features that its rows have, and above
    it a bar for how many rows these are. Beside the dots stands how many rows have a
    feature at all. This is an UpSet plot: what a Venn diagram shows of three sets, of
    any number of them.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    memberships : array-like of shape (n_samples, n_features)
        Which rows have which features: more than ½ counts.
    max_combinations : int, default=25
        Of more combinations the commonest are drawn.
    n_rows : int or None, default=None
        Rows of the table, if these are some of them.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`: the frame, which carries the title.
    axes_ : list of matplotlib Axes
        After :meth:`plot`: the dots, the bars above and the bars beside them.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    combinations_ : ndarray of bool, (n_drawn, n_features)
        The combinations drawn, from left to right.
    counts_ : ndarray of int, (n_drawn,)
        Rows that have each.
    n_combinations_ : int
        How many there are in all.
    features_ : ndarray of int
        The features drawn, from top to bottom: those in any combination drawn.

    See Also
    --------
    MembershipDisplay : The same row by row.
    FeatureDisplay : What the features are.

    Examples
    --------
    >>> from kplus.plots import CombinationDisplay
    >>> Z = [[1, 0], [1, 1], [1, 1], [0, 0]]
    >>> display = CombinationDisplay.from_predictions(Z)
    >>> display.combinations_.astype(int).tolist(), display.counts_.tolist()
    ([[1, 1], [0, 0], [1, 0]], [2, 1, 1])
    """

    def __init__(
        self,
        memberships: ArrayLike,
        *,
        max_combinations: int = 25,
        n_rows: int | None = None,
    ) -> None:
        Z = np.asarray(memberships, dtype=np.float64) > 0.5
        self.memberships = Z
        self.max_combinations = max_combinations
        self.n_rows = len(Z) if n_rows is None else n_rows
        patterns, counts = _patterns(Z)
        self.n_combinations_ = len(patterns)
        order = np.argsort(-counts, kind="stable")[:max_combinations]
        self.combinations_, self.counts_ = patterns[order], counts[order]
        self.features_ = np.flatnonzero(self.combinations_.any(axis=0))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        max_combinations: int = 25,
        ax: Any = None,
        max_rows: int = 100_000,
        random_state: int = 0,
    ) -> Self:
        """Draw the features that a fitted estimator finds in rows.

        Parameters
        ----------
        estimator : BPMeans, KFeatures, MEIBP, IBPGibbs or IBPVariational
            Fitted; a pipeline that ends in one will do.
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            The rows.
        max_combinations : int
            Of more combinations the commonest are drawn.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.
        max_rows : int
            Of more rows a random sample of this size is counted.
        random_state : int
            Seed of the sample.

        Returns
        -------
        display : CombinationDisplay
        """
        part, n_rows = some_rows(X, max_rows, random_state)
        Z = feature_shares(estimator, part)
        if Z is None:
            raise ValueError(
                f"{type(final_step(estimator)).__name__} puts a row in one cluster at "
                f"most: there are no combinations. SizeDisplay shows the clusters."
            )
        display = cls(Z, max_combinations=max_combinations, n_rows=n_rows)
        return display.plot(ax=ax)

    @classmethod
    def from_predictions(
        cls, memberships: ArrayLike, *, max_combinations: int = 25, ax: Any = None
    ) -> Self:
        """Draw which rows have which of any kind of features.

        Parameters
        ----------
        memberships, max_combinations
            As for the class.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : CombinationDisplay
        """
        return cls(memberships, max_combinations=max_combinations).plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        wide = 2.6 + 0.26 * len(self.combinations_)
        tall = 0.9 + _BARS + _ROW * max(len(self.features_), 2)
        return float(np.clip(wide, 6.0, 14.0)), float(tall)

    def _check(self) -> None:
        if not len(self.counts_):
            raise ValueError("There is no row whose features could be counted.")

    def _draw(self) -> None:
        self._frame(self._title(), loc="left")
        rows = _ROW * max(len(self.features_), 2)
        dots = max(rows / (rows + _BARS), 1.0 - _MATRIX)
        self._draw_dots(self._panel(0.0, 0.0, 0.76, dots))
        self._draw_counts(self._panel(0.0, dots + 0.02, 0.76, 0.98 - dots))
        self._draw_features(self._panel(0.78, 0.0, 0.2, dots))

    def _title(self) -> str:
        n, n_drawn = self.n_combinations_, len(self.counts_)
        rows = len(self.memberships)
        of = f"{rows:,} rows"
        if rows < self.n_rows:
            of = f"{rows:,} of {self.n_rows:,} rows"
        if n_drawn == n:
            return f"{n:,} combination{'s' * (n != 1)} of features in {of}"
        share = share_words(float(self.counts_.sum()) / rows)
        return f"the {n_drawn} commonest of {n:,} combinations: {share} of {of}"

    def _draw_dots(self, ax: Any) -> None:
        shown = self.combinations_[:, self.features_]
        P, F = shown.shape
        size = float(np.clip(1500.0 / P, 10.0, 45.0))
        for place in range(0, F, 2):  # stripes lead the eye
            ax.axhspan(place - 0.5, place + 0.5, color=_STRIPE, lw=0, zorder=0)
        down, across = np.nonzero(~shown.T & shown.any(axis=1))
        ax.scatter(across, down, s=size * 0.5, color=LIGHT, lw=0)
        across, down = np.nonzero(shown)
        ax.scatter(across, down, s=size, color=INK, lw=0, zorder=3)
        for place, pattern in enumerate(shown):
            here = np.flatnonzero(pattern)
            if not len(here):
                ax.text(
                    place, (F - 1) / 2.0, "none", rotation=90, ha="center",
                    va="center", fontsize="x-small", color=GREY,
                )  # fmt: skip
            if len(here) > 1:
                ax.plot([place, place], [here[0], here[-1]], color=INK, lw=1.2)
        ax.set(xlim=(-0.6, P - 0.4), ylim=(max(F, 1) - 0.5, -0.5), xticks=[])
        small = "small" if F <= 30 else "x-small"
        ax.set_yticks(range(F), [str(k) for k in self.features_], fontsize=small)
        ax.set_ylabel("feature", fontsize="small")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)

    def _draw_counts(self, ax: Any) -> None:
        places = np.arange(len(self.counts_))
        ax.bar(places, self.counts_, width=0.7, color=BLUE)
        ax.set(xlim=(-0.6, len(places) - 0.4), xticks=[])
        ax.set_ylabel("rows", fontsize="small")
        ax.tick_params(labelsize="small")
        integer_ticks(ax.yaxis, 5)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.margins(y=0.15)
        ax.spines[["top", "right"]].set_visible(False)
        if len(places) <= _WORDS_UP_TO:
            for place, count in zip(places, self.counts_, strict=True):
                words = share_words(float(count) / len(self.memberships))
                ax.annotate(
                    words, (place, count), xytext=(0, 2), ha="center",
                    textcoords="offset points", fontsize="x-small",
                )  # fmt: skip

    def _draw_features(self, ax: Any) -> None:
        shares = self.memberships[:, self.features_].mean(axis=0)
        F = len(shares)
        ax.barh(range(F), shares, height=0.6, color=GREY)
        most = float(shares.max(initial=0.01))
        ax.set(
            xlim=(0.0, 1.7 * most), ylim=(max(F, 1) - 0.5, -0.5), yticks=[], xticks=[]
        )
        ax.spines[:].set_visible(False)
        ax.axvline(0.0, color=GREY, lw=0.8)
        ax.set_xlabel("share of rows", fontsize="small", loc="left")
        for place, share in enumerate(shares):
            ax.text(
                share + 0.06 * most, place, share_words(float(share)), va="center",
                fontsize="x-small",
            )  # fmt: skip


def _patterns(Z: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """The different rows, and how often each is there."""
    if not Z.size:
        return Z[:1], np.array([len(Z)] * (len(Z) > 0), np.int64)
    packed = np.packbits(Z, axis=1)
    found, counts = np.unique(packed, axis=0, return_counts=True)
    patterns = np.unpackbits(found, axis=1, count=Z.shape[1]).astype(bool)
    return patterns, counts.astype(np.int64)
