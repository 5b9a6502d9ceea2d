"""Options that are parameters of estimators: their help and their checks."""

import re

import pytest

import kplus as library
from kplus.cli.described import _parameters, describe
from kplus.cli.models import MODELS, PARAMETERS
from kplus.cli.options import COMMANDS, FITTED, OPTIONS

FIT = COMMANDS["fit"].options.split()
VALUES = {int: 2, float: 0.5, str: "gaussian"}


def parameter(model, option):
    known = getattr(library, MODELS[model].estimator)().get_params()
    names = PARAMETERS.get(option, (option,))
    return next((name for name in names if name in known), None)


@pytest.mark.parametrize("model", MODELS)
def test_docstrings_are_read_without_importing(model):
    cls = getattr(library, MODELS[model].estimator)
    found = _parameters(MODELS[model].estimator)
    assert set(found) == set(cls().get_params())
    doc = " ".join(cls.__doc__.replace("`", "").split())
    for _, sentence in found.values():
        assert sentence.endswith(".")
        assert sentence in doc


def test_help_is_that_of_the_parameters():
    told = describe()
    assert told.keys() == FITTED.keys() <= set(FIT)
    assert told["restarts"] == "Starts, of which the best is kept."
    assert told["sweeps"] == "ibp-gibbs: Samples to draw."
    assert told["prior"].endswith("either sign. One of nonnegative, gaussian.")
    assert told["noise_scale"].startswith("Standard deviation of the noise")


def test_every_command_shows_its_options(kplus):
    for name, command in COMMANDS.items():
        done = kplus(name, "--help")
        assert done.code == 0, done.err
        for option in command.options.split():
            flags = OPTIONS[option].flags
            if flags is None:
                assert OPTIONS[option].metavar in done.out
            else:
                words = flags or f"--{option.replace('_', '-')}"
                assert re.split("[ /]", words)[0] in done.out


@pytest.mark.parametrize("option", FITTED)
@pytest.mark.parametrize("model", MODELS)
def test_a_model_without_the_parameter_refuses_the_option(
    kplus, data, out, model, option
):
    if parameter(model, option) is not None:
        return
    flag = MODELS[model].flag(option)
    words = ["--model", model, flag, VALUES[FITTED[option].kind], "-o", out]
    kplus("fit", data, *words).refuses(flag, model)


@pytest.mark.parametrize("option", FITTED)
@pytest.mark.parametrize("model", MODELS)
def test_values_are_refused_by_the_constraints(kplus, data, out, model, option):
    name, kind = parameter(model, option), FITTED[option].kind
    if name is None:
        return
    bad = "nonsense" if kind is str else -1
    if option == "jobs":
        bad = 0
    estimator = getattr(library, MODELS[model].estimator)(**{name: bad})
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        estimator._validate_params()
    flag = MODELS[model].flag(option)
    done = kplus("fit", data, "--model", model, flag, bad, "-o", out)
    done.refuses(f"{flag} must be ", f"not {kind(bad)!r}.")
