"""Kernels of mixed tables against what one would write in numpy."""

import numpy as np
import pytest
from scipy.stats import norm, yeojohnson

from craft_objective import background_of, gains_of, statistics_of, value_of
from kplus.craft.kernels import (
    Fitted,
    Rules,
    choose_features,
    converge,
    cost_clusters,
    fit_clusters,
    weigh_tables,
)
from kplus.craft.kernels_encode import Categories, Numbers, encode_rows
from kplus.craft.kernels_rows import (
    add_up,
    assign_rows,
    cross_sums,
    distances_to,
    score_rows,
)
from kplus.craft.layout import Layout

KINDS = {
    "numbers": (None, None, None),
    "categories": (3, 2, 5),
    "mixed": (None, 3, None, 1, 4),
    "one_number": (None,),
    "one_category": (2,),
}
every_kind = pytest.mark.parametrize("levels", KINDS.values(), ids=KINDS.keys())


def rows_of(levels, n=50, seed=0, gaps=0.2):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.normal(5.0, 2.0, n) if size is None else rng.integers(0, size, n)
            for size in levels
        ]
    ).astype(float)
    X[rng.random(X.shape) < gaps] = np.nan
    return X, rng.uniform(0.2, 2.0, n)


def coded(levels, n=50, seed=0, gaps=0.2, numeric="gaussian"):
    X, weights = rows_of(levels, n, seed, gaps)
    layout = Layout.of(X, weights, levels, numeric)
    return X, layout, layout.encode(X, weights)


def design(layout, rows):
    """Rows as they multiply tables."""
    onehot = np.zeros((len(rows), layout.n_sums - 3 * layout.P))
    for q in range(rows.codes.shape[1]):
        onehot[np.arange(len(rows)), rows.codes[:, q]] = 1.0
    return np.hstack([rows.numbers, onehot])


def rules(
    costs, budget=-1, sharing=0.0, whole=(), total=1.0, penalty=0.0, smoothing=1.0
):
    return Rules(
        np.array(whole, float), total, costs, penalty, smoothing, budget, sharing
    )


def room(gains=None, weights=None, chosen=None, tables=None, costs=None):
    """Arrays for the kernels to read or fill; those that are not given stay unused."""
    none = np.empty((0, 0))
    D = next(part.shape[1] for part in (gains, weights, none) if part is not None)
    return Fitted(
        none if gains is None else gains,
        none if weights is None else weights,
        np.empty((0, 0), np.uint8) if chosen is None else chosen.view(np.uint8),
        none if tables is None else tables,
        np.empty(0) if costs is None else costs,
        np.full((3, D), np.nan),
    )


def fitted(layout, rows, labels, K, smoothing=1.0):
    """Sums, gains and tables of some clusters."""
    sums, counts = statistics_of(rows, labels, K, layout.n_sums)
    how = rules(np.empty(0), whole=sums.sum(axis=0), smoothing=smoothing)
    gains = np.full((K, len(layout.columns)), np.nan)
    tables = np.full((layout.n_sums, K), np.nan)
    fit_clusters(sums, layout.sums, how, room(gains, tables=tables))
    return sums, counts, gains, tables


def choose(gains, costs, present, budget, sharing):
    """Which features count, and their weights."""
    chosen, weights = np.ones(gains.shape, bool), np.full(gains.shape, np.nan)
    counts, how = np.where(present, 2.5, 0.0), rules(costs, budget, sharing)
    choose_features(counts, how, room(gains, weights, chosen))
    return chosen, weights


# ---------------------------------------------------------------------- encode_rows


@every_kind
def test_encode_numbers_and_codes(levels):
    X, layout, rows = coded(levels)
    P = layout.P
    for p, d in enumerate(layout.numbers):
        there = ~np.isnan(X[:, d])
        z = np.where(there, (X[:, d] - layout.origins[p]) / layout.scales[p], 0.0)
        np.testing.assert_array_equal(rows.numbers[:, p], there)
        np.testing.assert_allclose(rows.numbers[:, P + p], z)
        np.testing.assert_allclose(rows.numbers[:, 2 * P + p], z**2)
    for q, d in enumerate(layout.categories):
        place = np.where(np.isnan(X[:, d]), layout.widths[q], X[:, d])
        np.testing.assert_array_equal(rows.codes[:, q], layout.starts[q] + place)


