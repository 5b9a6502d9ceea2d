"""A picture of the tree of clusters."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kplus.plots.display import Display, final_step
from kplus.plots.style import GREY, HIGHLIGHT, INK, cluster_style, ink_on

__all__ = ["TreeDisplay"]

_NUMBERED_UP_TO = 40  # leaves
_BAND = -0.075, 0.06  # of the clusters, below the tree: bottom and height
_LINE = 0.035  # a line of text below the band
_ABOVE = 1.08  # the cut of a single cluster, times the highest step


class TreeDisplay(Display):
    """The tree from the pieces of clusters to a single one, and where it is cut.

    Every leaf is a component of a mixture, or a cell. The lower two groups are joined,
    the more they overlap. What is below the cut has the colour of its cluster, whose
    number stands under it; what is joined above the cut is grey.

    It is recommended to use :meth:`from_estimator`.

    Parameters
    ----------
    tree : ClusterTree
        The attribute `cluster_tree_` of an estimator.
    n_clusters : int or None, default=None
        Where to cut; by default where the rows say.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    leaves_ : ndarray of int
        The leaves from left to right.

    See Also
    --------
    ClusterDisplay : Map of the rows, with an ellipse for each component.

    Examples
    --------
    >>> import numpy as np
    >>> from kplus import DPMixture
    >>> from kplus.plots import TreeDisplay
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 900)
    >>> ring = 5 * np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.concatenate([ring, np.zeros((300, 2))]) + rng.normal(0, 0.3, (1200, 2))
    >>> display = TreeDisplay.from_estimator(DPMixture(random_state=0).fit(X))
    >>> display.n_clusters
    2
    """

    def __init__(self, tree: Any, *, n_clusters: int | None = None) -> None:
        self.tree = tree
        self.n_clusters = tree.n_clusters if n_clusters is None else n_clusters
        self.leaves_: NDArray[np.int64] = _in_order(tree, self.n_clusters)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_clusters: int | None = None, ax: Any = None
    ) -> Self:
        """Draw the tree that a fitted estimator keeps.

        Parameters
        ----------
        estimator : DPMixture, CRAFT or DPMeans
            Fitted; a pipeline that ends in one will do.
        n_clusters : int or None, default=None
            Where to cut; by default where the estimator did.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : TreeDisplay
        """
        check_is_fitted(estimator)
        last = final_step(estimator)
        tree = getattr(last, "cluster_tree_", None)
        if tree is None:
            raise ValueError(_no_tree(last))
        if n_clusters is None:
            n_clusters = min(int(last.n_clusters_), tree.n_leaves)
        return cls(tree, n_clusters=n_clusters).plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        n = self.tree.n_leaves
        wide = max((0.21 if n <= _NUMBERED_UP_TO else 0.16) * n, 0.22 * self.n_clusters)
        return float(np.clip(2.0 + wide, 7.2, 14.0)), 4.4

    def _draw(self) -> None:
        tree, K = self.tree, self.n_clusters
        self._draw_branches()
        self._draw_cut()
        self._draw_clusters()
        n = tree.n_leaves
        top = float(tree.heights[-1]) if n > 1 else 1.0
        self.ax_.set(xlim=(-0.7, n - 0.3), ylim=(0.0, (top or 1.0) * 1.15))
        self.ax_.set_ylabel("height of joining: less overlap further up")
        ticks = range(n) if n <= _NUMBERED_UP_TO else []
        words = [str(leaf) for leaf in self.leaves_] if n <= _NUMBERED_UP_TO else []
        self.ax_.set_xticks(ticks, words, fontsize="small")
        self.ax_.tick_params(axis="x", length=0, pad=20)
        self.ax_.set_xlabel(
            "piece: component or cell" if words else "", fontsize="small", labelpad=2
        )
        self.ax_.spines[["top", "right", "bottom"]].set_visible(False)
        clear = ""
        if tree.n_clusters == K and n > 1:
            clear = f", clearness {tree.clearness:.2f}"
        self.ax_.set_title(
            f"{K} cluster{'s' * (K != 1)} of {n} piece{'s' * (n != 1)}{clear}",
            fontsize="medium",
        )

    def _draw_branches(self) -> None:
        """A bracket for each step: two legs, and what joins them."""
        from matplotlib.collections import LineCollection

        tree, n = self.tree, self.tree.n_leaves
        cluster = tree.cut(self.n_clusters)
        x, y = np.zeros(2 * n - 1), np.zeros(2 * n - 1)
        x[self.leaves_] = np.arange(n)
        y[n:] = tree.heights
        owner = np.concatenate([cluster, np.full(n - 1, -1)])
        brackets, colors = [], []
        for t, (a, b) in enumerate(tree.children):
            x[n + t] = (x[a] + x[b]) / 2.0
            if owner[a] == owner[b]:
                owner[n + t] = owner[a]
            up = y[n + t]
            brackets.append([(x[a], y[a]), (x[a], up), (x[b], up), (x[b], y[b])])
            colors.append(cluster_style(int(owner[n + t]))[0])
        wide = 1.4 if n <= 100 else 0.7
        lines = LineCollection(brackets, colors=colors, lw=wide, capstyle="round")
        self.ax_.add_collection(lines, autolim=False)

    @property
    def _cut_height(self) -> float:
        """Halfway between the last step below the cut and the first above it."""
        heights, n = self.tree.heights, self.tree.n_leaves
        below = n - self.n_clusters  # steps
        low = float(heights[below - 1]) if below else 0.0
        high = float(heights[below]) if below < n - 1 else _ABOVE * low
        return (low + high) / 2.0

    def _draw_cut(self) -> None:
        if self.tree.n_leaves == 1:
            return
        y = self._cut_height
        self.ax_.axhline(y, color=HIGHLIGHT, lw=1.0, ls="--", zorder=0)
        self.ax_.text(
            1.005, y, "cut", transform=self.ax_.get_yaxis_transform(),
            color=HIGHLIGHT, va="center", fontsize="small",
        )  # fmt: skip

    def _draw_clusters(self) -> None:
        """A band under the tree in the colour of each cluster, with its number."""
        from matplotlib.patches import Rectangle

        cluster = self.tree.cut(self.n_clusters)[self.leaves_]
        transform = self.ax_.get_xaxis_transform()
        starts = np.flatnonzero(np.diff(cluster, prepend=-1))
        ends = np.append(starts[1:], len(cluster))
        inch = (self.figsize[0] - 1.5) / len(cluster)
        bottom, height = _BAND
        outside = 0
        for start, end in zip(starts, ends, strict=True):
            k = int(cluster[start])
            color = cluster_style(k)[0]
            band = Rectangle((start - 0.45, bottom), end - start - 0.1, height)
            band.set(transform=transform, color=color, clip_on=False, lw=0)
            self.ax_.add_patch(band)
            fits = inch * (end - start - 0.1) > 0.085 * len(str(k))
            outside = 0 if fits else outside + 1  # neighbours at two heights
            below = bottom - _LINE * (1 - outside % 2)
            self.ax_.text(
                (start + end - 1) / 2.0, bottom + height / 2.0 if fits else below,
                str(k), transform=transform, ha="center", fontsize="x-small",
                va="center" if fits else "top", color=ink_on(color) if fits else INK,
            )  # fmt: skip
        if self.tree.n_leaves > _NUMBERED_UP_TO:
            self.ax_.text(
                -0.01, bottom + height / 2.0, "cluster", va="center", ha="right",
                transform=self.ax_.transAxes, fontsize="small", color=GREY,
            )  # fmt: skip


def _in_order(tree: Any, n_clusters: int) -> NDArray[np.int64]:
    """Leaves from left to right: no branches cross, larger clusters come first."""
    n = tree.n_leaves
    first = np.concatenate([tree.cut(n_clusters), np.zeros(n - 1, np.int64)])
    for t, (a, b) in enumerate(tree.children):
        first[n + t] = min(first[a], first[b])
    order, left = [], [2 * n - 2]
    while left:
        node = left.pop()
        if node < n:
            order.append(node)
            continue
        a, b = tree.children[node - n]
        left += [int(b), int(a)] if first[a] <= first[b] else [int(a), int(b)]
    return np.array(order, dtype=np.int64)


def _no_tree(estimator: Any) -> str:
    name = type(estimator).__name__
    if not hasattr(estimator, "n_clusters_"):
        return f"{name} has no clusters, and so no tree of them."
    if name in ("DPMixture", "CRAFT"):
        if estimator.n_clusters is None:
            return (
                f"A {name} fitted with n_clusters=None keeps no tree, for every "
                f'component is a cluster: fit with n_clusters="auto", or a number.'
            )
        return f'This {name} keeps no tree: fit with n_clusters="auto".'
    if name == "DPMeans":
        return (
            "This DPMeans keeps no tree, for its clusters are round and not joined "
            'from cells: fit with cells="auto".'
        )
    return f"{name} keeps no tree; DPMixture, CRAFT and DPMeans with cells do."
