"""`summary`, `describe` and `kplus.describe`: what is said of the groups of a fit."""

import numpy as np
import pandas as pd
import pytest

import kplus
from every_estimator import ROWS, every_model, fitted, mixed_rows, seeded
from kplus import CRAFT, MEIBP, BPMeans, DPMeans, DPMixture
from kplus.base.description import Addend, Categories, say_number


@every_model
def test_every_estimator_tells_of_all_its_groups(model):
    model = fitted(model)
    told, noun = model.summary(), model._group_noun
    assert list(told) == [noun, "size", "share", "sureness", "name", "set_apart"]
    inside = told[told[noun] >= 0]
    assert len(inside) == model._n_groups
    assert inside["size"].to_numpy() == pytest.approx(model._group_sizes(None)[0])
    sure = told["sureness"].dropna()
    assert ((sure >= 0.0) & (sure <= 1.0 + 1e-12)).all()
    lines = model.describe()
    assert set(lines[noun]) == set(range(model._n_groups))
    if not isinstance(model, CRAFT):
        # Features count in sums of probabilities, or in the best sample.
        kept = [name for name in lines if name not in ("size", "share")]
        pd.testing.assert_frame_equal(kplus.describe(model, ROWS)[kept], lines[kept])


@pytest.fixture(scope="module")
def mixed():
    frame, _ = mixed_rows()
    return frame, DPMixture(random_state=0).fit(frame)


def test_portrait_is_that_of_the_rows(mixed):
    frame, model = mixed
    portrait = model.portrait_
    for k in range(model.n_clusters_):
        here = frame[model.labels_ == k]
        for p, name in enumerate(["age", "noise"]):
            values = here[name].dropna()
            assert portrait.seen[k, p] == len(values)
            assert portrait.means[k, p] == pytest.approx(values.mean())
            assert portrait.deviations[k, p] == pytest.approx(values.std(ddof=0))
        shares = here["color"].value_counts(normalize=True)
        expected = [shares.get(c, 0.0) for c in model._coding.categories[1]]
        assert portrait.shares[0][k] == pytest.approx(expected)
        proba = model.predict_proba(here)[:, k]
        assert portrait.sureness[k] == pytest.approx(proba.mean())
    assert portrait.means[-1] == pytest.approx(frame[["age", "noise"]].mean())


def test_scores_are_divergences_per_row(mixed):
    frame, model = mixed
    lines = model.describe().set_index(["cluster", "feature"])
    here, age = frame[model.labels_ == 0], frame["age"]
    ratio = (here["age"].std(ddof=0) / age.std(ddof=0)) ** 2
    apart = (here["age"].mean() - age.mean()) / age.std(ddof=0)
    expected = 0.5 * (ratio - 1 - np.log(ratio) + apart**2)
    assert lines.loc[(0, "age"), "score"] == pytest.approx(expected)
    p = here["color"].value_counts(normalize=True)
    q = frame["color"].value_counts(normalize=True)
    expected = sum(p[c] * np.log(p[c] / q[c]) for c in p.index)
    assert lines.loc[(0, "color"), "score"] == pytest.approx(expected)
    assert (0, "noise") not in lines.index  # says nothing


def test_sureness_of_dp_means_is_the_simplified_silhouette():
    model = DPMeans(n_clusters=3, random_state=0).fit(ROWS)
    distances = np.sort(model.transform(ROWS), axis=1)
    silhouette = 1.0 - distances[:, 0] / distances[:, 1]
    expected = [silhouette[model.labels_ == k].mean() for k in range(3)]
    assert model.summary()["sureness"].tolist() == pytest.approx(expected)
    assert DPMeans(n_clusters=1).fit(ROWS).summary()["sureness"].tolist() == [1.0]


def test_sureness_of_features_is_what_error_would_rise_by():
    model = BPMeans(random_state=0).fit(ROWS)
    Z, A = model.transform(ROWS), model.components_
    error = np.square(ROWS - Z @ A).sum(axis=1)
    for k, sure in enumerate(model.summary()["sureness"]):
        without = np.square(ROWS - Z @ A + Z[:, [k]] * A[k]).sum(axis=1)
        has = Z[:, k] == 1.0
        assert sure == pytest.approx(np.mean(1.0 - error[has] / without[has]))


