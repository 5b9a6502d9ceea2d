"""What the workers of ``ibp.py`` run.

As in ``tasks.py``, each takes a table, or nothing, and a dict of arguments, and returns
plain numbers. A ``method`` is one of ``ibp_methods.py``.
"""

import time
from typing import Any

import numpy as np

from baselines import PlainAccelerated, Scales, inmf
from baselines.beam_ibp import Kept, continued
from ibp_data import synthetic
from ibp_fits import PEERS, Outcome, fit, timed
from ibp_methods import Method, from_json
from ibp_truth import limits, recovered

Arguments = dict[str, Any]
Facts = dict[str, Any]
WARM_UP_ROWS = 200


def facts_of(found: Outcome, X: np.ndarray, truth: np.ndarray) -> Facts:
    return {
        "cpu_s": found.cpu_s,
        "wall_s": found.wall_s,
        "ll": found.held_out(X, truth),
        "K": len(found.components),
        "noise_scale": found.noise_scale,
        "n_iter": found.n_iter,
        "converged": found.converged,
    }


def fit_synthetic(X: None, arguments: Arguments) -> Facts:
    """Fit data made on the spot; each seed makes others."""
    seed = arguments["seed"]
    rows, full, _, A = synthetic(*arguments["shape"], seed)
    found = fit(from_json(arguments["method"]), rows, seed)
    facts = facts_of(found, rows, full[np.isnan(rows)])
    return facts | {"recovered": recovered(found.components, A)}


def synthetic_limits(X: None, arguments: Arguments) -> Facts:
    return limits(*synthetic(*arguments["shape"], arguments["seed"]))


