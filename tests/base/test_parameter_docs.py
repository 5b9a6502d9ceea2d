"""Parameters of estimators: their documentation and their constraints."""

import pytest

import kplus
from kplus.base.parameters import allowed_values, parameter_docs

ESTIMATORS = [
    *("BPMeans", "CRAFT", "DPMeans", "DPMixture"),
    *("IBPGibbs", "IBPVariational", "KFeatures", "MEIBP"),
]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_docstrings_are_read_without_importing(name):
    cls = getattr(kplus, name)
    docs = parameter_docs(name)
    assert set(docs) == set(cls().get_params())
    whole = " ".join(cls.__doc__.replace("`", "").split())
    for _, sentence in docs.values():
        assert sentence.endswith(".")
        assert sentence in whole


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("max_iter", 3, None),
        ("max_iter", 0, "at least 1"),
        ("penalty", -1.0, "above 0"),
        ("random_state", -4, "at least 0 and at most 4294967295"),
    ],
)
def test_allowed_values(name, value, words):
    assert allowed_values(kplus.DPMeans(), name, value) == words


def test_allowed_options():
    words = allowed_values(kplus.MEIBP(), "prior", "flat")
    assert words == "one of gaussian, nonnegative"