def test_noise_has_a_line():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.1, (300, 2)), rng.uniform(-9, 9, (60, 2))])
    model = DPMixture(noise=True, random_state=0).fit(X)
    told = model.summary()
    assert told["cluster"].iloc[-1] == -1
    assert told["size"].iloc[-1] == np.count_nonzero(model.labels_ < 0) > 0
    assert told["share"].sum() == pytest.approx(1.0)


def test_sizes_are_weights():
    weights = np.arange(len(ROWS)) % 3.0
    model = DPMeans(n_clusters=2, random_state=0).fit(ROWS, sample_weight=weights)
    expected = np.bincount(model.labels_, weights)
    assert model.summary()["size"].tolist() == pytest.approx(expected.tolist())


def test_columns_are_told_by_weighted_rows():
    weights = np.arange(len(ROWS)) % 3.0
    model = DPMeans(n_clusters=2, random_state=0).fit(ROWS, sample_weight=weights)
    kept = np.repeat(ROWS, weights.astype(int), axis=0)
    labels = np.repeat(model.labels_, weights.astype(int))
    portrait, sure = model.portrait_, model._sureness(kept, labels)
    for k in range(2):
        here = kept[labels == k]
        assert portrait.seen[k] == pytest.approx(len(here))
        assert portrait.means[k] == pytest.approx(here.mean(axis=0))
        assert portrait.deviations[k] == pytest.approx(here.std(axis=0))
        assert portrait.sureness[k] == pytest.approx(sure[labels == k].mean())
    assert portrait.means[-1] == pytest.approx(kept.mean(axis=0))


def test_rare_clusters_of_large_tables_are_described():
    """A sample of all rows would have hardly one of theirs."""
    rng = np.random.default_rng(0)
    sizes = [199_900, 90, 10]
    centers = np.array([[0.0, 0.0], [500.0, 0.0], [0.0, 500.0]])
    X = np.repeat(centers, sizes, axis=0) + rng.normal(size=(200_000, 2))
    X = rng.permutation(X)
    model = DPMeans(n_clusters=3, random_state=0).fit(X)
    told = model.summary()
    assert told["size"].tolist() == sizes
    for k in (1, 2):
        here = X[model.labels_ == k]
        assert model.portrait_.seen[k].tolist() == [sizes[k]] * 2
        assert model.portrait_.means[k] == pytest.approx(here.mean(axis=0))
    assert told["name"].str.startswith("high column").tolist() == [False, True, True]


