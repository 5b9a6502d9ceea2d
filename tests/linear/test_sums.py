"""Sums of the Indian buffet process against the same sums taken directly."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus.ibp.meibp_model import sums_of
from kplus.linear.bits import Allocation
from kplus.linear.gaps import Gaps, common_groups, whole
from kplus.linear.sums import by_columns, solve

drawn = st.integers(0, 2**20)


def a_table(rng, N=12, D=5, K=3, gaps="some", offset=0.0):
    """Rows, their features and factors; gaps come in columns, rows or anywhere."""
    X = rng.normal(size=(N, D)) + offset
    if gaps == "some":
        X[rng.random(X.shape) < 0.3] = np.nan
    elif gaps == "columns":
        X[np.ix_(rng.random(N) < 0.5, rng.random(D) < 0.5)] = np.nan
    elif gaps == "all":
        X[:] = np.nan
    Z = (rng.random((N, K)) < 0.5).astype(np.uint8)
    return X, Z, rng.normal(size=(K, D)) + offset / max(K, 1)


def summed(X, Z, A):
    missing = np.isnan(X)
    if not missing.any():
        return sums_of(X, None, whole(*X.shape), Z, A)
    return sums_of(np.where(missing, 0.0, X), missing, Gaps.of(missing), Z, A)


def direct(X, Z, A):
    """S for each column, T, squared error, entries, rows, counts: entry by entry."""
    N, D = X.shape
    K = len(A)
    S, T, error, entries = np.zeros((D, K, K)), np.zeros((K, D)), 0.0, 0
    for n in range(N):
        for d in range(D):
            if np.isnan(X[n, d]):
                continue
            z = Z[n].astype(float)
            left = X[n, d] - z @ A[:, d]
            S[d] += np.outer(z, z)
            T[:, d] += z * left
            error += left**2
            entries += 1
    return S, T, error, entries, N, Z.sum(axis=0)


def check(sums, X, Z, A, atol=1e-10):
    S, T, error, entries, N, counts = direct(X, Z, A)
    np.testing.assert_array_equal(sums.A, A)
    np.testing.assert_allclose(sums.S[sums.group], S, atol=atol)
    np.testing.assert_allclose(sums.T, T, atol=atol)
    assert sums.error == pytest.approx(error, rel=1e-10, abs=atol)
    assert sums.observed == entries
    assert sums.weight == N
    np.testing.assert_array_equal(sums.counts, counts)


every_gap = pytest.mark.parametrize("gaps", [None, "some", "columns", "all"])


@every_gap
@pytest.mark.parametrize("K", [0, 1, 3, 9])
def test_sums_equal_direct_ones(gaps, K):
    X, Z, A = a_table(np.random.default_rng(K), K=K, gaps=gaps)
    check(summed(X, Z, A), X, Z, A)


@every_gap
@given(drawn)
def test_about_other_features(gaps, seed):
    rng = np.random.default_rng(seed)
    X, Z, A = a_table(rng, gaps=gaps)
    other = rng.normal(size=A.shape)
    sums = summed(X, Z, A)
    before = replace(sums)
    check(sums.about(other), X, Z, other)
    check(sums.about(other).about(A), X, Z, A)
    np.testing.assert_array_equal(sums.T, before.T)
    assert sums.error == before.error


def test_about_keeps_the_digits_of_a_large_level():
    """Sums about features near the level; X is known to 1e-8 itself."""
    rng = np.random.default_rng(0)
    X, Z, _ = a_table(rng, N=60, offset=1e8, gaps=None)
    Z[:, 0] = 1
    A = np.vstack([np.full(5, 1e8), rng.normal(size=(2, 5))])
    B = A + rng.normal(size=A.shape)
    check(summed(X, Z, A).about(B), X, Z, B, atol=1e-5)


@given(drawn, st.sampled_from([None, "some", "columns"]), st.booleans())
def test_sums_add_and_subtract(seed, gaps, same_features):
    """Blocks with gaps of their own have groups of columns of their own."""
    rng = np.random.default_rng(seed)
    parts = [a_table(rng, N=n, gaps=gaps) for n in (6, 1, 9)]
    A = parts[0][2]
    if same_features:
        parts = [(X, Z, A) for X, Z, _ in parts]
    total = summed(*parts[0])
    for part in parts[1:]:
        total += summed(*part)
    X, Z = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    check(total, X, Z, A)
    total -= summed(*parts[2])
    check(total, X[:7], Z[:7], A)
    total -= summed(*parts[1])
    check(total, X[:6], Z[:6], A)


def test_gaps_in_one_block_only():
    rng = np.random.default_rng(0)
    X, Z, A = a_table(rng, N=20, gaps=None)
    X[13, 2] = np.nan
    for first, second in (((X[:10], Z[:10]), (X[10:], Z[10:])),
                          ((X[10:], Z[10:]), (X[:10], Z[:10]))):  # fmt: skip
        total = summed(*first, A)
        total += summed(*second, A)
        check(total, X, Z, A)
        assert len(total.S) == 2


def test_adding_changes_no_copy():
    rng = np.random.default_rng(0)
    X, Z, A = a_table(rng)
    sums = summed(X, Z, A)
    kept, other = sums.copy(), summed(X, Z, A)
    sums += other
    sums -= other
    sums += other
    check(kept, X, Z, A)
    check(other, X, Z, A)


@every_gap
@given(drawn)
def test_regroup_equals_recomputation(gaps, seed):
    """Renumbered, dropped, and room made for new ones."""
    rng = np.random.default_rng(seed)
    X, Z, A = a_table(rng, K=4, gaps=gaps)
    more = int(rng.integers(0, 3))
    kept = np.sort(rng.choice(4, rng.integers(0, 5), replace=False))
    K = len(kept) + more
    old_to_new = np.full(4, -1)
    old_to_new[kept] = rng.permutation(K)[: len(kept)]
    fewer, left = np.zeros((len(X), K), np.uint8), np.zeros((K, X.shape[1]))
    fewer[:, old_to_new[kept]], left[old_to_new[kept]] = Z[:, kept], A[kept]
    sums = summed(X, Z, A)
    check(sums.regroup(old_to_new, K), X, fewer, left)
    check(sums, X, Z, A)


def test_the_report_of_a_pass():
    X, Z, A = a_table(np.random.default_rng(0))
    sums, other = summed(X, Z, A), summed(X, Z, A)
    assert sums.changed == 0
    sums.changed, other.changed = 3, 2
    sums += other
    assert sums.changed == 5
    sums.begin_pass()
    assert sums.changed == 0
    assert other.changed == 2


# ------------------------------------------------------------- gaps of columns


@given(drawn, st.integers(1, 20), st.integers(1, 20), st.floats(0.0, 1.0))
def test_gaps_describe_what_is_missing(seed, N, D, share):
    rng = np.random.default_rng(seed)
    missing = rng.random((N, D)) < share
    gaps = Gaps.of(missing)
    known = gaps.known[gaps.pattern][:, gaps.group]
    np.testing.assert_array_equal(known, ~missing)
    assert gaps.observed == np.count_nonzero(~missing)
    assert gaps.known.shape == (
        len(np.unique(missing, axis=0)), len(np.unique(missing, axis=1).T)
    )  # fmt: skip
    Z = rng.integers(0, 2, (N, 3)).astype(float)
    expected = [Z[~column].T @ Z[~column] for column in missing.T]
    np.testing.assert_array_equal(gaps.gram(Z)[gaps.group], expected)


def test_no_gaps():
    gaps = whole(4, 7)
    assert gaps.observed == 28
    assert gaps.pattern.shape == (4,)
    assert gaps.group.shape == (7,)
    np.testing.assert_array_equal(gaps.known, [[1.0]])
    same = Gaps.of(np.zeros((4, 7), bool))
    np.testing.assert_array_equal(same.known, gaps.known)


@given(drawn)
def test_common_groups(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 4, (2, 9))
    group, in_a, in_b = common_groups(a, b)
    np.testing.assert_array_equal(in_a[group], a)
    np.testing.assert_array_equal(in_b[group], b)
    assert len(in_a) == len({*zip(a.tolist(), b.tolist(), strict=True)})


def test_products_by_columns():
    rng = np.random.default_rng(0)
    S, A = rng.normal(size=(2, 3, 3)), rng.normal(size=(3, 5))
    group = np.array([0, 1, 1, 0, 1])
    expected = np.stack([S[g] @ A[:, d] for d, g in enumerate(group)], axis=1)
    np.testing.assert_allclose(by_columns(S, group, A), expected)
    np.testing.assert_allclose(
        by_columns(S[:1], np.zeros(5, int), A), S[0] @ A, rtol=1e-12
    )


def refit_errors(X, Z):
    """Squared error of the best features, column by column over what is there."""
    total = 0.0
    for x in X.T:
        seen = ~np.isnan(x)
        best = np.linalg.lstsq(Z[seen].astype(float), x[seen])[0]
        total += np.sum((x[seen] - Z[seen] @ best) ** 2)
    return total


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("gaps", ["none", "some"])
def test_steps_and_losses_are_those_of_refits_in_any_unit_of_weights(gaps, unit):
    X, Z, _ = a_table(np.random.default_rng(3), N=40, gaps=gaps)
    sums = summed(X, Z, np.zeros((3, 5)))
    best = np.linalg.solve(sums.S[sums.group], sums.T.T[:, :, None])[:, :, 0].T
    rises = [
        refit_errors(X, np.delete(Z, k, axis=1)) - refit_errors(X, Z) for k in range(3)
    ]
    weighed = replace(sums, S=unit * sums.S, T=unit * sums.T)
    np.testing.assert_allclose(weighed.step(), best, rtol=1e-6)
    np.testing.assert_allclose(weighed.losses(best) / unit, rises, rtol=1e-6)


def test_the_shortest_solution():
    rng = np.random.default_rng(0)
    B, T = rng.normal(size=(5, 3)), rng.normal(size=(3, 2))
    S = B.T @ B
    np.testing.assert_allclose(solve(S, S @ T), T, atol=1e-10)
    assert solve(np.zeros((0, 0)), np.zeros((0, 2))).shape == (0, 2)
    np.testing.assert_array_equal(solve(np.zeros((3, 3)), T), 0.0)


def test_z_is_kept_in_bits():
    Z = np.random.default_rng(0).integers(0, 2, (5, 19), dtype=np.uint8)
    allocation = Allocation.of(Z)
    assert allocation.packed.shape == (5, 3)
    np.testing.assert_array_equal(allocation.unpack(), Z)
