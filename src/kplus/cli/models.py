"""The models of the command line, and what options mean to them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.cli.console import CommandError
from kplus.cli.tables import Choice
from kplus.engine.categories import Coding

__all__ = [
    "MODELS",
    "FitOptions",
    "accepted",
    "check_model",
    "feature_bits",
    "finds_features",
    "make_model",
]

MODELS = {
    "dp-mixture": "DPMixture",
    "dp-means": "DPMeans",
    "craft": "CRAFT",
    "bp-means": "BPMeans",
    "k-features": "KFeatures",
}
"""Names of the models on the command line, and their classes."""

_FEATURES = ("bp-means", "k-features")
_NUMERIC = ("gaussian", "quantile", "yeo-johnson")
_COUNTED = ("bernoulli", "categorical", "poisson", "multinomial")


@dataclass(frozen=True)
class FitOptions:
    """What the user asked for; the help of ``kplus fit`` tells what it means."""

    data: Path
    outdir: Path
    model: str
    observations: str | None
    penalty: float | None
    clusters: int | None
    max_clusters: int | None
    choice: Choice
    categorical: tuple[str, ...]
    scale: bool
    numeric: str | None
    feature_fraction: float | None
    sharing: float | None
    format: str
    seed: int
    restarts: int
    jobs: int | None
    max_iter: int | None
    plot: bool
    json: bool
    quiet: bool
    force: bool

    @property
    def groups(self) -> str:
        """What the model looks for, as options name it."""
        return "components" if self.model in _FEATURES else "clusters"


def check_model(options: FitOptions) -> None:
    """Refuse options that the model cannot meet, whatever the data."""
    if options.model not in MODELS:
        raise CommandError(
            f"There is no model {options.model!r}; there are {', '.join(MODELS)}."
        )
    if options.model == "craft":
        _check_craft(options)
        return
    for name in ("numeric", "feature_fraction", "sharing"):
        if getattr(options, name) is not None:
            option = name.replace("_", "-")
            raise CommandError(f"--{option} is for --model craft, not {options.model}.")
    if options.model == "dp-mixture":
        _check_dp_mixture(options)
    else:
        _check_numbers_only(options)


def _check_craft(options: FitOptions) -> None:
    m, sharing, numeric = options.feature_fraction, options.sharing, options.numeric
    if options.observations is not None:
        raise CommandError(
            "--observations is for dp-mixture; craft has --numeric for columns of "
            "numbers."
        )
    if options.scale:
        raise CommandError(
            "--scale is not for craft, which takes columns of any units as they are; "
            "leave it out."
        )
    if m is not None and not 0.0 < m <= 1.0:
        raise CommandError(f"--feature-fraction must be above 0 and up to 1, not {m}.")
    if sharing is not None and not 0.0 <= sharing <= 1.0:
        raise CommandError(f"--sharing must lie in 0 ... 1, not {sharing}.")
    if numeric is not None and numeric not in _NUMERIC:
        raise CommandError(
            f"--numeric is one of {', '.join(_NUMERIC)}, not {numeric!r}."
        )


def _check_numbers_only(options: FitOptions) -> None:
    model = options.model
    if options.observations is not None:
        raise CommandError(f"--observations is for dp-mixture; {model} has none.")
    if options.categorical:
        raise CommandError(
            f"{model} takes numbers, not categories such as "
            f"{options.categorical[0]!r}. Say --model dp-mixture or craft, or leave "
            f"such columns out with --drop."
        )


def _check_dp_mixture(options: FitOptions) -> None:
    from kplus.observations.names import NAMES

    kind = options.observations
    if options.penalty is not None:
        raise CommandError(
            "--penalty is for --model dp-means, craft, bp-means and k-features; "
            "dp-mixture finds the number by itself."
        )
    if kind is not None and kind not in NAMES:
        raise CommandError(
            f"There are no observations {kind!r}; there are {', '.join(NAMES)}."
        )
    if options.categorical and kind not in (None, "mixed", "categorical"):
        raise CommandError(
            f"--observations {kind} takes numbers, not categories such as "
            f"{options.categorical[0]!r}; say --observations mixed."
        )
    if options.scale and kind in _COUNTED:
        raise CommandError(
            f"--scale would turn the values into other numbers than --observations "
            f"{kind} takes; leave it out."
        )


def accepted(options: FitOptions) -> str:
    """What columns may hold: "numbers", "mixed" or "categories"."""
    if options.model == "craft":
        return "mixed"
    if options.model != "dp-mixture":
        return "numbers"
    kinds = {None: "mixed", "mixed": "mixed", "categorical": "categories"}
    return kinds.get(options.observations, "numbers")


def make_model(options: FitOptions, coding: Coding | None) -> Any:
    """The estimator that the options ask for, with or without categories."""
    if options.model == "dp-mixture":
        model = _mixture(options, coding)
    else:
        model = _with_penalty(options)
    model.set_params(
        n_init=options.restarts, n_jobs=options.jobs, random_state=options.seed
    )
    if options.max_iter is not None:
        model.set_params(max_iter=options.max_iter)
    return model


def _mixture(options: FitOptions, coding: Coding | None) -> Any:
    import kplus

    by_default = "gaussian" if coding is None else "mixed"
    model = kplus.DPMixture(
        options.observations or by_default, max_components=options.max_clusters
    )
    if options.clusters is not None:
        model.set_params(n_components=options.clusters, moves=())
    return model


def _with_penalty(options: FitOptions) -> Any:
    """A model that charges for each cluster or feature."""
    import kplus

    penalty = "auto" if options.penalty is None else options.penalty
    wished, most = options.clusters, options.max_clusters
    if options.model == "dp-means":
        return kplus.DPMeans(penalty=penalty, n_clusters=wished, max_clusters=most)
    if options.model == "craft":
        return kplus.CRAFT(
            options.feature_fraction,
            penalty=penalty,
            n_clusters=wished,
            max_clusters=most,
            sharing=options.sharing or 0.0,
            numeric=options.numeric or "gaussian",
        )
    finder = kplus.BPMeans if options.model == "bp-means" else kplus.KFeatures
    return finder(penalty=penalty, n_components=wished, max_components=most)


def finds_features(model: Any) -> bool:
    """Whether rows of a model have features; else they are in clusters."""
    import kplus

    return isinstance(model, kplus.BPMeans | kplus.KFeatures)


def feature_bits(model: Any, X: Any) -> NDArray[np.uint8]:
    """The features of each row, as zeros and ones."""
    Z = model.transform(X)
    if model.sparse_output:  # such a model was saved in Python
        Z = Z.toarray()
    return np.asarray(Z, dtype=np.uint8)
