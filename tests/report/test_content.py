"""What a report says of clusters, by brute force over the rows of a frame."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from every_estimator import mixed_rows
from kplus import DPMeans, DPMixture
from kplus.base.description import traits_of
from kplus.report.content import Bar, Histogram, Interval, gather, histogram, say_value
from kplus.report.rows import column_names, draw

FRAME, _ = mixed_rows()
NUMBERS = ["age", "noise"]


def gathered(model, X, names=None):
    drawn = draw(model, X, model.labels_, names)
    own = model.labels_[drawn.numbers]
    portrait = drawn.portrait(model, own)
    return gather(model, portrait, drawn, own)


@pytest.fixture(scope="module")
def model():
    return DPMixture(n_init=1, random_state=0).fit(FRAME)


@pytest.fixture(scope="module")
def content(model):
    return gathered(model, FRAME)


def rows_of(model, k):
    return FRAME[model.labels_ == k]


def test_sizes_and_shares(model, content):
    sizes = np.bincount(model.labels_)
    assert [c.size for c in content.clusters] == sizes.tolist()
    assert [c.share for c in content.clusters] == pytest.approx(sizes / len(FRAME))
    assert [c.number for c in content.clusters] == list(range(len(sizes)))
    assert (content.n_rows, content.n_outside) == (len(FRAME), 0.0)
    sure = model.predict_proba(FRAME).max(axis=1)
    assert content.sureness == pytest.approx(sure.mean(), abs=1e-3)


def test_columns_that_tell_come_first(model, content):
    """As kplus.describe ranks them; those that tell nothing are listed as such."""
    lines = model.describe()
    for c in content.clusters:
        here = lines[(lines["cluster"] == c.number) & (lines["score"] >= 0.02)]
        assert [t.name for t in c.telling] == here["feature"].tolist()[:4]
        assert len(c.apart) == len(c.telling)
    told = {t.name for c in content.clusters for t in c.telling}
    assert set(content.idle) == set(FRAME) - told


def test_columns_that_did_not_matter():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat([0.0, 50.0], 400), rng.normal(size=(800, 2))])
    frame = pd.DataFrame(X, columns=["tells", "chance", "more chance"])
    content = gathered(DPMeans(n_clusters=2, random_state=0).fit(frame), frame)
    assert content.idle == ("chance", "more chance")


def test_histograms_count_the_rows(model, content):
    for c in content.clusters:
        (telling,) = [t for t in c.telling if t.name == "age"]
        picture = telling.picture
        assert isinstance(picture, Histogram)
        edges = np.array(picture.edges)
        for shares, values in [
            (picture.here, rows_of(model, c.number)["age"].dropna()),
            (picture.overall, FRAME["age"].dropna()),
        ]:
            expected = [
                np.mean((values >= low) & ((values < high) | (high == edges[-1])))
                for low, high in itertools.pairwise(edges)
            ]
            assert list(shares) == pytest.approx(expected)
            assert sum(shares) == pytest.approx(1.0)


def test_bars_are_shares_of_categories(model, content):
    for c in content.clusters:
        (telling,) = [t for t in c.telling if t.name == "color"]
        here = rows_of(model, c.number)["color"].value_counts(normalize=True)
        overall = FRAME["color"].value_counts(normalize=True)
        for bar in telling.picture:
            assert isinstance(bar, Bar)
            assert bar.here == pytest.approx(here.get(bar.name, 0.0))
            assert bar.overall == pytest.approx(overall[bar.name])
        assert telling.picture[0].name == here.index[0]


def _costs(frame, labels):
    """How unlike its group each row is, row by row and column by column."""
    costs = np.zeros(frame.shape)
    for i, k in enumerate(labels):
        own = frame[labels == k]
        for j, name in enumerate(frame):
            value, here = frame[name].iloc[i], own[name].dropna()
            if name in NUMBERS:
                z = (value - here.mean()) / here.std(ddof=0)
                costs[i, j] = 1.0 if math.isnan(value) else min(abs(z), 10.0) ** 2
            else:
                shares = here.value_counts(normalize=True)
                costs[i, j] = -2.0 * math.log(shares[value])
    return costs


def test_typical_rows_are_nearest_to_their_group(model):
    content = gathered(model, FRAME)
    costs = _costs(FRAME, model.labels_).mean(axis=1)
    for c in content.clusters:
        rows = np.flatnonzero(model.labels_ == c.number)
        best = rows[np.argsort(costs[rows], kind="stable")[:3]]
        assert [row.name for row in c.typical] == [f"row {i}" for i in best]
        for row, i in zip(c.typical, best, strict=True):
            assert len(row.words) == len(c.telling)
            color = f"color = {FRAME['color'].iloc[i]}"
            assert color in row.words


def test_odd_rows_are_farthest_from_theirs(model):
    frame = FRAME.copy()
    frame.loc[7, "age"] += 60.0
    frame.loc[21, "noise"] = -40.0
    content = gathered(model, frame)
    costs = _costs(frame, model.labels_)
    unusual = costs.max(axis=1) >= 6.6
    order = np.argsort(-costs.mean(axis=1), kind="stable")
    expected = [f"row {i}" for i in order if unusual[i]][:10]
    assert [row.name for row in content.odd] == expected
    assert {"row 7", "row 21"} <= set(expected)
    told = {row.name: row for row in content.odd}
    k = model.labels_[21]
    here = frame[model.labels_ == k]["noise"]
    assert told["row 21"].group == k
    assert told["row 21"].words.startswith(
        f"noise = -40; group {k} has {here.mean():.1f}"
    )


def test_rows_like_all_others_are_not_odd():
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 10, axis=0)
    X += np.tile([[-1.0, 0], [1.0, 0], [0, 1.0], [0, -1.0]], (5, 1))
    content = gathered(DPMeans(n_clusters=2, random_state=0).fit(X), X)
    assert content.odd == ()


def test_the_nearest_group_by_scaled_means(content, model):
    profiles = []
    for c in content.clusters:
        here = rows_of(model, c.number)
        numbers = (here[NUMBERS].mean() - FRAME[NUMBERS].mean()) / FRAME[NUMBERS].std(
            ddof=0
        )
        levels = FRAME["color"].value_counts(normalize=True)
        shares = here["color"].value_counts(normalize=True).reindex(levels.index)
        spread = math.sqrt(1.0 - np.square(levels).sum())
        profiles.append([*numbers, *(shares.fillna(0.0) / spread)])
    points = np.array(profiles)
    far = np.square(points[:, None] - points).sum(axis=2)
    np.fill_diagonal(far, np.inf)
    assert [c.nearest for c in content.clusters] == far.argmin(axis=1).tolist()
    assert all(c.nearest_words in FRAME.columns for c in content.clusters)


def test_missing_values_are_counted(content):
    assert content.missing == (("age", pytest.approx(FRAME["age"].isna().mean())),)


def test_without_rows_there_are_means_and_spreads(model):
    content = gather(model, model.portrait_)
    assert all(c.typical == () for c in content.clusters)
    assert content.odd == content.missing == ()
    age = FRAME["age"]
    for c in content.clusters:
        (telling,) = [t for t in c.telling if t.name == "age"]
        here = rows_of(model, c.number)["age"]
        assert isinstance(telling.picture, Interval)
        assert telling.picture.here == pytest.approx((here.mean(), here.std(ddof=0)))
        assert telling.picture.overall == pytest.approx((age.mean(), age.std(ddof=0)))


def test_rows_that_belong_nowhere():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 12.0])
    X[:3] = [[60.0, -60.0], [-50.0, 50.0], [55.0, 0.0]]
    model = DPMixture(noise=True, n_init=1, random_state=0).fit(X)
    nowhere = np.flatnonzero(model.labels_ < 0)
    assert {0, 1, 2} <= set(nowhere)
    content = gathered(model, X)
    assert content.n_outside == len(nowhere)
    assert {row.name for row in content.outside} == {f"row {i}" for i in nowhere[:10]}
    assert not {row.name for row in content.odd} & {f"row {i}" for i in nowhere}


def test_huge_offsets_cost_no_digits():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 40, axis=0) + rng.normal(size=(80, 2))
    near = gathered(DPMeans(n_clusters=2, random_state=0).fit(X), X)
    far = gathered(DPMeans(n_clusters=2, random_state=0).fit(X + 2.0**30), X + 2.0**30)
    for one, other in zip(near.clusters, far.clusters, strict=True):
        assert one.size == other.size
        assert [row.name for row in one.typical] == [row.name for row in other.typical]
        for a, b in zip(one.telling, other.telling, strict=True):
            assert a.picture.here == b.picture.here


def test_scaled_columns_are_told_in_the_units_of_the_file():
    frame = pd.DataFrame({"a": [1.0, 2, 3, 100, 101, 102], "b": [0.0, 1, 0, 1, 0, 1]})
    scaled = (frame - frame.mean()) / frame.std(ddof=0)
    model = DPMeans(n_clusters=2, random_state=0).fit(scaled)
    model.scaling_ = {
        "mean": frame.mean().to_list(),
        "scale": frame.std(ddof=0).to_list(),
        "columns": ["a", "b"],
    }
    content = gathered(model, scaled)
    means = sorted(c.center[0] for c in content.clusters)
    assert means == pytest.approx([2.0, 101.0])
    words = [w for c in content.clusters for row in c.typical for w in row.words]
    assert {"a = 2", "a = 101"} <= set(words)


# ------------------------------------------------------------------------ small things


def test_every_value_has_a_bin():
    """What lies beyond the edges is in the first or the last one."""
    values = np.array([-5.0, 0.0, 0.5, 1.0, 9.0, np.nan])
    found = histogram(np.array([0.0, 0.5, 1.0]), values, values, True)
    assert found.here == found.overall == (0.4, 0.6)
    assert found.ends == ("0", "1")


@pytest.mark.parametrize(
    ("value", "scale", "words"),
    [(3.0, 1.0, "3"), (1234567.0, 10.0, "1,234,567"), (0.12345, 0.1, "0.12")],
)
def test_values_as_people_write_them(value, scale, words):
    assert say_value(value, scale) == words


def test_names_of_columns_are_told_apart():
    frame = pd.DataFrame(np.arange(12.0).reshape(4, 3))
    frame.columns = ["x" * 200 + "a", "x" * 200 + "b", " "]
    model = DPMeans(n_clusters=1).fit(frame)
    names = column_names(model)
    assert len(set(names)) == 3
    assert all(name.strip() for name in names)
    assert all(trait is not None for trait in traits_of(model.portrait_, names, None))