@pytest.mark.parametrize("power", [-1.5, 0.0, 0.7, 1.0, 2.0, 3.5])
def test_encode_transforms_as_yeo_and_johnson(power):
    x = np.array([-3.0, -0.5, 0.0, 0.5, 4.0])
    numbers, none = np.empty((5, 3)), np.empty(0, np.int64)
    plain = Numbers(np.array([0]), np.array([power]), np.array([0.25]), np.array([2.0]))
    coded = Categories(none, none, none, np.empty((0, 5)))
    encode_rows(x[:, None], plain, coded, numbers, np.empty((5, 0), np.int64))
    z = (yeojohnson(x, power) - 0.25) / 2.0
    np.testing.assert_allclose(numbers[:, 1], z, atol=1e-12)


def test_yeo_johnson_makes_columns_gaussian():
    rng = np.random.default_rng(0)
    x = np.exp(rng.normal(size=2000)) - 0.3
    X, w = np.column_stack([x, -x]), np.ones(2000)
    layout = Layout.of(X, w, (None, None), "yeo-johnson")
    assert (layout.P, layout.scored) == (4, 2)
    for d in range(2):
        assert layout.powers[d] == pytest.approx(yeojohnson(X[:, d])[1], abs=1e-3)
    z = layout.encode(X).numbers[:, 4:6]
    np.testing.assert_allclose(z.std(axis=0), 1.0)
    assert np.all(np.abs(np.mean(z**3, axis=0)) < 0.2)  # from about 4
    # Reports are in the units of the data.
    sums = layout.encode(X).numbers.sum(axis=0)
    for d in range(2):
        n, mean, sd = layout.moments(sums, d)
        assert n == 2000
        assert mean == pytest.approx(X[:, d].mean())
        assert sd == pytest.approx(X[:, d].std())


def test_quantiles_cut_into_parts_of_equal_weight():
    X, weights = rows_of((None, 3, None), n=600)
    layout = Layout.of(X, weights, (None, 3, None), "quantile")
    assert (layout.scored, layout.P) == (0, 2)
    np.testing.assert_array_equal(layout.columns, [1, 0, 2])
    rows = layout.encode(X, weights)
    for q, d in ((1, 0), (2, 2)):
        part = rows.codes[:, q] - layout.starts[q]
        there = ~np.isnan(X[:, d])
        expected = np.searchsorted(layout.edges[q], X[there, d])
        np.testing.assert_array_equal(part[there], expected)
        np.testing.assert_array_equal(part[~there], 6)
        sizes = np.bincount(part[there], weights=weights[there])
        np.testing.assert_allclose(sizes, sizes.sum() / 6, rtol=0.05)


@pytest.mark.parametrize(
    ("values", "parts"),
    [([7.0], 1), ([-3.0], 1), ([0.0, 1.0], 2), ([5.0, 6.0, 7.0], 3), ([1e9], 1)],
)
def test_quantiles_of_few_values(values, parts):
    """Equal numbers stay together; a constant column is one part."""
    X = np.tile(values, 30)[:, None]
    layout = Layout.of(X, np.ones(len(X)), (None,), "quantile")
    assert layout.widths[0] == parts
    codes = layout.encode(X).codes[:, 0]
    np.testing.assert_array_equal(np.unique(codes), np.arange(parts))
    far = layout.encode(np.array([[-1e12], [1e12], [np.nan]])).codes[:, 0]
    np.testing.assert_array_equal(far, [0, parts - 1, parts])


# ----------------------------------------------------------------- sums and scores


@every_kind
def test_add_up(levels):
    _, layout, rows = coded(levels)
    labels = np.random.default_rng(1).integers(0, 3, 50)
    sums, counts = np.ones((4, layout.n_sums)), np.ones(4)
    add_up(rows.numbers, rows.codes, rows.weights, labels, sums, counts)
    expected = statistics_of(rows, labels, 4, layout.n_sums)
    np.testing.assert_allclose(sums, 1.0 + expected[0])
    np.testing.assert_allclose(counts, 1.0 + expected[1])


