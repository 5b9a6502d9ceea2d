"""The benchmark runner measures, reports and keeps results as it says."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from kplus.observations import Gaussian


@pytest.fixture
def runner():
    return importlib.import_module("runner")


@pytest.fixture
def report():
    return importlib.import_module("report")


@pytest.fixture
def mixtures():
    return importlib.import_module("mixtures")


@pytest.fixture
def compare():
    return importlib.import_module("compare")


def test_job_runs_in_a_fresh_process_and_is_measured(runner, tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((7, 2)))
    job = runner.Job(
        "do_nothing",
        [{"seed": 0}, {"seed": 1}],
        tmp_path / "X.npy",
        warm_up_rows=2,
        watch=True,
    )
    answer = runner.run_job(job)
    assert [run.facts for run in answer.runs] == [
        {"rows": 7, "seed": 0},
        {"rows": 7, "seed": 1},
    ]
    assert 0 <= answer.best("cpu_s") <= answer.median("cpu_s")
    assert answer.versions["numpy"] == np.__version__


def test_job_that_fails_says_why(runner):
    job = runner.Job("sklearn_k_means", [{"n_clusters": 3}])
    with pytest.raises(runner.JobFailed, match="sklearn_k_means"):
        runner.run_job(job)


def test_command_is_measured(runner):
    runs = runner.time_command(["-c", "pass"], repeats=2)
    assert runs.best("cpu_s") > 0
    assert runs.best("wall_s") > 0
    with pytest.raises(runner.JobFailed):
        runner.time_command(["-c", "raise SystemExit(3)"], repeats=1)


def test_peers_interpreter_may_be_named(runner, monkeypatch):
    monkeypatch.setenv("KPLUS_PEERS_PYTHON", sys.executable)
    assert runner.peers_python() == Path(sys.executable)
    monkeypatch.setenv("KPLUS_PEERS_PYTHON", "/nowhere/python")
    assert runner.peers_python() is None


def test_sum_of_squares_against_a_loop(compare):
    X = np.random.default_rng(0).normal(size=(50, 3))
    labels = np.arange(50) % 4 * 10
    expected = sum(
        ((X[labels == k] - X[labels == k].mean(axis=0)) ** 2).sum()
        for k in np.unique(labels)
    )
    found, n_clusters = compare.sum_of_squares(X, labels)
    assert found == pytest.approx(expected)
    assert n_clusters == 4


def test_tables_align(report):
    rows = [{"name": "a", "value": 12345.6}, {"name": "long", "value": None}]
    assert report.text_table(rows).splitlines() == [
        "name   value",
        "----  ------",
        "a     12,346",
        "long       -",
    ]
    assert report.markdown_table(rows).splitlines()[1] == "| --- | ---: |"


def test_saved_cases_stay_beside_each_other(report, tmp_path):
    first = report.CaseResult("First", [{"n": 1}], [report.Check("fast", "2 s", True)])
    report.save_case(tmp_path, "demo", "a", first)
    path = report.save_case(tmp_path, "demo", "b", report.CaseResult("Second"))
    saved = json.loads(path.read_text())
    assert list(saved) == ["a", "b"]
    assert {"date", "commit", "machine", "versions", "rows"} <= set(saved["a"])
    page = path.with_suffix(".md").read_text()
    assert "## First" in page
    assert "- fast: 2 s (met)" in page
    assert "## Second" in page


def test_claims_of_all_cases_make_one_table(report, tmp_path):
    later = report.claim("MO-12", "it is fast", "it is not", True, False)
    sooner = report.claim("MO-5", "it is small", "it is", True)
    report.save_case(tmp_path, "demo", "a", report.CaseResult("A", claims=[later]))
    path = report.save_case(
        tmp_path, "demo", "b", report.CaseResult("B", claims=[sooner])
    )
    page = path.with_suffix(".md").read_text()
    assert "| MO-5 | it is small | it is | confirmed |\n| MO-12 |" in page
    assert page.endswith("it is not | partly |\n")
    assert report.claim("MO-1", "", "", False).verdict == "contradicted"


def test_pass_costs_the_slope_between_short_and_long_fits(mixtures, runner):
    runs = [
        runner.Run(cpu, cpu, None, None, {"n_iter": n})
        for n, cpu in [(5, 2.0), (15, 4.5), (5, 1.5), (15, 9.0)]
    ]
    assert mixtures.per_pass(runs) == pytest.approx(0.3)
    with pytest.raises(ValueError, match="no slope"):
        mixtures.per_pass(runs[::2])


def test_passes_to_converge(mixtures):
    assert mixtures.passes_to_converge([-9.0, -5.0, -4.0, -4.0, -3.9]) == 3
    assert mixtures.passes_to_converge([-4.0]) == 1


def test_alignment_by_majority(mixtures):
    labels, digits = np.array([0, 0, 0, 1, 1]), np.array([7, 7, 3, 3, 7])
    assert mixtures.alignment(labels, digits) == pytest.approx(0.6)


def test_oracle_knows_most_edge_patches():
    y, likeliest = importlib.import_module("data").edge_truth(500, 0.01)
    assert np.mean(y == likeliest) > 0.98


def test_batch_judged_under_all_is_exact_where_the_batch_is_all():
    ablations = importlib.import_module("ablations")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + rng.choice([-3.0, 3.0], size=(300, 1))
    model = ablations.make_model(X, Gaussian())
    stats = ablations.seeded(model, X, np.ones(300), 4, rng)
    params = model.posterior(stats.N, stats.S, stats.mass)
    total = model.share_out(params, X, np.ones(300))[0]
    pairs = np.column_stack(np.triu_indices(4, 1))
    np.testing.assert_allclose(
        ablations.batch_under_all(model, total, total, pairs),
        ablations.batch_alone(model, total, total, pairs),
        rtol=1e-9,
        atol=1e-9,
    )


def test_bits_agree_up_to_order_and_with_a_base_up_to_complement():
    agreement = importlib.import_module("feature_fits").agreement
    truth = np.array([[1, 0], [1, 1], [0, 0], [0, 0]])
    ones = np.ones((4, 1), int)
    assert agreement(truth[:, ::-1], truth) == 1.0
    assert agreement(1 - truth, truth) == 0.25
    assert agreement(np.hstack([ones, 1 - truth]), truth) == 1.0
    assert agreement(truth[:, :1], truth) == 0.75
    assert agreement(truth[:, :0], truth) == 0.0
    # Two features that exclude each other, one of which each row has, hide a base.
    hidden = np.hstack([truth[:, :1], 1 - truth[:, :1], truth[:, 1:]])
    assert agreement(hidden, np.hstack([ones, truth])) == 1.0


def test_penalty_decides_between_errors():
    best_number = importlib.import_module("feature_fits").best_number
    errors = (100.0, 40.0, 20.0, 19.0)
    assert best_number(errors, 5.0) == (2, 30.0)
    assert best_number(errors, 90.0) == (0, 100.0)


@pytest.fixture
def craft_scores():
    return importlib.import_module("craft_scores")


def test_scores_of_labels_by_hand(craft_scores):
    classes = np.array([0, 0, 0, 1, 1, 1])
    labels = np.array([5, 5, 5, 5, 7, 7])
    assert craft_scores.purity(classes, labels) == pytest.approx(5 / 6)
    expected = (6 / 7 + 4 / 5) / 2
    assert craft_scores.f1_majority(classes, labels) == pytest.approx(expected)
    assert craft_scores.f1_matched(classes, labels) == pytest.approx(expected)
    one = np.zeros(6, int)
    assert craft_scores.nmi(classes, one) == 0.0
    assert craft_scores.f1_matched(classes, one) == pytest.approx(1 / 3)
    assert craft_scores.mean_pairwise_ari([labels, labels, labels]) == 1.0


def test_subspaces_are_compared_cluster_by_cluster(craft_scores):
    classes, labels = np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])
    assert craft_scores.same_partition(classes, labels)
    assert not craft_scores.same_partition(classes, np.array([0, 0, 1, 2]))
    assert not craft_scores.same_partition(classes, np.array([0, 0, 1, 0]))
    true = np.array([[True, True, False], [False, False, True]])
    same = craft_scores.same_subspaces
    assert same(classes, labels, true, true[::-1])
    assert not same(classes, labels, true, true)
    # Of a subspace larger than the budget, any part of that size will do.
    part = np.array([[False, False, True], [True, False, False]])
    assert not same(classes, labels, true, part)
    assert same(classes, labels, true, part, at_most=1)
    assert not same(classes, labels, true, part[::-1], at_most=1)


def test_mixed_rows_of_the_scaling_case(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write = importlib.import_module("craft_data").write_mixed_rows
    labels = write(tmp_path / "rows.parquet", 500, n_columns=3, n_clusters=4)
    table = parquet.read_table(tmp_path / "rows.parquet")
    assert table.num_rows == len(labels) == 500
    assert [str(kind) for kind in table.schema.types] == ["double"] * 3 + ["string"] * 3
    assert all(column.null_count > 0 for column in table.columns)


def test_categories_and_numbers_are_coded_for_peers(tmp_path):
    pandas = pytest.importorskip("pandas")
    tasks = importlib.import_module("craft_tasks")
    frame = pandas.DataFrame(
        {"x": [1.0, None, 3.0], "c": pandas.Categorical(["b", None, "a"])}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    numbers, codes = tasks.coded(str(tmp_path / "t.parquet"))
    np.testing.assert_array_equal(numbers, [[1.0], [np.nan], [3.0]])
    np.testing.assert_array_equal(codes, [[1], [-1], [0]])
    np.testing.assert_allclose(tasks.standardised(numbers).ravel(), [-1.0, 0.0, 1.0])
    np.testing.assert_array_equal(tasks.one_hot(codes[:, 0]), [[0, 1], [0, 0], [1, 0]])
    np.testing.assert_array_equal(
        tasks.plain(str(tmp_path / "t.parquet")), [[1, 1], [2, -1], [3, 0]]
    )


def test_columns_are_held_out_of_the_last_half():
    held = importlib.import_module("ibp_data").last_half((7, 10), 0.2, 3)
    assert not held[:3].any()
    np.testing.assert_array_equal(held[3:], np.tile(held[3], (4, 1)))
    assert held[3].sum() == 2


def test_lower_halves_of_five_pictures_a_subject_are_held_out():
    subjects = np.repeat([0, 1, 2], [6, 9, 5])
    held = importlib.import_module("ibp_data").lower_halves(subjects, 8, 0)
    rows = held.any(axis=1)
    assert [rows[subjects == s].sum() for s in range(3)] == [5, 5, 5]
    np.testing.assert_array_equal(held[rows], [[False] * 4 + [True] * 4] * 15)


def test_table_keeps_what_is_held_out(tmp_path):
    data, ibp_data = map(importlib.import_module, ("data", "ibp_data"))
    X = np.arange(12.0).reshape(4, 3)
    held = np.isin(X, [7, 10])
    table = ibp_data.keep(data.Store(tmp_path), "t", X.copy(), held)
    np.testing.assert_array_equal(np.load(table.path), np.where(held, np.nan, X))
    np.testing.assert_array_equal(np.load(table.truth), [7, 10])
    assert (table.n_rows, table.n_columns, table.n_held_out) == (4, 3, 2)


def test_large_table_is_written_in_blocks(tmp_path):
    data, ibp_data = map(importlib.import_module, ("data", "ibp_data"))
    table = ibp_data.large_table(data.Store(tmp_path), 5_200, 10, 3)
    X, truth = np.load(table.path), np.load(table.truth)
    assert X.dtype == np.float32
    gaps = np.isnan(X)
    assert not gaps[:2_600].any()
    np.testing.assert_array_equal(gaps[2_600:].sum(axis=1), 2)
    assert len(truth) == table.n_held_out == gaps.sum()
    assert np.nanmean(X) == pytest.approx(3 * 0.4 * 0.3, abs=0.1)
    ibp_data.remove(table)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["nmf", "filled_nmf", "bnmf"])
def test_peers_predict_held_out_entries(name):
    data, fits, methods, truth = map(
        importlib.import_module, ("ibp_data", "ibp_fits", "ibp_methods", "ibp_truth")
    )
    X, full, _, _ = data.synthetic(300, 60, 3, 0)
    method = methods.from_json(getattr(methods, name)(3).as_json())
    found = fits.fit(method, X, 0)
    held = np.isnan(X)
    predicted = (found.weights @ found.components + found.offset)[held]
    ll = truth.log_likelihood(predicted, full[held], found.noise_scale)
    assert found.held_out(X, full[held]) == pytest.approx(ll)
    assert -1.7 < ll < -1.4


def test_factors_are_recovered_up_to_order_and_length():
    recovered = importlib.import_module("ibp_truth").recovered
    truth = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])
    found = np.array([[0, 0, 0.1, 0.1], [2, 2.1, 0, 0], [0, 0, 0, 0]])
    assert recovered(found, truth) == 2
    assert recovered(found[2:], truth) == 0


def test_limits_of_synthetic_data():
    data, truth = map(importlib.import_module, ("ibp_data", "ibp_truth"))
    ends = truth.limits(*data.synthetic(400, 50, 4, 0))
    assert ends["oracle"] == pytest.approx(-1.419, abs=0.03)
    assert ends["oracle"] - 0.03 < ends["ceiling"] < ends["oracle"]


def test_factors_at_a_fixed_allocation_maximise_each_other():
    """Each mean is that of its conditional given the others, observed entries only."""
    truth = importlib.import_module("ibp_truth")
    moments = importlib.import_module("kplus.ibp.factors")
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(30, 4)) + 1, rng.integers(0, 2, size=(30, 3)).astype(float)
    X[20:, 1] = np.nan
    mean, spread = truth.factors_given(X, Z, 0.5, 2.0, passes=200)
    for d in range(4):
        seen = ~np.isnan(X[:, d])
        for k in range(3):
            rest = X[seen, d] - Z[seen] @ mean[:, d] + Z[seen, k] * mean[k, d]
            rho = 1 / (Z[seen, k].sum() + 0.5 / 2.0)
            expected = moments.truncated_moments(
                np.array([rho * Z[seen, k] @ rest]), np.array([rho * 0.5])
            )
            assert mean[k, d] == pytest.approx(expected[0][0])
            assert spread[k, d] == pytest.approx(expected[1][0])


def test_curves_are_read_at_times():
    curves = importlib.import_module("ibp_curves")
    times, lls = [0.1, 0.2, 0.5, 1.0], [-3.0, -2.0, -1.005, -1.0]
    points = [{"cpu_s": t, "ll": v} for t, v in zip(times, lls, strict=True)]
    assert curves.best_at(points, 0.3) == -2.0
    assert curves.best_at(points, 0.05) is None
    assert curves.settled(points) == 0.5
    assert curves.settled(points[:2]) == 0.2


def made_fits(numbers):
    """Fits of methods with given likelihoods and seconds."""
    runs = importlib.import_module("ibp_runs")
    return {
        key: runs.IBPFits(
            key if isinstance(key, str) else key[0],
            [
                {
                    "ll": ll,
                    "cpu_s": cpu,
                    "converged": True,
                    "points": [{"ll": ll, "cpu_s": cpu}],
                }
            ],
            {},
        )
        for key, (ll, cpu) in numbers.items()
    }


def test_claims_on_curves_follow_the_numbers():
    curves = importlib.import_module("ibp_curves")
    numbers = {
        "MEIBP": (-1.4, 1.0),
        "AIBP": (-1.5, 9.0),
        "t-AIBP": (-1.5, 9.0),
        "UGibbs": (-1.41, 9.0),
        "t-UGibbs": (-1.41, 9.0),
        "f-VIBP": (-1.6, 3.0),
        "i-VIBP": (-1.6, 3.0),
        "NMF": (-1.5, 0.1),
        "BNMF": (-1.5, 0.1),
    }
    assert curves.small_claim(made_fits(numbers)).verdict == "confirmed"
    slow = numbers | {"MEIBP, random": (-1.4, 20.0)}
    assert curves.small_claim(made_fits(slow)).verdict == "partly"
    large = curves.large_claim(made_fits(numbers), (5000, 500, 30))
    assert large.verdict == "partly"  # uncollapsed samplers end above BNMF, too
    poor = numbers | {"UGibbs": (-1.7, 9.0), "t-UGibbs": (-1.7, 9.0)}
    assert curves.large_claim(made_fits(poor), (5, 5, 3)).verdict == "confirmed"


def test_claims_on_real_data_follow_the_numbers():
    real = importlib.import_module("ibp_real")
    numbers = {
        ("MEIBP", 5): (2.0, 1.0),
        ("t-AIBP", 5): (2.0, 10.0),
        ("t-UGibbs", 5): (1.0, 10.0),
        ("f-VIBP", 5): (1.5, 5.0),
        ("i-VIBP", 5): (1.5, 5.0),
        ("BNMF", 5): (1.9, 0.1),
    }
    fits = made_fits(numbers)
    assert real.piano_claim(fits, (5,)).verdict == "confirmed"
    assert real.faces_claim(fits, (5,)).verdict == "partly"
    assert real.throughout_claim({"a": fits}, (5,)).verdict == "confirmed"
    slow = made_fits(numbers | {("MEIBP", 5): (1.0, 20.0), ("BNMF", 5): (1.9, 30.0)})
    assert real.piano_claim(slow, (5,)).verdict == "contradicted"
    more = numbers | {("meibp+aibp", 5): (2.0, 2.0), ("t-AIBP", 5): (2.01, 11.0)}
    more |= {("BNMF", 5): (1.9, 2.0)}
    assert real.tags_claim(made_fits(more), (5,)).verdict == "confirmed"


def test_searches_of_rows_against_brute_force():
    tasks = importlib.import_module("ibp_row_tasks")
    X, Z = tasks.nonnegative_rows(40, 12, 4, 0)
    U, Q = tasks.row_terms(X, Z, 30)
    high, low = tasks.extremes(U, Q)
    bits = np.array(list(np.ndindex(2, 2, 2, 2)), dtype=float)
    all_values = np.array([tasks.values(U, Q, np.tile(b, (40, 1))) for b in bits])
    np.testing.assert_allclose(high, all_values.max(axis=0))
    np.testing.assert_allclose(low, all_values.min(axis=0))
    for search in (tasks.by_local_search, tasks.by_double_greedy):
        found = tasks.values(U, Q, tasks.solve(U, Q, search))
        assert np.all(found <= high + 1e-9)
        assert np.all(found - low >= (high - low) / 3 - 1e-9)
    plain = [tasks.counted_search(u - 0.5 * np.diag(Q), Q)[0] for u in U]
    np.testing.assert_array_equal(plain, tasks.solve(U, Q, tasks.by_local_search))


def test_exponents_and_shapes_of_the_cost():
    cost, synthetic = map(importlib.import_module, ("ibp_cost", "ibp_synthetic"))
    assert synthetic.exponent([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2.0)
    assert cost.shapes((10, 5, 3), (1, 2)) == {
        "N": [(10, 5, 3), (20, 5, 3)],
        "D": [(10, 5, 3), (10, 10, 3)],
        "K": [(10, 5, 3), (10, 5, 6)],
    }


def test_quick_soak(tmp_path):
    soak, data = map(importlib.import_module, ("soak", "data"))
    store = data.Store(tmp_path)
    assert len(soak.CASES) == len(soak.STREAMS) == 4
    result = soak.CASES["dp_means"](store, soak.QUICK)
    assert len(result.rows) == soak.SHOWN
    assert result.rows[-1]["groups"] >= 1
    assert [check.met for check in result.checks[1:]] == [True] * 3


def test_soak_judges_notes():
    soak = importlib.import_module("soak")
    notes = [
        {
            "batches": 10 * i,
            "seconds": float(i),
            "memory_mb": 200.0 + (20 * np.exp(-i) if i < 30 else 0.0),
            "groups": 5,
            "measure": -2.0 + np.sin(i),
            "finite": True,
        }
        for i in range(1, 100)
    ]
    assert soak.slope(notes) == pytest.approx(0.0, abs=1e-6)
    craft = soak.STREAMS["CRAFT"]
    assert all(check.met for check in soak.checks_of(craft, notes, 500))
    leaking = [one | {"memory_mb": 200 + one["batches"] / 500} for one in notes]
    assert soak.slope(leaking) == pytest.approx(2.0)
    assert not soak.checks_of(craft, leaking, 500)[0].met
    odd = [*notes, notes[-1] | {"finite": False, "measure": 3.0, "groups": 41}]
    met = [check.met for check in soak.checks_of(craft, odd, 500)]
    assert met == [True, False, False, False]


def test_soak_limits_hold_for_the_data():
    """Between the log-density of one Gaussian and that of the noise is some room."""
    soak = importlib.import_module("soak")
    mixture = soak.STREAMS["DPMixture"]
    rng = np.random.default_rng(0)
    X = np.vstack([soak.moving_groups(a, rng) for a in np.linspace(0, 6.28, 200)])
    spread = np.linalg.slogdet(np.cov(X.T))[1]
    assert -0.5 * (spread + 4 * np.log(2 * np.pi * np.e)) == pytest.approx(
        mixture.lowest, rel=0.01
    )
    assert mixture.lowest < mixture.highest - 1
    Z = np.vstack([soak.swelling_features(a, rng) for a in np.linspace(0, 6.28, 200)])
    assert Z.var(axis=0).sum() < soak.STREAMS["BPMeans"].highest


def test_simulated_workers():
    """More workers are never slower, and never more than so many times quicker."""
    simulation = importlib.import_module("scale_simulation")
    facts = {"row_s": 1e-6, "spread": 0.1, "summary_bytes": 1e5, "params_bytes": 1e5}
    alone = simulation.ROWS * facts["row_s"]
    times = [simulation.pass_seconds(facts, n, 1) for n in (1, 10, 100, 1000)]
    assert times == sorted(times, reverse=True)
    assert times[0] == pytest.approx(alone, rel=0.05)
    assert all(
        alone / seconds <= n * 1.05
        for n, seconds in zip((1, 10, 100, 1000), times, strict=True)
    )
    result = simulation.simulate(facts, {})
    assert [row["workers"] for row in result.rows] == list(simulation.WORKERS)


@pytest.mark.slow
def test_quick_kills(tmp_path):
    scale, data = map(importlib.import_module, ("scale", "data"))
    result = scale.CASES["kills"](data.Store(tmp_path), scale.QUICK)
    assert all(check.met for check in result.checks)
    assert sum(row["kills"] for row in result.rows) == scale.QUICK.kills
