"""How a fit went, and where it comes from, in plain values."""

import hashlib
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import kplus
from every_estimator import DEFAULTS, ROWS, every_default, fitted
from kplus import BPMeans, DPMeans, DPMixture, IBPGibbs, KFeatures
from kplus.observations import DiagGaussian, Mixed
from kplus.report import about

BLOBS, _ = make_blobs(200, centers=3, n_features=3, random_state=1)


@pytest.fixture(scope="module")
def mixture():
    return DPMixture(random_state=0).fit(BLOBS)


# ------------------------------------------------------------------------ clearness


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (DPMeans(n_clusters=2), "given"),
        (DPMeans(n_clusters=1), "given"),
        (DPMeans(penalty=50.0), "given"),
        (KFeatures(2), "given"),
        (KFeatures(penalty=5.0), "given"),
        (BPMeans(max_components=2), ""),
        (DPMeans(), "clear"),
    ],
)
def test_whether_the_number_is_clear(model, kind):
    model = model.set_params(random_state=0).fit(BLOBS)
    found = about.clearness(model, model._n_groups)
    assert found.kind == kind
    assert found.words.endswith(".")


def test_numbers_that_are_nearly_as_good():
    path = SimpleNamespace(is_clear=False, runners_up=[4, 3, 9])
    model = SimpleNamespace(path_=path, _group_noun="cluster")
    found = about.clearness(model, 3)
    assert (found.kind, found.others) == ("unclear", (4, 9))
    assert found.words == "4 or 9 would be nearly as good."


@pytest.mark.parametrize(("value", "kind"), [(0.9, "clear"), (0.3, "unclear")])
def test_a_tree_tells_how_clear_its_cut_is(value, kind):
    tree = SimpleNamespace(clearness=value)
    model = SimpleNamespace(
        cluster_tree_=tree, _group_noun="cluster", n_clusters="auto"
    )
    assert about.clearness(model, 3).kind == kind


def test_one_group_is_clear():
    model = SimpleNamespace(_group_noun="cluster")
    assert about.clearness(model, 1).kind == "clear"


# ----------------------------------------------------------------------------- tree


def test_a_tree_is_drawn_without_crossings(mixture):
    whole, found = mixture.cluster_tree_, about.tree(mixture)
    n = found.n_leaves
    assert n == whole.n_leaves
    assert sorted(found.places[:n]) == list(range(n))
    spans = {i: {int(found.places[i])} for i in range(n)}
    for t, (i, j) in enumerate(found.children):
        spans[n + t] = spans[i] | spans[j]
        held = spans[n + t]
        assert held == set(range(min(held), max(held) + 1))
        assert found.heights[n + t] >= max(found.heights[i], found.heights[j])
    assert sum(found.sizes) == pytest.approx(np.sum(whole.sizes))


def test_the_cut_is_between_the_groups(mixture):
    """As many branches are crossed by it as there are clusters."""
    found = about.tree(mixture)
    parents = {
        c: found.n_leaves + t for t, pair in enumerate(found.children) for c in pair
    }
    crossed = [
        node
        for node, up in parents.items()
        if found.heights[node] < found.cut < found.heights[up]
    ]
    assert len(crossed) == mixture.n_clusters_
    assert sorted(found.groups[node] for node in crossed) == list(
        range(mixture.n_clusters_)
    )


def test_of_a_large_tree_the_upper_part_is_drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) + rng.integers(0, 3, (400, 1)) * 20.0
    model = DPMeans(n_clusters=3, cells=100, random_state=0).fit(X)
    assert model.cluster_tree_.n_leaves == 100
    found = about.tree(model)
    assert (found.n_leaves, found.n_hidden) == (60, 40)
    assert sum(found.sizes) == pytest.approx(400.0)
    assert set(found.groups[:60]) == {0, 1, 2}


def test_no_tree():
    assert about.tree(DPMeans(penalty=1e9).fit(BLOBS)) is None


# ---------------------------------------------------------------------------- trace


@every_default
def test_a_trace_of_every_estimator(model):
    model = fitted(model)
    found = about.trace(model)
    assert found.values == tuple(model._history)
    assert len(found.groups) in (0, len(found.values))
    assert found.higher_is_better == (model._measure != "objective")
    assert found.words.endswith(f"({model._measure})")


def test_moves_that_were_kept(mixture):
    found, moves = about.trace(mixture), mixture.moves_
    kept = moves[moves["accepted"]]
    assert sum(event.times for event in found.events) == len(kept)
    assert {event.kind for event in found.events} == set(kept["kind"])
    assert found.groups[-1] == mixture.n_components_


def test_sweeps_that_were_thrown_away():
    model = fitted(next(m for m in DEFAULTS if isinstance(m, IBPGibbs)))
    assert about.trace(model).burn_in == model.burn_in


# --------------------------------------------------------------------------- origin


@every_default
def test_the_python_that_makes_the_model_again(model, tmp_path):
    model = fitted(model)
    found = about.origin(model, "sha256:0", None)
    lines = found.python.replace("report.html", str(tmp_path / "page.html"))
    if isinstance(model, IBPGibbs):  # takes its time
        lines = lines.partition("model.fit")[0]
    scope = {"X": ROWS}
    exec(lines, scope)
    again = scope["model"]
    assert again.get_params() == model.get_params()
    if hasattr(again, "_history"):
        assert list(again._history) == list(model._history)
        assert (tmp_path / "page.html").exists()
    assert dict(found.settings)["random_state"] == "0"
    names = {name for name, _ in (*found.settings, *found.defaults)}
    assert names == set(model.get_params(deep=False))


def test_versions(mixture):
    found = dict(about.origin(mixture, "", None).versions)
    assert found["kplus"] == kplus.__version__
    assert found["numpy"] == np.__version__


def test_the_file_stands_in_the_python(mixture):
    assert "fit('a b.csv')" in about.origin(mixture, "", repr("a b.csv")).python


def test_families_are_imported():
    model = DPMixture(Mixed(numbers=DiagGaussian(learn=False)), random_state=0)
    lines = about.origin(model, "", None).python
    scope = {}
    exec(lines.partition("model.fit")[0], scope)
    assert scope["model"].get_params() == model.get_params()


def test_the_digest_is_that_of_the_values():
    """The same for any layout; another if one value is."""
    model = DPMeans(n_clusters=1).fit(BLOBS)

    def digest(X):
        return about.digest(model._open(X, reset=False).source)

    assert digest(BLOBS).startswith("sha256:")
    assert len(digest(BLOBS)) == len("sha256:") + hashlib.sha256().digest_size * 2
    assert digest(np.asfortranarray(BLOBS)) == digest(BLOBS)
    changed = BLOBS.copy()
    changed[7, 1] += 1e-9
    assert digest(changed) != digest(BLOBS)
