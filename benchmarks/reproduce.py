"""Measure everything again: ``make reproduce [PART=craft,ibp:cost]``.

Cases run one after the other, each in a process of its own, and at last the page of
claims is written. It takes hours, and may be stopped and begun again: a case that ended
well with the same code is skipped, as `build/reproduce.log` says, which also tells how
long each took. ``make benchmark`` is a race against other libraries in half an hour.
"""

import argparse
import ast
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path

from runner import HERE, REPOSITORY, git

LOG = REPOSITORY / "build" / "reproduce.log"
RACE_RESULTS = REPOSITORY / "build" / "race"
PARTS = (
    "dp_means", "dp_mixture", "real_data", "dp_means_default", "imputation",
    "wide_tables", "skewed_tables", "sparse_counts", "how_sure", "features", "craft",
    "ibp", "meibp_gaps", "denoising", "profiles", "scale", "soak", "versions",
)  # fmt: skip
# Cases in which other libraries run, the quicker of each kind: some 23 minutes by the
# seconds in the results. None is begun after RACE_MINUTES.
RACE = (
    "dp_means:blobs", "wide_tables:seen", "ibp:synthetic", "craft:adult",
    "dp_means:n-clusters", "dp_mixture:cost", "imputation:numbers",
)  # fmt: skip
RACE_MINUTES = 25.0


@dataclass(frozen=True)
class Step:
    """One case of one benchmark script."""

    part: str
    case: str

    def __str__(self) -> str:
        return f"{self.part}:{self.case}"


@dataclass(frozen=True)
class Ended:
    """A line of the log: a case that ran, and what came of it."""

    when: str
    code: str
    step: str
    seconds: str
    outcome: str


def main() -> int:
    arguments = read_arguments()
    if arguments.race:
        return race()
    steps = steps_of(arguments.part or PARTS)
    code = code_version()
    done = set() if arguments.again else finished(LOG, code)
    left = [step for step in steps if str(step) not in done]
    print(f"{len(steps)} cases, {len(steps) - len(left)} of them done", flush=True)
    outcomes = [run(step, code) for step in left]
    subprocess.run([sys.executable, HERE / "claims.py"], check=True)
    print(f"See {LOG}")
    return int("failed" in outcomes)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/reproduce.py")
    parser.add_argument("--part", type=lambda text: text.split(",") if text else [])
    parser.add_argument("--again", action="store_true", help="what is done, too")
    parser.add_argument("--race", action="store_true", help="against other libraries")
    return parser.parse_args()


def steps_of(parts: Sequence[str]) -> list[Step]:
    """The cases of ``script`` or ``script:case``, in order."""
    steps = []
    for part in parts:
        script, _, case = part.partition(":")
        if script not in PARTS:
            raise SystemExit(f"unknown part {script!r}; there are {', '.join(PARTS)}")
        cases = cases_of(script)
        if case and case not in cases:
            raise SystemExit(f"unknown case {part!r}; there are {', '.join(cases)}")
        steps += [Step(script, name) for name in ([case] if case else cases)]
    return steps


def cases_of(script: str) -> list[str]:
    """Keys of the script's CASES, from its text: to import all scripts takes long."""
    for node in ast.parse((HERE / f"{script}.py").read_text()).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "CASES":
            return [key.value for key in node.value.keys]
    raise SystemExit(f"{script}.py has no CASES")


def run(step: Step, code: str, results: Path = HERE / "results") -> str:
    """Run one case and log it: done, skipped (it saved nothing), or failed."""
    print(f"\n=== {step}", flush=True)
    command = [sys.executable, HERE / f"{step.part}.py", "--only", step.case]
    began, clock = time.time(), time.perf_counter()
    status = subprocess.run([*command, "--output", results]).returncode
    saved = any(path.stat().st_mtime >= began for path in results.glob("*.json"))
    outcome = "failed" if status else "done" if saved else "skipped"
    seconds = f"{time.perf_counter() - clock:.0f}"
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M")
    write(LOG, Ended(when, code, str(step), seconds, outcome))
    print(f"--- {step}: {outcome}, {seconds} s", flush=True)
    return outcome


def write(log: Path, line: Ended) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        print(*astuple(line), file=file)


def finished(log: Path, code: str) -> set[str]:
    """What the log says is done with this code."""
    lines = log.read_text().splitlines() if log.exists() else []
    ended = [Ended(*line.split()) for line in lines]
    return {one.step for one in ended if one.code == code and one.outcome == "done"}


def code_version() -> str:
    """The last commit that changed what is measured, and what differs from it."""
    code = ["--", ":/src", ":/benchmarks/*.py", ":(top,exclude)benchmarks/tests"]
    try:
        commit = git("log", "-1", "--format=%h", *code)
        changes = git("diff", "HEAD", *code)
    except (OSError, subprocess.CalledProcessError):
        return f"unknown-{time.time():.0f}"  # no repository: nothing counts as done
    return commit + (f"+{sha1(changes.encode()).hexdigest()[:8]}" if changes else "")


def race() -> int:
    """The cases of the race, as many as begin in time; results are kept apart."""
    began, code, outcomes = time.perf_counter(), code_version(), []
    RACE_RESULTS.mkdir(parents=True, exist_ok=True)
    for step in steps_of(RACE):
        if time.perf_counter() - began > 60.0 * RACE_MINUTES:
            print(f"\n{step}: left out, {RACE_MINUTES:g} minutes are over")
            continue
        outcomes.append(run(step, f"race-{code}", RACE_RESULTS))
    print(f"\nTables are in {RACE_RESULTS}")
    return int("failed" in outcomes)


if __name__ == "__main__":
    sys.exit(main())
