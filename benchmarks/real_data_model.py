"""Data drawn from the model itself, with a known prior: is all of it found again?

Finite mixtures whose components are drawn from the prior of a family. Where the true
model would mistake less than 2 % of the rows, the number of components should be found;
and the prior that is learned should be the one that was used, up to what the drawn
components leave open.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from kplus import DPMixture
from kplus.dp_mixture.families.family import Columns
from kplus.observations import Categorical, DiagGaussian, Gaussian, Poisson
from report import CaseResult, Check, Row

MANY, ROWS_EACH = 160, 200  # components whose rows are known
MOST_STEPS = 300  # of learning
MOST_ERROR = 0.02  # share of rows that the true model mistakes
STRENGTH, FURTHER = 0.02, 6.0  # of the means; degrees of freedom beyond the columns'
LEVELS, PSEUDO_COUNT = 4, 0.3
SHAPE, RATE = 1.0, 0.05


class Drawn(NamedTuple):
    """Parameters of components: how rows are drawn, and their log densities."""

    draw: Callable[[np.ndarray], np.ndarray]
    log_densities: Callable[[np.ndarray], np.ndarray]
    used: dict[str, float]


@dataclass(frozen=True)
class Kind:
    """A family with a known prior."""

    observations: Any
    columns: tuple[int, int]
    components: Callable[[int, int, np.random.Generator], Drawn]
    learned: Callable[[Any], dict[str, float]]


def gaussian(K: int, D: int, rng: np.random.Generator) -> Drawn:
    """Λ ~ Wishart(ν0, I/ν0), μ | Λ ~ Normal(0, (κ0 Λ)⁻¹)."""
    dof = D + FURTHER
    precisions = stats.wishart(dof, np.eye(D) / dof).rvs(K, random_state=rng)
    covariances = np.linalg.inv(precisions.reshape(K, D, D))
    means = np.array(
        [rng.multivariate_normal(np.zeros(D), C / STRENGTH) for C in covariances]
    )
    roots = np.linalg.cholesky(covariances)
    components = [
        stats.multivariate_normal(m, C) for m, C in zip(means, covariances, strict=True)
    ]

    def draw(z: np.ndarray) -> np.ndarray:
        noise = rng.normal(size=(len(z), D))
        return means[z] + np.einsum("nij,nj->ni", roots[z], noise)

    def log_densities(X: np.ndarray) -> np.ndarray:
        return np.stack([component.logpdf(X) for component in components], axis=1)

    used = {"variance": 1.0, "dof": dof, "mean strength": STRENGTH}
    return Drawn(draw, log_densities, used)


def diagonal(K: int, D: int, rng: np.random.Generator) -> Drawn:
    """λ ~ Gamma(ν0/2, ν0/2) in each column, μ | λ ~ Normal(0, 1/(κ0 λ))."""
    dof = 1.0 + FURTHER
    deviations = rng.gamma(dof / 2, 2 / dof, (K, D)) ** -0.5
    means = rng.normal(0.0, deviations / np.sqrt(STRENGTH))

    def draw(z: np.ndarray) -> np.ndarray:
        return rng.normal(means[z], deviations[z])

    def log_densities(X: np.ndarray) -> np.ndarray:
        return stats.norm.logpdf(X[:, None], means, deviations).sum(axis=2)

    used = {"variance": 1.0, "dof": dof, "mean strength": STRENGTH}
    return Drawn(draw, log_densities, used)


def categories(K: int, D: int, rng: np.random.Generator) -> Drawn:
    shares = rng.dirichlet(np.full(LEVELS, PSEUDO_COUNT), (K, D))

    def draw(z: np.ndarray) -> np.ndarray:
        steps = np.cumsum(shares[z], axis=2)[:, :, :-1]
        return (rng.random((len(z), D, 1)) > steps).sum(axis=2).astype(float)

    def log_densities(X: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            logs = np.log(shares)
        parts = [logs[:, d, X[:, d].astype(int)] for d in range(D)]
        return np.sum(parts, axis=0).T

    return Drawn(draw, log_densities, {"pseudo-count": PSEUDO_COUNT})


def counts(K: int, D: int, rng: np.random.Generator) -> Drawn:
    rates = rng.gamma(SHAPE, 1.0 / RATE, (K, D))

    def draw(z: np.ndarray) -> np.ndarray:
        return rng.poisson(rates[z]).astype(float)

    def log_densities(X: np.ndarray) -> np.ndarray:
        return stats.poisson.logpmf(X[:, None], rates).sum(axis=2)

    return Drawn(draw, log_densities, {"shape": SHAPE, "rate": RATE})


def learned_gaussian(family: Any) -> dict[str, float]:
    """In the units of the data; of several columns the geometric mean."""
    variances = np.diag(family.scatter) / (family.dof * family.inv**2)
    return _means(variances, family.dof, family.mean_strength)


def learned_diagonal(family: Any) -> dict[str, float]:
    variances = family.scatter / (family.dof * family.inv**2)
    return _means(variances, family.dof, family.mean_strength)


def _means(variances: Any, dof: Any, strength: Any) -> dict[str, float]:
    values = {"variance": variances, "dof": dof, "mean strength": strength}
    return {name: geometric_mean(value) for name, value in values.items()}


def geometric_mean(values: Any) -> float:
    return float(np.exp(np.mean(np.log(values))))


KINDS = {
    "gaussian": Kind(Gaussian(), (2, 8), gaussian, learned_gaussian),
    "diag_gaussian": Kind(DiagGaussian(), (2, 8), diagonal, learned_diagonal),
    "categorical": Kind(
        Categorical(),
        (8, 20),
        categories,
        lambda family: {"pseudo-count": geometric_mean(family.pseudo_counts)},
    ),
    "poisson": Kind(
        Poisson(),
        (3, 8),
        counts,
        lambda family: {
            "shape": geometric_mean(family.shape),
            "rate": geometric_mean(family.rate),
        },
    ),
}


@dataclass(frozen=True)
class Found:
    """One draw and its fit."""

    K: int
    components: int
    clusters: int
    log_ratios: dict[str, float]  # learned against used


def clear_draw(kind: Kind, seed: int) -> tuple[np.ndarray, np.ndarray, Drawn]:
    """The first of some draws that the true model would mistake little of."""
    rng = np.random.default_rng(seed)
    while True:
        K, n = int(rng.integers(3, 16)), int(rng.integers(500, 3001))
        D = int(rng.integers(kind.columns[0], kind.columns[1] + 1))
        parts = kind.components(K, D, rng)
        weights = rng.dirichlet(np.full(K, 5.0))
        z = rng.choice(K, n, p=weights)
        if len(np.unique(z)) < K:
            continue
        X = parts.draw(z)
        logs = parts.log_densities(X) + np.log(weights)
        sure = np.exp(logs.max(axis=1) - logsumexp(logs, axis=1))
        if 1.0 - sure.mean() < MOST_ERROR:
            return X, z, parts


def fitted(kind: Kind, seed: int) -> Found:
    X, z, parts = clear_draw(kind, seed)
    rows = X.astype(int) if isinstance(kind.observations, Categorical) else X
    model = DPMixture(kind.observations, random_state=seed).fit(rows)
    learned = kind.learned(model.observations_)
    ratios = {
        name: float(np.log(learned[name] / used)) for name, used in parts.used.items()
    }
    K = len(np.unique(z))
    return Found(K, model.n_components_, model.n_clusters_, ratios)


def learned_from_truth(kind: Kind, K: int, seed: int) -> dict[str, float]:
    """Log ratios where the component of every row is known, and components are many."""
    rng = np.random.default_rng(seed)
    D = kind.columns[1]
    parts = kind.components(K, D, rng)
    X = parts.draw(np.repeat(np.arange(K), ROWS_EACH))
    categorical = isinstance(kind.observations, Categorical)
    names = tuple(f"column {d}" for d in range(D))
    columns = Columns(names, (LEVELS if categorical else None,) * D)
    family = kind.observations.resolve(X, None, columns)
    S = np.add.reduceat(family.features(X), np.arange(0, len(X), ROWS_EACH), axis=0)
    for _ in range(MOST_STEPS):
        higher = family.learned(np.full(K, float(ROWS_EACH)), S)
        if higher is family:
            break
        family = higher
    learned = kind.learned(family)
    return {name: float(np.log(learned[name] / u)) for name, u in parts.used.items()}


def case_model(draws: int) -> CaseResult:
    """Numbers of components and clusters, and learned priors, of drawn mixtures."""
    rows: list[Row] = []
    checks: list[Check] = []
    for name, kind in KINDS.items():
        found = [fitted(kind, seed) for seed in range(draws)]
        numbers: Row = {
            "family": name,
            "draws": draws,
            "components right": sum(each.components == each.K for each in found),
            "clusters right": sum(each.clusters == each.K for each in found),
        }
        for what in ("components", "clusters"):
            n_right = numbers[f"{what} right"]
            target = f"{name}: number of {what} right in 90 %"
            checks.append(
                Check(target, f"{n_right} of {draws}", n_right >= 0.9 * draws)
            )
        known = [learned_from_truth(kind, MANY, seed) for seed in range(draws)]
        for setting in known[0]:
            fits = [each.log_ratios[setting] for each in found]
            truth = [each[setting] for each in known]
            rows.append(
                numbers
                | {"prior's": setting, "log ratio, fits": shown(fits)}
                | {f"log ratio, {MANY} known components": shown(truth)}
            )
            for where, logs in (("fits", fits), ("known components", truth)):
                target = f"{name}, {where}: {setting} within two standard errors"
                fine = abs(np.mean(logs)) <= 2.0 * standard_error(logs)
                checks.append(Check(target, shown(logs), bool(fine)))
    notes = [
        f"K from 3 to 15, 500 to 3,000 rows, and only draws of which the true model "
        f"mistakes less than {MOST_ERROR:.0%}. Log ratios are of the learned prior to "
        f"that used, mean over draws ± standard error. Hyperpriors are worth about one "
        f"component: their pull falls with the number of components."
    ]
    return CaseResult("Mixtures drawn from the model", rows, checks, notes)


def standard_error(logs: list[float]) -> float:
    return float(np.std(logs, ddof=1) / np.sqrt(len(logs)))


def shown(logs: list[float]) -> str:
    return f"{np.mean(logs):.3f} ± {standard_error(logs):.3f}"
