"""Models side by side: known truth, agreement by brute force, advice, mistakes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kplus
from every_estimator import mixed_rows
from kplus import DPMeans, DPMixture
from kplus.validation.comparison import Candidate, Comparison

BLOBS, TRUTH = make_blobs(240, centers=3, n_features=3, random_state=1)


def compare(X, models=None, **given):
    return kplus.compare(X, models, **{"n_resamples": 2, "random_state": 0} | given)


@pytest.fixture(scope="module")
def blobs():
    return compare(BLOBS, ["dp-mixture", "dp-means", KMeans(2), "bp-means"])


def test_what_is_found(blobs):
    mixture, means, cut, features = blobs.candidates
    assert [c.name for c in blobs.candidates] == [
        "dp-mixture",
        "dp-means",
        "KMeans",
        "bp-means",
    ]
    assert (mixture.n_groups, means.n_groups, cut.n_groups) == (3, 3, 2)
    assert adjusted_rand_score(TRUTH, mixture.groups) == 1.0
    assert mixture.is_clear
    assert mixture.overall_stability == 1.0
    assert np.isfinite(mixture.held_out)
    assert np.isnan(means.held_out)
    assert means.model.scale  # columns of a table have units of their own
    assert not features.is_clustering
    assert features.validation is None
    assert features.groups.shape == (240, features.n_groups)
    assert all(c.seconds >= 0.0 for c in blobs.candidates)


def test_agreement_is_that_of_the_labels(blobs):
    labels = [c.groups for c in blobs.clusterings]
    by_hand = [[adjusted_rand_score(a, b) for a in labels] for b in labels]
    np.testing.assert_allclose(blobs.agreement, by_hand)
    assert blobs.best.name == "dp-mixture"


def test_it_prints_as_a_table(blobs):
    lines = str(blobs).splitlines()
    assert len(lines) == 5
    assert repr(blobs) == str(blobs)
    assert lines[0].split() == [
        "model", "groups", "clear", "stability", "apart", "CPU", "s", "advice",
    ]  # fmt: skip
    assert "Start here." in lines[1]
    assert "The same groups as dp-mixture." in lines[2]
    assert "Features: a row may have several." in lines[4]
    frame = blobs.summary()
    assert frame["model"].tolist() == [c.name for c in blobs.candidates]
    assert frame["advice"][0] == "Start here."


def made(n_groups, clear=None, stability=1.0, apart=1.0, name="m", labels=None):
    """A candidate of which we know what there is to know."""

    class Told:
        is_clear = clear
        runners_up = np.array([n_groups, 7, 5])

    class Model:
        path_ = Told()

    class Index:
        silhouette = density = apart
        held_out = None

    class Sure:
        overall = stability

    groups = np.arange(60) % n_groups if labels is None else labels
    return Candidate(
        name, model=Model(), groups=groups, validation=Index(), stability=Sure()
    )


def test_the_best_is_clear_steady_and_apart():
    one, open_, shaky, near = (
        made(1, True), made(3, False), made(3, True, 0.5), made(3, True, 1.0, 0.1)
    )  # fmt: skip
    good = made(3, True)
    for other in (one, open_, shaky, near):
        assert Comparison((other, good), 60, np.arange(60)).best is good
        assert Comparison((good, other), 60, np.arange(60)).best is good
    twin = made(3, True)
    assert Comparison((good, twin), 60, np.arange(60)).best is good


def test_advice():
    best = made(3, True, name="best")
    others = {
        "It sees one group only.": made(1, True),
        "The number is open: perhaps 7 or 5.": made(3, False),
        "It does not come back on other rows.": made(3, True, 0.5),
        "It comes back in part only.": made(3, True, 0.7),
        "The groups are hardly apart.": made(3, True, 1.0, 0.1),
        "The same groups as best.": made(3, True),
        "20% of the rows are in no group.": made(4, True, labels=np.arange(60) % 5 - 1),
        "Another story than best: look at both.": made(4, True),
        "Not fitted: for a reason": Candidate("n", why_not="for a reason"),
        "It finds nothing.": made(1, True, labels=np.full(60, -1)),
    }
    result = Comparison((best, *others.values()), 90, np.arange(60))
    for words, candidate in others.items():
        assert words in result.advice(candidate)
    assert result.notes() == ["Compared on 60 of 90 rows."]


def test_rows_beyond_the_most_are_a_sample():
    result = compare(BLOBS, ["dp-means"], max_rows=100, n_resamples=0)
    assert len(result.rows) == 100 == len(result.candidates[0].groups)
    assert "Compared on 100 of 240 rows." in str(result)
    assert np.isnan(result.candidates[0].overall_stability)
    again = compare(BLOBS, ["dp-means"], max_rows=100, n_resamples=0)
    np.testing.assert_array_equal(result.rows, again.rows)


def test_tables_that_not_every_model_takes():
    frame, _ = mixed_rows()
    result = compare(frame, n_resamples=0)
    by_name = {c.name: c for c in result.candidates}
    assert by_name["dp-means"].model is None
    assert "Not fitted: " in result.advice(by_name["dp-means"])
    assert by_name["dp-mixture"].n_groups >= 1
    assert by_name["craft"].n_groups >= 1
    assert result.agreement.shape == (2, 2)
    gaps = BLOBS.copy()
    gaps[::7, 0] = np.nan
    assert compare(gaps, n_resamples=0).best.n_groups == 3


def test_any_clusterer_by_any_name(tmp_path):
    models = {
        "scaled": make_pipeline(StandardScaler(), KMeans(3)),
        "density": HDBSCAN(),
        "gmm": GaussianMixture(3),
        "mine": DPMixture("spherical_gaussian", n_init=1),
    }
    result = compare(BLOBS.astype(np.float32), models, n_resamples=0)
    assert [c.name for c in result.candidates] == list(models)
    assert [c.n_groups for c in result.candidates] == [3, 3, 3, 3]
    both = compare(BLOBS, [DPMeans(n_clusters=2), DPMeans(n_clusters=3)], n_resamples=0)
    assert [c.name for c in both.candidates] == ["DPMeans", "DPMeans 2"]
    pd.DataFrame(BLOBS, columns=list("abc")).to_csv(tmp_path / "t.csv", index=False)
    stored = compare(tmp_path / "t.csv", ["dp-means"], n_resamples=0)
    assert stored.candidates[0].n_groups == 3


def test_progress_is_told():
    said = []
    compare(BLOBS, ["dp-means"], n_resamples=0, progress=said.append)
    assert said == ["Fitting dp-means", "Judging dp-means"]


@pytest.mark.parametrize(
    ("models", "given", "error", "words"),
    [
        (["k-means"], {}, ValueError, "there is no 'k-means'; there are dp-mixture"),
        ([], {}, ValueError, "models is empty"),
        ("dp-means", {}, TypeError, "must be a list or a dict"),
        ([KMeans], {}, TypeError, "neither a name nor an estimator"),
        ([3], {}, TypeError, "3 is neither a name nor an estimator"),
        ([StandardScaler()], {}, TypeError, "finds neither clusters nor features"),
        (None, {"max_rows": 5}, ValueError, "max_rows must be an int of at least 10"),
        (None, {"n_resamples": -1}, ValueError, "n_resamples must be an int"),
    ],
)
def test_mistakes(models, given, error, words):
    with pytest.raises(error, match=words):
        compare(BLOBS, models, **given)


def test_no_rows_and_no_model():
    with pytest.raises(ValueError, match="needs 10 rows or more, not 5"):
        compare(BLOBS[:5])
    frame, _ = mixed_rows()
    with pytest.raises(ValueError, match=r"No model takes this table\. dp-means: "):
        compare(frame, ["dp-means"])
