"""What the workers of ``profiles.py`` run: default fits, and the first of a process."""

import statistics
import time
import warnings
from typing import Any

import numpy as np

from profile_shares import Sampler

Arguments = dict[str, Any]
Facts = dict[str, Any]


def default_fits(X: np.ndarray, arguments: Arguments) -> Facts:
    """Default fits of the first ``rows`` rows, for at least ``seconds``."""
    import kplus

    estimator = getattr(kplus, arguments["estimator"])
    rows = X[: arguments["rows"]]
    walls: list[float] = []
    cpus: list[float] = []
    with Sampler() as sampler, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while not walls or sum(walls) < arguments["seconds"]:
            wall, cpu = time.perf_counter(), time.process_time()
            model = estimator(random_state=0).fit(rows)
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
    return {
        "wall_s": statistics.median(walls),
        "cpu_s": statistics.median(cpus),
        "shares": sampler.shares,
        "K": number_found(model),
    }


def number_found(model: Any) -> int:
    """How many clusters or features a fit found."""
    names = ("n_clusters_", "n_components_")
    return int(next(getattr(model, name) for name in names if hasattr(model, name)))


def first_fit(X: np.ndarray, arguments: Arguments) -> Facts:
    """Import an estimator and fit once: what a new process waits for."""
    started = time.perf_counter()
    import kplus

    estimator = getattr(kplus, arguments["estimator"])
    imported = time.perf_counter()
    cpu = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator(random_state=0).fit(X)
    return {
        "import_s": imported - started,
        "fit_s": time.perf_counter() - imported,
        "fit_cpu_s": time.process_time() - cpu,
    }
