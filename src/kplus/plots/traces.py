"""A picture of how a fit or a chain went, and of its moves."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kplus.plots.display import Display, final_step
from kplus.plots.style import GREY, cluster_style, integer_ticks

__all__ = ["TraceDisplay"]

_HISTORIES = {
    "objective_history_": "objective",
    "log_joint_history_": "log joint",
    "lower_bound_history_": "lower bound",
    "n_components_history_": "features",
    "noise_scale_history_": "noise scale",
    "factor_scale_history_": "factor scale",
    "alpha_history_": "alpha",
}
"""Attributes with a value for each pass or sweep, and what they are called."""

_MARKERS = {"birth": "^", "merge": "v", "delete": "X"}
"""Kinds of moves, from top to bottom, and their markers."""

_FEW = 8  # values, of which none is far off
_GAP = 0.03  # between panels, as a share of the height


class TraceDisplay(Display):
    """What changed from pass to pass, one panel for each number, and one for moves.

    Of a mixture the last panel shows births, merges and deletes: a mark after each pass
    in which some were accepted, larger for more, and a grey dot where all were refused.

    A chain that has forgotten its start looks the same throughout. One that still
    rises, or stays where it began, has not.

    It is recommended to use :meth:`from_estimator`.

    Parameters
    ----------
    traces : mapping of str to array-like of shape (n_sweeps,)
        Values after each pass or sweep, by what they are.
    burn_in : int, default=0
        Sweeps at the beginning that were thrown away; they are drawn on grey, and the
        axes leave out what is far from all later values.
    moves : structured array or None, default=None
        The proposals of a fit, as `moves_` of `DPMixture` has them.
    unit : {"pass", "sweep"}, default="sweep"
        What the values were noted after.

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
    ['lower bound', 'features']
    """

    def __init__(
        self,
        traces: Mapping[str, ArrayLike],
        *,
        burn_in: int = 0,
        moves: Any = None,
        unit: str = "sweep",
    ) -> None:
        self.traces = {name: np.asarray(values) for name, values in traces.items()}
        self.burn_in = burn_in
        self.moves: Any = moves if moves is not None and len(moves) else None
        self.unit = unit

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw what a fitted estimator noted of its passes or sweeps.

        Parameters
        ----------
        estimator : fitted estimator
            Any of kplus, or a pipeline that ends in one.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : TraceDisplay
        """
        check_is_fitted(estimator)
        estimator = final_step(estimator)
        traces = {
            words: getattr(estimator, name)
            for name, words in _HISTORIES.items()
            if hasattr(estimator, name)
        } | _numbers(estimator)
        if not traces:
            raise ValueError(
                f"{type(estimator).__name__} keeps no history of its passes; the "
                f"estimators of kplus do."
            )
        display = cls(
            traces,
            burn_in=getattr(estimator, "burn_in", 0),
            moves=getattr(estimator, "moves_", None),
            unit="sweep" if "log joint" in traces else "pass",
        )
        return display.plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        return 7.2, max(1.2 + 1.3 * self._n_panels, 2.8)

    @property
    def _n_panels(self) -> int:
        return len(self.traces) + (self.moves is not None)

    def _check(self) -> None:
        if not self.traces:
            raise ValueError("There is no trace that could be drawn.")

    def _draw(self) -> None:
        n = self._n_panels
        self._frame("")
        height = 1.0 / n
        bottoms = [1.0 - (i + 1) * height for i in range(n)]
        for i, (name, values) in enumerate(self.traces.items()):
            panel = self._panel(0.0, bottoms[i], 1.0, height - _GAP)
            self._draw_trace(panel, name, values, color=cluster_style(i)[0])
        if self.moves is not None:
            panel = self._panel(0.0, bottoms[-1], 1.0, height - _GAP)
            self._draw_moves(panel)
        for panel in self.axes_[:-1]:
            panel.tick_params(labelbottom=False)
        self.axes_[-1].set_xlabel(self.unit, fontsize="small")

    def _draw_moves(self, ax: Any) -> None:
        """A line for each kind of move, a mark for each pass after which some were."""
        kinds = [*_MARKERS, *sorted(set(self.moves["kind"]) - set(_MARKERS))]
        for place, kind in enumerate(kinds):
            mine = self.moves[self.moves["kind"] == kind]
            accepted = mine["pass"][mine["accepted"]]
            refused = np.setdiff1d(mine["pass"], accepted)
            passes, counts = np.unique(accepted, return_counts=True)
            ax.scatter(refused, np.full(len(refused), place), s=5, color=GREY, lw=0)
            ax.scatter(
                passes, np.full(len(passes), place), s=np.clip(18 + 9 * counts, 0, 90),
                color=cluster_style(place)[0], marker=_MARKERS.get(kind, "o"), lw=0,
            )  # fmt: skip
        counted = {kind: int(sum(self._accepted == kind)) for kind in kinds}
        words = [f"{kind} ({counted[kind]})" for kind in kinds]
        ax.set_yticks(range(len(kinds)), words, fontsize="x-small")
        ax.set_ylim(len(kinds) - 0.5, -0.5)
        ax.set_xlim(*self.axes_[0].get_xlim())
        ax.tick_params(axis="x", labelsize="small")
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right"]].set_visible(False)
        integer_ticks(ax.xaxis)

    @property
    def _accepted(self) -> Any:
        """Kinds of the moves that were accepted."""
        return self.moves["kind"][self.moves["accepted"]]

    def _draw_trace(self, ax: Any, name: str, values: Any, color: str) -> None:
        n = len(values)
        few = "o" if n <= 30 else ""
        whole = values.dtype.kind in "iu"
        style = "steps-mid" if whole else "default"
        x = np.arange(1, n + 1)
        ax.plot(x, values, marker=few, ms=3, lw=1, color=color, drawstyle=style)
        ax.set_ylabel(name, fontsize="small")
        ax.yaxis.set_label_coords(-0.115, 0.5)  # one below the other
        ax.tick_params(labelsize="small")
        ax.spines[["top", "right"]].set_visible(False)
        integer_ticks(ax.xaxis)
        if whole:
            integer_ticks(ax.yaxis, 5)
        else:
            ax.ticklabel_format(axis="y", useOffset=False)
        ax.set_xlim(0.5, n + 0.5)
        burnt = self.burn_in if 0 < self.burn_in < n else 0
        if burnt:
            ax.axvspan(0.5, burnt + 0.5, color=GREY, alpha=0.15, lw=0)
        if not whole and (burnt or n >= _FEW):
            _look_at(ax, values[burnt or n // 4 :], values)


def _numbers(estimator: Any) -> dict[str, Any]:
    """How many groups there were after each pass, where the fit has noted it."""
    groups = getattr(getattr(estimator, "fit_report_", None), "groups", ())
    if len(groups) != estimator.n_iter_ or hasattr(estimator, "n_components_history_"):
        return {}
    kind = "components" if hasattr(estimator, "n_components_") else "clusters"
    if hasattr(estimator, "feature_counts_"):
        kind = "features"
    return {kind: np.asarray(groups, np.int64)}


def _look_at(ax: Any, later: Any, values: Any) -> None:
    """Let the axis show the later values, and of the others what is not far off."""
    low, high = float(np.min(later)), float(np.max(later))
    reach = max(2.0 * (high - low), 1e-3 * max(abs(low), abs(high))) or 1.0
    ends = max(low - reach, np.min(values)), min(high + reach, np.max(values))
    margin = 0.05 * (ends[1] - ends[0]) or 0.5
    ax.set_ylim(ends[0] - margin, ends[1] + margin)
