"""A picture of what groups are like, column by column."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from kplus.core.reading import read_blocks
from kplus.data.open import Coder
from kplus.plots.display import Display
from kplus.plots.style import (
    DIVERGING,
    GREY,
    LIGHT,
    cell_grid,
    cluster_style,
    color_scale,
    group_name,
    label_groups,
    name_columns,
    plain,
    write_cells,
)

__all__ = ["ProfileDisplay"]

_MOST_LEVELS = 12  # categories of a column, the commonest
_LEAST_LIMIT, _MAX_LIMIT = 1.0, 3.0  # standard deviations of the deepest colours
_UNIT = "standard deviations from the mean"
_MAX_LINES = 12  # clusters whose lines have a colour
_KINDS = ("map", "lines")


class ProfileDisplay(Display):
    """Means of groups, column by column, beside the whole table.

    A value says by how many standard deviations of a column the mean of a group is
    above or below that of all rows, so that columns of any units can be compared. A
    category is a column of its own, which is 1 where a row has it: its value says how
    much commoner it is in the group. Gaps are left out; a group without any value in a
    column has a dash there.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    means : array-like of shape (n_clusters, n_columns)
        In standard deviations of the column, from its mean; NaN where nothing is known.
    sizes : array-like of shape (n_clusters,)
        Rows of each cluster.
    column_names : sequence of str
        Names of the columns.
    n_noise : int, default=0
        Rows that are in no cluster.
    kind : {"map", "lines"}, default="map"
        A map in colours; or a line for each cluster, those of the 12 largest in
        colours of their own.
    max_columns : int, default=40
        Of more columns those are drawn in which the clusters differ most.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    columns_ : ndarray of int
        The columns drawn, from left to right.

    See Also
    --------
    CraftDisplay : Map of clusters and the features that CRAFT chose for them.
    kplus.describe : The same in words.

    Examples
    --------
    >>> import pandas as pd
    >>> from kplus import DPMixture
    >>> from kplus.plots import ProfileDisplay
    >>> frame = pd.DataFrame({"age": [21, 22, 23, 61, 62, 63] * 20})
    >>> frame["pet"] = (["cat"] * 3 + ["dog"] * 3) * 20
    >>> model = DPMixture(random_state=0).fit(frame)
    >>> display = ProfileDisplay.from_estimator(model, frame)
    >>> display.column_names
    ['age', 'pet = cat', 'pet = dog']
    >>> display.means.round(1)
    array([[-1.,  1., -1.],
           [ 1., -1.,  1.]])
    """

    def __init__(
        self,
        *,
        means: ArrayLike,
        sizes: ArrayLike,
        column_names: Sequence[str],
        n_noise: int = 0,
        kind: str = "map",
        max_columns: int = 40,
    ) -> None:
        self.means = np.asarray(means, dtype=np.float64)
        self.sizes = np.asarray(sizes, dtype=np.float64)
        self.column_names = column_names
        self.n_noise = n_noise
        self.kind = kind
        self.max_columns = max_columns
        apart = np.nansum(np.square(self.means), axis=0)
        first = np.argsort(-apart, kind="stable")[:max_columns]
        self.columns_: NDArray[np.int64] = np.sort(first)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        kind: str = "map",
        max_columns: int = 40,
        ax: Any = None,
    ) -> Self:
        """Draw the clusters that a fitted estimator predicts for rows.

        Parameters
        ----------
        estimator : fitted clusterer
            Must have `predict`; a pipeline that ends in a clusterer is one, too.
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            The rows, with categories and gaps or without. They are read block by block.
        kind, max_columns
            As for the class.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.

        Returns
        -------
        display : ProfileDisplay
        """
        return cls.from_predictions(
            X,
            estimator.predict(X),
            feature_names=getattr(estimator, "feature_names_in_", None),
            kind=kind,
            max_columns=max_columns,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        kind: str = "map",
        max_columns: int = 40,
        ax: Any = None,
    ) -> Self:
        """Draw rows in given clusters.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            The rows, with categories and gaps or without. They are read block by block.
        labels : array-like of shape (n_samples,)
            Cluster of each row, from 0; -1 for none, which counts in the whole only.
        feature_names : sequence of str or None
            Names of the columns; by default those of `X`, or their numbers.
        kind, max_columns, ax
            As for :meth:`from_estimator`.

        Returns
        -------
        display : ProfileDisplay
        """
        labels = np.asarray(labels, dtype=np.int64)
        means, names = _profiles(X, labels, feature_names)
        display = cls(
            means=means,
            sizes=np.bincount(labels[labels >= 0], minlength=len(means)),
            column_names=names,
            n_noise=int(np.count_nonzero(labels < 0)),
            kind=kind,
            max_columns=max_columns,
        )
        return display.plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        K, D = len(self.sizes), len(self.columns_)
        names = max((len(plain(name)) for name in self._names), default=0)
        width = min(max(3.5 + (0.5 if D <= 20 else 0.3) * D, 6.5), 15.0)
        if self.kind == "lines":
            return width, 4.2 + 0.06 * names
        tall = 0.36 * K if K <= 25 else 4.5 + 0.18 * K
        return width, max(tall, 1.2) + 1.0 + 0.06 * names

    def _check(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f'kind must be "map" or "lines", not {self.kind!r}.')
        if not self.means.size:
            raise ValueError("There is no cluster, or no column, that could be drawn.")

    @property
    def _names(self) -> list[str]:
        return [str(self.column_names[d]) for d in self.columns_]

    @property
    def _groups(self) -> list[str]:
        total = float(self.sizes.sum()) + self.n_noise
        return [group_name(k, size, total) for k, size in enumerate(self.sizes)]

    def _draw(self) -> None:
        if self.kind == "map":
            self._draw_map()
        else:
            self._draw_lines()
        name_columns(self.ax_, self._names)
        K, D = self.means.shape
        columns = f"{D} column{'s' * (D != 1)}"
        if len(self.columns_) < D:
            columns = f"the {len(self.columns_)} most telling of {columns}"
        title = f"{K} cluster{'s' * (K != 1)}, {columns}"
        self.ax_.set_title(title, fontsize="medium", loc="left")

    def _draw_map(self) -> None:
        from matplotlib import colormaps

        drawn = self.means[:, self.columns_]
        highest = float(np.nanmax(np.abs(drawn), initial=0.0))
        limit = float(np.clip(highest, _LEAST_LIMIT, _MAX_LIMIT))
        image = self.ax_.imshow(
            drawn,
            cmap=colormaps[DIVERGING].with_extremes(bad=LIGHT),
            vmin=-limit,
            vmax=limit,
            aspect="auto",
            interpolation="nearest",
        )
        label_groups(self.ax_, self._groups)
        self.ax_.set_ylabel("cluster: rows")
        cell_grid(self.ax_, *drawn.shape)
        write_cells(self.ax_, image, drawn)
        extend = "both" if highest > limit else "neither"
        color_scale(self.ax_, image, _UNIT, extend=extend)

    def _draw_lines(self) -> None:
        places = np.arange(len(self.columns_))
        self.ax_.axhline(0.0, color=GREY, lw=0.8)
        largest = set(np.argsort(-self.sizes, kind="stable")[:_MAX_LINES].tolist())
        for k, (values, name) in enumerate(zip(self.means, self._groups, strict=True)):
            color, marker = cluster_style(k)
            style = {
                "color": color,
                "marker": marker,
                "ms": 5,
                "lw": 1.4,
                "label": name,
            }
            if k not in largest:
                style = {"color": LIGHT, "lw": 0.7, "zorder": 0.5}
            self.ax_.plot(places, values[self.columns_], **style)
        self.ax_.set_ylabel(_UNIT)
        low, high = self.ax_.get_ylim()
        self.ax_.set_ylim(min(low, -_LEAST_LIMIT), max(high, _LEAST_LIMIT))
        self.ax_.set_xlim(-0.5, len(places) - 0.5)
        self.ax_.grid(axis="x", color=LIGHT, lw=0.6)
        self.ax_.set_axisbelow(True)
        some = len(self.sizes) > _MAX_LINES
        self.ax_.legend(
            title=f"the largest {_MAX_LINES}: rows" if some else "cluster: rows",
            loc="center left",
            bbox_to_anchor=(1.01, 0.5),
            frameon=False,
            fontsize="small",
        )


# ------------------------------------------------------------------------- sums


def _profiles(
    X: Any, labels: NDArray[Any], feature_names: Sequence[str] | None
) -> tuple[NDArray[Any], list[str]]:
    """Standardised means by cluster, and the names of their columns."""
    blocks, coding = Coder().open(X)
    if len(labels) != blocks.n_rows:
        raise ValueError(
            f"labels has {len(labels)} entries, but X has {blocks.n_rows} rows."
        )
    D, K = blocks.n_features, int(labels.max(initial=-1)) + 1
    known = (None,) * D if coding is None else coding.categories
    numbers = [j for j, levels in enumerate(known) if levels is None]
    sums = np.zeros((3, K + 1, len(numbers)))  # of 1, x and x², in the last line all
    counts = {
        j: np.zeros((K + 1, len(levels)))
        for j, levels in enumerate(known)
        if levels is not None
    }
    origin = None
    for start, rows in read_blocks(blocks):
        own = labels[start : start + len(rows)]
        inside = np.flatnonzero(own >= 0)
        ones = np.ones(len(inside))
        members = sp.csr_array((ones, (own[inside], inside)), (K, len(rows)))
        Y = np.asarray(rows[:, numbers], dtype=np.float64)
        seen = ~np.isnan(Y)
        if origin is None:  # near the rows, so that large offsets cost no digits
            origin = np.where(seen, Y, 0.0).sum(axis=0) / np.maximum(seen.sum(0), 1)
        Y = np.where(seen, Y - origin, 0.0)
        for total, part in zip(sums, (seen.astype(float), Y, Y**2), strict=True):
            total[:-1] += members @ part
            total[-1] += part.sum(axis=0)
        for j, table in counts.items():
            _count(table, own, rows[:, j])
    level = np.zeros(len(numbers)) if origin is None else np.abs(origin)
    numbered = iter(_numbers(sums, level).T)
    names = _names(blocks, known, feature_names)
    parts, called = [], []
    for j, levels in enumerate(known):
        if levels is None:
            parts.append(next(numbered)[:, None])
            called.append(names[j])
            continue
        order = np.argsort(-counts[j][-1], kind="stable")[:_MOST_LEVELS]
        order = order[counts[j][-1][order] > 0.0]
        parts.append(_categories(counts[j], order))
        called += [f"{names[j]} = {levels[t]}" for t in order]
    return np.concatenate(parts, axis=1), called


def _count(table: NDArray[Any], labels: NDArray[Any], codes: NDArray[Any]) -> None:
    """Add up how often each cluster has each category; the last line is of all."""
    some = ~np.isnan(codes)
    codes, labels = codes[some].astype(np.int64), labels[some]
    np.add.at(table[-1], codes, 1.0)
    np.add.at(table, (labels[labels >= 0], codes[labels >= 0]), 1.0)


def _names(blocks: Any, known: Any, given: Sequence[str] | None) -> list[str]:
    names = getattr(blocks, "feature_names", None)
    if given is not None and len(given) == len(known):
        names = given
    if names is None:
        return [f"column {j}" for j in range(len(known))]
    return [str(name) for name in names]


def _numbers(sums: NDArray[Any], level: NDArray[Any]) -> NDArray[Any]:
    """Means of clusters; 0 in columns that are constant but for rounding."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means, squares = sums[1] / sums[0], sums[2][-1] / sums[0][-1]
    deviation = np.sqrt(np.maximum(squares - means[-1] ** 2, 0.0))
    return _apart(means, deviation, 1e-12 * level)


def _categories(counts: NDArray[Any], which: NDArray[Any]) -> NDArray[Any]:
    """The same of columns that are 1 where a row has a category, else 0."""
    with np.errstate(invalid="ignore"):
        shares = counts[:, which] / counts.sum(axis=1, keepdims=True)
    return _apart(shares, np.sqrt(shares[-1] * (1.0 - shares[-1])), 1e-12)


def _apart(means: NDArray[Any], deviation: NDArray[Any], least: Any) -> NDArray[Any]:
    """Distances from the last line, which is of all rows, in standard deviations."""
    apart = means[:-1] - means[-1]
    varies = deviation > least
    flat = np.where(np.isnan(apart), np.nan, 0.0)  # a gap stays one
    out = np.where(varies, apart / np.where(varies, deviation, 1.0), flat)
    return np.asarray(out)