@every_kind
@pytest.mark.parametrize("n", [0, 1, 255, 256, 600])
def test_score_and_assign_rows(levels, n):
    _, layout, rows = coded(levels, max(n, 1))
    rows = rows.take(np.arange(n))
    rng = np.random.default_rng(2)
    tables, shares = rng.normal(size=(layout.n_sums, 3)), rng.normal(size=3)
    expected = design(layout, rows) @ tables + shares
    scores = np.full((n, 3), np.nan)
    score_rows(rows.numbers, rows.codes, tables, shares, scores)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    labels = rng.integers(0, 3, n)
    before = labels.copy()
    changed = assign_rows(rows.numbers, rows.codes, tables, shares, labels)
    np.testing.assert_array_equal(labels, expected.argmax(axis=1))
    assert changed == np.count_nonzero(labels != before)


def test_ties_go_to_the_lower_number():
    _, layout, rows = coded((None, 2), 9)
    labels = np.full(9, 2)
    tables, shares = np.zeros((layout.n_sums, 3)), np.array([-np.inf, -1.0, -1.0])
    assert assign_rows(rows.numbers, rows.codes, tables, shares, labels) == 9
    np.testing.assert_array_equal(labels, 1)


# ------------------------------------------------------------------- fit_clusters


@every_kind
@pytest.mark.parametrize("smoothing", [0.2, 1.0, 3.0])
def test_gains(levels, smoothing):
    X, layout, rows = coded(levels)
    labels = np.random.default_rng(1).integers(0, 3, 50)
    _, _, gains, _ = fitted(layout, rows, labels, 4, smoothing)
    expected, _ = gains_of(X, rows.weights, levels, labels, 4, smoothing)
    np.testing.assert_allclose(layout.by_column(gains), expected, rtol=1e-9, atol=1e-12)


@every_kind
def test_tables_are_log_likelihood_ratios(levels):
    X, layout, rows = coded(levels)
    labels = np.random.default_rng(1).integers(0, 2, 50)
    *_, tables = fitted(layout, rows, labels, 2)
    found = design(layout, rows) @ tables
    expected = np.zeros((50, 2))
    for k in range(2):
        for d, base in enumerate(background_of(X, rows.weights, levels)):
            there = ~np.isnan(X[:, d])
            mine = there & (labels == k)
            x, w = X[mine, d], rows.weights[mine]
            if levels[d] is None:
                mean = np.average(x, weights=w)
                var = (w @ (x - mean) ** 2 + base[1]) / (w.sum() + 1.0)
                ratio = norm.logpdf(X[:, d], mean, np.sqrt(var))
                ratio -= norm.logpdf(X[:, d], base[0], np.sqrt(base[1]))
            else:
                counts = np.bincount(x.astype(int), w, levels[d])
                eta = (counts + base) / (counts.sum() + 1.0)
                ratio = np.log(eta / base)[np.nan_to_num(X[:, d]).astype(int)]
            expected[there, k] += ratio[there]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_clusters_without_values_gain_nothing():
    X, layout, _ = coded((None, 3))
    X[:20] = np.nan
    labels = np.repeat([0, 1], [20, 30])
    _, _, gains, tables = fitted(layout, layout.encode(X), labels, 3)
    np.testing.assert_array_equal(gains[[0, 2]], 0.0)
    np.testing.assert_array_equal(tables[:, [0, 2]], 0.0)


def test_constant_columns_gain_nothing():
    X = np.column_stack([np.full(30, 0.1), np.full(30, 1e8), np.zeros(30)])
    levels = (None, None, 1)
    layout = Layout.of(X, np.full(30, 0.7), levels, "gaussian")
    rows = layout.encode(X, np.full(30, 0.7))
    _, _, gains, tables = fitted(layout, rows, np.arange(30) % 2, 2)
    np.testing.assert_allclose(gains, 0.0, atol=1e-9)
    np.testing.assert_allclose(tables, 0.0, atol=1e-9)


def test_an_unseen_category_has_a_finite_score():
    """CR-7: no log 0."""
    X = np.array([[0.0]] * 5 + [[1.0]] * 5)
    layout = Layout.of(X, np.ones(10), (3,), "gaussian")
    *_, tables = fitted(layout, layout.encode(X), np.repeat([0, 1], 5), 2)
    assert tables[1, 0] == pytest.approx(np.log(0.5 / 6 / 0.5))


