"""A picture of how far models agree."""

from typing import Any, Self

import numpy as np

from kplus.plots.display import Display
from kplus.plots.style import SEQUENTIAL, color_scale, ink_on, plain

__all__ = ["ComparisonDisplay"]

_WRITTEN_UP_TO = 12  # models whose numbers stand in the cells


class ComparisonDisplay(Display):
    """Agreement of each two models: 1 where they find the same clusters, 0 by chance.

    It is recommended to use :meth:`from_comparison`.

    Parameters
    ----------
    comparison : Comparison
        What :func:`kplus.compare` returns.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.

    See Also
    --------
    kplus.compare : Computes what is drawn.

    Examples
    --------
    >>> import kplus
    >>> from sklearn.datasets import make_blobs
    >>> from kplus.plots import ComparisonDisplay
    >>> X, _ = make_blobs(300, centers=3, random_state=1)
    >>> comparison = kplus.compare(X, n_resamples=0, random_state=0)
    >>> display = ComparisonDisplay.from_comparison(comparison)
    >>> display.ax_.get_title(loc="left")
    'agreement of models (adjusted Rand index)'
    """

    def __init__(self, comparison: Any) -> None:
        self.comparison = comparison

    @classmethod
    def from_comparison(cls, comparison: Any, *, ax: Any = None) -> Self:
        """Draw what :func:`kplus.compare` returned.

        Parameters
        ----------
        comparison : Comparison
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : ComparisonDisplay
        """
        return cls(comparison).plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        n = len(self.comparison.clusterings)
        return float(np.clip(2.6 + 0.7 * n, 4.2, 12.0)), float(
            np.clip(1.6 + 0.6 * n, 3.2, 11.0)
        )

    def _check(self) -> None:
        if len(self.comparison.clusterings) < 2:
            raise ValueError(
                "Agreement needs two models or more that find clusters; compare more."
            )

    def _draw(self) -> None:
        agreement, found = self.comparison.agreement, self.comparison.clusterings
        image = self.ax_.imshow(agreement, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0)
        names = [f"{plain(c.name)} ({c.n_groups})" for c in found]
        places = np.arange(len(found))
        self.ax_.set_yticks(places, names, parse_math=False)
        self.ax_.set_xticks(
            places, names, rotation=40, ha="right", rotation_mode="anchor",
            parse_math=False,
        )  # fmt: skip
        title = "agreement of models (adjusted Rand index)"
        self.ax_.set_title(title, fontsize="medium", loc="left")
        self.ax_.spines[:].set_visible(False)
        self.ax_.tick_params(length=0)
        if len(found) > _WRITTEN_UP_TO:
            color_scale(self.ax_, image, "")
            return
        for i, j in np.ndindex(*agreement.shape):
            value = round(float(agreement[i, j]), 2) + 0.0  # no minus before a zero
            color = ink_on(image.cmap(image.norm(value)))
            words = f"{value:.2f}".replace("-", "−")
            self.ax_.text(j, i, words, ha="center", va="center", color=color)
