"""The models of the command line: one table, and estimators from options."""

import re
from collections.abc import Mapping
from inspect import signature
from typing import Any, NamedTuple

from kplus.base.parameters import allowed_values, parameter_docs
from kplus.cli.console import CommandError
from kplus.cli.options import FITTED, PARAMETERS, Options
from kplus.dp_mixture.families import AUTO, NAMES

__all__ = [
    "MODELS",
    "Model",
    "accepted",
    "make_model",
    "model_of",
    "option_help",
]


class Model(NamedTuple):
    """A model of the command line."""

    estimator: str  # name of the class
    results: str  # module and class that say what was found
    finds: str = "clusters"  # or "features"
    accepts: str = "numbers"  # what columns may hold; or "mixed"
    probabilities: bool = False  # whether `transform` gives them, not zeros and ones
    instead: Mapping[str, str] = {}  # what to say about options that it does not have

    @property
    def main(self) -> str:
        """What is said of each row: the stem of its file, and its name in JSON."""
        return "labels" if self.finds == "clusters" else "features"

    @property
    def groups(self) -> str:
        """What it finds, as parameters and options name it."""
        return "clusters" if self.finds == "clusters" else "components"

    def flag(self, option: str) -> str:
        """An option as it is written for this model."""
        return f"--{option.replace('clusters', self.groups).replace('_', '-')}"


_ITSELF = dict.fromkeys(
    ("penalty", "clusters"),
    ", which finds the number of features itself; --max-components limits it",
)
_SIGNS = dict.fromkeys(("prior", "negative"), ", whose features are of either sign")
_CHAIN = dict.fromkeys(
    ("restarts", "jobs"),
    ", which runs one chain; for another one, run it again with another --seed",
)

MODELS = {
    "dp-mixture": Model("DPMixture", "clusters:Clusters", accepts="mixed"),
    "dp-means": Model("DPMeans", "clusters:Clusters"),
    "craft": Model(
        "CRAFT",
        "clusters:DescribedClusters",
        accepts="mixed",
        instead={
            "observations": ", which has --numeric for columns of numbers",
            "scale": ", which takes columns of any units as they are; leave it out",
        },
    ),
    "bp-means": Model("BPMeans", "features:Features", "features"),
    "k-features": Model("KFeatures", "features:Features", "features"),
    "meibp": Model("MEIBP", "features:IBPFeatures", "features", instead=_ITSELF),
    "ibp-gibbs": Model(
        "IBPGibbs",
        "features:IBPFeatures",
        "features",
        probabilities=True,
        instead=_ITSELF | _CHAIN | {"max_iter": ", which has --sweeps"},
    ),
    "ibp-variational": Model(
        "IBPVariational",
        "features:IBPFeatures",
        "features",
        probabilities=True,
        instead=_ITSELF | _SIGNS,
    ),
}

_EXCLUSIVE = (
    ("penalty", "clusters"),
    ("clusters", "max_clusters"),
    ("penalty", "cells"),
    ("max_clusters", "cells"),
)


def option_help() -> dict[str, str]:
    """Help for each option of `FITTED`: few models by name, then what it is."""
    docs = {name: parameter_docs(model.estimator) for name, model in MODELS.items()}
    texts = {}
    for option, (_, _, text, *_) in FITTED.items():
        of_models = {
            model: parameters[name]
            for model, parameters in docs.items()
            for name in PARAMETERS.get(option, (option,))
            if name in parameters
        }
        kind, sentence = next(iter(of_models.values()))
        if kind.startswith("{"):
            choices = re.findall(r'"([^"]*)"', kind.partition("}")[0])
            sentence += f" One of {', '.join(choices)}."
        owners = f"{', '.join(of_models)}: " if len(of_models) <= 2 else ""
        texts[option] = owners + (text or sentence)
    return texts


def model_of(estimator: Any) -> Model:
    """What the table says of an estimator."""
    name = type(estimator).__name__
    return next(model for model in MODELS.values() if model.estimator == name)


