"""Runs of methods on tables: what the workers are asked, and what they answered."""

import statistics
from dataclasses import dataclass
from typing import Any

from compare import value_range
from ibp_data import Table
from ibp_methods import Method
from report import Row
from runner import Job, run_job

TASKS = "ibp_tasks"  # the module of what these jobs run
Facts = dict[str, Any]


@dataclass(frozen=True)
class IBPFits:
    """Fits of one method, with seeds 0, 1, ..."""

    method: str
    facts: list[Facts]
    versions: dict[str, str]

    def all(self, name: str) -> list[Any]:
        return [facts[name] for facts in self.facts]

    def median(self, name: str) -> float:
        return statistics.median(self.all(name))

    @property
    def ll(self) -> float:
        return self.median("ll")

    @property
    def cpu(self) -> float:
        return self.median("cpu_s")

    def row(self) -> Row:
        return {
            "method": self.method,
            "CPU s, median": self.cpu,
            "CPU s, most": max(self.all("cpu_s")),
            "wall s": self.median("wall_s"),
            "ll, median": exactly(self.ll),
            "ll, worst": exactly(min(self.all("ll"))),
            "K": value_range(self.all("K")),
        }


def exactly(value: float) -> str:
    """A log-likelihood per entry: a difference in the third place counts."""
    return f"{value:.4f}"


def fit_synthetic(method: Method, shape: tuple[int, ...], seeds: int) -> IBPFits:
    """Fits of data made by seeds 0, 1, ...; one before them is left out."""
    asked = [
        {"method": method.as_json(), "shape": list(shape), "seed": seed}
        for seed in [0, *range(seeds)]
    ]
    answer = run_job(Job("fit_synthetic", asked, tasks=TASKS))
    facts = [run.facts for run in answer.runs[1:]]
    return IBPFits(method.name, facts, answer.versions)


def fit_table(
    method: Method,
    table: Table,
    *,
    starts: int = 1,
    box: float | None = None,
    mapped: bool = False,
) -> IBPFits:
    """Fits of a table within so many CPU seconds, with seeds 0, 1, ..."""
    return _on_table("fit_table", method, table, starts, box, mapped)


def fit_curve(method: Method, table: Table, starts: int, box: float) -> IBPFits:
    """Log-likelihood over CPU seconds, ``points`` of each of the starts."""
    return _on_table("fit_curve", method, table, starts, box, False)


def _on_table(
    task: str,
    method: Method,
    table: Table,
    starts: int,
    box: float | None,
    mapped: bool,
) -> IBPFits:
    own = {"method": method.as_json(), "truth": str(table.truth), "box": box}
    asked = [own | {"seed": seed} for seed in range(starts)]
    answer = run_job(Job(task, asked, table.path, mapped=mapped, tasks=TASKS))
    return IBPFits(method.name, [run.facts for run in answer.runs], answer.versions)
