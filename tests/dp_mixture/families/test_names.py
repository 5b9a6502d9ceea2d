"""The list of families is true, and each of them is everywhere it has to be."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import kplus.observations
from kplus import DPMixture
from kplus.core.errors import DataError
from kplus.core.storable import RECORDS
from kplus.dp_mixture.families import NAMES, home
from mixture_reference import CASES as MIXTURES

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = (DOCS / "guide/observations.md").read_text(encoding="utf-8")
API = (DOCS / "api/index.md").read_text(encoding="utf-8").split()


@pytest.mark.parametrize("name", NAMES)
def test_a_family_is_everywhere(name, cases):
    cls = NAMES[name].cls
    assert cls in kplus.observations.__all__
    assert hasattr(import_module(home(name)), f"{cls}Family")
    assert RECORDS[cls] == RECORDS[f"{cls}Family"] == home(name)
    assert f'| `"{name}"` {{class}}`~kplus.observations.{cls}`' in GUIDE
    assert name == "mixed" or f"\n| `{cls}` | " in GUIDE, "its settings"
    assert cls in API
    assert f'"{name}"' in DPMixture.__doc__
    assert name in cases, "no laws: tests/dp_mixture/families/conftest"
    own = Path(__file__).with_name(f"test_{name}.py").exists()
    assert own or name in MIXTURES, "no bound by brute force: tests/mixture_reference"


def test_nothing_but_families_is_public():
    classes = {about.cls for about in NAMES.values()}
    assert classes | {"by_name"} == set(kplus.observations.__all__)
    assert set(dir(kplus.observations)) == set(kplus.observations.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Poison'"):
        kplus.observations.Poison  # noqa: B018


def test_the_names_cost_nothing():
    """Model files are inspected, and options of the command line checked, by them."""
    code = "import sys, kplus.persist; sys.exit('sklearn' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_family_takes_what_the_list_says(name, cases):
    about, case = NAMES[name], cases[name]
    family = case.family()
    assert about.missing >= case.missing
    X = case.rows(5, missing=False)
    for value, taken in ((np.nan, about.missing), (0.5, not about.coded)):
        X[1, 0] = value
        if taken:
            family.check(X)
        else:
            with pytest.raises(DataError):
                family.check(X)
    coded = any(levels is not None for levels in case.levels)
    assert coded == (about.values in ("categories", "mixed"))