# -------------------------------------------------------- features, costs, weights


@pytest.mark.parametrize("sharing", [0.0, 0.35, 1.0])
@pytest.mark.parametrize("budget", [-1, 1, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_choose_features_is_the_best_choice(budget, sharing, seed):
    rng = np.random.default_rng(seed)
    gains, costs = rng.normal(scale=3.0, size=(4, 6)), rng.uniform(0.0, 2.0, 6)
    present = np.array([True, True, False, True])
    chosen, weights = choose(gains, costs, present, budget, sharing)
    if budget >= 0:
        np.testing.assert_array_equal(chosen[present].sum(axis=1), budget)
    shared = (1.0 - sharing) * chosen + sharing * chosen[present].mean(axis=0)
    np.testing.assert_allclose(weights[present], shared[present])
    assert not chosen[2].any()
    value = np.sum(weights[present] * (gains - costs)[present])
    assert value == pytest.approx(value_of(gains - costs, present, budget, sharing))


@pytest.mark.parametrize("budget", range(8))
def test_ties_between_features_go_to_the_lower_number(budget):
    """Also where there are fewer features than the budget, or infinite gains."""
    gains = np.array([[1.0, 2.0, 2.0, 1.0, 2.0, -np.inf], [0.0] * 6])
    chosen, _ = choose(gains, np.zeros(6), np.ones(2, bool), budget, 0.0)
    order = [1, 2, 4, 0, 3, 5]
    np.testing.assert_array_equal(np.flatnonzero(chosen[0]), sorted(order[:budget]))
    np.testing.assert_array_equal(np.flatnonzero(chosen[1]), np.arange(6)[:budget])


def test_cost_clusters():
    rng = np.random.default_rng(0)
    gains, weights = rng.normal(size=(3, 4)), rng.uniform(size=(3, 4))
    costs, counts = rng.uniform(size=4), np.array([5.0, 0.0, 3.0])
    cluster_costs = np.full(3, np.nan)
    how = rules(costs, total=8.0, penalty=1.5)
    cost_clusters(counts, how, room(gains, weights, costs=cluster_costs))
    for k in (0, 2):
        worth = weights[k] @ (gains[k] - costs)
        expected = 1.5 - counts[k] * np.log(counts[k] / 8.0) - worth
        assert cluster_costs[k] == pytest.approx(expected)
    assert cluster_costs[1] == 0.0


@every_kind
@pytest.mark.parametrize("numeric", ["gaussian", "quantile", "yeo-johnson"])
def test_weigh_tables(levels, numeric):
    _, layout, rows = coded(levels, numeric=numeric)
    labels = np.random.default_rng(1).integers(0, 2, 50)
    *_, tables = fitted(layout, rows, labels, 2)
    P, plain = layout.P, tables.copy()
    weights = np.random.default_rng(0).uniform(size=(2, len(layout.columns)))
    expected = np.zeros_like(tables)
    for p in range(layout.scored):
        for f in (p, P + p, 2 * P + p):
            expected[f] = plain[f] * weights[:, p]
    for q in range(len(layout.widths)):
        at = layout.places(q)
        expected[at] = plain[at] * weights[:, layout.scored + q]
    weigh_tables(layout.sums, room(weights=weights, tables=tables))
    np.testing.assert_allclose(tables, expected)


# ----------------------------------------------------------------------- converge


def converged(layout, rows, labels, K, *, warm=0, most=100, budget=-1, sharing=0.0):
    whole, total = statistics_of(rows, 0 * labels, 1, layout.n_sums)
    costs = np.full(len(layout.columns), 1.5)
    sums, counts, cluster_costs = np.empty((K, layout.n_sums)), np.empty(K), np.empty(K)
    gains, weights = np.empty((2, K, len(costs)))
    out = room(gains, weights, gains > 0.0, np.empty((layout.n_sums, K)), cluster_costs)
    how = rules(costs, budget, sharing, whole[0], total[0], penalty=2.0)
    converge(rows.encoded, layout.sums, how, warm, most, labels, sums, counts, out)
    return cluster_costs.sum(), sums, counts


def one_round(layout, rows, labels, K, budget, sharing, warm):
    """Objective of a partition, and where its rows would go."""
    _, counts, gains, tables = fitted(layout, rows, labels, K)
    costs, weights = np.full(gains.shape[1], 1.5), np.ones_like(gains)
    if not warm:
        _, weights = choose(gains, costs, counts > 0, budget, sharing)
    weigh_tables(layout.sums, room(weights=weights, tables=tables))
    with np.errstate(divide="ignore"):
        shares = np.log(counts / counts.sum())
    n = counts[counts > 0]
    J = 2.0 * len(n) - n @ np.log(n / n.sum())
    J -= np.sum((weights * (gains - costs))[counts > 0])
    return J, np.argmax(design(layout, rows) @ tables + shares, axis=1)


@every_kind
@pytest.mark.parametrize(
    ("budget", "sharing", "warm"), [(-1, 0.0, 0), (1, 0.0, 2), (-1, 0.5, 1)]
)
@pytest.mark.parametrize("most", [0, 3, 100])
def test_converge_takes_turns(levels, budget, sharing, warm, most):
    _, layout, rows = coded(levels, n=70)
    labels = np.random.default_rng(1).integers(0, 3, 70)
    ours = labels.copy()
    for passes in range(most):
        _, new = one_round(layout, rows, ours, 3, budget, sharing, passes < warm)
        if np.array_equal(new, ours) and passes >= warm:
            break
        ours = new
    how = {"warm": warm, "most": most, "budget": budget, "sharing": sharing}
    J, sums, counts = converged(layout, rows, labels, 3, **how)
    np.testing.assert_array_equal(labels, ours)
    expected = statistics_of(rows, labels, 3, layout.n_sums)
    np.testing.assert_allclose(sums, expected[0], atol=1e-12)
    np.testing.assert_allclose(counts, expected[1])
    if most > warm or warm == 0:
        now, _ = one_round(layout, rows, labels, 3, budget, sharing, False)
        assert pytest.approx(now, rel=1e-9, abs=1e-9) == J


# --------------------------------------------------------------------- cross_sums


@every_kind
def test_cross_sums(levels):
    X, layout, rows = coded(levels)
    P, scored, base = layout.P, layout.scored, 3 * layout.P
    middles = np.linspace(-0.2, 0.3, scored)
    place = np.full(layout.n_sums - base, -1)
    sides = [
        (rows.numbers[:, p] > 0) & (rows.numbers[:, P + p] > middles[p])
        for p in range(scored)
    ]
    for q in range(len(layout.widths)):
        for t in range(0, layout.widths[q], 2):  # every second category is tried
            place[layout.starts[q] + t] = len(sides)
            sides.append(X[:, layout.categories[q]] == t)
    sums, counts = np.zeros((len(sides), layout.n_sums)), np.zeros(len(sides))
    half = len(sides) // 2
    for first, some in ((0, slice(half)), (half, slice(half, None))):
        cross_sums(
            rows.numbers, rows.codes, rows.weights, middles, place, first,
            sums[some], counts[some],
        )  # fmt: skip
    for split, side in enumerate(sides):
        expected = statistics_of(rows, np.where(side, 0, -1), 1, layout.n_sums)
        np.testing.assert_allclose(sums[split], expected[0][0], atol=1e-12)
        assert counts[split] == pytest.approx(expected[1][0])


@every_kind
@pytest.mark.parametrize("numeric", ["gaussian", "quantile", "yeo-johnson"])
def test_distances_to_a_row(levels, numeric):
    X, layout, rows = coded(levels, numeric=numeric)
    P, expected = layout.P, np.zeros(50)
    for p in range(layout.scored):
        z = np.where(rows.numbers[:, p] > 0, rows.numbers[:, P + p], np.nan)
        expected += 0.5 * np.nan_to_num(z - z[7]) ** 2
    for q, d in enumerate(layout.categories):
        both = ~np.isnan(X[:, d]) & ~np.isnan(X[7, d])
        expected += both & (rows.codes[:, q] != rows.codes[7, q])
    missing, out = layout.starts + layout.widths, np.full(50, np.nan)
    distances_to(7, rows.numbers, rows.codes, layout.scored, missing, out)
    np.testing.assert_allclose(out, expected, atol=1e-12)
