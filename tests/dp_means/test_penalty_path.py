"""The penalty path against brute force over all penalties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from kplus import DPMeans, penalty_path
from kplus.dp_means.params import Scaling
from kplus.dp_means.penalty_path import most_clusters, trace
from kplus.dp_means.splits import Growth

PLAIN = Scaling(np.zeros(1), 1.0)


def growth(sse, K=None, entropy=0.0):
    K = np.arange(1, len(sse) + 1) if K is None else np.array(K)
    return Growth(K, np.array(sse, float), np.full(len(sse), entropy), np.zeros((1, 1)))


falling = st.lists(st.floats(1.0, 1e3), min_size=1, max_size=14).map(
    lambda falls: np.cumsum(falls[::-1])[::-1]
)


@given(falling)
def test_corners_are_the_numbers_that_some_penalty_prefers(sse):
    path = trace(growth(sse), 100.0, 2, PLAIN, 1.0)
    between = reference.best_penalties(np.arange(1, len(sse) + 1), sse)
    wide = [
        k + 1
        for k, both in enumerate(between)
        if both and both[1] > both[0] * (1 + 1e-9)
    ]
    assert set(wide) <= set(path.n_clusters.tolist())
    for k, low, high in zip(
        path.n_clusters, path.penalty_low, path.penalty_high, strict=True
    ):
        expected = between[k - 1]
        if expected is not None:
            assert (low, high) == pytest.approx(expected, rel=1e-9)
        else:  # three corners in a line, but for rounding
            assert low == pytest.approx(high, rel=1e-9)


@given(falling)
def test_intervals_touch_and_cover_all_penalties(sse):
    path = trace(growth(sse), 100.0, 2, PLAIN, 1.0)
    assert path.penalty_high[0] == np.inf
    assert path.penalty_low[-1] == 0.0
    np.testing.assert_array_equal(path.penalty_low[:-1], path.penalty_high[1:])
    assert np.all(np.diff(path.n_clusters) > 0)
    assert np.all(np.diff(path.sse) < 0)
    assert np.all(path.log_length >= 0.0)
    low, high = path.penalty_low[path.chosen], path.penalty_high[path.chosen]
    assert low <= path.penalty <= high


@given(falling)
def test_the_rule_takes_the_longest_plateau_or_one(sse):
    """With entropy so low that the information criterion prefers every split."""
    path = trace(growth(sse, entropy=0.0), 1e6, 2, PLAIN, 1.0)
    expected = reference.longest_plateau(np.arange(1, len(sse) + 1), sse)
    K = int(path.n_clusters[path.chosen])
    if expected is None or path.bic[path.chosen] >= path.bic[0] or K == 1:
        return
    lengths = dict(zip(path.n_clusters.tolist(), path.log_length, strict=True))
    assert lengths[K] == pytest.approx(lengths[expected], rel=1e-9)
    assert 1 < K < path.n_clusters[-1]


def test_a_clear_number():
    sse = [1000.0, 500.0, 20.0, 18.0, 17.0, 16.5]
    path = trace(growth(sse), 200.0, 2, PLAIN, 1.0)
    assert path.n_clusters[path.chosen] == 3
    np.testing.assert_allclose(path.penalty, np.sqrt(480.0 * 2.0))


def test_one_cluster_where_nothing_pays():
    sse = 100.0 / np.arange(1, 8) ** 0.1
    path = trace(growth(sse), 50.0, 10, PLAIN, 1.0)
    assert path.n_clusters[path.chosen] == 1
    assert path.penalty > path.penalty_low[0]


def test_as_many_clusters_as_distinct_rows():
    path = trace(growth([10.0, 4.0, 0.0]), 30.0, 2, PLAIN, 1.0)
    assert path.n_clusters[path.chosen] == 3
    assert 0.0 < path.penalty < 4.0


@pytest.mark.parametrize("sse", [[0.0], [5.0]])
def test_a_single_number(sse):
    path = trace(growth(sse), 30.0, 2, PLAIN, 1.0)
    assert path.n_clusters.tolist() == [1]
    assert path.chosen == 0
    assert 0.0 < path.penalty < np.inf


def test_two_numbers_have_no_plateau():
    path = trace(growth([10.0, 9.0]), 30.0, 2, PLAIN, 1.0)
    assert path.n_clusters[path.chosen] == 1


def test_scale_lifts_a_sample_to_all_rows():
    sse = [1000.0, 500.0, 20.0, 18.0]
    one, ten = (trace(growth(sse), 200.0, 2, PLAIN, scale) for scale in (1.0, 10.0))
    np.testing.assert_allclose(ten.sse, 10 * one.sse)
    np.testing.assert_allclose(ten.penalty, 10 * one.penalty)
    np.testing.assert_allclose(ten.log_length, one.log_length)
    assert ten.chosen == one.chosen


def test_the_path_is_in_the_units_of_the_data():
    sse = [1000.0, 500.0, 20.0, 18.0]
    half = Scaling(np.zeros(1), 0.5)
    plain, wide = (
        trace(growth(sse), 200.0, 2, scaling, 1.0) for scaling in (PLAIN, half)
    )
    np.testing.assert_array_equal(wide.sse, 4.0 * plain.sse)
    np.testing.assert_array_equal(wide.penalty_low, 4.0 * plain.penalty_low)
    assert wide.penalty == 4.0 * plain.penalty


def test_a_number_passed_twice_counts_once():
    """After a refill the growth may converge again with as many clusters."""
    twice = growth([100.0, 50.0, 49.0, 5.0, 4.0], K=[1, 2, 2, 3, 4])
    path = trace(twice, 100.0, 1, PLAIN, 1.0)
    assert np.all(np.diff(path.n_clusters) > 0)
    assert np.all(np.isfinite(path.penalty_high[1:]))
    assert np.all(np.isfinite(path.penalty_low))


@given(st.floats(1.0, 1e9))
def test_how_far_the_path_goes(n):
    most = most_clusters(n)
    assert 1 <= most <= 200
    assert most <= max(1.0, n / 2)


def test_a_choice_is_clear_only_if_the_data_insist():
    rng = np.random.default_rng(0)
    apart = np.repeat([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0]], 60, axis=0)
    apart += rng.normal(size=apart.shape)
    assert penalty_path(DPMeans(), apart).is_clear
    long = rng.normal(size=(500, 2)) * [20.0, 1.0]
    assert not penalty_path(DPMeans(), long).is_clear
