"""CRAFT: what a fit finds and reports, on tables of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

from craft_objective import objective_of
from kplus import CRAFT
from kplus.data import frames as _frames
from kplus.datasets import make_subspace_clusters

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

GROUPS = 3


def columns(n=150, seed=0):
    """A mixed table by columns, and its groups."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, GROUPS, n)
    noisy = np.where(rng.random(n) < 0.9, z, rng.integers(0, GROUPS, n))
    color = np.array(["red", "green", "blue"])[noisy].tolist()
    age = rng.normal(30.0 + 15.0 * z, 3.0)
    age[rng.random(n) < 0.1] = np.nan
    return {
        "age": age,
        "color": [None if rng.random() < 0.1 else c for c in color],
        "noise": rng.normal(size=n),
        "member": (z == 1).tolist(),
    }, z


def frame_of(n=150, seed=0):
    table, z = columns(n, seed)
    return pd.DataFrame(table), z


def codes_of(frame):
    """The frame as a block is: codes of sorted categories."""
    names = ["blue", "green", "red"]
    color = frame["color"].map({c: i for i, c in enumerate(names)}).to_numpy(float)
    member = frame["member"].to_numpy(float)
    return np.column_stack([frame["age"], color, frame["noise"], member])


LEVELS = (None, 3, None, 2)


@pytest.fixture(scope="module")
def mixed():
    return frame_of()


@pytest.fixture(scope="module")
def craft(mixed):
    return CRAFT(random_state=0).fit(mixed[0])


def same_fit(one, two):
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-12)
    np.testing.assert_array_equal(one.selected_features_, two.selected_features_)


# ------------------------------------------------------------------------ one fit


def test_what_a_fit_says(craft, mixed):
    frame, z = mixed
    assert craft.n_clusters_ == 3
    assert adjusted_rand_score(z, craft.labels_) > 0.9
    np.testing.assert_array_equal(craft.cluster_sizes_, np.bincount(craft.labels_))
    assert np.all(np.diff(craft.cluster_sizes_) <= 0)
    assert craft.selected_features_.shape == craft.feature_scores_.shape == (3, 4)
    assert craft.selected_features_.dtype == bool
    assert not craft.selected_features_[:, 2].any()  # noise
    assert craft.selected_features_[:, 0].all()
    assert np.all(craft.feature_scores_[:, 0] > craft.feature_scores_[:, 2])
    assert craft.categories_ == (None, ("blue", "green", "red"), None, (False, True))
    np.testing.assert_array_equal(craft.n_missing_, frame.isna().sum())
    assert craft.n_features_in_ == 4
    assert craft.feature_names_in_.tolist() == list(frame)
    assert craft.penalty_ == pytest.approx(0.5 * np.log(150))
    assert craft.converged_
    assert craft.n_iter_ == len(craft.objective_history_)
    assert craft.objective_ == craft.objective_history_[-1]
    assert craft.path_["n_clusters"].tolist() == sorted(craft.path_["n_clusters"])


def test_the_objective_is_that_of_the_rows(craft, mixed):
    """CR-2: J by its definition."""
    X = codes_of(mixed[0])
    expected = objective_of(X, np.ones(150), LEVELS, craft.labels_, 3)
    assert craft.objective_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("figure", ["2a", "3a"])
def test_the_papers_tables(figure):
    X, truth, subspaces = make_subspace_clusters(figure, random_state=0)
    kind = list(range(X.shape[1])) if X.dtype.kind == "i" else "from_dtype"
    craft = CRAFT(categorical_features=kind, random_state=0).fit(X)
    assert adjusted_rand_score(truth, craft.labels_) == 1.0
    of = [np.bincount(truth[craft.labels_ == k]).argmax() for k in range(3)]
    np.testing.assert_array_equal(craft.selected_features_, subspaces[of])


def test_settings(mixed):
    frame, _ = mixed
    assert CRAFT(n_clusters=5, random_state=0).fit(frame).n_clusters_ == 5
    assert CRAFT(max_clusters=2, random_state=0).fit(frame).n_clusters_ == 2
    assert CRAFT(penalty=1e6, random_state=0).fit(frame).n_clusters_ == 1
    half = CRAFT(0.5, random_state=0).fit(frame)
    np.testing.assert_array_equal(half.selected_features_.sum(axis=1), 2)
    loose = CRAFT(variance_threshold=1e9, category_threshold=1e-9, random_state=0)
    assert loose.fit(frame).selected_features_[:, [0, 2]].all()
    shared = CRAFT(0.5, sharing=1.0, random_state=0).fit(frame)
    assert shared.n_clusters_ >= 2
    again = CRAFT(n_clusters=4, n_init=3, random_state=0).fit(frame)
    assert again.n_clusters_ == 4


