"""What means the same is called and described the same, in docstrings and in the docs.

The first sentence of a parameter or attribute, its type and its default are compared;
what is special to an estimator follows in further sentences.
"""

import inspect
import re
from pathlib import Path

import pytest

import kplus

ESTIMATORS = (
    "DPMeans", "DPMixture", "CRAFT", "BPMeans", "KFeatures", "MEIBP", "IBPGibbs",
    "IBPVariational",
)  # fmt: skip
PAGE = Path(__file__).parents[2] / "docs" / "api" / "shared.md"

# Names that each estimator gives a meaning of its own.
OWN = {
    "algorithm", "collapsed", "covariances_", "init", "objective_", "path_", "penalty",
    "prior",
}  # fmt: skip
# The same meaning, but: components of mixtures and of CRAFT are no features and are
# joined into clusters, passes over a mean field are cheap and many, gains of a pass are
# measured in other units, mixtures of small tables have several starts.
BUT = {
    ("DPMixture", "n_components"),
    ("DPMixture", "n_components_"),
    ("DPMixture", "max_components"),
    ("DPMixture", "n_clusters"),
    ("DPMixture", "n_init"),
    ("CRAFT", "n_clusters"),
    ("CRAFT", "n_components_"),
    ("IBPVariational", "max_iter"),
}
OTHER_DEFAULTS = {"tol"}


def entries(name, title):
    """(type, first sentence) of what a section of a docstring lists."""
    lines = inspect.cleandoc(getattr(kplus, name).__doc__).splitlines()
    at = next(i for i, line in enumerate(lines) if line == title)
    found, names = {}, []
    for line in lines[at + 2 :]:
        if not line:
            break
        if not line.startswith(" "):
            head, _, kind = line.partition(" : ")
            names = head.split(", ")
            found |= dict.fromkeys(names, (kind, ""))
        else:
            for one in names:
                kind, text = found[one]
                found[one] = kind, f"{text} {line.strip()}".strip()
    return {one: (kind, first_sentence(text)) for one, (kind, text) in found.items()}


def first_sentence(text):
    return re.match(r".*?[.](?= |$)|.*", text).group()


def shared(title):
    """By name, then by estimator: what more than one estimator has."""
    by_name = {}
    for estimator in ESTIMATORS:
        for name, entry in entries(estimator, title).items():
            by_name.setdefault(name, {})[estimator] = entry
    return {name: of for name, of in sorted(by_name.items()) if len(of) > 1}


def usual(name, of):
    return {e: entry for e, entry in of.items() if (e, name) not in BUT}


@pytest.mark.parametrize("title", ["Parameters", "Attributes"])
def test_the_same_is_described_in_the_same_words(title):
    for name, of in shared(title).items():
        if name in OWN:
            continue
        described = set(usual(name, of).values())
        if name in OTHER_DEFAULTS:
            described = {(kind.split(",")[0], text) for kind, text in described}
        assert len(described) == 1, (name, of)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_docstrings_give_the_defaults(estimator):
    signature = inspect.signature(getattr(kplus, estimator))
    described = entries(estimator, "Parameters")
    assert set(described) == set(signature.parameters)
    for name, (kind, text) in described.items():
        assert text.endswith("."), name
        default = signature.parameters[name].default
        if "default=" in kind and name not in ("learning_delay", "learning_decay"):
            assert eval(kind.split("default=")[1]) == default, name
        else:
            assert default is None or "default" in kind or name.startswith("cat"), name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_that_all_share_come_last_and_in_one_order(estimator):
    order = (
        "n_init", "max_iter", "tol", "batch_size", "warm_start", "n_jobs",
        "random_state", "verbose",
    )  # fmt: skip
    names = list(inspect.signature(getattr(kplus, estimator)).parameters)
    ours = [name for name in order if name in names]
    assert names[-len(ours) :] == ours


def rows_of_the_page():
    for title in ("Parameters", "Attributes"):
        for name, of in shared(title).items():
            if name in OWN:
                continue
            kind, text = next(iter(usual(name, of).values()))
            default = "by unit |"
            if name not in OTHER_DEFAULTS:
                default = "".join(f"{d} |" for d in kind.split("default=")[1:])
            who = "all" if len(of) == len(ESTIMATORS) else ", ".join(usual(name, of))
            yield " ".join(f"| `{name}` | {default} {text} | {who} |".split())


def test_the_docs_have_the_table():
    page = PAGE.read_text(encoding="utf-8")
    for row in rows_of_the_page():
        assert row in page, f"docs/api/shared.md lacks:\n{row}"
