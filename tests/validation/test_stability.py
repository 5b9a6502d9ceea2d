"""Stability: known truth, every estimator, every kind of table, the same bits."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kplus
from every_estimator import DEFAULTS, ROWS, bits, mixed_rows, seeded
from kplus import CRAFT, BPMeans, DPMeans, DPMixture, stability, validate
from kplus.data.reading import ColumnsWarning
from kplus.validation.stability_result import Stability

FRAME, GROUPS = mixed_rows()
BLOBS, TRUTH = make_blobs(240, centers=3, n_features=3, random_state=1)


def some(model, X, **given):
    settings = {"n_resamples": 4, "random_state": 0} | given
    return stability(model, X, **settings)


@pytest.mark.parametrize(
    "model", [DPMeans(), DPMixture("diag_gaussian", n_init=1), CRAFT()], ids=str
)
def test_groups_that_are_there_are_stable(model):
    result = some(seeded(model), BLOBS)
    assert result.overall > 0.85
    assert result.is_stable
    assert result.verdict == "Stable: all 3 clusters come back."
    assert result.number_counts == {3: 4}
    assert np.nanmin(result.row_agreement) == 1.0


def test_halves_of_one_gaussian_are_not():
    model, found = DPMeans(n_clusters=2, random_state=0), []
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(300, 10))
        found.append(some(model, X, n_resamples=8))
    assert np.mean([result.overall for result in found]) < 0.6
    assert not any(result.is_stable for result in found)
    # The plain index of a cluster of nearly all rows would be high.
    lone = made([0.98], [1, 1], by_chance=0.97)
    assert lone.group_jaccard[0] > 0.9 > 0.6 > lone.overall


def test_a_single_cluster_is_found_again():
    X = np.random.default_rng(0).normal(size=(300, 2))
    result = some(DPMeans(n_clusters=1), X)
    assert result.overall == 1.0
    assert result.verdict == "Stable: no fit finds a second cluster."


@pytest.mark.parametrize("model", DEFAULTS, ids=lambda m: type(m).__name__)
@pytest.mark.filterwarnings("ignore:BPMeans found no feature")
def test_every_estimator_fitted_or_not(model):
    model = seeded(model)
    fresh = some(model, ROWS, n_resamples=2)
    result = some(model.fit(ROWS), ROWS, n_resamples=2)
    for each in (fresh, result):
        assert each.jaccard.shape == (2, each.n_groups)
        assert each.n_groups > 0
        assert np.nanmin(each.jaccard) >= 0.0
        assert np.nanmax(each.jaccard) <= 1.0
        assert len(each.row_agreement) == len(ROWS)
        assert len(each.summary()) == each.n_groups
    is_for_clusters = hasattr(model, "predict")
    assert result.kind == ("clusters" if is_for_clusters else "features")


@pytest.mark.parametrize("method", ["bootstrap", "subsample", "seeds"])
def test_same_bits_for_any_number_of_threads(method):
    model = DPMeans(random_state=0)
    if method == "bootstrap":
        model = DPMixture("diag_gaussian", n_init=1, random_state=0)
    model.fit(BLOBS)
    one = some(model, BLOBS, method=method, n_jobs=1)
    two = some(model, BLOBS, method=method, n_jobs=2)
    assert bits(one) == bits(two)
    other = some(model, BLOBS, method=method, random_state=1)
    assert method == "seeds" or bits(one) != bits(other)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "csv", "folder"])
def test_frames_with_categories_and_gaps(library, tmp_path):
    frame = FRAME
    if library in ("csv", "folder"):
        frame = tmp_path / "table.csv"
        FRAME.to_csv(frame, index=False)
        if library == "folder":
            frame = tmp_path / "converted"
            kplus.convert(tmp_path / "table.csv", frame)
    elif library != "pandas":
        frame = pl.from_pandas(FRAME)
        frame = frame if library == "polars" else frame.to_arrow()
    result = some(CRAFT(random_state=0).fit(frame), frame)
    assert result.overall > 0.85
    same = some(CRAFT(random_state=0).fit(FRAME), FRAME)
    assert bits(result.jaccard) == bits(same.jaccard)


def test_mixtures_of_frames():
    model = DPMixture("mixed", n_clusters=3, n_components=3, moves=(), n_init=1)
    result = some(seeded(model).fit(FRAME[::2]), FRAME[::2], n_resamples=2)
    assert result.n_groups == 3
    assert result.n_failed == 0


def test_rare_categories_that_a_resample_lacks():
    frame = FRAME.assign(color=[f"one of its own {i}" for i in range(len(FRAME))])
    frame["color"] = frame["color"].where(frame.index < 5, "blue")
    result = some(CRAFT(random_state=0).fit(frame), frame)
    assert result.n_failed == 0


def test_fits_that_are_not_possible_are_counted():
    frame = pd.DataFrame({"a": BLOBS[:, 0], "rare": np.nan})
    frame.loc[:1, "rare"] = [1.0, 2.0]  # in none of the rows of some fits
    model = CRAFT(random_state=0).fit(frame)
    with pytest.warns(UserWarning, match=r"of 20 fits .* left out.*column 'rare'"):
        result = some(model, frame, n_resamples=20, method="subsample")
    assert 0 < result.n_failed < 20
    assert len(result.jaccard) == result.n_resamples == 20 - result.n_failed
    assert f"{result.n_failed} fits were not possible" in repr(result)


def test_a_column_that_numbers_rows_is_left_out_of_all_fits():
    """Of drawn rows the numbers have gaps, so that they seem to be worth something."""
    plain = pd.DataFrame(BLOBS, columns=list("abc"))
    counted = plain.assign(place=np.arange(240))
    unfitted = some(DPMeans(), plain)
    with pytest.warns(ColumnsWarning, match="place"):
        again = some(DPMeans(), counted)
    assert bits(again) == bits(unfitted)
    with pytest.warns(ColumnsWarning, match="place"):
        model = DPMixture("diag_gaussian", random_state=0).fit(counted)
    scores = validate(model, counted, cv=3, random_state=0).held_out
    expected = validate(model, plain, cv=3, random_state=0).held_out
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("suffix", [".npy", ".parquet", "blocks"])
def test_stored_tables(suffix, tmp_path):
    X = BLOBS.astype(np.float32)
    model, table = DPMeans(random_state=0).fit(X), tmp_path / f"rows{suffix}"
    if suffix == ".npy":
        np.save(table, X)
    elif suffix == ".parquet":
        pd.DataFrame(X, columns=list("abc")).to_parquet(table)
        model = DPMeans(random_state=0).fit(table)
    else:
        table = kplus.open_files(_saved(X, tmp_path))
    assert bits(some(model, table)) == bits(some(DPMeans(random_state=0).fit(X), X))


def _saved(X, folder):
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def test_large_tables_are_sampled_and_it_is_said():
    result = some(DPMeans(random_state=0).fit(BLOBS), BLOBS, max_rows=100)
    assert result.is_sampled
    assert len(result.rows) == 100
    assert "100 of its 240 rows" in repr(result)


def test_other_tables_and_estimators():
    for X in (sp.csr_array(BLOBS), BLOBS.tolist(), BLOBS.astype("f4"), BLOBS + 1e9):
        assert some(DPMeans(random_state=0), X).is_stable
    scaled = make_pipeline(StandardScaler(), DPMeans(random_state=0))
    assert some(scaled.fit(BLOBS), BLOBS).is_stable
    assert some(KMeans(3, n_init=3), BLOBS).is_stable
    fitted = HDBSCAN(min_cluster_size=20, copy=True).fit(BLOBS)
    assert some(fitted, BLOBS).overall > 0.85
    with pytest.raises(ValueError, match="labels_ are those of 240 rows"):
        some(fitted, BLOBS[:100])


def test_noise_has_a_line_of_its_own():
    rng = np.random.default_rng(0)
    X = np.concatenate([BLOBS, rng.uniform(-60, 60, (12, 3))])
    result = some(DPMixture("diag_gaussian", noise=True, n_init=1, random_state=0), X)
    assert result.noise_jaccard is not None
    frame = result.summary()
    assert frame["cluster"].tolist()[-1] == -1
    assert frame["rows"].tolist()[-1] == result.noise_size > 0
    assert result.sizes.sum() + result.noise_size == len(X)


def test_weights_leave_rows_out_and_count():
    weights = np.where(TRUTH == 0, 0.0, 2.0)
    model = DPMeans(random_state=0)
    result = some(model, BLOBS, sample_weight=weights)
    assert result.n_groups == 2
    assert not np.isin(result.rows, np.flatnonzero(TRUTH == 0)).any()
    assert result.sizes.sum() == weights.sum()
    with pytest.raises(TypeError, match=r"IBPGibbs.fit takes no sample_weight"):
        some(kplus.IBPGibbs(n_samples=2), ROWS, sample_weight=np.full(60, 2.0))


def test_progress_and_the_estimator_stay_as_they_are():
    seen, model = [], DPMeans(random_state=0, n_jobs=2, verbose=0).fit(BLOBS)
    before = bits(vars(model)["labels_"]), model.get_params()
    some(model, BLOBS, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert (bits(model.labels_), model.get_params()) == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_resamples": 0}, "n_resamples must be an int of at least 1"),
        ({"n_resamples": True}, "n_resamples"),
        ({"max_rows": 3}, "max_rows must be an int of at least 4"),
        ({"method": "jackknife"}, "method must be one of 'bootstrap'"),
    ],
)
def test_bad_settings(given, message):
    with pytest.raises(ValueError, match=message):
        some(DPMeans(), BLOBS, **given)


def test_too_few_rows_and_no_fit_at_all():
    with pytest.raises(ValueError, match="needs 4 or more rows"):
        some(DPMeans(), BLOBS[:3])
    with pytest.raises(ValueError, match="None of 4 fits was possible: n_samples"):
        some(DPMeans(n_clusters=6).fit(BLOBS[:6]), BLOBS[:6])


def test_no_features_at_all():
    with pytest.warns(UserWarning, match="no feature"):
        model = BPMeans(1e9).fit(ROWS)
    result = some(model, ROWS)
    assert result.verdict == "There are no features to judge."
    assert np.isnan(result.overall)
    assert not result.is_stable


def made(values, n_found, kind="clusters", by_chance=0.0):
    """A result whose groups have these stabilities."""
    values = np.array([values, values], dtype=float)
    return Stability(
        "bootstrap", 100, np.arange(100), kind, np.full(values.shape[1], 10.0), values,
        np.full_like(values, by_chance), None, np.ones(100), np.array(n_found),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "n_found", "words"),
    [
        ([0.9, 0.8], [2, 2], "Stable: both clusters come back."),
        ([0.9, 0.3, 0.5], [3, 3], "Not stable: clusters 1 and 2 come and go."),
        ([0.9, 0.3, 0.8], [3, 3], "Not stable: cluster 1 comes and goes."),
        (
            [0.9, 0.7],
            [2, 3],
            "Partly stable: cluster 1 keeps its core, but not all rows. The number is "
            "less sure: 1 of 2 fits find another, 2 to 3 in all.",
        ),
        (
            [0.9, 0.8],
            [3, 3],
            "Stable: both clusters come back. But all 2 fits find 3 clusters.",
        ),
        (
            [0.9, *[0.1] * 7],
            [8, 8],
            "Not stable: clusters 1, 2, 3, 4, 5 and 2 more come and go.",
        ),
        ([0.2], [1, 1], "Not stable: the one cluster does not come back."),
        ([0.9, np.nan], [2, 2], "Stable: both clusters come back."),
    ],
)
def test_words(values, n_found, words):
    result = made(values, n_found)
    assert str(result) == words
    assert repr(result).startswith(words)


def test_dissolved_counts_fits():
    result = made([0.9, 0.4], [2, 2])
    np.testing.assert_array_equal(result.dissolved, [0.0, 1.0])
    assert result.summary()["verdict"].tolist() == ["stable", "not stable"]
    assert made([0.9], [1, 1], "features").summary().columns[0] == "feature"
