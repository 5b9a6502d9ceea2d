"""Options that are parameters of estimators: their help and their checks."""

import re

import pytest

import kplus as library
from kplus.cli.console import report_error
from kplus.cli.models import MODELS, option_help
from kplus.cli.options import COMMANDS, FITTED, OPTIONS, PARAMETERS

FIT = COMMANDS["fit"].options.split()
VALUES = {int: [2], float: [0.5], str: ["gaussian"], bool: []}


def parameter(model, option):
    known = getattr(library, MODELS[model].estimator)().get_params()
    names = PARAMETERS.get(option, (option,))
    return next((name for name in names if name in known), None)


def test_help_is_that_of_the_parameters():
    texts = option_help()
    assert texts.keys() == FITTED.keys() <= set(FIT)
    assert texts["restarts"] == "Number of starts; the best is kept."
    assert texts["sweeps"] == "ibp-gibbs: Samples to draw."
    assert texts["prior"].endswith("either sign. One of nonnegative, gaussian.")
    assert texts["noise_scale"].startswith("Standard deviation of the noise")


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


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "in max_iter=9 passes; raise max_iter.",
            "in --max-iter 9 passes; raise --max-",
        ),
        ("Use prior='gaussian', not a weak prior.", "Use --prior gaussian, not a"),
        ("a smaller noise_scale if you know it", "a smaller --noise-scale if you"),
        ("categorical=['a'] or drop=\"b\"", "--categorical 'a' or --drop \"b\""),
        ("Column 'max_iter' holds text in x/max_iter.csv", "Column 'max_iter' holds"),
        (
            "x/max_iter.csv: n_samples=3, n_components_",
            "x/max_iter.csv: n_samples=3, n",
        ),
    ],
)
def test_parameters_in_messages_are_options(capsys, said, shown):
    report_error(ValueError(said))
    assert shown in capsys.readouterr().err


def test_warnings_name_options(kplus, data, out):
    words = ["--model", "dp-means", "--clusters", 5, "--max-iter", 1, "-o", out]
    assert "--max-iter 1 passes; raise --max-iter" in kplus("fit", data, *words).err


@pytest.mark.parametrize("model", MODELS)
def test_a_model_without_the_parameter_refuses_the_option(kplus, data, out, model):
    for option in FITTED:
        if parameter(model, option) is None:
            flag = MODELS[model].flag(option)
            words = ["--model", model, flag, *VALUES[FITTED[option].kind], "-o", out]
            kplus("fit", data, *words).refuses(flag, model)


@pytest.mark.parametrize("model", MODELS)
def test_values_are_refused_by_the_constraints(kplus, data, out, model):
    for option in FITTED:
        name, kind = parameter(model, option), FITTED[option].kind
        if name is None or kind is bool:  # a flag has no value that could be bad
            continue
        bad = "nonsense" if kind is str else -1 if option != "jobs" else 0
        estimator = getattr(library, MODELS[model].estimator)(**{name: bad})
        with pytest.raises(ValueError, match=f"'{name}' parameter"):
            estimator._validate_params()
        flag = MODELS[model].flag(option)
        done = kplus("fit", data, "--model", model, flag, bad, "-o", out)
        done.refuses(f"{flag} must be ", f"not {kind(bad)!r}.")
