"""What is reported of clusters: their features, and how these differ from the table.

The features that count in a fit need not be those one would name: a cluster in which a
feature is unusually *absent* differs by it, too. A reported feature is one on which
the rows of the cluster agree more than rows elsewhere do.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.base.description import Categories, Number, Trait, trait_of
from kplus.base.estimator import warn
from kplus.core.types import Array, Blocks
from kplus.craft.joining import joined, wished
from kplus.craft.layout import Layout
from kplus.craft.model import ClusterSums, CraftModel
from kplus.craft.search import CraftFit

__all__ = [
    "Profile",
    "agreeing_features",
    "budgeted_features",
    "describe",
    "selected_features",
    "thresholded_features",
    "warn_of_table",
]

_HARDLY_BROADER = 2.0  # times as broad as the narrowest cluster
_LOOK_AT = 2_000  # rows that are looked at for spikes
_MOST_NAMED = 10  # columns in a warning
_SPIKE = 0.5  # one value in so many of the rows
_LIKE_AN_ID = 0.9  # so many categories per row
_LEAST_ROWS = 20  # with fewer, columns look like that by chance
_N_TOP = 3  # features of the highest scores that are told in any case
_FIXED = 0.5  # of the code length of a category: saved where hardly another is left


@dataclass(frozen=True)
class Profile:
    """What clusters are like, feature by feature.

    Attributes
    ----------
    gains : (K, D)
        Log-likelihood ratio of the cluster's rows, without the prior.
    information : (K, D)
        What share of a category's code length in the whole table the cluster saves,
        (G_d − G_kd)/G_d; NaN for numbers.
    breadth : (K, D)
        Variance of numbers, in units of the data; entropy of categories.
    """

    gains: Array
    information: Array
    breadth: Array

    @classmethod
    def of(cls, model: CraftModel, total: ClusterSums) -> "Profile":
        layout, whole = model.layout, total.sums.sum(axis=0)
        gains, breadth = np.zeros((2, total.K, model.n_features))
        information = np.full(gains.shape, np.nan)
        numbers = slice(layout.scored)
        gains[:, numbers], breadth[:, numbers] = _numbers(model, total.sums, whole)
        for q in range(len(layout.widths)):
            d, places = layout.scored + q, layout.places(q)
            gains[:, d], information[:, d], breadth[:, d] = _categories(
                total.sums[:, places], whole[places], model.smoothing
            )
        return cls(gains, information, breadth)


def _numbers(model: CraftModel, sums: Array, whole: Array) -> tuple[Array, Array]:
    """Gain and breadth of each number in each cluster."""
    layout = model.layout
    n, mean, var = _moments(sums, layout)
    _, mean0, var0 = _moments(whole[None], layout)
    smooth = (n * var + model.smoothing * var0) / (n + model.smoothing)
    varies = (var0 > 0.0) & (n > 0.0)
    var0, narrow = np.where(var0 > 0.0, var0, 1.0), np.where(varies, smooth, 1.0)
    ratios = np.log(var0 / narrow) - var / narrow + (var + (mean - mean0) ** 2) / var0
    gains = np.where(varies, 0.5 * n * ratios, 0.0)
    return gains, smooth * layout.scales[: layout.scored] ** 2


def _moments(sums: Array, layout: Layout) -> tuple[Array, Array, Array]:
    """Weight, mean and variance of the numbers, in the units of the layout."""
    P, S = layout.P, layout.scored
    n = sums[:, :S]
    some = np.where(n > 0.0, n, 1.0)
    mean = sums[:, P : P + S] / some
    return n, mean, np.maximum(sums[:, 2 * P : 2 * P + S] / some - mean * mean, 0.0)


def _categories(
    counts: Array, whole: Array, smoothing: float
) -> tuple[Array, Array, Array]:
    """Gain, information and breadth of a column of categories in each cluster."""
    used = whole > 0.0
    counts, base = counts[:, used], whole[used] / whole.sum() if used.any() else whole
    eta = (counts + smoothing * base) / (counts.sum(axis=1) + smoothing)[:, None]
    logs = np.log(eta)
    before = -np.sum(counts * np.log(base), axis=1)
    gains = before + np.sum(counts * logs, axis=1)
    information = np.where(before > 0.0, gains / np.where(before > 0.0, before, 1.0), 0)
    return gains, information, -np.sum(eta * logs, axis=1)


def selected_features(
    model: CraftModel,
    total: ClusterSums,
    category_threshold: float | None = None,
    variance_threshold: float | None = None,
) -> NDArray[np.bool_]:
    """The features to report: by thresholds, by `model.fraction`, or by agreement."""
    if category_threshold is not None or variance_threshold is not None:
        return thresholded_features(
            model, total, category_threshold, variance_threshold
        )
    if model.fraction is not None:
        return budgeted_features(model, total)
    return agreeing_features(model, total)


def agreeing_features(model: CraftModel, total: ClusterSums) -> NDArray[np.bool_]:
    """Features in which a cluster stands out against a background of clusters.

    The background of a feature is the cluster in which it is broadest and all those
    that could be merged with that one, as far as the feature goes, at a loss below
    ½ p log N + log D. All other clusters have it. A background of one cluster that is
    hardly broader than the narrowest is none: then all clusters have the feature. And
    a feature must be worth its cost, or it says nothing about the cluster.
    """
    K, D = total.K, model.n_features
    chosen = np.zeros((K, D), dtype=np.bool_)
    if K < 2:
        return chosen
    profile = Profile.of(model, total)
    penalties = model.penalties(total.sums.sum(axis=0), float(total.counts.sum()))
    gains = model.clusters(total.sums, total.counts, penalties).gains
    cost = penalties.costs + np.log(D)
    broadest = np.argmax(profile.breadth, axis=0)
    narrowest = np.min(profile.breadth, axis=0)
    for b in np.unique(broadest):
        merged = model.clusters(
            total.sums + total.sums[b], total.counts + total.counts[b], penalties
        ).gains
        mine = broadest == b
        in_background = gains + gains[b] - merged < cost
        in_background[b] = True
        alone = np.count_nonzero(in_background, axis=0) == 1
        narrow = profile.breadth[b] < _HARDLY_BROADER * narrowest
        in_background[b] &= ~(alone & narrow)
        chosen[:, mine] = ~in_background[:, mine]
    return chosen & (gains > penalties.costs)


def budgeted_features(model: CraftModel, total: ClusterSums) -> NDArray[np.bool_]:
    """A fixed share of the numbers and of the categories, as in Algorithm 2.

    Numbers are those with the lowest variance. Categories are those with the largest
    (G_d − G_kd)/G_d, the difference alone would favour columns with many categories.
    """
    assert model.fraction is not None
    profile = Profile.of(model, total)
    numbers = model.layout.scored
    chosen = np.zeros(profile.gains.shape, dtype=np.bool_)
    ranks = (
        (0, numbers, profile.breadth[:, :numbers]),
        (numbers, model.n_features, -profile.information[:, numbers:]),
    )
    for first, last, order in ranks:
        if first == last:
            continue
        take = max(1, round(model.fraction * (last - first)))
        best = np.argsort(order, axis=1, kind="stable")[:, :take]
        np.put_along_axis(chosen, first + best, True, axis=1)
    return chosen


def thresholded_features(
    model: CraftModel,
    total: ClusterSums,
    information: float | None,
    variance: float | None,
) -> NDArray[np.bool_]:
    """The approximate budget: categories by ε_c, numbers by ε_v; None: none of them."""
    profile = Profile.of(model, total)
    chosen = np.zeros(profile.gains.shape, dtype=np.bool_)
    numbers = model.layout.scored
    if information is not None:
        chosen[:, numbers:] = profile.information[:, numbers:] > information
    if variance is not None:
        chosen[:, :numbers] = profile.breadth[:, :numbers] < variance
    return chosen


# --------------------------------------------------------------------- description


def describe(craft: Any, most: int | None = None) -> list[Trait]:
    """The selected features of each cluster and those that say most, best first.

    At `most` so many.

    The rule for the selected ones compares clusters with the one that is broadest. It
    leaves out a column in which every cluster is of one category, or far from others.
    So the highest scores are told in any case, and categories that the cluster all but
    fixes: of two of them the score is never above log 2.
    """
    model, layout = craft._model, craft._model.layout
    sums = joined(craft._sums, craft.cluster_of_component_)
    count, whole = model.of(sums).chosen, sums.sums.sum(axis=0, keepdims=True)
    lines = np.concatenate([sums.sums, whole])
    fixed = Profile.of(model, sums).information > _FIXED
    names = getattr(craft, "feature_names_in_", None)
    column = cache(lambda d: _column(layout, d, lines, craft._coding))
    traits: list[Trait] = []
    for k in range(sums.K):
        size = float(sums.counts[k])
        share = size / float(sums.counts.sum())
        selected, scores = craft.selected_features_[k], craft.feature_scores_[k]
        differs = layout.by_column(count[k])
        told = np.argsort(-scores, kind="stable")
        if selected.any():  # else all those in which it differs
            rank = np.cumsum(differs[told])
            differs[told] &= (rank <= _N_TOP) | layout.by_column(fixed[k])[told]
        told = told[(selected | differs)[told]][:most]
        traits += [
            trait_of(k, size, share, d, names, float(scores[d]), column(d))
            for d in told.tolist()
        ] or [Trait(k, size, share, None, 0.0, "", "")]
    return traits


def _column(layout: Layout, d: int, sums: Array, coding: Any) -> Number | Categories:
    """A column in each cluster; the last line of `sums` is the whole table."""
    if layout.levels[d] is None:
        n, mean, deviation = np.transpose([layout.moments(one, d) for one in sums])
        return Number(n, mean, deviation)
    q = int(np.flatnonzero(layout.categories == d)[0])
    counts = sums[:, layout.places(q)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return Categories(coding.categories[d], counts / counts.sum(axis=1)[:, None])


# ------------------------------------------------------------------------- warnings


def warn_of_table(craft: Any, result: CraftFit, source: Blocks) -> None:
    """Say what a user should know of a table and its fit."""
    names = getattr(craft, "feature_names_in_", None)
    if names is None:
        names = [str(d) for d in range(source.n_features)]
    _warn_of_ids(result, names)
    if craft.numeric == "gaussian":
        _warn_of_spikes(result, names, source)
    if result.sums.blank > 0.0:
        warn(
            f"Rows without any value (weight {result.sums.blank:g}) say nothing; they "
            f"are counted in the largest cluster."
        )
    if craft.n_clusters_ < (wished(craft.n_clusters) or 0):
        warn(
            f"Found {craft.n_clusters_} clusters, not n_clusters={craft.n_clusters}: "
            f"in more of them no feature would be worth its cost. With "
            f"feature_fraction a number of features counts in any case."
        )


def _warn_of_ids(result: CraftFit, names: Any) -> None:
    layout, sums = result.model.layout, result.sums
    whole = sums.sums.sum(axis=0)
    ids = []
    for q, column in enumerate(layout.categories):
        counts = whole[layout.places(q)]
        seen, used = float(counts.sum()), int(np.count_nonzero(counts))
        if seen >= _LEAST_ROWS and used >= _LIKE_AN_ID * seen:
            ids.append(repr(str(names[column])))
    if ids:
        warn(
            f"Nearly every row has a category of its own in {', '.join(ids)}, as in a "
            f"column of names or of numbers of rows. Such a column says nothing about "
            f"clusters; drop it."
        )


def _warn_of_spikes(result: CraftFit, names: Any, source: Blocks) -> None:
    layout = result.model.layout
    if not layout.scored:
        return
    step = max(1, source.n_rows // _LOOK_AT)
    X = source.take(np.arange(0, source.n_rows, step))
    spikes = []
    for column in layout.numbers[: layout.scored]:
        values, counts = np.unique(X[:, column], return_counts=True, equal_nan=True)
        counts = counts[~np.isnan(values)]
        if len(counts) < 3 or counts.sum() < _LEAST_ROWS:
            continue
        if counts.max() >= _SPIKE * counts.sum():
            spikes.append(repr(str(names[column])))
    if spikes:
        if len(spikes) > _MOST_NAMED:
            more = len(spikes) - _MOST_NAMED
            spikes = [*spikes[:_MOST_NAMED], f"and {more} other columns"]
        warn(
            f"More than half of the rows have the same number in {', '.join(spikes)}. "
            f"A Gaussian does not fit such a column, and clusters may come about by it "
            f"alone: try numeric='quantile', or drop it."
        )
