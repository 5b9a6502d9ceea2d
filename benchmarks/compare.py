"""Compare libraries on one data set: cost, objective and number of clusters."""

import statistics
from dataclasses import dataclass

import numpy as np

from report import Check, Row
from runner import Job, Runs, run_job


@dataclass(frozen=True)
class Fits:
    """Runs of one library on one data set, with the objective of each."""

    name: str
    runs: Runs
    objectives: list[float]
    clusters: list[int]

    @property
    def cpu(self) -> float:
        return self.runs.median("cpu_s")

    @property
    def objective(self) -> float:
        return statistics.median(self.objectives)

    @property
    def n_clusters(self) -> float:
        return statistics.median(self.clusters)

    def row(self, data: str) -> Row:
        return {
            "data": data,
            "method": self.name,
            "runs": len(self.objectives),
            "K": value_range(self.clusters),
            "objective, best": min(self.objectives),
            "objective, median": self.objective,
            "CPU s, best": self.runs.best("cpu_s"),
            "CPU s, median": self.cpu,
            "wall s": self.runs.median("wall_s"),
            "grown MB": max(run.grown_mb or 0.0 for run in self.runs.runs),
        }


def value_range(values: list[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def measure_fits(name: str, job: Job, penalty: float) -> Fits:
    """Run a job and value its labels by Σ d² + penalty (K−1)."""
    runs = run_job(job)
    assert job.data is not None
    X = np.load(job.data)
    X -= X.mean(axis=0)
    objectives, clusters = [], []
    for run in runs.runs:
        assert run.labels is not None
        sse, n_clusters = sum_of_squares(X, run.labels)
        objectives.append(sse + penalty * (n_clusters - 1))
        clusters.append(n_clusters)
    return Fits(name, runs, objectives, clusters)


def sum_of_squares(X: np.ndarray, labels: np.ndarray) -> tuple[float, int]:
    """Squared distances to the means of the labelled groups, and how many there are."""
    _, labels = np.unique(labels, return_inverse=True)
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    means = np.add.reduceat(X[order], starts) / counts[:, None]
    return float(((X - means[labels]) ** 2).sum()), len(counts)


def times_less(factor: float, ours: Fits, theirs: Fits, what: str) -> Check:
    """Check that the CPU time is so many times less (medians of the runs)."""
    ratio = theirs.cpu / ours.cpu
    return Check(
        f"{what}: at least {factor:g} times less CPU than {theirs.name}",
        f"{ratio:.1f} times",
        ratio >= factor,
    )


def no_higher(ours: float, theirs: float, slack: float, what: str) -> Check:
    """Check that a value exceeds another by no more than a fraction."""
    excess = ours / theirs - 1
    limit = f"at most {slack:.1%} above" if slack else "not above"
    # Sums of the same labels in another order differ in the last digits.
    return Check(f"{what} {limit}", f"{excess:+.3%}", excess <= slack + 1e-9)


def all_versions(fits: list[Fits]) -> dict[str, str]:
    """Versions of ours, and the peer's own where it has an environment of its own."""
    versions = dict(fits[0].runs.versions)
    for fit in fits[1:]:
        for name, version in fit.runs.versions.items():
            if versions.get(name) != version:
                versions[f"{name} ({fit.name})"] = version
    return versions
