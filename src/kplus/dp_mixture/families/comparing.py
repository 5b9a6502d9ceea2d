"""Bounds of different families, made comparable.

A bound has the log density of what is learned at its best value, up to a constant.
Families differ in that constant and in how many numbers they learn, and the best value
of many numbers says more than it is worth. What compares is the average over the
hyperprior, here by Laplace's approximation: the density at the best value, constant
included, times the room that the rows leave around it.
"""

from typing import Any

import numpy as np
from scipy.special import polygamma

from kplus.core.types import Array
from kplus.dp_mixture.families.gaps import LOG_2PI
from kplus.dp_mixture.families.inner import InnerFamily
from kplus.dp_mixture.families.learning import EMPTY
from kplus.dp_mixture.families.mixed import MixedFamily
from kplus.dp_mixture.families.normal_gamma import NormalGammaFamily
from kplus.dp_mixture.families.normal_wishart import NormalWishartFamily
from kplus.dp_mixture.families.student_t import StudentTFamily, log_prior_at_mode
from kplus.dp_mixture.families.wishart_learning import log_gammas

__all__ = ["averaged"]


def averaged(family: Any, N: Array, S: Array) -> float:
    """What to add to the bound of components with these sums, in nats.

    For variances, degrees of freedom and tails; the means' prior is about the same in
    all families of numbers. 0 for families that have no rivals, or nothing learned.
    """
    if isinstance(family, MixedFamily):
        pairs = zip(family.parts, family.split(S), strict=True)
        return sum(averaged(part, N, own) for part, own in pairs)
    if isinstance(family, InnerFamily):
        return averaged(family.inner, N, S)
    out, some = 0.0, N > EMPTY
    if isinstance(family, NormalWishartFamily):
        D = family.n_columns
        if "covariance" in family.learns:
            out += _of_matrix(D, D + 2.0, _worth(family.dof, N[some]))
        if "dof" in family.learns:
            out += _of_dof(family.dof, D + 2.0, D * (D + 1) // 2, some.sum())
    if isinstance(family, NormalGammaFamily):
        out += _of_columns(family, S[some])
    if isinstance(family, StudentTFamily) and family.tail_dof is None:
        out += _of_tails(N[some], family.tails(N[some], S[some]))
    return out


def _worth(dof: Array | float, n: Array) -> Array:
    """How many rows of a known covariance those of components with n rows are worth."""
    out: Array = np.sum(dof * n / (dof + n), axis=0)
    return out


def _of_matrix(D: int, weight: float, worth: Any) -> float:
    """Of a D × D matrix whose hyperprior counts for `weight` rows.

    In units of the best matrix the log density falls with (h + w)/4 tr X².
    """
    constant = 0.5 * D * weight * np.log(0.5 * weight)
    constant -= log_gammas(np.array(weight), D) + 0.25 * D * (D - 1) * np.log(np.pi)
    total, off = weight + worth, D * (D - 1) // 2
    room = 0.5 * (D + off) * LOG_2PI - 0.5 * (
        D * np.log(0.5 * total) + off * np.log(total)
    )
    return float(constant + room)


def _of_dof(dof: float, least: float, n_entries: int, K: int) -> float:
    """Of ν0 with density least/ν0²: its logarithm is told by K times `n_entries`."""
    room = 0.5 * (LOG_2PI - np.log(0.5 * (1.0 + K * n_entries)))
    return float(np.log(least * dof) + room)


def _of_columns(family: NormalGammaFamily, S: Array) -> float:
    """Columns with variances, and ν0, of their own, or with one for all."""
    seen = family._pooled(S[:, : family.n_columns])
    dofs = family.dof * np.ones(seen.shape[1])
    out = 0.0
    for c, dof in enumerate(dofs):
        n = seen[seen[:, c] > EMPTY, c]
        if "variance" in family.learns:
            out += _of_matrix(1, family._weight, _worth(dof, n))
        if "dof" in family.learns:
            out += _of_dof(float(dof), family._least_dof, 1, len(n))
    return out


def _of_tails(N: Array, tails: Array) -> float:
    """Of τ of components: the curvature is that of the bound, scales as they are."""
    curved = 0.5 * N * (0.5 * tails**2 * polygamma(1, 0.5 * tails) - tails) + 1.0
    each = log_prior_at_mode() + np.log(tails) + 0.5 * (LOG_2PI - np.log(curved))
    return float(each.sum())
