"""The command line that every benchmark has."""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from data import DataMissing, Store
from report import CaseResult, print_case, save_case
from runner import HERE, JobFailed

Sizes = TypeVar("Sizes")


def main(
    benchmark: str,
    cases: dict[str, Callable[[Store, Sizes], CaseResult]],
    full: Sizes,
    quick: Sizes,
) -> None:
    """Run the cases that the command line asks for, print and save their results."""
    arguments = read_arguments(benchmark, list(cases))
    failed = False
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        store = Store(Path(folder))
        for name in arguments.only:
            try:
                result = cases[name](store, quick if arguments.quick else full)
            except DataMissing as missing:
                print(f"\n{name}: skipped, {missing}", flush=True)
            except JobFailed as problem:
                failed = True
                print(f"\n{name}: FAILED, {problem}", flush=True)
            else:
                print_case(result)
                if not arguments.quick:
                    save_case(arguments.output, benchmark, name, result)
    sys.exit(1 if failed else 0)


def read_arguments(benchmark: str, names: list[str]) -> argparse.Namespace:
    """Options of the command line; an unknown case ends the program."""
    parser = argparse.ArgumentParser(prog=f"benchmarks/{benchmark}.py")
    parser.add_argument("--only", help=f"comma-separated: {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="tiny data, nothing saved")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder")
    parser.add_argument("--scratch", type=Path, help="folder for up to 3 GB of data")
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",") if arguments.only else names
    for name in arguments.only:
        if name not in names:
            parser.error(f"unknown case {name!r}; there are {', '.join(names)}")
    return arguments