@pytest.mark.parametrize("numeric", ["gaussian", "quantile", "yeo-johnson"])
def test_ways_to_see_numbers(numeric, mixed):
    frame, z = mixed
    frame = frame.assign(age=np.exp(frame["age"] / 20.0))
    craft = CRAFT(numeric=numeric, random_state=0).fit(frame)
    assert adjusted_rand_score(z, craft.labels_) > 0.7
    np.testing.assert_array_equal(craft.predict(frame), craft.labels_)
    np.testing.assert_array_equal(craft.n_missing_, frame.isna().sum())
    text = craft.describe()
    age = text[text["feature"] == "age"]["overall"].iloc[0]
    assert float(age.split(" ± ")[0]) == pytest.approx(frame["age"].mean(), rel=1e-3)


def test_heavy_tails_make_no_clusters_of_quantiles():
    X = np.random.default_rng(0).standard_t(1.5, (300, 5))
    assert CRAFT(numeric="quantile", random_state=0).fit(X).n_clusters_ == 1


# ------------------------------------------------------------------------- tables


def as_pandas(table, folder):
    return pd.DataFrame(table)


def as_pandas_categories(table, folder):
    return pd.DataFrame(table).astype({"color": "category"})


def as_polars(table, folder):
    return pl.DataFrame(table).with_columns(pl.col("age").fill_nan(None))


def as_arrow(table, folder):
    return pa.table(table)


def as_csv(table, folder):
    pd.DataFrame(table).to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def as_parquet(table, folder):
    pq.write_table(pa.table(table), folder / "table.parquet")
    return str(folder / "table.parquet")


def as_objects(table, folder):
    return pd.DataFrame(table).to_numpy(dtype=object)


@pytest.mark.parametrize(
    "make",
    [
        as_pandas,
        as_pandas_categories,
        as_polars,
        as_arrow,
        as_csv,
        as_parquet,
        as_objects,
    ],
)
def test_every_source_gives_the_same(make, craft, tmp_path):
    X = make(columns()[0], tmp_path)
    again = CRAFT(random_state=0).fit(X)
    same_fit(again, craft)
    np.testing.assert_array_equal(again.predict(X), craft.labels_)
    np.testing.assert_array_equal(again.n_missing_, craft.n_missing_)
    assert tuple(map(str, again.categories_)) == tuple(map(str, craft.categories_))


@pytest.mark.parametrize("chosen", [[1, 3], [False, True, False, True], [3, 1]])
def test_arrays_with_categories(chosen, craft, mixed):
    X = codes_of(mixed[0])
    again = CRAFT(categorical_features=chosen, random_state=0).fit(X)
    same_fit(again, craft)
    assert again.categories_ == (None, (0, 1, 2), None, (0, 1))
    assert not hasattr(again, "feature_names_in_")
    np.testing.assert_array_equal(again.predict(X), craft.labels_)


def test_frames_with_categories_by_name(craft, mixed):
    X = pd.DataFrame(codes_of(mixed[0]), columns=list(mixed[0]))
    for chosen in (["color", "member"], np.array(["member", "color"]), [1, 3]):
        again = CRAFT(categorical_features=chosen, random_state=0).fit(X)
        same_fit(again, craft)
        assert again.categories_[1] == (0, 1, 2)


def test_numbers_only_have_no_categories(blobs):
    craft = CRAFT(random_state=0).fit(blobs)
    assert adjusted_rand_score(np.repeat(np.arange(4), 50), craft.labels_) == 1.0
    assert not hasattr(craft, "categories_")
    craft.fit(frame_of()[0])
    assert hasattr(craft, "categories_")
    craft.fit(blobs)
    assert not hasattr(craft, "categories_")
    same = CRAFT(random_state=0).fit(blobs.tolist())
    np.testing.assert_array_equal(same.labels_, craft.labels_)


def test_order_batches_and_threads_do_not_matter(craft, mixed):
    frame, _ = mixed
    order = np.random.default_rng(0).permutation(len(frame))
    again = CRAFT(batch_size=23, n_jobs=2, random_state=0).fit(frame.iloc[order])
    np.testing.assert_array_equal(again.labels_, craft.labels_[order])