def test_a_row_of_totals_hides_nothing():
    """What groups are compared with is the usual rows."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0, 0], [9, 0, 0]], 150, axis=0) + rng.normal(size=(300, 3))
    plain = DPMeans(n_clusters=2, random_state=0).fit(X)
    totals = np.vstack([X, X.sum(axis=0) + 500.0])
    model = DPMeans(n_clusters=3, random_state=0).fit(totals)
    assert sorted(model.summary()["size"]) == [1.0, 150.0, 150.0]
    expected, told = plain.describe(), model.describe()
    told = told[told["cluster"] < 2].reset_index(drop=True)
    names = ["feature", "here", "overall"]
    pd.testing.assert_frame_equal(told[names], expected[names])
    np.testing.assert_allclose(told["score"], expected["score"], rtol=1e-6)
    portrait = model.portrait_
    np.testing.assert_allclose(portrait.means[-1], X.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(portrait.deviations[-1], X.std(axis=0), rtol=1e-6)


def test_words():
    X = np.repeat([[0.0, 5.0], [10.0, 5.0]], 50, axis=0)
    X += np.tile([[0.1, 0.2], [-0.1, -0.2]], (50, 1))
    told = DPMeans(n_clusters=2, random_state=0).fit(X).summary()
    assert told["set_apart"].tolist() == [
        "column 0 low (0.0, overall 5.0)",
        "column 0 high (10.0, overall 5.0)",
    ]
    frame = pd.DataFrame(X, columns=["income", "rest"])
    told = DPMeans(n_clusters=2, random_state=0).fit(frame).summary()
    assert told["set_apart"][1] == "income high (10.0, overall 5.0)"
    assert told["name"].tolist() == ["low income", "high income"]


def test_names(mixed):
    told = mixed[1].summary()
    assert {frozenset(name.split(", ")) for name in told["name"]} == {
        frozenset({"color blue", "high age"}),
        frozenset({"color green", "narrow age"}),
        frozenset({"color red", "low age"}),
    }


def test_names_of_features_and_of_rare_categories():
    added = Addend(np.array([2.0, -2.0]), 0.0, 1.0)
    assert [added.short(k, "hue") for k in (0, 1)] == ["more hue", "less hue"]
    shares = np.array([[0.2, 0.4, 0.4], [0.8, 0.1, 0.1], [0.5, 0.25, 0.25]])
    pets = Categories(("cat", "dog", "fox"), shares)
    assert pets.short(1, "pet") == "pet cat"
    few = np.array([[0.0, 0.0], [0.5, 0.5]])
    assert Categories(("cat", "dog"), few * np.nan).short(0, "pet") == ""


@pytest.mark.parametrize(
    ("value", "scale", "words"),
    [
        (45_231.4, 9_000.0, "45,231"),
        (-0.0001, 1.0, "0.0"),
        (0.01234, 0.004, "0.0123"),
        (1.765e-14, 1.5e-7, "0"),
        (1.765e-14, 1.0, "0.0"),
        (1.08e-6, 3.0, "0.0"),
        (1e300, 1e299, "1e+300"),
        (7.0, 0.0, "7"),
        (np.nan, 1.0, "missing"),
    ],
)
def test_numbers_are_written_as_people_write_them(value, scale, words):
    assert say_number(value, scale) == words


def test_large_tables_are_looked_at_in_part_and_sizes_are_exact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 2)) + 20.0 * rng.integers(0, 2, (30_000, 1))
    model = DPMeans(n_clusters=2, random_state=0).fit(X)
    assert model.portrait_.seen[-1, 0] == 10_000
    assert model.summary()["size"].tolist() == model.cluster_sizes_.tolist()
    whole = kplus.describe(model, X)
    assert whole["size"].tolist() == model.describe()["size"].tolist()


def test_other_tables(tmp_path, mixed):
    frame, model = mixed
    path = tmp_path / "rows.csv"
    frame[:40].to_csv(path, index=False)
    told = kplus.describe(model, path)
    pd.testing.assert_frame_equal(told, kplus.describe(model, frame[:40]))
    one = kplus.describe(model, frame[:1])
    assert set(one["cluster"]) == set(range(model.n_clusters_))
    kplus.save(model, tmp_path / "model.kplus")
    again = kplus.load(tmp_path / "model.kplus")
    pd.testing.assert_frame_equal(again.summary(), model.summary())


def test_shifted_columns_keep_their_units():
    X = ROWS - 3.0
    model = MEIBP(negative="shift", random_state=0).fit(X)
    assert model.portrait_.means[-1] == pytest.approx(X.mean(axis=0))
    overall = model.describe()["overall"][0]
    assert overall.startswith(("-", "0", "1"))


def test_streams_are_described_by_their_last_batch():
    model = seeded(DPMeans(n_clusters=2)).partial_fit(ROWS[:30])
    model.partial_fit(ROWS[30:])
    assert model.summary()["size"].sum() == 30


def test_no_features():
    with pytest.warns(UserWarning, match="no feature"):
        model = BPMeans(penalty=1e9).fit(ROWS)
    assert len(model.summary()) == 0
    assert len(model.describe()) == 0


def test_mistakes():
    with pytest.raises(TypeError, match="fitted estimator of kplus"):
        kplus.describe(object(), ROWS)
    with pytest.raises(ValueError, match="not fitted"):
        kplus.describe(DPMeans(), ROWS)
    with pytest.raises(ValueError, match="5 features"):
        kplus.describe(DPMeans(n_clusters=2).fit(ROWS), ROWS[:, :3])
