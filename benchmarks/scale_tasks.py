"""What the workers of ``scale.py`` run."""

import tempfile
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

Arguments = dict[str, Any]
Facts = dict[str, Any]

_BLOCK = 4096  # rows of the products


def fit_patches(X: None, arguments: Arguments) -> Facts:
    """Fit patches from a file, with little memory."""
    import kplus

    name, path = arguments["estimator"], arguments["path"]
    most, passes = arguments["components"], arguments["passes"]
    models = {
        "DPMixture": lambda: kplus.DPMixture(
            "zero_mean_gaussian", max_components=most, max_iter=passes
        ),
        "DPMeans": lambda: kplus.DPMeans(n_clusters=most, max_iter=passes * 5),
        "KFeatures": lambda: kplus.KFeatures(n_components=8, max_iter=passes * 5),
    }
    model = models[name]().set_params(random_state=0, n_jobs=2)
    with kplus.resources(memory_limit="1 GB"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may not converge in so few passes
        model.fit(path)
    report = model.fit_report_
    K = int(getattr(model, "n_components_", getattr(model, "n_clusters_", 0)))
    columns = K * (64 if name == "DPMixture" else 1)
    return {
        "K": K,
        "passes": report.n_passes,
        "own_mb": report.peak_memory / 1e6,
        "pass_s": report.n_rows / report.rows_per_second,
        "rows_per_second": report.rows_per_second,
        "gemm_s": products_seconds(path, columns),
    }


def products_seconds(path: str, columns: int) -> float:
    """Seconds that two threads take for x'W of all rows, from a sample of blocks."""
    from concurrent.futures import ThreadPoolExecutor

    import threadpoolctl

    X = np.load(path, mmap_mode="r")
    W = np.ones((X.shape[1], columns), np.float32)
    starts = np.linspace(0, max(len(X) - _BLOCK, 0), 40).astype(int)

    def product(start: int) -> int:
        rows = np.ascontiguousarray(X[start : start + _BLOCK])
        return len(rows @ W)

    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        ThreadPoolExecutor(2) as pool,
    ):
        list(pool.map(product, starts))  # the pages are in memory then
        begun = time.perf_counter()
        rows = sum(pool.map(product, starts))
        seconds = time.perf_counter() - begun
    return seconds * len(X) / rows


def fit_how(X: None, arguments: Arguments) -> Facts:
    """Fit with threads, with workers, or with threads and checkpoints."""
    how = arguments["how"]
    with ExitStack() as stack:
        checkpoint = None
        if how == "workers":
            from distributed import Client, LocalCluster

            cluster = LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=None
            )
            stack.enter_context(cluster)
            stack.enter_context(Client(cluster))
        if how == "checkpoint":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            checkpoint = Path(folder) / "checkpoint"
        first = arguments.get("first", arguments["path"])
        make_model(arguments).set_params(max_iter=2).fit(first)  # kernels are loaded
        begun = time.perf_counter()
        model = make_model(arguments).fit(arguments["path"], checkpoint=checkpoint)
        wall = time.perf_counter() - begun
    report = model.fit_report_
    return {
        "K": int(getattr(model, "n_components_", getattr(model, "n_clusters_", 0))),
        "passes": report.n_passes,
        "wall s": wall,
        "s in passes": report.pass_seconds,
        "checkpoints, s": report.checkpoint_seconds,
        "workers": report.n_workers,
    }


def make_model(arguments: Arguments) -> Any:
    import kplus

    warnings.simplefilter("ignore")
    if arguments["estimator"] == "DPMixture":
        model: Any = kplus.DPMixture(
            arguments["observations"], max_components=arguments["clusters"]
        )
    else:
        model = kplus.DPMeans(n_clusters=arguments["clusters"])
    return model.set_params(max_iter=arguments["passes"], random_state=0, n_jobs=2)


def task_times(X: None, arguments: Arguments) -> Facts:
    """How long a pass takes for each row, and how large what is sent is."""
    import pickle

    from kplus.engine.engine import BlockEngine

    seen: dict[str, Any] = {"tasks": [], "summary": 0, "params": 0}
    run_task = BlockEngine.run_task

    def timed(self: Any, model: Any, params: Any, task: Any) -> Any:
        begun = time.perf_counter()
        summary = run_task(self, model, params, task)
        seconds = time.perf_counter() - begun
        n_rows = sum(self.block(index).n_rows for index in task)
        if self.source.n_rows > 10**5:  # not of a sample
            seen["tasks"].append(seconds / n_rows)
        seen["summary"] = max(seen["summary"], len(pickle.dumps(summary, 5)))
        seen["params"] = max(seen["params"], len(pickle.dumps((model, params), 5)))
        return summary

    BlockEngine.run_task = timed  # type: ignore[method-assign]
    try:
        asked = {"estimator": "DPMixture", "observations": "diag_gaussian", "passes": 3}
        make_model(arguments | asked).set_params(n_jobs=1).fit(arguments["path"])
    finally:
        BlockEngine.run_task = run_task  # type: ignore[method-assign]
    low, middle, high = np.percentile(seen["tasks"], [16, 50, 84])
    return {
        "row_s": float(middle),
        "spread": float((high - low) / 2 / middle),
        "summary_bytes": seen["summary"],
        "params_bytes": seen["params"],
    }
