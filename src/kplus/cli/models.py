"""The models of the command line, and what options mean to them."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.cli.console import CommandError
from kplus.cli.tables import Choice
from kplus.observations.names import NAMES
from kplus.sources.categories import Coding

__all__ = [
    "BUFFETS",
    "MODELS",
    "FitOptions",
    "accepted",
    "check_model",
    "feature_answers",
    "finds_features",
    "has_buffet",
    "has_probabilities",
    "make_model",
]

MODELS = {
    "dp-mixture": "DPMixture",
    "dp-means": "DPMeans",
    "craft": "CRAFT",
    "bp-means": "BPMeans",
    "k-features": "KFeatures",
    "meibp": "MEIBP",
    "ibp-gibbs": "IBPGibbs",
    "ibp-variational": "IBPVariational",
}
"""Names of the models on the command line, and their classes."""

BUFFETS = ("meibp", "ibp-gibbs", "ibp-variational")
"""Those with an Indian buffet process prior."""

_FEATURES = ("bp-means", "k-features", *BUFFETS)
_CRAFT_ONLY = ("numeric", "feature_fraction", "sharing")
_BUFFET_ONLY = ("negative", "prior", "noise_scale", "sweeps", "burn_in")
_NUMERIC = ("gaussian", "quantile", "yeo-johnson")


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
    negative: str | None
    prior: str | None
    noise_scale: float | None
    sweeps: int | None
    burn_in: int | None
    format: str
    seed: int
    restarts: int
    jobs: int | None
    max_iter: int | None
    plot: bool
    json: bool
    quiet: bool
    force: bool
    checkpoint: Path | None = None
    resume: bool = False
    memory_limit: str | None = None
    scratch: Path | None = None
    scheduler: str | None = None

    @property
    def groups(self) -> str:
        """What the model looks for, as options name it."""
        return "components" if self.model in _FEATURES else "clusters"

    @property
    def nonnegative(self) -> bool:
        """Whether the model confines features to values that are not negative."""
        by_default = "nonnegative" if self.model == "meibp" else "gaussian"
        prior = self.prior or by_default
        return self.model in BUFFETS and prior == "nonnegative"


def check_model(options: FitOptions) -> None:
    """Refuse options that the model cannot meet, whatever the data."""
    if options.model not in MODELS:
        raise CommandError(
            f"There is no model {options.model!r}; there are {', '.join(MODELS)}."
        )
    if options.model != "craft":
        _refuse_options(options, _CRAFT_ONLY, "craft")
    if options.model not in BUFFETS:
        _refuse_options(options, _BUFFET_ONLY, "meibp and its kin")
    if options.model == "craft":
        _check_craft(options)
    elif options.model == "dp-mixture":
        _check_dp_mixture(options)
    else:
        _check_numbers_only(options)
    if options.model in BUFFETS:
        _check_buffet(options)


def _refuse_options(options: FitOptions, names: tuple[str, ...], owner: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            option = name.replace("_", "-")
            raise CommandError(
                f"--{option} is for --model {owner}, not {options.model}."
            )


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


def _check_buffet(options: FitOptions) -> None:
    model, noise = options.model, options.noise_scale
    if options.penalty is not None or options.clusters is not None:
        given = "components" if options.penalty is None else "penalty"
        raise CommandError(
            f"--{given} is not for {model}, which finds the number of features itself; "
            f"--max-components limits it."
        )
    for name, known in (
        ("negative", ("error", "shift", "noise")),
        ("prior", ("nonnegative", "gaussian")),
    ):
        value = getattr(options, name)
        if value is not None and value not in known:
            option = name.replace("_", "-")
            raise CommandError(
                f"--{option} is one of {', '.join(known)}, not {value!r}."
            )
    if noise is not None and not (noise > 0 and math.isfinite(noise)):
        raise CommandError(f"--noise-scale must be a positive number, not {noise}.")
    if model == "ibp-variational" and options.prior is not None:
        raise CommandError(
            "--prior is for meibp and ibp-gibbs; the features of "
            "ibp-variational are of either sign."
        )
    if options.negative is not None and not options.nonnegative:
        raise CommandError(
            "--negative is for features that are not negative; those of this model are "
            "of either sign. Leave it out, or say --prior nonnegative to meibp "
            "or ibp-gibbs."
        )
    if options.scale and options.nonnegative and options.negative in (None, "error"):
        raise CommandError(
            "--scale takes off the means of the columns, and features are not "
            "negative: add --negative shift, or --prior gaussian."
        )
    _check_sweeps(options)


def _check_sweeps(options: FitOptions) -> None:
    if options.model != "ibp-gibbs":
        _refuse_options(options, ("sweeps", "burn_in"), "ibp-gibbs")
        return
    if options.sweeps is not None and options.sweeps < 1:
        raise CommandError(f"--sweeps must be at least 1, not {options.sweeps}.")
    if options.burn_in is not None and options.burn_in < 0:
        raise CommandError(f"--burn-in must be at least 0, not {options.burn_in}.")
    if options.max_iter is not None:
        raise CommandError("--max-iter is not for ibp-gibbs; it has --sweeps.")
    if options.restarts != 1 or options.jobs is not None:
        option = "jobs" if options.restarts == 1 else "restarts"
        raise CommandError(
            f"--{option} is not for ibp-gibbs, which runs one chain; for another one, "
            f"run it again with another --seed."
        )


def _check_dp_mixture(options: FitOptions) -> None:
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
    if options.scale and kind is not None and NAMES[kind].coded:
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
    values = NAMES[options.observations or "mixed"].values
    return values if values in ("mixed", "categories") else "numbers"


def make_model(options: FitOptions, coding: Coding | None) -> Any:
    """The estimator that the options ask for, with or without categories."""
    if options.model == "dp-mixture":
        model = _mixture(options, coding)
    elif options.model in BUFFETS:
        model = _buffet(options)
    else:
        model = _with_penalty(options)
    model.set_params(random_state=options.seed)
    if options.model != "ibp-gibbs":  # one chain has neither starts nor threads
        model.set_params(n_init=options.restarts, n_jobs=options.jobs)
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


def _buffet(options: FitOptions) -> Any:
    """A model with an Indian buffet process prior."""
    import kplus

    shared: dict[str, Any] = {"max_components": options.max_clusters}
    if options.noise_scale is not None:
        shared["noise_scale"] = options.noise_scale
    if options.model == "ibp-variational":
        return kplus.IBPVariational(**shared)
    if options.negative is not None:
        shared["negative"] = options.negative
    if options.model == "meibp":
        if options.prior is not None:
            shared["prior"] = options.prior
        return kplus.MEIBP(**shared)
    if options.nonnegative:  # only this sampler has factors that can be kept so
        shared |= {"prior": "nonnegative", "sampler": "uncollapsed"}
    if options.sweeps is not None:
        shared["n_samples"] = options.sweeps
    if options.burn_in is not None:
        shared["burn_in"] = options.burn_in
    return kplus.IBPGibbs(**shared)


def has_buffet(model: Any) -> bool:
    """Whether a model has an Indian buffet process prior."""
    from kplus.estimators._ibp import BuffetFeatures

    return isinstance(model, BuffetFeatures)


def finds_features(model: Any) -> bool:
    """Whether rows of a model have features; else they are in clusters."""
    import kplus

    return has_buffet(model) or isinstance(model, kplus.BPMeans | kplus.KFeatures)


def has_probabilities(model: Any) -> bool:
    """Whether `transform` gives probabilities of features, not zeros and ones."""
    import kplus

    return has_buffet(model) and not isinstance(model, kplus.MEIBP)


def feature_answers(model: Any, X: Any) -> dict[str, NDArray[Any]]:
    """Which features each row has, as zeros and ones; probabilities if there are."""
    Z = model.transform(X)
    if getattr(model, "sparse_output", False):  # such a model was saved in Python
        Z = Z.toarray()
    answers = {"features": np.asarray(Z > 0.5, dtype=np.uint8)}
    return answers | {"probabilities": Z} if has_probabilities(model) else answers
