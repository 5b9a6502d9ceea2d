"""Model files of CRAFT with layouts that do not fit are refused."""

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from kplus import CRAFT
from kplus.core.decoding import decode
from kplus.core.encoding import Encoder
from kplus.core.errors import ModelFormatError
from kplus.core.storable import RECORDS
from kplus.data.categories import Coding
from kplus.persist import load, save

RNG = np.random.default_rng(0)
Z = np.arange(90) % 3
FRAME = pd.DataFrame(
    {
        "größe": np.where(RNG.random(90) < 0.1, np.nan, RNG.normal(9.0 * Z, 1.0)),
        "color": np.array(["red", "blue", "weiß"])[Z],
        "ok": Z == 1,
        "noise": RNG.normal(size=90),
    }
)


@cache
def pickled(numeric):
    return pickle.dumps(CRAFT(numeric=numeric, random_state=0).fit(FRAME))


def fitted(numeric="gaussian"):
    """A model that may be spoiled."""
    return pickle.loads(pickled(numeric))


def with_layout(**parts):
    model = fitted()
    layout = model._model.layout
    new = {k: v(getattr(layout, k)) for k, v in parts.items()}
    model._model = replace(model._model, layout=replace(layout, **new))
    return model


def with_edges(change):
    model = fitted("quantile")
    layout = model._model.layout
    edges = change(layout.edges.copy())
    model._model = replace(model._model, layout=replace(layout, edges=edges))
    return model


def with_clusters(**parts):
    model = fitted()
    new = {k: v(getattr(model._clusters, k)) for k, v in parts.items()}
    model._clusters = replace(model._clusters, **new)
    return model


def with_coding(coding):
    model = fitted()
    model._coding = coding
    return model


def gaps_first(edges):
    """As many cuts, but the first place is empty."""
    return np.where(np.isnan(edges), edges, np.roll(edges, 1, axis=1)) * np.where(
        np.arange(edges.shape[1]) == 0, np.nan, 1.0
    )


OTHER = Coding(tuple(FRAME), (None, ("blue",), (False, True), None))
# Layouts: what tests/craft/test_layout.py does not damage, and one case that it does.
DAMAGED = {
    "wider_category": lambda: with_layout(widths=lambda w: w + 5),
    "negative_width": lambda: with_layout(widths=lambda w: -w),
    "column_twice": lambda: with_layout(numbers=lambda n: 0 * n),
    "columns_swapped": lambda: with_layout(categories=lambda c: c[::-1].copy()),
    "fewer_scored": lambda: with_layout(scored=lambda s: s - 1),
    "other_levels": lambda: with_layout(levels=lambda n: (None, 2, 3, None)),
    "numbers_as_categories": lambda: with_layout(levels=lambda n: (None,) * 4),
    "fractional_columns": lambda: with_layout(numbers=lambda n: n + 0.5),
    "edges_with_a_gap_first": lambda: with_edges(gaps_first),
    "short_tables": lambda: with_clusters(tables=lambda t: t[:3].copy()),
    "fewer_shares": lambda: with_clusters(shares=lambda s: s[:1]),
    "flat_tables": lambda: with_clusters(tables=lambda t: t.ravel()),
    "no_coding": lambda: with_coding(None),
    "other_coding": lambda: with_coding(OTHER),
}


@pytest.mark.parametrize("make", DAMAGED.values(), ids=DAMAGED.keys())
def test_parts_that_do_not_fit_are_refused(make, tmp_path):
    """Kernels do not look where they read: a file must not make them stray."""
    path = tmp_path / "model.npz"
    save(make(), path)
    with pytest.raises(ModelFormatError, match="CRAFT") as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_cluster_costs_are_read_from_files_that_call_them_prices():
    clusters = fitted()._clusters
    encoder = Encoder("a file", RECORDS)
    outline = encoder.encode(clusters, "clusters")
    outline["fields"]["prices"] = outline["fields"].pop("cluster_costs")
    again = decode(outline, encoder.arrays, RECORDS)
    np.testing.assert_array_equal(again.cluster_costs, clusters.cluster_costs)


# ------------------------------------------------------------------ as published


def paper():
    return CRAFT(variant="paper", penalty=3.0, random_state=0).fit(FRAME)


def test_clusters_as_published_come_back(tmp_path):
    model = paper()
    save(model, tmp_path / "paper.kplus")
    again = load(tmp_path / "paper.kplus")
    assert model.n_clusters_ > 1
    np.testing.assert_array_equal(again.predict(FRAME), model.labels_)
    np.testing.assert_array_equal(again.transform(FRAME), model.transform(FRAME))


@pytest.mark.parametrize(
    ("part", "name", "words"),
    [
        ("columns", "units", "columns.units has shape"),
        ("columns", "costs", "clusters.costs has shape"),
        ("clusters", "means", "clusters.means has shape"),
        ("columns", "widths", "columns.widths are not those"),
    ],
)
def test_parts_as_published_that_do_not_fit_are_refused(part, name, words):
    model = paper()
    state = model._to_state()
    value = state["paper"][part][name]
    state["paper"][part][name] = value + 99 if name == "widths" else value[1:]
    with pytest.raises(ValueError, match=words):
        model._from_state(state)
