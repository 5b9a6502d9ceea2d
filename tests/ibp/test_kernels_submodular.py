"""Maximisers of the row objective against all 2^K sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibp_reference as obvious
from kplus.ibp.kernels_double_greedy import (
    double_greedy,
    random_double_greedy,
    rows_double_greedy,
)
from kplus.ibp.kernels_objective import objective, value
from kplus.ibp.kernels_submodular import local_search, rows_local_search

SEEDS = st.integers(0, 2**32 - 1)


def instance(seed, K, signed=False, fresh_share=0.3):
    """A row objective with conflicts strong enough that greedy choices matter."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(K, 6))
    features = features if signed else np.abs(features)
    Q = features @ features.T
    lin = features @ features[rng.random(K) < 0.5].sum(axis=0) - 0.5 * np.diag(Q)
    lin += rng.normal(scale=3.0, size=K)
    fresh = (rng.random(K) < fresh_share).astype(np.uint8)
    return lin, Q, fresh, int(rng.integers(0, 5))


def by_local_search(*row):
    f = objective(*row)
    return local_search(f), np.array(f.z)


def by_double_greedy(*row):
    f = objective(*row)
    return double_greedy(f), np.array(f.z)


def by_chance(*row, seed, number=0):
    f = objective(*row)
    return random_double_greedy(f, seed, number), np.array(f.z)