def test_weights(mixed):
    frame, _ = mixed
    weights = np.random.default_rng(0).integers(0, 3, len(frame))
    copies = frame.iloc[np.repeat(np.arange(len(frame)), weights)]
    one = CRAFT(random_state=0).fit(frame, sample_weight=weights)
    two = CRAFT(random_state=0).fit(copies)
    np.testing.assert_array_equal(np.repeat(one.labels_, weights), two.labels_)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-10)
    np.testing.assert_allclose(one.cluster_sizes_, two.cluster_sizes_)
    np.testing.assert_allclose(one.n_missing_, two.n_missing_)
    labels = CRAFT(random_state=0).fit_predict(frame, sample_weight=weights)
    np.testing.assert_array_equal(labels, one.labels_)


# ----------------------------------------------------------------- rows after a fit


def test_rows_after_a_fit(craft, mixed):
    frame, _ = mixed
    scores = craft.transform(frame)
    assert scores.shape == (150, 3)
    np.testing.assert_array_equal(craft.predict(frame), craft.labels_)
    np.testing.assert_array_equal(scores.argmax(axis=1), craft.labels_)
    np.testing.assert_array_equal(craft.score_samples(frame), scores.max(axis=1))
    assert craft.score(frame) == pytest.approx(scores.max(axis=1).mean())
    assert craft.predict(frame.iloc[:1]).shape == (1,)
    np.testing.assert_allclose(craft.fit_transform(frame), scores)


def test_missing_values_count_for_nothing(craft):
    """A row without values goes to the largest cluster."""
    empty = pd.DataFrame(
        {"age": [None], "color": [None], "noise": [np.nan], "member": [None]}
    )
    shares = np.log(craft.cluster_sizes_ / 150)
    np.testing.assert_allclose(craft.transform(empty)[0], shares)
    assert craft.predict(empty)[0] == 0


def test_unknown_categories(craft, mixed):
    frame = mixed[0].iloc[:4].assign(color="purple")
    with pytest.raises(ValueError, match=r"(?s)'color'.*purple|purple.*'color'"):
        craft.predict(frame)
    lenient = CRAFT(handle_unknown="missing", random_state=0).fit(mixed[0])
    np.testing.assert_allclose(
        lenient.transform(frame), lenient.transform(frame.assign(color=None))
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_output_as_frames(library, mixed):
    frame, _ = mixed
    craft = CRAFT(random_state=0).set_output(transform=library).fit(frame)
    scores = craft.transform(frame)
    assert type(scores).__module__.startswith(library)
    assert list(scores.columns) == ["craft0", "craft1", "craft2"]
    assert craft.get_feature_names_out().tolist() == list(scores.columns)
    labels = craft.predict(frame)
    assert isinstance(labels, np.ndarray)
    np.testing.assert_array_equal(labels, craft.labels_)
    samples = craft.score_samples(frame)
    assert isinstance(samples, np.ndarray)
    np.testing.assert_array_equal(samples, scores.to_numpy().max(axis=1))
    assert craft.score(frame) == pytest.approx(samples.mean())


# -------------------------------------------------------------------- descriptions


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_descriptions_in_the_library_that_is_there(library, craft, monkeypatch):
    monkeypatch.setattr(_frames, "find_spec", lambda name: name == library or None)
    text = craft.describe()
    assert type(text).__module__.startswith(library)
    plain = text.to_pandas() if library != "pandas" else text
    assert list(plain) == [
        "cluster", "size", "share", "feature", "score", "here", "overall",
    ]  # fmt: skip
    for k in range(3):
        mine = plain[plain["cluster"] == k]
        assert np.all(mine["size"] == craft.cluster_sizes_[k])
        assert np.all(np.diff(mine["score"]) <= 0.0)
        told = craft.feature_names_in_[craft.selected_features_[k]]
        assert set(mine["feature"]) == set(told)
    assert plain.groupby("cluster")["share"].first().sum() == pytest.approx(1.0)


def test_descriptions_are_of_the_rows(craft, mixed):
    frame, _ = mixed
    text = craft.describe().set_index(["cluster", "feature"])
    for k in range(3):
        age = frame["age"][craft.labels_ == k]
        expected = f"{age.mean():.0f} ± {age.std(ddof=0):.0f}"
        assert text.loc[(k, "age"), "here"] == expected
    whole = frame["color"].value_counts(normalize=True)
    overall = text.xs("color", level="feature")["overall"].iloc[0]
    assert overall == ", ".join(f"{c} {s:.0%}" for c, s in whole.items())


def test_descriptions_without_features_and_without_libraries(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 3))
    craft = CRAFT(random_state=0).fit(X)
    text = craft.describe()
    assert len(text) == craft.n_clusters_ == 1
    assert text["feature"].isna().all()
    monkeypatch.setattr(_frames, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pandas, polars or pyarrow"):
        craft.describe()
