"""A picture of latent features."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from kplus.core.reading import read_blocks
from kplus.data.open import open_numbers, read_as_fitted
from kplus.plots.display import Display
from kplus.plots.style import (
    DIVERGING,
    GREY,
    SEQUENTIAL,
    cell_grid,
    integer_ticks,
    label_groups,
    name_columns,
    plain,
    share_words,
    write_cells,
)

__all__ = ["FeatureDisplay", "in_deviations", "in_deviations_words"]

_MAX_NAMED = 40  # more names of columns would not be legible
_MAX_LISTED = 80  # more features have no line of text each


class FeatureDisplay(Display):
    """Map of features and columns, with the share of rows that have each feature.

    Red adds to a column, blue takes away. Where columns are the pixels of pictures,
    `image_shape` shows each feature as a picture instead, from light to dark blue if
    no feature takes away.

    The base, a feature that all rows have, is marked. It is a level rather than a
    difference, so that its picture is grey.

    It is recommended to use :meth:`from_estimator`.

    Parameters
    ----------
    components : array-like of shape (n_components, n_columns)
        What each feature adds to each column.
    shares : array-like of shape (n_components,)
        Share of rows that have each feature.
    base : int or None
        Number of the feature that all rows have, if there is one.
    column_names : sequence of str or None
        By default columns are numbered.
    unit : str or None
        What the values of `components` are, for the title.
    image_shape : tuple of (int, int) or None
        Height and width of the pictures, whose pixels are the columns, row by row.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`: the frame, which carries the title.
    axes_ : list of matplotlib Axes
        After :meth:`plot`: the map, the bars and the scale of colours within it; or
        the pictures, then the scale.
    figure_ : matplotlib Figure
        After :meth:`plot`.

    See Also
    --------
    ClusterDisplay : Picture of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from kplus import BPMeans
    >>> from kplus.plots import FeatureDisplay
    >>> X = np.array([[5, 0], [0, 3], [5, 3], [5, 0], [0, 0]])
    >>> model = BPMeans(penalty=1).fit(X)
    >>> display = FeatureDisplay.from_estimator(model)
    >>> display.shares
    array([0.6, 0.4])
    """

    def __init__(
        self,
        *,
        components: ArrayLike,
        shares: ArrayLike,
        base: int | None = None,
        column_names: Sequence[str] | None = None,
        unit: str | None = None,
        image_shape: tuple[int, int] | None = None,
    ) -> None:
        self.components = np.asarray(components, dtype=np.float64)
        self.shares = np.asarray(shares, dtype=np.float64)
        self.base = base
        self.column_names = column_names
        self.unit = unit
        self.image_shape = image_shape

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        ax: Any = None,
        image_shape: tuple[int, int] | None = None,
    ) -> Self:
        """Draw the features of a fitted estimator.

        Parameters
        ----------
        estimator : BPMeans, KFeatures, MEIBP, IBPGibbs or IBPVariational
            Fitted.
        X : array-like of shape (n_samples, n_features) or None
            Rows to compare with. The shares are then those of these rows, and the map
            shows features in standard deviations of the columns, the base as it
            differs from their means: so columns of any units can be compared. By
            default the shares are those of the fit, and values are drawn as they are.
            Pictures always show values as they are.
        ax : matplotlib Axes or None
            Where to draw; by default in a new figure.
        image_shape : tuple of (int, int) or None
            Height and width of pictures, if the columns are their pixels.

        Returns
        -------
        display : FeatureDisplay
        """
        check_is_fitted(estimator, "components_")
        components, unit = estimator.components_, None
        if X is None:
            shares = estimator.feature_counts_ / estimator.n_samples_seen_
            base = _first(shares >= 1.0 - 1e-9)
        else:
            shares, base, mean, deviation = _describe(estimator, X)
            if image_shape is None:
                unit = in_deviations_words(base)
                # What was taken off before a fit is no part of the features.
                level = mean - getattr(estimator, "offset_", 0.0)
                components = in_deviations(components, base, level, deviation)
        names = getattr(estimator, "feature_names_in_", None)
        display = cls(
            components=components,
            shares=shares,
            base=base,
            column_names=None if names is None else [str(name) for name in names],
            unit=unit,
            image_shape=image_shape,
        )
        return display.plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure that suits, in inches."""
        K, D = self.components.shape
        if self.image_shape is not None:
            n_across, n_down = _grid(K)
            height, width = self.image_shape
            tall = 1.5 * min(max(height / width, 0.4), 2.5) + 0.35
            return 1.6 * n_across + 1.2, tall * n_down + 0.5
        names = max((len(plain(name)) for name in self._column_names()), default=0)
        width = min(max(3.5 + 0.5 * D, 6.5), 14.0)
        height = min(max(0.34 * K, 1.2), 10.0) + 0.8 + 0.06 * names
        return width, height

    def _check(self) -> None:
        D, shape = self.components.shape[1], self.image_shape
        if shape is not None and shape[0] * shape[1] != D:
            raise ValueError(
                f"image_shape={shape} has {shape[0] * shape[1]} pixels, but the "
                f"features have {D} columns."
            )

    def _draw(self) -> None:
        K, shape = len(self.components), self.image_shape
        unit = f", {self.unit}" if self.unit else ""
        self._frame(f"{K} feature{'s' * (K != 1)}{unit}", loc="left")
        if K == 0:
            return
        if shape is None:
            image = self._draw_map()
            self._draw_bars()
            self._draw_scale(image, 0.945)
        else:
            self._draw_pictures(shape)

    @property
    def _colors(self) -> dict[str, Any]:
        """Light to dark where features only add, which is clear in grey as well."""
        low = np.delete(self.components, [] if self.base is None else self.base, axis=0)
        if self.image_shape is not None and low.size and low.min() >= 0.0:
            return {"cmap": SEQUENTIAL, "vmin": 0.0, "vmax": self._limit}
        return {"cmap": DIVERGING, "vmin": -self._limit, "vmax": self._limit}

    @property
    def _limit(self) -> float:
        """Value of the deepest colours; the base counts only if it is alone."""
        others = np.arange(len(self.components)) != self.base
        if not others.any():
            others[:] = True
        return float(np.abs(self.components[others]).max(initial=0.0)) or 1.0

    def _draw_map(self) -> Any:
        K, D = self.components.shape
        ax = self._panel(0.0, 0.0, 0.74, 1.0)
        image = ax.imshow(
            self.components,
            **self._colors,
            aspect="auto",
            interpolation="nearest",
        )
        ax.set_ylabel("feature")
        if K <= _MAX_LISTED:
            names = [f"base {k}" if k == self.base else str(k) for k in range(K)]
            label_groups(ax, names)
        columns = self._column_names()
        if columns:
            name_columns(ax, columns)
        else:
            ax.set_xlabel("column")
            integer_ticks(ax.xaxis)
        cell_grid(ax, K, D)
        write_cells(ax, image, self.components)
        return image

    def _column_names(self) -> Sequence[str]:
        """Those that are shown: none of very many, and none of pictures."""
        names = self.column_names
        if names is None or len(names) > _MAX_NAMED or self.image_shape is not None:
            return []
        return names

    def _draw_bars(self) -> None:
        ax = self._panel(0.76, 0.0, 0.16, 1.0)
        K = len(self.shares)
        ax.barh(range(K), self.shares, height=0.7, color=GREY)
        ax.set(xlim=(0.0, 1.55), ylim=(K - 0.5, -0.5), yticks=[], xticks=[])
        ax.set_xlabel("share of rows", fontsize="small", loc="left")
        ax.spines[:].set_visible(False)
        ax.axvline(0.0, color=GREY, linewidth=0.8)
        if K > _MAX_LISTED:
            return
        small = "small" if K <= 25 else "x-small"
        for k, share in enumerate(self.shares):
            ax.text(share + 0.05, k, share_words(share), va="center", fontsize=small)

    def _draw_scale(self, image: Any, left: float) -> None:
        ax = self._panel(left, 0.0, 0.02, 1.0)
        beyond = np.abs(self.components).max() > self._limit
        self.figure_.colorbar(
            image,
            cax=ax,
            extend="both" if beyond and self.image_shape is None else "neither",
        )
        ax.tick_params(labelsize="small")

    def _draw_pictures(self, shape: tuple[int, int]) -> None:
        n_across, n_down = _grid(len(self.components))
        width, height = 0.9 / n_across, 1.0 / n_down
        images: dict[int | None, Any] = {}
        for k, values in enumerate(self.components):
            down, across = divmod(k, n_across)
            bottom = 1.0 - (down + 1) * height
            ax = self._panel(across * width, bottom, 0.92 * width, 0.85 * height)
            images[k] = self._draw_picture(ax, k, values.reshape(shape))
        images.pop(self.base, None)  # its greys have a scale of their own
        if images:
            self._draw_scale(images.popitem()[1], 0.93)

    def _draw_picture(self, ax: Any, k: int, values: NDArray[np.float64]) -> Any:
        colors = self._colors
        if k == self.base:
            colors = {"cmap": "gray"}
        image = ax.imshow(values, interpolation="nearest", **colors)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(color=GREY, visible=True)
        name = "base " if k == self.base else ""
        ax.set_title(
            f"{name}{k}: {share_words(self.shares[k])}", fontsize="small", pad=3
        )
        return image


def _grid(K: int) -> tuple[int, int]:
    """Pictures across and down, somewhat wider than high."""
    n_across = min(K, max(5, int(np.ceil(np.sqrt(2 * K))))) or 1
    return n_across, max(-(-K // n_across), 1)


def _first(flags: NDArray[np.bool_]) -> int | None:
    return int(flags.argmax()) if flags.any() else None


def _describe(
    estimator: Any, X: Any
) -> tuple[NDArray[Any], int | None, NDArray[Any], NDArray[Any]]:
    """Shares and base of rows; mean and standard deviation of their columns."""
    Z = estimator.transform(X)
    Z = np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z)
    moments, seen = StandardScaler(), []
    for _, rows in read_blocks(open_numbers(read_as_fitted(estimator, X))):
        moments.partial_fit(rows)
        seen.append(~np.isnan(rows).all(axis=1))
    # A row without any value has no feature, and says nothing of a base.
    base = _first(np.all(Z[np.concatenate(seen)] > 0.5, axis=0))
    return Z.mean(axis=0), base, moments.mean_, np.sqrt(moments.var_)


def in_deviations(
    components: NDArray[Any],
    base: int | None,
    mean: NDArray[Any],
    deviation: NDArray[Any],
) -> NDArray[Any]:
    """Features in standard deviations of the columns, the base from their means."""
    shifted = np.array(components, dtype=np.float64)
    if base is not None:
        shifted[base] -= mean
    # A constant column has no deviation to compare with. A base that is the mean is
    # so but for rounding, which should not show as the only value there is.
    varies = deviation > 0.0
    return np.where(varies, shifted / np.where(varies, deviation, 1.0), 0.0).round(9)


def in_deviations_words(base: int | None) -> str:
    """What `in_deviations` returns, as a `unit`."""
    words = "in standard deviations of the column"
    return words if base is None else f"{words} (the base from its mean)"