def make_model(options: Options) -> Any:
    """The estimator that the options ask for; refuses those that it does not take."""
    import kplus

    if options.model not in MODELS:
        raise CommandError(
            f"There is no model {options.model!r}; there are {', '.join(MODELS)}."
        )
    model, given = MODELS[options.model], vars(options)
    _check_weights(options)
    for one, other in _EXCLUSIVE:
        if given[one] is not None and given[other] is not None:
            raise CommandError(
                f"Give {model.flag(one)} or {model.flag(other)}, not both."
            )
    estimator = getattr(kplus, model.estimator)()
    params = {}
    for option, (_, default, *_) in FITTED.items():
        name = _parameter(estimator, option)
        if name is None and given[option] != default:
            raise CommandError(_not_for(option, options.model))
        if name is not None and given[option] is not None:
            value = given[option]
            if isinstance(value, str) and value.isdecimal():  # --cells 30
                value = int(value)
            allowed = allowed_values(estimator, name, value)
            if allowed is not None:
                raise CommandError(
                    f"{model.flag(option)} must be {allowed}, not {value!r}."
                )
            params[name] = value
    if "n_components" in params and hasattr(estimator, "moves"):
        params["moves"] = ()  # which would change the number
    if options.prior == "nonnegative" and hasattr(estimator, "sampler"):
        params["sampler"] = "uncollapsed"  # the others need Gaussian factors
    _check_columns(options, estimator.set_params(**params))
    return estimator


def _check_weights(options: Options) -> None:
    """Refuse weights of rows where the model does not take them."""
    import kplus

    if options.weights is None:
        return
    taken = [
        name
        for name, model in MODELS.items()
        if "sample_weight" in signature(getattr(kplus, model.estimator).fit).parameters
    ]
    if options.model not in taken:
        listed = f"{', '.join(taken[:-1])} or {taken[-1]}"
        raise CommandError(f"--weights is for --model {listed}, not {options.model}.")


def _parameter(estimator: Any, option: str) -> str | None:
    """The parameter of an option; None: this estimator has none."""
    known, names = estimator.get_params(deep=False), PARAMETERS.get(option, (option,))
    return next((name for name in names if name in known), None)


def _not_for(option: str, name: str) -> str:
    import kplus

    flag = MODELS[name].flag(option)
    if option in MODELS[name].instead:
        return f"{flag} is not for {name}{MODELS[name].instead[option]}."
    owners = [
        other
        for other, model in MODELS.items()
        if _parameter(getattr(kplus, model.estimator)(), option) is not None
    ]
    listed = " or ".join(filter(None, [", ".join(owners[:-1]), owners[-1]]))
    return f"{flag} is for --model {listed}, not {name}."


def accepted(options: Options) -> str:
    """What columns may hold: "numbers", "mixed" or "categories"."""
    if options.observations in (None, AUTO):
        return MODELS[options.model].accepts
    values = NAMES[options.observations].values
    return values if values in ("mixed", "categories") else "numbers"


def _check_columns(options: Options, estimator: Any) -> None:
    """Refuse options about columns that do not go with the model."""
    name, kind = options.model, options.observations
    if options.categorical and accepted(options) == "numbers":
        who, remedy = name, "--model dp-mixture or craft, or leave it out with --drop"
        if kind is not None:
            who, remedy = f"--observations {kind}", "--observations mixed"
        raise CommandError(
            f"{who} takes numbers, not categories such as {options.categorical[0]!r}; "
            f"say {remedy}."
        )
    if options.scale and "scale" in MODELS[name].instead:
        raise CommandError(_not_for("scale", name))
    if options.scale and kind in NAMES and NAMES[kind].coded:
        raise CommandError(
            f"--scale would turn the values into other numbers than --observations "
            f"{kind} takes; leave it out."
        )
    if options.negative is not None and estimator.prior != "nonnegative":
        raise CommandError(
            f"--negative is for features that are not negative; those of {name} are of "
            f"either sign. Leave it out, or say --prior nonnegative."
        )
