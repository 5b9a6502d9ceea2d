"""Fits that are killed at random moments, and workers that are."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from data import Store
from report import CaseResult, Check, Row
from runner import REPOSITORY

_CHILD = """
import sys, warnings
sys.path.insert(0, sys.argv[4])
warnings.simplefilter("ignore")
import kplus.io.checkpoint as checkpoint
checkpoint.SECONDS, checkpoint.SHARE = 0.05, 0
from scale_crashes import seeded
seeded(sys.argv[1]).fit(sys.argv[2], checkpoint=sys.argv[3])
"""


_TRIES = 20  # at killing a fit before its end


def models() -> dict[str, Any]:
    """One of each estimator, slow enough to be killed."""
    import kplus

    return {
        "DPMeans": kplus.DPMeans(n_clusters=40, tol=0.0, batch_size=1000),
        "DPMixture": kplus.DPMixture(max_iter=20, tol=0.0, batch_size=1000),
        "BPMeans": kplus.BPMeans(batch_size=1000),
        "KFeatures": kplus.KFeatures(n_components=6, batch_size=1000),
        "CRAFT": kplus.CRAFT(n_clusters=5, batch_size=1000),
        "MEIBP": kplus.MEIBP(4, negative="shift", batch_size=1000),
        "IBPVariational": kplus.IBPVariational(4, max_iter=60, batch_size=1000),
        "IBPGibbs": kplus.IBPGibbs(4, burn_in=30, n_samples=30),
    }


def seeded(name: str) -> Any:
    return models()[name].set_params(random_state=0)


def same(one: Any, other: Any) -> bool:
    """Whether two fits have the same attributes, bit for bit."""
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray) and name.endswith("_"):
            if value.tobytes() != getattr(other, name).tobytes():
                return False
        elif isinstance(value, float) and value != getattr(other, name):
            return False
    return True


def killed_fits(store: Store, n_kills: int) -> CaseResult:
    """kill -9 at random moments; each fit is resumed, and compared."""
    import warnings

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    path = store.blobs(20_000, 8, 30)
    names = list(models())
    outcomes: dict[str, list[str]] = {name: [] for name in names}
    expected: dict[str, tuple[Any, float]] = {}
    for number in range(n_kills):
        name = names[number % len(names)]
        if name not in expected:
            model = seeded(name).fit(path)  # compiles, too
            expected[name] = model, _undisturbed_seconds(name, path)
        model, seconds = expected[name]
        for _ in range(_TRIES):
            with tempfile.TemporaryDirectory() as folder:
                here = Path(folder) / "c"
                outcome = _kill_and_resume(name, path, here, seconds, model, rng)
            outcomes[name].append(outcome)
            if outcome != "ended":
                break
    rows: list[Row] = [
        {
            "estimator": name,
            "killed": len(found) - found.count("ended"),
            "resumed to the same bits": found.count("same"),
            "ended before the kill": found.count("ended"),
            "killed before the first checkpoint": found.count("early"),
            "other": sum(f not in ("same", "ended", "early") for f in found),
        }
        for name, found in outcomes.items()
    ]
    bad = sum(row["other"] for row in rows)
    resumed = sum(row["resumed to the same bits"] for row in rows)
    checks = [
        Check("every resumed fit has the same bits", f"{resumed} resumed", bad == 0)
    ]
    notes = [
        "Killed at a time drawn evenly from that of an undisturbed fit in its own "
        "process, since the folder of checkpoints was there; if the fit had ended by "
        "then, another is killed. A checkpoint each .05 s. A fit without any, as it "
        "loaded kernels or searched samples, begins anew when resumed."
    ]
    return CaseResult(f"kill -9 at {n_kills} random moments", rows, checks, notes)


def _undisturbed_seconds(name: str, path: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        child = _begun(name, path, Path(folder) / "c")
        begun = time.perf_counter()
        child.wait()
        return time.perf_counter() - begun


def _begun(name: str, path: Path, folder: Path) -> "subprocess.Popen[bytes]":
    """A fit in a process, since the folder of checkpoints is there."""
    here = str(Path(__file__).resolve().parent)
    command = [sys.executable, "-c", _CHILD, name, str(path), str(folder), here]
    child = subprocess.Popen(command, cwd=REPOSITORY)
    while not (folder / "fit.kplus").exists() and child.poll() is None:
        time.sleep(0.01)
    return child


def _kill_and_resume(
    name: str,
    path: Path,
    folder: Path,
    seconds: float,
    expected: Any,
    rng: np.random.Generator,
) -> str:
    child = _begun(name, path, folder)
    time.sleep(float(rng.uniform(0, seconds)))
    child.kill()
    child.wait()
    if not folder.exists():
        return "ended"
    kept = any(folder.glob("part*.kplus"))
    found = type(expected).resume(folder, path)
    if not same(expected, found):
        return "different"
    return "same" if kept else "early"


def killed_workers(store: Store, n_kills: int) -> CaseResult:
    """A worker of two is killed in mid-fit, at a random moment."""
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    path = store.blobs(20_000, 8, 30)
    names = ("DPMeans", "DPMixture")
    expected = {name: seeded(name).fit(path) for name in names}
    rows: list[Row] = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as them,
        Client(them) as client,
    ):
        for name in names:
            begun = time.perf_counter()
            seeded(name).fit(path)
            seconds = time.perf_counter() - begun
            outcomes, times = [], []
            for _ in range(n_kills // len(names) or 1):
                client.wait_for_workers(2, timeout=120)
                delay = float(rng.uniform(0, seconds))
                killer = threading.Timer(delay, _kill_one, [client, rng])
                killer.start()
                begun = time.perf_counter()
                try:
                    found = seeded(name).fit(path)
                    outcomes.append("same" if same(expected[name], found) else "other")
                except Exception as error:
                    outcomes.append(type(error).__name__)
                times.append(time.perf_counter() - begun)
                killer.join()
            rows.append(
                {
                    "estimator": name,
                    "workers killed": len(outcomes),
                    "same bits": outcomes.count("same"),
                    "otherwise": ", ".join(o for o in outcomes if o != "same") or "-",
                    "s without a kill": seconds,
                    "s at most": max(times),
                }
            )
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
        "Two workers with nannies, which start another for one that was killed. Where "
        "no worker is left, two without nannies were killed in mid-fit."
    ]
    return CaseResult(f"{n_kills} workers killed in mid-fit", rows, checks, notes)


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
        seeded("DPMixture").fit(path)  # workers load kernels
        killed: list[float] = []

        def kill() -> None:
            for worker in workers:
                worker.kill()
            killed.append(time.perf_counter())

        killer = threading.Timer(0.5, kill)
        killer.start()
        try:
            seeded("DPMixture").fit(path)
            error = "none"
        except Exception as raised:
            error = type(raised).__name__
        killer.join()
        return error, time.perf_counter() - killed[0]


def _kill_one(client: Any, rng: np.random.Generator) -> None:
    pids = list(client.run(os.getpid).values())
    os.kill(int(rng.choice(pids)), signal.SIGKILL)
