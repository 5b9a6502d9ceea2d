"""Whether rows have a valley between two components, by histograms on an axis."""

import numpy as np
from scipy.special import expit, ndtr

from kplus.core.types import Array, IntArray
from kplus.tree.borders import N_BINS, Axes
from kplus.tree.kernels import one_mode

__all__ = ["gaussian_evidence", "probability_smooth", "valley_evidence"]

# What the two kinds of evidence say of two components: fitted as a logistic regression
# to pairs of which it is known whether they are of one group, then rounded.
_BEFORE = 1.3  # log-odds for none before the rows are seen, if there is one pair only
_PER_LOG_PAIR = 1.0
_MOST_PAIRS = 30.0  # more that have no valley say no more of another one
_PER_ROOT_VALLEY = 1.0
_PER_ROOT_GAUSSIAN = 0.5
_MOST_AGAINST = 6.0  # nats that rows of another shape may tell against a valley
_N_ITER = 30


def valley_evidence(counts: Array, first: IntArray, last: IntArray) -> Array:
    """Log-likelihood ratio of two modes against one, in nats, for each histogram.

    Counts are Poisson. The rates of one mode rise and then fall; those of two do so on
    either side of a valley. Both are fitted by isotonic regression, so that nothing is
    assumed but the order of the rates. Where the true rates are even, which is the
    hardest case of one mode, about 5 nats come up by chance in one of ten histograms,
    whatever the number of rows, and x nats more in a share of exp(-1.3 x) of these.

    Parameters
    ----------
    counts : (n_pairs, n_bins)
        Nonnegative, not necessarily whole numbers.
    first, last : (n_pairs,)
        Between which bins the valley may lie.
    """
    rising, falling = _one_mode(counts), _one_mode(counts[:, ::-1])[:, ::-1]
    both = rising + falling  # with the valley before each bin
    bins = np.arange(both.shape[1])
    between = (bins >= first[:, None]) & (bins <= last[:, None])
    two = np.max(np.where(between, both, -np.inf), axis=1)
    out: Array = np.maximum(two - rising[:, -1], 0.0)
    return out


def gaussian_evidence(counts: Array, axes: Axes, sizes: Array) -> Array:
    """Log-likelihood ratio of two Gaussians against one mode, in nats, between centres.

    The Gaussians are where the two components lie on the axis, in proportion to their
    sizes (n_pairs, 2). A curve of even density that takes several components has more
    rows between these than they say; for groups that are apart they are right, and one
    mode is not.
    """
    first, last = axes.between()
    edges = axes.low[:, None] + np.outer(
        axes.high - axes.low, np.arange(N_BINS + 1.0) / N_BINS
    )
    bins = np.arange(N_BINS)
    between = (bins >= first[:, None]) & (bins <= last[:, None])
    out = np.zeros(len(counts))
    with np.errstate(all="ignore"):
        places = (edges[:, None] - axes.centers[..., None]) / axes.spreads[..., None]
        rates = np.sum(sizes[..., None] * np.diff(ndtr(places), axis=2), axis=1)
    rates = np.where(between, np.maximum(np.nan_to_num(rates), 1e-300), 0.0)
    some = np.where(between, counts, 0.0)
    total = some.sum(axis=1)
    rates *= (total / np.maximum(rates.sum(axis=1), 1e-300))[:, None]
    two = np.sum(some * np.log(np.maximum(rates, 1e-300)), axis=1) - total
    for p in np.flatnonzero(total > 0.0):
        out[p] = two[p] - _one_mode(some[p : p + 1, between[p]])[0, -1]
    return out


def probability_smooth(valley: Array, gaussian: Array, overlaps: Array) -> Array:
    """Probability that there is no valley, for each pair, from both kinds of evidence.

    In a table of long curves most pairs of neighbours have none, in one of round groups
    nearly all have one: so the odds before the rows are seen grow with the number of
    pairs that have none, by a few fixed-point steps.

    Parameters
    ----------
    valley, gaussian : (n_pairs,)
        See `valley_evidence` and `gaussian_evidence`, in nats.
    overlaps : bool array of shape (n_pairs,)
        Pairs that overlap enough to be counted.
    """
    gaussian = np.maximum(gaussian, -_MOST_AGAINST)
    odds = _BEFORE - _PER_ROOT_VALLEY * np.sqrt(valley)
    odds -= _PER_ROOT_GAUSSIAN * np.sign(gaussian) * np.sqrt(np.abs(gaussian))
    n_smooth = float(np.count_nonzero(overlaps))
    for _ in range(_N_ITER):
        prior = _PER_LOG_PAIR * np.log(np.clip(n_smooth, 1.0, _MOST_PAIRS))
        n_smooth = float(expit(odds[overlaps] + prior).sum())
    out: Array = expit(odds + prior)
    return out


def _one_mode(counts: Array) -> Array:
    """Log-likelihood of one mode in the first b counts of each row, b = 0, ..., n."""
    out = np.empty((len(counts), counts.shape[1] + 1))
    one_mode(np.ascontiguousarray(counts), out)
    return out
