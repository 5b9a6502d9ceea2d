"""Run one job of the benchmark runner inside the interpreter that it is about.

Called as ``python worker.py JOB.json``. It needs numpy and the standard library only,
so that it also runs in the environments of other libraries. The job names a function
and its module, such as ``tasks.py``; each of its runs is measured and written back as
JSON, labels as .npy.
"""

import contextlib
import json
import platform
import resource
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

Facts = dict[str, Any]
Task = Callable[[np.ndarray | None, Facts], Facts]

PACKAGES = [
    "kplus",
    "numpy",
    "scipy",
    "scikit-learn",
    "threadpoolctl",
    "pdc-dp-means",
    "kmodes",
    "stepmix",
    "pandas",
    "pyarrow",
]


def cpu_seconds() -> float:
    """User and system time of this process, its threads and its ended children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def status_mb(field: str) -> float | None:
    """A memory field of /proc/self/status in MB; None where there is no such file."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return None


def reset_peak() -> None:
    """Let VmHWM start again from the present size."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


class AnonymousPeak:
    """Sample the anonymous memory, which a mapped file is no part of, in a thread."""

    def __init__(self, interval: float = 0.005):
        self.interval = interval
        self.peak = status_mb("RssAnon") or 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(self.interval):
            self.peak = max(self.peak, status_mb("RssAnon") or 0.0)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()


def measure(
    task: Task, X: np.ndarray | None, arguments: Facts, watch: bool
) -> tuple[Facts, Facts]:
    """Call the task once; return its measurements and what it returned."""
    anonymous = status_mb("RssAnon")
    before = status_mb("VmRSS")
    reset_peak()
    watcher = AnonymousPeak() if watch and anonymous is not None else None
    with watcher or contextlib.nullcontext():
        cpu, wall = cpu_seconds(), time.perf_counter()
        result = task(X, arguments)
        cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    peak = status_mb("VmHWM")
    grown = None if peak is None or before is None else peak - before
    numbers = {"cpu_s": cpu, "wall_s": wall, "peak_mb": peak, "grown_mb": grown}
    if watcher is not None:
        numbers["anonymous_before_mb"] = anonymous
        numbers["anonymous_peak_mb"] = watcher.peak
    return numbers, result


def versions() -> dict[str, str]:
    """Versions of Python and of those packages that are installed here."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def main(job_path: Path) -> None:
    job = json.loads(job_path.read_text())
    task = getattr(import_module(job["tasks"]), job["task"])
    X = None
    if job["data"] is not None:
        X = np.load(job["data"], mmap_mode="r" if job["mapped"] else None)
    if X is not None and job["warm_up_rows"]:
        task(X[: job["warm_up_rows"]], job["runs"][0])
    outcomes = []
    for i, arguments in enumerate(job["runs"]):
        numbers, result = measure(task, X, arguments, job["watch"])
        labels = result.pop("labels", None)
        if labels is not None:
            np.save(job_path.with_name(f"labels_{i}.npy"), labels)
        outcomes.append({"measured": numbers, "facts": result})
    answer = {"versions": versions(), "outcomes": outcomes}
    job_path.with_name("answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
