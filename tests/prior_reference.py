"""What is learned of a prior as a vector of free numbers, and what a prior is worth."""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

_POSITIVE = {  # families with two parameters of each column, or pseudo-counts
    "BernoulliFamily": ("ones", "zeros"),
    "CategoricalFamily": ("pseudo_counts",),
    "MultinomialFamily": ("pseudo_counts",),
    "PoissonFamily": ("shape", "rate"),
    "NegativeBinomialFamily": ("rows", "counts"),
}


def worth(family, N, S):
    """What learning must not lower: the evidence and the hyperprior."""
    return float(family.evidence(N, S).sum()) + family.log_hyperprior


def converged(family, N, S, calls=200):
    """After many steps."""
    for _ in range(calls):
        new = family.learned(N, S)
        if new is family:
            break
        family = new
    return family


def parts_of(family, S):
    """The families of a mixed table with their sums; else the family itself."""
    if hasattr(family, "inner"):
        return parts_of(family.inner, S)
    if not hasattr(family, "parts"):
        return [(family, S)]
    stops = np.cumsum([part.n_stats for part in family.parts])[:-1]
    return list(zip(family.parts, np.split(S, stops, axis=1), strict=True))


def is_wishart(family):
    return type(family).__name__ in ("GaussianFamily", "ZeroMeanGaussianFamily")


def least_dof(family):
    return family.n_columns + 2.0 if is_wishart(family) else 3.0


def _variance_free(family):
    return "covariance" in family.learns or "variance" in family.learns


class Free:
    """The learned parameters of a prior as numbers without bounds, and back.

    Where the variance is given, E[Σ] is: the scatter follows the degrees of freedom.
    """

    def __init__(self, family):
        self.family, self.D = family, family.n_columns
        name = type(family).__name__
        self.names = _POSITIVE.get(name)
        if self.names is None:
            self.learns = family.learns
            self.less = 0.0
            if not _variance_free(family):
                self.less = self.D + 1.0 if is_wishart(family) else 2.0
            unit = np.asarray(family.dof) - self.less
            self.unit = family.scatter / unit

    def pack(self):
        f = self.family
        if self.names is not None:
            return np.log(np.concatenate([getattr(f, name) for name in self.names]))
        out = []
        if "dof" in self.learns:  # a number just above the least is the least
            out.append(np.log(np.ravel(f.dof) - least_dof(f) + 1.0))
        if "covariance" in self.learns:
            L = np.linalg.cholesky(f.scatter / f.dof)
            out += [np.log(np.diag(L)), (L / np.diag(L))[np.tril_indices(self.D, -1)]]
        if "variance" in self.learns:
            out.append(np.log(np.ravel(f.scatter / f.dof)))
        if "mean" in self.learns:
            out.append(np.ravel(f.mean))
        if "mean_strength" in self.learns:
            out.append(np.log(np.ravel(f.mean_strength)))
        return np.concatenate(out)

    def unpack(self, x):
        f, D = self.family, self.D
        if self.names is not None:
            parts = np.split(np.exp(x), len(self.names))
            return replace(f, **dict(zip(self.names, parts, strict=True)))
        taken = iter(x)

        def take(like):
            values = np.array([next(taken) for _ in range(np.size(like))])
            return values.reshape(np.shape(like))

        dof = f.dof
        if "dof" in self.learns:
            dof = least_dof(f) - 1.0 + np.exp(np.maximum(take(f.dof), 0.0))
            dof = float(dof) if is_wishart(f) else dof
        changes = {"dof": dof, "scatter": self.unit * (dof - self.less)}
        if "covariance" in self.learns:
            L = np.diag(np.exp(take(np.ones(D))))
            below = np.tril_indices(D, -1)
            L[below] = take(np.ones(len(below[0]))) * np.diag(L)[below[1]]
            changes["scatter"] = dof * L @ L.T
        if "variance" in self.learns:
            changes["scatter"] = dof * np.exp(take(f.scatter))
        if "mean" in self.learns:
            changes["mean"] = take(f.mean)
        if "mean_strength" in self.learns:
            strength = np.exp(take(f.mean_strength))
            changes["mean_strength"] = float(strength) if is_wishart(f) else strength
        return replace(f, **changes)


def best_found(family, N, S):
    """The most that a general optimiser makes of a prior, from here on."""
    free = Free(family)
    start = free.pack()
    found = minimize(
        lambda x: -worth(free.unpack(x), N, S), start, method="L-BFGS-B",
        bounds=[(v - 2.0, v + 2.0) for v in start],
    )  # fmt: skip
    return max(-found.fun, worth(family, N, S))