def index(z):
    return int("".join(map(str, z)), 2)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("K", [1, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_value_of_every_set(seed, K, signed):
    lin, Q, fresh, base = instance(seed, K, signed)
    expected = obvious.set_function(lin, Q, fresh, base)
    f = objective(lin, Q, fresh, base)
    for z, truth in zip(obvious.all_bits(K), expected, strict=True):
        assert value(f, z) == pytest.approx(truth, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("way", [by_local_search, by_double_greedy])
@given(seed=SEEDS, K=st.integers(1, 9), signed=st.booleans())
@settings(max_examples=60, deadline=None)
def test_what_is_returned_is_the_value_of_z(way, seed, K, signed):
    lin, Q, fresh, base = instance(seed, K, signed)
    found, z = way(lin, Q, fresh, base)
    truth = obvious.set_function(lin, Q, fresh, base)[index(z)]
    assert found == pytest.approx(truth, rel=1e-10, abs=1e-10)


@given(seed=SEEDS, K=st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_local_search_ends_where_no_flip_helps_or_above(seed, K):
    """Its complement, if that was taken, is better than a local optimum."""
    lin, Q, fresh, base = instance(seed, K)
    values = obvious.set_function(lin, Q, fresh, base)
    found, z = by_local_search(lin, Q, fresh, base)
    flips = [values[index(z) ^ (1 << k)] for k in range(K)]
    other = values[index(1 - z)]
    around = [values[index(1 - z) ^ (1 << k)] for k in range(K)]
    optimum = max(flips) <= found + 1e-9
    turned = max(around) <= other + 1e-9 and found > other
    assert optimum or turned


@given(seed=SEEDS, K=st.integers(1, 12))
@settings(max_examples=80, deadline=None)
def test_a_third_of_the_range_is_reached(seed, K):
    """ME-7: in every row."""
    lin, Q, fresh, base = instance(seed, K)
    values = obvious.set_function(lin, Q, fresh, base)
    for way in (by_local_search, by_double_greedy):
        found, _ = way(lin, Q, fresh, base)
        assert obvious.share_of_range(found, values) >= 1.0 / 3.0


@pytest.mark.parametrize("K", [2, 6, 10])
@pytest.mark.parametrize("seed", range(4))
def test_half_of_the_range_is_reached_on_average(seed, K):
    """ME-7: by the random double greedy."""
    lin, Q, fresh, base = instance(seed, K)
    values = obvious.set_function(lin, Q, fresh, base)
    shares = np.array(
        [
            obvious.share_of_range(by_chance(lin, Q, fresh, base, seed=s)[0], values)
            for s in range(300)
        ]
    )
    assert shares.mean() + 3.0 * shares.std() / np.sqrt(300.0) >= 0.5


def test_the_complement_is_taken_where_it_is_better():
    """The best single feature shuts out all others, which do not exclude each other."""
    K = 6
    lin, Q = np.ones(K), np.zeros((K, K))
    lin[0] = 1.01
    Q[0, 1:] = Q[1:, 0] = 1.0
    found, z = by_local_search(lin, Q, np.zeros(K, np.uint8), 0)
    assert z.tolist() == [0, 1, 1, 1, 1, 1]
    assert found == pytest.approx(5.0)


def test_nothing_is_chosen_where_nothing_pays():
    lin, Q = np.array([-1.0, -1e300, -np.inf]), np.eye(3)
    for way in (by_local_search, by_double_greedy):
        found, z = way(lin, Q, np.zeros(3, np.uint8), 0)
        assert not z.any()
        assert found == 0.0


def test_a_fresh_feature_costs_the_more_the_more_there_are():
    """Each gains 1.5: two exceed the costs ln 3 and ln 4, no third under ln 5."""
    lin, Q, fresh = np.full(4, 1.5), np.zeros((4, 4)), np.ones(4, np.uint8)
    found, z = by_local_search(lin, Q, fresh, 2)
    assert z.sum() == 2
    assert found == pytest.approx(3.0 - np.log(12.0))


def test_draws_of_the_double_greedy_are_uniform():
    """lin = 1 and a conflict of 2: either is taken with probability 1/2."""
    lin, Q = np.ones(2), np.array([[0.0, 2.0], [2.0, 0.0]])
    fresh = np.zeros(2, np.uint8)
    taken = [by_chance(lin, Q, fresh, 0, seed=3, number=n)[1][0] for n in range(4000)]
    assert abs(np.mean(taken) - 0.5) < 0.03
    pairs = np.array(taken[:-1]) == np.array(taken[1:])
    assert abs(pairs.mean() - 0.5) < 0.03


# ----------------------------------------------------------------------- blocks of rows


def block(seed, N=40, K=6, signed=False):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(K, 12)) if signed else np.abs(rng.normal(size=(K, 12)))
    seen = np.array([np.ones(12), rng.random(12) < 0.6])
    pattern = rng.integers(0, 2, N)
    X = (rng.random((N, K)) < 0.5) @ A + rng.normal(size=(N, 12))
    Qs = np.array([(A * mask) @ A.T for mask in seen])
    linear = rng.normal(size=(2, K))
    return (X * seen[pattern]) @ A.T, linear, Qs, pattern


def values_of(B, linear, Qs, pattern, Z):
    bits = Z.astype(float)
    quadratic = np.einsum("nk,nkj,nj->n", bits, Qs[pattern], bits)
    return np.sum(bits * (B + linear[pattern]), axis=1) - 0.5 * quadratic


WAYS = {
    "local": rows_local_search,
    "greedy": lambda *args: rows_double_greedy(*args, 7, np.arange(len(args[0]))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_row_gets_worse_and_changes_are_counted(seed, signed, way):
    args = block(seed, signed=signed)
    Z = np.random.default_rng(seed).integers(0, 2, (40, 6), dtype=np.uint8)
    before, old = values_of(*args, Z), Z.copy()
    changed = WAYS[way](*args, Z)
    after = values_of(*args, Z)
    moved = np.any(old != Z, axis=1)
    assert changed == np.count_nonzero(moved) > 0
    assert np.all(after[moved] > before[moved])
    assert WAYS[way](*args, Z) == 0


@pytest.mark.parametrize("seed", range(4))
def test_the_best_bits_are_kept(seed):
    args = block(seed)
    bits = obvious.all_bits(6)
    every = np.array([values_of(*args, np.tile(z, (40, 1))) for z in bits])
    best = bits[np.argmax(every, axis=0)]
    Z = best.copy()
    for way in WAYS.values():
        assert way(*args, Z) == 0
        np.testing.assert_array_equal(Z, best)


def test_rows_do_not_depend_on_how_they_are_cut():
    B, linear, Qs, pattern = block(0)
    whole, parts = np.zeros((40, 6), np.uint8), np.zeros((40, 6), np.uint8)
    rows_double_greedy(B, linear, Qs, pattern, whole, 5, 100 + np.arange(40))
    for start in range(0, 40, 7):
        own = slice(start, start + 7)
        rows_double_greedy(
            B[own], linear, Qs, pattern[own], parts[own], 5, 100 + np.arange(40)[own]
        )
    np.testing.assert_array_equal(whole, parts)
    other = np.zeros((40, 6), np.uint8)
    rows_double_greedy(B, linear, Qs, pattern, other, 6, 100 + np.arange(40))
    assert np.any(other != whole)


def test_equal_features_do_not_flip_for_ever():
    """All choices among copies are as good; what a row has stays."""
    B, linear, Qs, pattern = block(1)
    B, linear = np.repeat(B, 2, axis=1), np.repeat(linear, 2, axis=1)
    Qs = np.repeat(np.repeat(Qs, 2, axis=1), 2, axis=2)
    Z = np.zeros((40, 12), np.uint8)
    rows_local_search(B, linear, Qs, pattern, Z)
    swapped = Z.reshape(40, 6, 2)[:, :, ::-1].reshape(40, 12).copy()
    kept = swapped.copy()
    assert rows_local_search(B, linear, Qs, pattern, swapped) == 0
    np.testing.assert_array_equal(swapped, kept)
