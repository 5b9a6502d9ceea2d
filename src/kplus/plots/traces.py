"""A picture of how a fit or a chain went."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kplus.plots.display import Display
from kplus.plots.style import GREY, cluster_style

__all__ = ["TraceDisplay"]

_HISTORIES = {
    "log_joint_history_": "log joint",
    "lower_bound_history_": "lower bound",
    "n_components_history_": "features",
    "noise_scale_history_": "noise scale",
    "factor_scale_history_": "factor scale",
    "alpha_history_": "alpha",
}
"""Attributes with a value for each sweep, and what they are called."""

_GAP = 0.03  # between panels, as a share of the height


class TraceDisplay(Display):
    """What changed from sweep to sweep, one panel for each number.

    A chain that has forgotten its start looks the same throughout. One that still
    rises, or stays where it began, has not.

    It is recommended to use :meth:`from_estimator`.

    Parameters
    ----------
    traces : mapping of str to array-like of shape (n_sweeps,)
        Values after each sweep, by what they are.
    burn_in : int, default=0
        Sweeps at the beginning that were thrown away; they are drawn on grey, and the
        axes leave out what is far from all later values.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`: the frame.
    axes_ : list of matplotlib Axes
        After :meth:`plot`: the panels within it.
    figure_ : matplotlib Figure
        After :meth:`plot`.

    See Also
    --------
    FeatureDisplay : Picture of the features.

    Examples
    --------
    >>> from kplus import MEIBP
    >>> from kplus.datasets import make_nonnegative_features
    >>> from kplus.plots import TraceDisplay
    >>> X, Z, A = make_nonnegative_features(100, 30, 3, noise=0.5, random_state=0)
    >>> model = MEIBP(negative="noise", random_state=0).fit(X)
    >>> display = TraceDisplay.from_estimator(model)
    >>> list(display.traces)
    ['lower bound']
    """

    def __init__(self, traces: Mapping[str, ArrayLike], *, burn_in: int = 0) -> None:
        self.traces = {name: np.asarray(values) for name, values in traces.items()}
        self.burn_in = burn_in

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw what a fitted estimator noted of its sweeps.

        Parameters
        ----------
        estimator : IBPGibbs, IBPVariational or MEIBP
            Fitted.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : TraceDisplay
        """
        check_is_fitted(estimator)
        traces = {
            words: getattr(estimator, name)
            for name, words in _HISTORIES.items()
            if hasattr(estimator, name)
        }
        if not traces:
            raise ValueError(
                f"{type(estimator).__name__} keeps no history of its sweeps; IBPGibbs, "
                f"IBPVariational and MEIBP do."
            )
        burn_in = getattr(estimator, "burn_in", 0)
        return cls(traces, burn_in=burn_in).plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        return 7.2, 1.2 + 1.3 * len(self.traces)

    def _draw(self) -> None:
        n = len(self.traces)
        self.ax_.set_axis_off()
        height = 1.0 / max(n, 1)
        self.axes_: list[Any] = []
        for i, (name, values) in enumerate(self.traces.items()):
            bottom = 1.0 - (i + 1) * height
            panel = self.ax_.inset_axes([0.0, bottom, 1.0, height - _GAP])
            self._draw_trace(panel, name, values, color=cluster_style(i)[0])
            panel.tick_params(labelbottom=i == n - 1)
            self.axes_.append(panel)
        if self.axes_:
            self.axes_[-1].set_xlabel("sweep", fontsize="small")

    def _draw_trace(self, ax: Any, name: str, values: Any, color: str) -> None:
        n = len(values)
        few = "o" if n <= 30 else ""
        whole = values.dtype.kind in "iu"
        style = "steps-mid" if whole else "default"
        x = np.arange(1, n + 1)
        ax.plot(x, values, marker=few, ms=3, lw=1, color=color, drawstyle=style)
        ax.set_ylabel(name, fontsize="small")
        ax.yaxis.set_label_coords(-0.09, 0.5)  # one below the other
        ax.tick_params(labelsize="small")
        ax.spines[["top", "right"]].set_visible(False)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if whole:
            ax.yaxis.get_major_locator().set_params(integer=True)
        ax.set_xlim(0.5, n + 0.5)
        if 0 < self.burn_in < n:
            ax.axvspan(0.5, self.burn_in + 0.5, color=GREY, alpha=0.15, lw=0)
            _look_at(ax, values[self.burn_in :], values)


def _look_at(ax: Any, later: Any, values: Any) -> None:
    """Let the axis show the later values, and of the others what is not far off."""
    low, high = float(np.min(later)), float(np.max(later))
    reach = 2.0 * (high - low) or 1.0
    ends = max(low - reach, np.min(values)), min(high + reach, np.max(values))
    margin = 0.05 * (ends[1] - ends[0]) or 0.5
    ax.set_ylim(ends[0] - margin, ends[1] + margin)
