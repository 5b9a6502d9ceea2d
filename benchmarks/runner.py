"""Measure fits in fresh processes: CPU, wall time and peak memory.

A :class:`Job` is run by ``worker.py`` in an interpreter of its own, this one or that of
another library's environment, with a fixed number of threads. Every benchmark describes
its jobs and leaves the rest to :func:`run_job`.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent


class JobFailed(RuntimeError):
    """A worker ended with an error; the message holds the end of what it wrote."""


@dataclass(frozen=True)
class Job:
    """What to run, where, and with how many threads.

    ``task`` names a function of the module ``tasks``, ``runs`` holds its arguments for
    each measured call. All runs share one process; before them the task is called once
    on the first ``warm_up_rows`` rows: imports and compilation are not measured.
    ``mapped`` opens the data as a memory map; ``watch`` samples anonymous memory.
    """

    task: str
    runs: list[dict[str, Any]]
    data: Path | None = None
    python: Path = Path(sys.executable)
    threads: int = 1
    warm_up_rows: int = 0
    mapped: bool = False
    watch: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    timeout: float = 3600.0
    tasks: str = "tasks"


@dataclass(frozen=True)
class Run:
    """One measured call: its numbers, what the task returned, the labels if any."""

    cpu_s: float
    wall_s: float
    peak_mb: float | None
    grown_mb: float | None
    facts: dict[str, Any]
    labels: np.ndarray | None = None
    anonymous_before_mb: float | None = None
    anonymous_peak_mb: float | None = None


@dataclass(frozen=True)
class Runs:
    """All measured calls of a job and the versions of the libraries that made them."""

    runs: list[Run]
    versions: dict[str, str]

    def best(self, name: str) -> float:
        return min(float(getattr(run, name)) for run in self.runs)

    def median(self, name: str) -> float:
        return statistics.median(float(getattr(run, name)) for run in self.runs)


@dataclass(frozen=True)
class SeededRuns:
    """Runs of one setting with seeds 0, 1, ..."""

    name: str
    runs: list[Run]
    versions: dict[str, str]

    def facts(self, name: str) -> list[Any]:
        return [run.facts[name] for run in self.runs]

    @property
    def components(self) -> list[int]:
        return self.facts("n_components")


def thread_environment(threads: int) -> dict[str, str]:
    """Environment variables that hold BLAS and OpenMP to so many threads."""
    names = ["OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA"]
    return {f"{name}_NUM_THREADS": str(threads) for name in names}


def run_job(job: Job) -> Runs:
    """Run a job in a fresh process and collect its measurements."""
    with tempfile.TemporaryDirectory(prefix="kplus-bench-") as folder:
        job_path = Path(folder) / "job.json"
        job_path.write_text(json.dumps(_as_json(job)))
        with open(Path(folder) / "log.txt", "w+") as log:
            code = subprocess.run(
                [job.python, HERE / "worker.py", job_path],
                env=os.environ | thread_environment(job.threads) | job.environment,
                stdout=log,
                stderr=log,
                timeout=job.timeout,
            ).returncode
            if code != 0:
                log.seek(0)
                raise JobFailed(f"{job.task} (code {code}): {log.read()[-2000:]}")
        return _read_answer(Path(folder))


def _as_json(job: Job) -> dict[str, Any]:
    return {
        "task": job.task,
        "tasks": job.tasks,
        "runs": job.runs,
        "data": None if job.data is None else str(job.data),
        "warm_up_rows": job.warm_up_rows,
        "mapped": job.mapped,
        "watch": job.watch,
    }


def _read_answer(folder: Path) -> Runs:
    answer = json.loads((folder / "answer.json").read_text())
    runs = []
    for i, outcome in enumerate(answer["outcomes"]):
        path = folder / f"labels_{i}.npy"
        labels = np.load(path) if path.exists() else None
        runs.append(Run(**outcome["measured"], facts=outcome["facts"], labels=labels))
    return Runs(runs, answer["versions"])


def time_command(
    arguments: list[str], repeats: int, python: Path = Path(sys.executable)
) -> Runs:
    """Run a Python command line in fresh processes and measure the whole of each."""
    environment = os.environ | thread_environment(1)
    runs = []
    for _ in range(repeats):
        started = time.perf_counter()
        process = subprocess.Popen(
            [python, *arguments], env=environment, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        # wait4 took the exit status, which Popen would otherwise wait for.
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise JobFailed(f"{arguments} (code {process.returncode})")
        cpu = usage.ru_utime + usage.ru_stime
        runs.append(Run(cpu, wall, usage.ru_maxrss / 1024, None, {}))
    return Runs(runs, {"python": platform.python_version()})


def peers_python() -> Path | None:
    """Interpreter of the peers' environment, or None where it was not made."""
    default = REPOSITORY / ".venv-peers" / "bin" / "python"
    path = Path(os.environ.get("KPLUS_PEERS_PYTHON", default))
    return path if path.exists() else None


def machine() -> dict[str, Any]:
    """What the numbers depend on: processor, cores, memory, system."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(_memory_bytes() / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = [line.split(":")[1].strip() for line in lines if "model name" in line]
    return models[0] if models else platform.processor() or "unknown"


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


# What a benchmark writes; a run that has saved a case is no other code for the next.
WRITTEN = (":(top,exclude)benchmarks/results", ":(top,exclude)docs/claims.md")


def commit() -> str | None:
    """Commit the numbers belong to, with a plus sign if files differ from it."""
    try:
        head = git("rev-parse", "--short", "HEAD")
        changed = git("status", "--porcelain", "-uno", "--", ":/", *WRITTEN)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed else "")


def git(*arguments: str) -> str:
    """What git answers in this repository."""
    answer = subprocess.run(
        ["git", *arguments], cwd=HERE, check=True, capture_output=True, text=True
    )
    return answer.stdout.strip()
