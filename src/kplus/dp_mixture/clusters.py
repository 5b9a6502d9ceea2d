"""From the components of a fit to clusters: one more pass over the rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kplus.core.job import Job, draw
from kplus.core.runs import sums_of
from kplus.core.types import Array, Block, IntArray
from kplus.data.sparse_rows import blocks_of
from kplus.dp_mixture.axes import PairAxes
from kplus.dp_mixture.classes import has_classes, same_categories, tree_of_classes
from kplus.dp_mixture.drawn_rows import drawn_rows
from kplus.dp_mixture.families.factor_gaussian import FactorGaussianFamily, compared
from kplus.dp_mixture.families.family import Family
from kplus.dp_mixture.families.learning import resolutions
from kplus.dp_mixture.families.mixed import MixedFamily
from kplus.dp_mixture.families.normal_gamma import NormalGammaFamily
from kplus.dp_mixture.families.normal_wishart import NormalWishartFamily
from kplus.dp_mixture.families.transformed import TransformedFamily
from kplus.dp_mixture.families.zero_mean_gaussian import ZeroMeanGaussianFamily
from kplus.dp_mixture.model import DPMixtureModel, Support
from kplus.dp_mixture.params import Components, Plan, pair_index
from kplus.tree.borders import Borders
from kplus.tree.cluster_tree import Bridges, ClusterTree, grow_tree

__all__ = ["BorderModel", "tree_of_draws", "tree_of_rows"]

_LEAST_ENTROPY = 0.004  # per √(N_i N_j): pairs above overlap enough to be looked at
_NEIGHBOURS = 3  # that are looked at, however little they overlap
_FEWEST_ROWS = 5.0  # of a cluster, where columns are independent
_DEPTH = 1.0  # nats per column by which what connects two clusters may be thinner
_SHARE = 0.65  # of a border that must not be thinner
_DRAWN_ROWS, _DRAWN_NUMBERS = 20_000, 2e7  # at most, in all columns
_BLOCK_ROWS = 4096
_STEP_ROWS = 5_000  # that show in what steps columns are rounded
_CONTINUOUS = (FactorGaussianFamily, NormalGammaFamily, NormalWishartFamily)
_EVERYONE = Plan(everyone=True, frozen=True)


@dataclass(frozen=True)
class BorderModel:
    """Sums, over rows, of what lies between components.

    Parameters
    ----------
    columns : int array, optional
        Those that the model is about; by default all.
    steps : array, optional
        Of these columns, the steps between rounded values, which stand for intervals:
        so nothing is a valley that is between two grades.
    """

    model: DPMixtureModel
    along: PairAxes
    columns: IntArray | None = None
    steps: Array | None = None

    def summarize(
        self, params: Components, block: Block, local: Any
    ) -> tuple[Borders, Array]:
        X = block.read()
        weights = np.ones(len(X)) if block.weights is None else block.weights
        if self.columns is not None:
            X = np.take(X, self.columns, axis=1)
        if self.steps is not None:
            places = np.random.default_rng(0).random(X.shape) - 0.5
            X = X + places * self.steps
        _, support, r = self.model.share_out(params, X, weights)
        return self.sums(params, X, weights, support, r), np.empty(0)

    def sums(
        self, params: Components, X: Array, weights: Array, support: Support, r: Array
    ) -> Borders:
        K, labels, axes = params.K, support.leading, self.along.axes
        out = Borders.zeros(K, len(axes.pairs))
        n_shares = np.diff(support.starts)
        place = support.components.astype(np.int64) * K + np.repeat(labels, n_shares)
        shares = np.bincount(place, r * np.repeat(weights, n_shares), K * K)
        out.overlap += shares.reshape(K, K)
        if support.noise is not None:  # whose share of a row lies nowhere
            weights = weights * np.add.reduceat(r, support.starts[:-1])
        out.count(axes, labels, weights, self.along.values(params, X, labels).on)
        return out


def tree_of_rows(
    job: Job, model: DPMixtureModel, params: Components, lost: Array
) -> ClusterTree:
    """The tree of a fit's components, by another pass over its rows.

    Where there are categories, valleys join only components that differ in nothing
    else than numbers; the rest is a tree of classes, in which those of the numbers keep
    groups apart.

    Parameters
    ----------
    lost : array of shape (K (K - 1) / 2,)
        The entropy that merging two components would lose, from the fit's sums:
        pairs that overlap.
    """
    params = replace(params, plan=_EVERYONE)
    job = replace(job, callback=None, journal=None)
    pairs = _neighbours(params, lost, _distances(model.crossed(params)))
    if not has_classes(compared(params.family)):
        return _grown(job, BorderModel(model, PairAxes.of(params, pairs)), params)
    apart = _apart_in_numbers(job, model, params, lost)
    pairs = pairs[same_categories(params, pairs)]
    if not len(pairs):
        return tree_of_classes(params, None, apart)
    look = BorderModel(model, PairAxes.of(params, pairs))
    return tree_of_classes(params, _grown(job, look, params, 0.0), apart)


def _grown(
    job: Job, look: BorderModel, params: Components, fewest: float | None = None
) -> ClusterTree:
    """The tree by valleys; `fewest` rows of a cluster, by default by the family."""
    crossed, family = look.model.crossed(params), compared(params.family)
    borders = sums_of(job, look, params)
    levels = np.log(np.maximum(params.N, 1e-300)) + np.diagonal(crossed)
    # The more columns there are, the more levels differ.
    bridges = Bridges(levels, _DEPTH * family.n_columns, _SHARE)
    if fewest is None:
        fewest = _fewest_rows(params.family)
    return grow_tree(borders, look.along.axes, _distances(crossed), bridges, fewest)


def _apart_in_numbers(
    job: Job, model: DPMixtureModel, params: Components, lost: Array
) -> ClusterTree | None:
    """The tree of the same components by the numbers alone.

    None where there are none, or nothing to tell apart, or where half a step from them
    is no such number: bits.
    """
    family = params.family
    if not isinstance(family, MixedFamily) or "number" not in family.groups:
        return None
    at = family.groups.index("number")
    part, columns, S = family.parts[at], family.where[at], family.split(params.S)[at]
    if not isinstance(part, _CONTINUOUS):
        return None
    model = replace(
        model, family=part, concentration=params.concentration, noise=None, others=None
    )
    params = replace(model.posterior(params.N, S, params.mass), plan=_EVERYONE)
    pairs = _neighbours(params, lost, _distances(model.crossed(params)))
    if not len(pairs):  # no pass over the rows for nothing
        return None
    # Drawn from all rows, as a file may be sorted by the very column.
    rng = np.random.default_rng(0)
    sample = draw(job.source, job.weights, _STEP_ROWS, rng).rows
    steps = np.sqrt(12.0 * resolutions(np.take(sample, columns, axis=1)))
    look = BorderModel(model, PairAxes.of(params, pairs), columns, steps)
    return _grown(job, look, params)


def _fewest_rows(family: Family) -> float:
    """Fewer rows than that do not span the columns of a full covariance."""
    if isinstance(family, TransformedFamily):
        return _fewest_rows(family.inner)
    full = isinstance(family, NormalWishartFamily)
    return family.n_columns + 1.0 if full else _FEWEST_ROWS


def tree_of_draws(job: Job, model: DPMixtureModel, params: Components) -> ClusterTree:
    """The same by rows drawn from the mixture, where those of the fit are gone."""
    most = min(_DRAWN_ROWS, _DRAWN_NUMBERS / params.family.n_columns)
    size = params.N / params.N.sum() * min(params.N.sum(), most)
    rng = np.random.default_rng(0)
    counts = np.maximum(1, np.round(size)).astype(np.int64)
    rows: Any = drawn_rows(params.family, params.N, params.S, counts, rng)
    params = replace(params, plan=_EVERYONE)
    weights = np.repeat(params.N / counts, counts)
    lost = model.share_out(params, rows, weights)[0].pairs
    job = job.on_sample(blocks_of(rows, _BLOCK_ROWS), weights, n_threads=1)
    return tree_of_rows(job, model, params, lost)


def _neighbours(params: Components, lost: Array, distances: Array) -> IntArray:
    """Pairs that may belong together: those that overlap, and the nearest of each.

    The components of a thin curve lie one after the other and hardly overlap.

    Components about one and the same mean never have a valley between them: they would
    all be one cluster, so that none are joined unless a number is asked for.
    """
    a, b = pair_index(params.K)
    if isinstance(params.family, ZeroMeanGaussianFamily):
        return np.empty((0, 2), np.int64)
    far = distances + np.diag(np.full(params.K, np.inf))
    nearest = np.argsort(far, axis=1, kind="stable")[:, :_NEIGHBOURS]
    near = np.zeros((params.K, params.K), bool)
    np.put_along_axis(near, nearest, True, axis=1)
    near |= near.T
    overlaps = lost >= _LEAST_ENTROPY * np.sqrt(params.N[a] * params.N[b])
    chosen = overlaps | near[a, b]
    return np.stack([a[chosen], b[chosen]], axis=1)


def _distances(crossed: Array) -> Array:
    """Nats by which a component describes its rows better than another does, (K, K)."""
    loss = np.diagonal(crossed)[:, None] - crossed
    return np.maximum(loss + loss.T, 0.0)
