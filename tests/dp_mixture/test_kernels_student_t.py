"""The kernels of rows with heavy tails, against the same written out in numpy."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import digamma

from kplus.dp_mixture.kernels_student_t import (
    Tailed,
    gather_scaled,
    likeliest_tails,
    log_over_digamma,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gather_scaled(dtype):
    rng = np.random.default_rng(0)
    n, D, K = 700, 3, 4
    X = rng.normal(5.0, 2.0, size=(n, D)).astype(dtype)
    X.flags.writeable = False
    origin, inv = rng.normal(size=D), rng.uniform(0.5, 2.0, D)
    means, whiten = rng.normal(size=(K, D)), rng.normal(size=(K, D, D))
    shape, least = rng.uniform(1.0, 9.0, K), rng.uniform(0.5, 3.0, K)
    counts = np.array([600, 0, 3, 257])  # more than a chunk, none, few
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = np.concatenate([np.sort(rng.permutation(n)[:c]) for c in counts])
    weights = rng.uniform(size=len(rows))
    M = D + D * (D + 1) // 2 + 3
    out, logs = rng.normal(size=(K, M)), rng.normal(size=K)
    before, logs_before = out.copy(), logs.copy()
    tailed = Tailed(means, whiten, shape, least)
    gather_scaled(X, origin, inv, starts, rows, weights, tailed, out, logs)
    Y = (X - origin) * inv
    for k in range(K):
        part = slice(starts[k], starts[k + 1])
        y, w = Y[rows[part]], weights[part]
        rate = least[k] + 0.5 * (((y - means[k]) @ whiten[k]) ** 2).sum(axis=1)
        heavy = w * shape[k] / rate
        squares = ((heavy[:, None] * y).T @ y)[np.triu_indices(D)]
        added = np.concatenate([heavy @ y, squares, [0.0, heavy.sum(), 0.0]])
        np.testing.assert_allclose(out[k] - before[k], added, rtol=1e-9, atol=1e-9)
        assert logs[k] - logs_before[k] == pytest.approx(w @ np.log(rate))


def test_log_over_digamma():
    x = np.concatenate([np.geomspace(1e-3, 1e5, 200), [7.999999, 8.0, 8.000001]])
    found = np.array([log_over_digamma(value) for value in x])
    np.testing.assert_allclose(found, np.log(x) - digamma(x), rtol=1e-12, atol=1e-14)


def test_likeliest_tails_are_where_the_derivative_is_0():
    N = np.array([0.5, 30.0, 2_000.0, 2_000.0])
    slope = np.array([-1.0, -20.0, -1_400.0, -1e6])
    out = np.empty(4)
    likeliest_tails(N, slope, 2.0, 0.1, 1.0, 1000.0, out)

    def rising(tail, k):
        rise = 0.5 * N[k] * (np.log(tail / 2) + 1.0 - digamma(tail / 2)) + slope[k]
        return rise + 1.0 / tail - 0.1

    for k in range(3):
        assert out[k] == pytest.approx(brentq(rising, 1.0, 1000.0, args=(k,)))
    assert out[3] == pytest.approx(1.0)
