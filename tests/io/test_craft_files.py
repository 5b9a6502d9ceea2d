"""Model files of CRAFT: streams go on, layouts that do not fit are refused."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kplus import CRAFT
from kplus.engine.categories import Coding
from kplus.io import ArrayInfo, inspect, load, save

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
NUMBERS = FRAME[["größe", "noise"]].to_numpy()
CODES = np.column_stack([NUMBERS, Z])
CASES = {
    "mixed": (CRAFT(), FRAME),
    "numbers": (CRAFT(), NUMBERS),
    "number_given": (CRAFT(n_clusters=4), FRAME),
    "fraction": (CRAFT(0.5, sharing=0.3), FRAME),
    "quantile": (CRAFT(numeric="quantile"), FRAME),
    "yeo_johnson": (CRAFT(numeric="yeo-johnson"), FRAME),
    "codes": (CRAFT(categorical_features=[2]), CODES),
    "thresholds": (CRAFT(variance_threshold=2.0, category_threshold=0.5), FRAME),
    "unknown": (CRAFT(handle_unknown="missing"), FRAME),
}


@pytest.fixture(params=CASES)
def case(request):
    model, rows = CASES[request.param]
    return model.set_params(random_state=0).fit(rows), rows


def same(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype == object:
        return a.tolist() == b.tolist()
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def test_a_loaded_model_does_all_that_the_saved_one_did(case, tmp_path):
    model, rows = case
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert vars(again).keys() == vars(model).keys()
    for name in vars(model):
        if name.endswith("_") and not name.startswith("_"):
            assert same(getattr(model, name), getattr(again, name)), name
    assert again.get_params() == model.get_params()
    assert same(again.transform(rows), model.transform(rows))
    np.testing.assert_array_equal(again.predict(rows), model.labels_)
    assert again.describe().equals(model.describe())
    again.fit(rows)  # the parameters came back, too
    assert again.objective_ == model.objective_


def test_a_loaded_stream_goes_on(case, tmp_path):
    model, rows = case
    model = type(model)(**model.get_params()).partial_fit(rows[:60])
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    for rest in (rows[60:75], rows[75:]):
        model.partial_fit(rest)
        again.partial_fit(rest)
        assert model.objective_ == again.objective_
        assert same(model.labels_, again.labels_)
        assert same(model.feature_scores_, again.feature_scores_)


def test_equal_models_make_equal_files(case, tmp_path):
    model, _ = case
    save(model, tmp_path / "a.npz")
    save(load(tmp_path / "a.npz"), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_what_is_in_a_file(tmp_path):
    save(CRAFT(random_state=0).fit(FRAME), tmp_path / "model.npz")
    info = inspect(tmp_path / "model.npz")
    assert info.class_name == "CRAFT"
    assert info.params["numeric"] == "gaussian"
    assert info.attributes["selected_features_"] == ArrayInfo("bool", (3, 4))
    assert info.attributes["categories_"][1] == ("blue", "red", "weiß")
    assert list(info.attributes["path_"]) == ["n_clusters", "objective"]
    again = load(tmp_path / "model.npz")
    assert again.feature_names_in_.tolist() == list(FRAME)
    assert again.categories_ == (None, ("blue", "red", "weiß"), (False, True), None)


# ------------------------------------------------------------------------ damage


def fitted(numeric="gaussian"):
    return CRAFT(numeric=numeric, random_state=0).fit(FRAME)


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
DAMAGED = {
    "wider_category": lambda: with_layout(widths=lambda w: w + 5),
    "negative_width": lambda: with_layout(widths=lambda w: -w),
    "huge_width": lambda: with_layout(widths=lambda w: w + 2**40),
    "column_out_of_range": lambda: with_layout(numbers=lambda n: n + 9),
    "negative_column": lambda: with_layout(numbers=lambda n: n - 9),
    "category_out_of_range": lambda: with_layout(categories=lambda c: c + 9),
    "column_twice": lambda: with_layout(numbers=lambda n: 0 * n),
    "columns_swapped": lambda: with_layout(categories=lambda c: c[::-1].copy()),
    "fewer_scored": lambda: with_layout(scored=lambda s: s - 1),
    "more_scored": lambda: with_layout(scored=lambda s: s + 1),
    "fewer_origins": lambda: with_layout(origins=lambda o: o[:1]),
    "fewer_powers": lambda: with_layout(powers=lambda o: o[:1]),
    "fewer_levels": lambda: with_layout(levels=lambda n: n[:2]),
    "other_levels": lambda: with_layout(levels=lambda n: (None, 2, 3, None)),
    "numbers_as_categories": lambda: with_layout(levels=lambda n: (None,) * 4),
    "cut_categories": lambda: with_layout(edges=lambda e: np.zeros_like(e)),
    "narrow_edges": lambda: with_layout(edges=lambda e: e[:, :2].copy()),
    "fractional_columns": lambda: with_layout(numbers=lambda n: n + 0.5),
    "edges_with_a_gap_first": lambda: with_edges(gaps_first),
    "no_edges": lambda: with_edges(lambda e: np.full_like(e, np.nan)),
    "short_tables": lambda: with_clusters(tables=lambda t: t[:3].copy()),
    "fewer_shares": lambda: with_clusters(shares=lambda s: s[:1]),
    "flat_tables": lambda: with_clusters(tables=lambda t: t.ravel()),
    "no_coding": lambda: with_coding(None),
    "other_coding": lambda: with_coding(OTHER),
}


@pytest.mark.parametrize("make", DAMAGED.values(), ids=DAMAGED.keys())
def test_parts_that_do_not_fit_are_refused(make, refuse, tmp_path):
    """Kernels do not look where they read: a file must not make them stray."""
    save(make(), tmp_path / "model.npz")
    refuse(tmp_path / "model.npz", "CRAFT")


def forge(tmp_path, change):
    """A model file whose manifest was changed after it was written."""
    path = tmp_path / "model.npz"
    save(fitted(), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    change(manifest)
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def other_number_of_columns(manifest):
    manifest["attributes"]["n_features_in_"] = 3


def other_number_of_clusters(manifest):
    manifest["attributes"]["n_clusters_"] = 2


def swapped_sums(manifest):
    state = manifest["state"]
    state["sums"], state["counts"] = state["counts"], state["sums"]


def no_model(manifest):
    manifest["state"]["model"] = None


def clusters_for_a_model(manifest):
    manifest["state"]["model"] = manifest["state"]["clusters"]


def sums_that_are_text(manifest):
    manifest["state"]["sums"] = "many"


def without_counts(manifest):
    del manifest["state"]["counts"]


@pytest.mark.parametrize(
    "change",
    [
        other_number_of_columns,
        other_number_of_clusters,
        swapped_sums,
        no_model,
        clusters_for_a_model,
        sums_that_are_text,
        without_counts,
    ],
)
def test_forged_manifests_are_refused(change, refuse, tmp_path):
    refuse(forge(tmp_path, change), r"CRAFT|belongs to nothing|refers to array")
