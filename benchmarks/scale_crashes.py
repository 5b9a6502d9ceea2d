"""Fits that are killed at random moments, and workers that are."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from data import Store
from report import CaseResult, Check, Row
from runner import REPOSITORY, JobFailed

_CHILD = """
import sys, warnings
how, name, path, folder, here = sys.argv[1:]
sys.path.insert(0, here)
warnings.simplefilter("ignore")
import kplus.persist.checkpoint as checkpoint
checkpoint.SECONDS, checkpoint.SHARE = 0.05, 0
from scale_crashes import seeded
if how == "fit":
    seeded(name).fit(path, checkpoint=folder)
else:
    type(seeded(name)).resume(folder, path)
"""
_TRIES = 20  # at killing a fit before its end
_TWICE = 2  # fits that are killed again, after they were resumed
_POLL = 0.005  # seconds
_SAME, _ANEW, _DIFFERENT = "same", "anew", "different"
_FEWER = {"IBPVariational": 4, "IBPGibbs": 50}  # rows, for their passes take longer


def models() -> dict[str, Any]:
    """One of each estimator; their time goes to passes over all rows, not to search."""
    import kplus

    plain = {"effort": 0, "init": "++", "max_iter": 40}
    return {
        "DPMeans": kplus.DPMeans(n_clusters=40, max_iter=150, tol=0.0),
        "DPMixture": kplus.DPMixture(
            "diag_gaussian", max_components=12, max_iter=8, tol=0.0
        ),
        "BPMeans": kplus.BPMeans(1e5, max_components=6, **plain),
        "KFeatures": kplus.KFeatures(6, assignment="exact", **plain),
        "CRAFT": kplus.CRAFT(n_clusters=12, max_iter=60, tol=0.0),
        "MEIBP": kplus.MEIBP(6, negative="shift", max_iter=15, tol=0.0),
        "IBPVariational": kplus.IBPVariational(4, init="random", max_iter=15, tol=0.0),
        "IBPGibbs": kplus.IBPGibbs(4, burn_in=100, n_samples=100),
    }


def models_of_workers() -> dict[str, Any]:
    """With many small blocks, so that there is always a call under way."""
    import kplus

    return {
        "DPMeans": kplus.DPMeans(n_clusters=40, tol=0.0, batch_size=1000),
        "DPMixture": kplus.DPMixture(max_iter=20, tol=0.0, batch_size=1000),
    }


def seeded(name: str, of: Callable[[], dict[str, Any]] = models) -> Any:
    return of()[name].set_params(random_state=0)


def same(one: Any, other: Any) -> bool:
    """Whether two fits have the same attributes, bit for bit."""
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray) and name.endswith("_"):
            if value.tobytes() != getattr(other, name).tobytes():
                return False
        elif isinstance(value, int | float) and value != getattr(other, name):
            return False
    return True


# ----------------------------------------------------------------- killed fits


@dataclass(frozen=True)
class Undisturbed:
    """A fit that nobody kills: what it finds, and the times of one with checkpoints.

    Seconds are counted since the folder of checkpoints is there: until there is a first
    checkpoint, and until the end.
    """

    name: str
    path: Path
    model: Any
    first: float
    end: float

    @classmethod
    def of(cls, name: str, path: Path) -> "Undisturbed":
        model = seeded(name).fit(path)  # compiles, too
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "c"
            child = _started("fit", name, path, folder)
            _watch(child, lambda: _unfinished(folder))
            begun = time.perf_counter()
            _watch(child, lambda: bool(_parts(folder)))
            first = time.perf_counter() - begun
            _watch(child, lambda: not _unfinished(folder))
            end = time.perf_counter() - begun
            child.wait()
        return cls(name, path, model, first, end)


def killed_fits(store: Store, n_kills: int, n_rows: int) -> CaseResult:
    """kill -9 at random moments; each fit is resumed, and compared."""
    from kplus.persist.checkpoint import CheckpointWarning

    rng, n_late = np.random.default_rng(0), n_kills * 4 // 5
    names = list(models())
    outcomes: dict[str, list[str]] = {name: [] for name in names}
    known: dict[str, Undisturbed] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", CheckpointWarning)  # a damaged file
        for number in range(n_kills):
            name = names[number % len(names)]
            if name not in known:
                path = store.blobs(n_rows // _FEWER.get(name, 1), 6, 30)
                known[name] = Undisturbed.of(name, path)
            late = number < n_late
            times = 2 if late and number < _TWICE else 1
            outcomes[name].append(_outcome(known[name], late, times, rng))
    rows: list[Row] = [_kills_row(*item) for item in outcomes.items()]
    seconds = [one.end for one in known.values()]
    notes = [
        f"Of {n_kills} fits {n_late} are killed at a time drawn evenly from that "
        "between the first checkpoint and the end, as an undisturbed fit in its own "
        "process shows it, the others from the whole time since the folder of "
        "checkpoints was there; if a fit has ended by then, another is killed. "
        f"{min(_TWICE, n_late)} of the former are resumed in a process that is killed, "
        f"too, and resumed once more. Fits of up to {n_rows:,} × 6 rows, "
        f"{min(seconds):.1f} to {max(seconds):.1f} s, a checkpoint after each pass but "
        "not within .05 s. A fit without any, as it loaded kernels or searched "
        "samples, begins anew when resumed."
    ]
    title = f"kill -9 at {n_kills} random moments"
    return CaseResult(title, rows, _kills_checks(rows, n_late), notes)


def _kills_row(name: str, outcomes: list[str]) -> Row:
    return {
        "estimator": name,
        "kills": len(outcomes),
        "resumed from a checkpoint to the same bits": outcomes.count(_SAME),
        "begun anew to the same bits": outcomes.count(_ANEW),
        "different": outcomes.count(_DIFFERENT),
    }


def _kills_checks(rows: list[Row], n_late: int) -> list[Check]:
    resumed = [row["resumed from a checkpoint to the same bits"] for row in rows]
    bad = sum(row["different"] for row in rows)
    each = n_late // len(rows)
    return [
        Check("every resumed fit has the same bits", f"{bad} differ", bad == 0),
        Check(
            f"at least {n_late} resumed from a checkpoint",
            f"{sum(resumed)} resumed",
            sum(resumed) >= n_late,
        ),
        Check(
            f"at least {each} of each estimator",
            f"{min(resumed)} or more",
            min(resumed) >= each,
        ),
    ]


def _outcome(
    known: Undisturbed, late: bool, times: int, rng: np.random.Generator
) -> str:
    """What comes of a fit that is killed so many times, then resumed."""
    for _ in range(_TRIES):
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "c"
            if all(
                _killed("resume" if i else "fit", known, folder, late, times, rng)
                for i in range(times)
            ):
                kept = bool(_parts(folder))
                found = type(known.model).resume(folder, known.path)
                if not same(known.model, found):
                    return _DIFFERENT
                return _SAME if kept else _ANEW
    raise JobFailed(f"{known.name} ended {_TRIES} times before it was killed")


def _killed(
    how: str,
    known: Undisturbed,
    folder: Path,
    late: bool,
    times: int,
    rng: np.random.Generator,
) -> bool:
    """Begin a fit in a process, or resume it, and kill it; whether it was under way.

    A late kill comes after a checkpoint of that process. If there are several, each has
    its share of the time, or there would be nothing left for the last.
    """
    earlier = _parts(folder)
    child = _started(how, known.name, known.path, folder)
    if late:
        _watch(child, lambda: bool(_parts(folder) - earlier))
    else:
        _watch(child, lambda: _unfinished(folder))
    seconds = known.end - known.first if late else known.end
    try:
        child.wait(float(rng.uniform(0, seconds / times)))
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    else:
        _check(child)
    return _unfinished(folder)


def _started(
    how: str, name: str, path: Path, folder: Path
) -> "subprocess.Popen[bytes]":
    here = str(Path(__file__).resolve().parent)
    command = [sys.executable, "-c", _CHILD, how, name, str(path), str(folder), here]
    return subprocess.Popen(command, cwd=REPOSITORY)


def _watch(child: "subprocess.Popen[bytes]", happened: Callable[[], bool]) -> None:
    """Wait until something has happened, or the process has ended."""
    while not happened():
        if child.poll() is not None:
            _check(child)
            return
        time.sleep(_POLL)


def _check(child: "subprocess.Popen[bytes]") -> None:
    """Of a process that has ended: a fit that fails was not killed."""
    if child.returncode != 0:
        raise JobFailed(f"a fit ended with code {child.returncode}")


def _unfinished(folder: Path) -> bool:
    return (folder / "fit.kplus").exists()


def _parts(folder: Path) -> set[str]:
    """Names of checkpoints; none has the name of an earlier one."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return set()
    return {name for name in names if re.fullmatch(r"part.*\.kplus", name)}


