"""Model files of estimators whose parts do not fit together are refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from every_estimator import seeded
from kplus import (
    CRAFT,
    MEIBP,
    BPMeans,
    DPMeans,
    DPMixture,
    IBPGibbs,
    IBPVariational,
    KFeatures,
)

RNG = np.random.default_rng(0)
X = (RNG.random((50, 2)) < 0.5) @ [[4.0, 4, 0], [0, 0, 3]] + RNG.normal(
    scale=0.1, size=(50, 3)
)
GROUP = np.arange(60) % 3
FRAME = pd.DataFrame(
    {
        "size": RNG.normal(9.0 * GROUP, 1.0),
        "color": np.array(["red", "blue", "weiß"])[GROUP],
        "ok": GROUP == 1,
        "noise": RNG.normal(size=60),
    }
)
FITS = {
    "clusters": seeded(DPMeans(9.0)),
    "mixture": seeded(DPMixture("mixed")),
    "noise": seeded(DPMixture(noise=True)),
    "features": seeded(BPMeans(9.0)),
    "number": seeded(KFeatures(2)),
    "craft": seeded(CRAFT()),
    "meibp": seeded(MEIBP(negative="noise")),
    "sampler": seeded(IBPGibbs(2, n_samples=9)),
    "variational": seeded(IBPVariational(2)),
}


@pytest.fixture(scope="module")
def fitted():
    """Every model, fitted once."""
    frames = ("mixture", "craft")
    return {
        name: model.fit(FRAME if name in frames else X) for name, model in FITS.items()
    }


def attribute(name, value):
    def change(manifest):
        assert name in manifest["attributes"]
        manifest["attributes"][name] = value

    return change


def state(name, value):
    def change(manifest):
        assert name in manifest["state"]
        manifest["state"][name] = value

    return change


def without(name):
    def change(manifest):
        del manifest["state"][name]

    return change


def swapped(name, other):
    """Two parts of the state."""

    def change(manifest):
        parts = manifest["state"]
        parts[name], parts[other] = parts[other], parts[name]

    return change


def counts_for(name):
    """A part of the state for the counts of features, and these for it."""

    def change(manifest):
        attributes, parts = manifest["attributes"], manifest["state"]
        attributes["feature_counts_"], parts[name] = (
            parts[name],
            attributes["feature_counts_"],
        )

    return change


def swap_columns(manifest):
    columns = manifest["attributes"]["moves_"]["columns"]
    columns["change"] = manifest["attributes"]["weights_"]
    manifest["attributes"]["weights_"] = {"kind": "array", "name": "moves_.5"}


def one_component_more(manifest):
    manifest["attributes"]["n_components_"] += 1


def clusters_for_a_model(manifest):
    manifest["state"]["model"] = manifest["state"]["clusters"]


def table(columns):
    """A table of these columns, as one more attribute."""

    def change(manifest):
        manifest["attributes"]["more_"] = {"kind": "table", "columns": columns}

    return change


CRAFT_SAYS = r"CRAFT|belongs to nothing|refers to array"
FORGED = {
    "features": {
        "columns": (attribute("n_features_in_", 4), r"shape \(2, 3\), not \(2, 4\)"),
        "number": (attribute("n_components_", 3), r"shape \(2, 3\), not \(3, 3\)"),
        "sums": (swapped("S", "T"), r"S has shape \(2, 3\), not \(2, 2\)"),
        "counts": (counts_for("T"), "feature_counts_ has shape"),
        "error": (state("error", "much"), "do not make a BPMeans: could not convert"),
        "missing": (without("weight"), "do not make a BPMeans: 'weight'"),
    },
    "number": {
        "columns": (attribute("n_features_in_", 4), "has shape"),
        "missing": (without("weight"), "do not make a KFeatures: 'weight'"),
    },
    "meibp": {
        "columns": (attribute("n_features_in_", 4), r"shape \(2, 3\), not \(2, 4\)"),
        "number": (attribute("n_components_", 3), r"shape \(2, 3\), not \(3, 3\)"),
        "counts": (counts_for("variance"), r"variance has shape \(2,\), not \(2, 3\)"),
        "missing": (without("n_rows"), "do not make a MEIBP: 'n_rows'"),
    },
    "sampler": {
        "columns": (attribute("n_features_in_", 4), "has shape"),
        "number": (attribute("n_components_", 3), "has shape"),
    },
    "variational": {
        "columns": (attribute("n_features_in_", 4), "has shape"),
        "number": (attribute("n_components_", 3), "has shape"),
    },
    "mixture": {
        "swapped_columns": (swap_columns, "columns do not match"),
        "table_of_a_number": (table({"a": 1}), "columns that are no arrays"),
        "table_of_nothing": (table({}), "columns do not match"),
        "table_that_is_none": (table([]), "invalid dict"),
        "columns": (
            attribute("n_features_in_", 3),
            "do not make a DPMixture: .*not 3",
        ),
        "number": (one_component_more, "do not make a DPMixture: N has shape"),
        "family": (attribute("observations_", 7), "belongs to nothing"),
        "sums": (state("N", 7), "belongs to nothing"),
    },
    "craft": {
        "columns": (attribute("n_features_in_", 3), CRAFT_SAYS),
        "number": (attribute("n_clusters_", 2), CRAFT_SAYS),
        "sums": (swapped("sums", "counts"), CRAFT_SAYS),
        "no_model": (state("model", None), CRAFT_SAYS),
        "clusters_for_a_model": (clusters_for_a_model, CRAFT_SAYS),
        "text": (state("sums", "many"), CRAFT_SAYS),
        "missing": (without("counts"), CRAFT_SAYS),
    },
    "clusters": {
        "columns": (attribute("n_features_in_", 4), "DPMeans"),
        "number": (attribute("n_clusters_", 9), "DPMeans"),
    },
}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        pytest.param(name, *forgery, id=f"{name}-{case}")
        for name, forgeries in FORGED.items()
        for case, forgery in forgeries.items()
    ],
)
def test_forged_files(name, change, message, fitted, forge, refuse):
    refuse(forge(fitted[name], change), message)


@pytest.mark.parametrize("name", FITS)
def test_every_part_of_the_state_is_needed(name, fitted, forge, refuse):
    for part in fitted[name]._to_state():
        refuse(forge(fitted[name], without(part)), "do not make a|belongs to nothing")


def copy_of(model):
    """All but what the state restores."""
    again = clone(model)
    for name, value in vars(model).items():
        if name.endswith("_"):
            setattr(again, name, value)
    return again


@pytest.mark.parametrize(
    ("prior", "parts"),
    [("nonnegative", ["mu", "variance"]), ("gaussian", ["covariance", "group"])],
)
def test_factors_of_another_fit_are_refused(prior, parts):
    """With fewer features and columns."""
    rows = np.abs(X)
    model = MEIBP(prior=prior, random_state=0).fit(rows)
    other = MEIBP(1, prior=prior, random_state=0).fit(rows[:, :2])
    state = model._to_state()
    assert set(parts) < set(state)
    for part in parts:
        with pytest.raises(ValueError, match=part):
            copy_of(model)._from_state(state | {part: other._to_state()[part]})
    again = copy_of(model)
    again._from_state(state)
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