def fit_table(X: np.ndarray, arguments: Arguments) -> Facts:
    """One fit, of as many iterations as fit into ``box`` CPU seconds; or as it is."""
    method, seed = from_json(arguments["method"]), arguments["seed"]
    truth, box = np.load(arguments["truth"]), arguments["box"]
    fit(method, X[:: max(1, len(X) // WARM_UP_ROWS)], seed, 3)
    if box is None:
        found = fit(method, X, seed)
    elif method.kind in PEERS:
        found = fit(method, X, seed, steps_within(method, X, seed, box))
    else:
        found = fit(method, X, seed, box=box)
    return facts_of(found, X, truth)


def steps_within(method: Method, X: np.ndarray, seed: int, box: float) -> int:
    """How many iterations take so many CPU seconds, at least one.

    From a fit of one iteration and, if there is time for it, one of three.
    """
    one = fit(method, X, seed, 1).cpu_s
    if 4 * one > box:
        return max(1, int(box / one))
    three = fit(method, X, seed, 3)
    if three.converged:
        return 3
    each = max((three.cpu_s - one) / 2, 1e-6)
    return max(3, int((box - one) / each))


def fit_curve(X: np.ndarray, arguments: Arguments) -> Facts:
    """Fits of 1, 2, 4, ... iterations from one seed, until ``box`` seconds are used.

    All CPU seconds count for the box; the curve has those of each fit by itself.
    """
    method, seed = from_json(arguments["method"]), arguments["seed"]
    truth = np.load(arguments["truth"])
    fit(method, X[:: max(1, len(X) // WARM_UP_ROWS)], seed, 3)
    points, used, steps = [], 0.0, 1
    while True:
        left = arguments["box"] - used
        found = fit(method, X, seed, steps, left if points else np.inf)
        if found.n_iter < steps and not found.converged:
            break  # there was no time for all of them
        points.append(facts_of(found, X, truth))
        used += found.cpu_s
        if found.converged or steps >= method.most:
            break
        if used + 2 * found.cpu_s > arguments["box"]:
            break
        steps *= 2
    return {"points": points}


def step_seconds(X: None, arguments: Arguments) -> Facts:
    """CPU seconds of an iteration: the slope between few and many, the least of each.

    Fits that converge before give no slope; then the mean over all iterations.
    """
    method = from_json(arguments["method"])
    few, many = arguments["passes"]
    rows = synthetic(*arguments["shape"], 0)[0]
    fit(method, rows, 0, 1)
    repeats = range(arguments["repeats"])
    pairs = [[fit(method, rows, 0, n) for n in (few, many)] for _ in repeats]
    short, long = (min(pair[i].cpu_s for pair in pairs) for i in (0, 1))
    made = pairs[0][1].n_iter - pairs[0][0].n_iter
    seconds = (long - short) / made if made > 0 else long / pairs[0][1].n_iter
    return {
        "step_s": max(seconds, 1e-7),
        "slope": made > 0,
        "K": len(pairs[0][1].components),
    }


def inmf_seconds(X: None, arguments: Arguments) -> Facts:
    """CPU seconds of an iteration of INMF, with the true scales."""
    steps, (*shape, k) = arguments["iterations"], arguments["shape"]
    rows = synthetic(*shape, k, 0)[0]
    settings = {"noise_scale": 1.0, "factor_scale": 1.0, "tol": 0.0}
    started = time.process_time()
    inmf(rows, k, max_iter=steps, **settings)
    return {"step_s": (time.process_time() - started) / steps}


def beam_row_seconds(X: None, arguments: Arguments) -> Facts:
    """CPU seconds of the next row of beam search, after rows with the true features.

    The least of several.
    """
    _, rows, Z, _ = synthetic(*arguments["shape"], 0)
    Z = Z[:, Z[:-1].any(axis=0)].astype(float)
    kept = Kept(Z[:-1], Z[:-1].T @ Z[:-1], Z[:-1].T @ rows[:-1], 0.0)
    seconds = []
    for _ in range(5):
        started = time.process_time()
        continued(kept, rows[-1], Scales(1.0, 1.0, 3.0), beam=10, most_new=3)
        seconds.append(time.process_time() - started)
    return {"row_s": min(seconds)}


def meibp_pass_seconds(X: None, arguments: Arguments) -> Facts:
    """CPU seconds of a pass of MEIBP, the least of several, from the true features.

    Its fits rest after a few passes, so that slopes between fits would tell nothing.
    """
    from kplus.data.blocks import ArrayBlocks
    from kplus.engine import SerialEngine
    from kplus.ibp.meibp_model import MEIBPModel
    from kplus.ibp.meibp_sample import Sample, Scales

    rows, _, Z, _ = synthetic(*arguments["shape"], 0)
    model, sample = MEIBPModel(), Sample(rows)
    params = sample.begin(model, Z.astype(np.uint8), Scales(1.0, 1.0, 1.0, True))
    seconds = []
    with SerialEngine(ArrayBlocks(rows)) as engine:
        for _ in range(arguments["passes"][1]):
            started = time.process_time()
            sums = engine.sweep(model, params, range(engine.n_blocks))
            params = model.update(params, sums)
            seconds.append(time.process_time() - started)
    return {"step_s": min(seconds), "slope": True, "K": params.K}


def sampler_sweeps(X: None, arguments: Arguments) -> Facts:
    """CPU seconds of a sweep of our accelerated sampler and of one in plain numpy.

    Both start at the true Z, with the true scales.
    """
    from kplus import IBPGibbs

    few, many = arguments["passes"]
    full, Z, scales = _sampler_data(arguments["shape"])
    plain = PlainAccelerated(full, Z, **scales)
    plain.sweep()
    _, plain_s, _ = timed(plain.sweep)

    def ours(n: int) -> IBPGibbs:
        return IBPGibbs(
            sampler="accelerated", prior="gaussian", n_samples=n, burn_in=0, init=Z,
            random_state=0, **scales,
        ).fit(full)  # fmt: skip

    ours(1)
    ends = [[timed(lambda n=n: ours(n)) for n in (few, many)] for _ in range(3)]
    short, long = (min(end[i][1] for end in ends) for i in (0, 1))
    return {
        "plain_s": plain_s,
        "ours_s": (long - short) / (many - few),
        "K_plain": plain.Z.shape[1],
        "K_ours": int(ends[0][1][0].n_components_),
    }


def _sampler_data(shape: list[int]) -> tuple[np.ndarray, np.ndarray, Facts]:
    _, full, Z, A = synthetic(*shape, 0)
    scale = float(np.sqrt(np.mean(A**2)))
    return full, Z, {"alpha": 3.0, "noise_scale": 1.0, "factor_scale": scale}


def tabletop_gibbs(X: np.ndarray, arguments: Arguments) -> Facts:
    """Collapsed sweeps from one of the starts of MAD-Bayes' Fig. 1."""
    from kplus import IBPGibbs

    arguments = dict(arguments)
    sweeps, seed = arguments.pop("sweeps"), arguments.pop("seed")
    model = IBPGibbs(
        sampler="collapsed", prior="gaussian", n_samples=sweeps, burn_in=0,
        init=_tabletop_start(X, arguments.pop("start")), random_state=seed, **arguments,
    )  # fmt: skip
    _, cpu, _ = timed(lambda: model.fit(X))
    numbers = [int(k) for k in model.n_components_history_]
    return {
        "cpu_s": cpu,
        "K": numbers[-1],
        "numbers": numbers,
        "noise_scale": float(model.noise_scale_),
    }


def _tabletop_start(X: np.ndarray, start: str) -> np.ndarray:
    """Z: one feature that all rows share, so many random ones, or those of BP-means."""
    from kplus import BPMeans

    if start == "shared":
        return np.ones((len(X), 1))
    if start == "BP-means":
        return BPMeans(penalty=20.0, random_state=0).fit(X).transform(X)
    rng = np.random.default_rng(0)
    return (rng.uniform(size=(len(X), int(start.split()[1]))) < 0.5).astype(float)