# -------------------------------------------------------------- killed workers


def killed_workers(store: Store, n_kills: int) -> CaseResult:
    """A worker of two is killed in mid-fit, at a random moment."""
    rng = np.random.default_rng(0)
    path = store.blobs(20_000, 8, 30)
    names = list(models_of_workers())
    expected = [seeded(name, models_of_workers).fit(path) for name in names]
    each = n_kills // len(names) or 1
    rows = [_workers_row(model, path, each, rng) for model in expected]
    good = all(row["same bits"] == row["workers killed"] for row in rows)
    error, seconds = _without_workers(path)
    checks = [
        Check("same bits after every kill, no hang", str(good), good),
        Check(
            "no worker left: a named error within 30 s",
            f"{error} after {seconds:.1f} s",
            error == "WorkersError" and seconds < 30,
        ),
    ]
    notes = [
        "Two new workers for each kill, with nannies, which start another for one that "
        "was killed. Where no worker is left, two without nannies were killed in "
        "mid-fit."
    ]
    return CaseResult(f"{n_kills} workers killed in mid-fit", rows, checks, notes)


@contextmanager
def _two_workers() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as them,
        Client(them) as client,
    ):
        yield client


def _workers_row(
    expected: Any, path: Path, n_kills: int, rng: np.random.Generator
) -> Row:
    def timed() -> tuple[Any, float]:
        begun = time.perf_counter()
        found = clone(expected).fit(path)
        return found, time.perf_counter() - begun

    with _two_workers():
        seconds = timed()[1]
    outcomes, times = [], []
    for _ in range(n_kills):
        # New ones: nannies do not always bring one back that was killed.
        with _two_workers() as client:
            delay = float(rng.uniform(0, seconds))
            killer = threading.Timer(delay, _kill_one, [client, rng])
            killer.start()
            try:
                found, taken = timed()
                outcomes.append("same" if same(expected, found) else "other")
                times.append(taken)
            except Exception as error:
                outcomes.append(type(error).__name__)
            killer.join()
    return {
        "estimator": type(expected).__name__,
        "workers killed": len(outcomes),
        "same bits": outcomes.count("same"),
        "otherwise": ", ".join(o for o in outcomes if o != "same") or "-",
        "s without a kill": seconds,
        "s at most": max(times),
    }


def _without_workers(path: Path) -> tuple[str, float]:
    """All workers are killed in mid-fit for good: the error, and after how long."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=0, dashboard_address=None) as them,
        Client(them) as client,
    ):
        command = [sys.executable, "-m", "distributed.cli.dask_worker"]
        command += [them.scheduler_address, "--no-nanny", "--nthreads=1"]
        command += ["--no-dashboard"]
        workers = [
            subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL)
            for _ in range(2)
        ]
        client.wait_for_workers(2, timeout=120)
        seeded("DPMixture", models_of_workers).fit(path)  # workers load kernels
        killed: list[float] = []

        def kill() -> None:
            for worker in workers:
                worker.kill()
            killed.append(time.perf_counter())

        killer = threading.Timer(0.5, kill)
        killer.start()
        try:
            seeded("DPMixture", models_of_workers).fit(path)
            error = "none"
        except Exception as raised:
            error = type(raised).__name__
        killer.join()
        return error, time.perf_counter() - killed[0]


def _kill_one(client: Any, rng: np.random.Generator) -> None:
    pids = list(client.run(os.getpid).values())
    os.kill(int(rng.choice(pids)), signal.SIGKILL)
