"""Break models and moves in small ways, and see whether a test notices.

    python tools/mutants.py [craft/model ...] [tests/craft/test_model.py ...]

A fixed sample of the changes that cosmic-ray's operators make to the files named in
`[tool.mutants]` of pyproject.toml; never to annotations, decorators, asserts or errors.
The tests run once as they are, so that each mutant meets only those that execute its
line, the quickest first, `budget` seconds of them, in a fork with the kernels loaded
and an import hook for the changed module. A mutant is killed if a test fails or takes
far too long. Arguments limit the files, or replace the tests.
"""

import ast
import importlib.abc
import importlib.util
import os
import random
import re
import resource
import signal
import sys
import time
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from itertools import accumulate, chain
from pathlib import Path

import coverage
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutants"]
SOURCES = [path for place in SETTINGS["sources"] for path in sorted(ROOT.glob(place))]
SOURCES = [path for path in SOURCES if not path.name.startswith("kernels")]  # compiled
OPTIONS = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", "-rN", "-m", "not slow"]


@dataclass(frozen=True)
class Mutant:
    """One change of one file; `lines` are those of the statement it changes."""

    path: Path
    lines: range
    code: str

    def __str__(self) -> str:
        texts = self.path.read_text().splitlines(), self.code.splitlines()
        changes = list(unified_diff(*texts, n=0, lineterm=""))[3:]
        where = f"{self.path.relative_to(ROOT / 'src/kplus')}:{self.lines[0]}"
        return "\n    ".join([where, *changes])


def untouched(tree: ast.AST) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Ranges in which a change would say nothing about the tests."""
    found = []
    for node in ast.walk(tree):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        parts += [node] if isinstance(node, ast.Raise | ast.Assert) else []
        for n in filter(None, parts + getattr(node, "decorator_list", [])):
            found.append(((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)))
    return found


def statement_lines(tree: ast.AST, line: int) -> range:
    """The lines of the innermost statement around a line, without its body."""
    found = range(line, line + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
            body = getattr(node, "body", None)
            stop = body[0].lineno if body else node.end_lineno + 1
            found = range(node.lineno, stop) if line < stop else found
    return found


def mutants_of(path: Path, wanted: int) -> list[Mutant]:
    """Draw places in a file, and at each place one of the changes possible there."""
    code = path.read_text()
    tree, nodes = ast.parse(code), list(ast_nodes(get_ast(code)))
    barred = untouched(tree)
    places: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for name in filter(re.compile(SETTINGS["operators"]).fullmatch, operator_names()):
        found = chain.from_iterable(map(get_operator(name)().mutation_positions, nodes))
        for occurrence, (start, _) in enumerate(found):
            if not any(low <= start < high for low, high in barred):
                places.setdefault(start, []).append((name, occurrence))
    drawn: list[Mutant] = []
    rng = random.Random(f"{SETTINGS['seed']} {path.relative_to(ROOT)}")
    for place in rng.sample(sorted(places), len(places)):
        if len(drawn) == wanted:
            break
        name, occurrence = rng.choice(places[place])
        changed = mutate_code(code, get_operator(name)(), occurrence)
        with suppress(SyntaxError):  # the lone * among parameters is no product
            if ast.dump(ast.parse(changed)) != ast.dump(tree):  # 1e38 + 1 is 1e38
                drawn.append(Mutant(path, statement_lines(tree, place[0]), changed))
    return sorted(drawn, key=lambda mutant: mutant.lines[0])


def sample() -> list[Mutant]:
    """Of each file as many mutants as is its share of all lines."""
    lines = {path: len(path.read_text().splitlines()) for path in SOURCES}
    share = SETTINGS["mutants"] / sum(lines.values())
    return [m for path, n in lines.items() for m in mutants_of(path, round(share * n))]


class Watched:
    """A run of the tests as they are: how long each takes, which lines it executes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        include = [str(path) for path in SOURCES]
        self.cover = coverage.Coverage(None, config_file=False, include=include)

    def pytest_collection_modifyitems(self, items):  # its threads do not survive a fork
        items[:] = [item for item in items if "polars" not in item.path.read_text()]

    def pytest_runtest_setup(self, item):  # a fixture may serve all tests of its file
        self.cover.switch_context(item.path.relative_to(ROOT).as_posix())
        self.seconds[item.nodeid] = -time.process_time()

    def pytest_runtest_call(self, item):
        self.cover.switch_context(item.nodeid)

    def pytest_runtest_teardown(self, item):
        self.seconds[item.nodeid] += time.process_time()

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Tests that execute the lines, quickest first; if only imports do, more."""
        contexts = self.cover.get_data().contexts_by_lineno(str(mutant.path))
        here = {name for line in mutant.lines for name in contexts.get(line, ())} - {""}
        names = here or {n.partition("::")[0] for n in set().union(*contexts.values())}
        files = tuple(f"{name}::" for name in names - {""} if "::" not in name)
        tests = [t for t in self.seconds if t in names or t.startswith(files)]
        tests.sort(key=self.seconds.__getitem__)
        spent = accumulate(self.seconds[test] for test in tests)
        return tests[: 1 + sum(so_far <= SETTINGS["budget"] for so_far in spent)]


class Changed(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports the changed module in place of its file; keeps tests in their order."""

    def __init__(self, mutant: Mutant, tests: list[str]) -> None:
        self.mutant, self.tests = mutant, tests

    def find_spec(self, name, path, target=None):
        ours = ROOT / "src" / f"{name.replace('.', '/')}.py" == self.mutant.path
        return importlib.util.spec_from_loader(name, self) if ours else None

    def get_filename(self, name):
        return str(self.mutant.path)

    def get_data(self, path):
        return self.mutant.code.encode()

    def pytest_collection_modifyitems(self, items):
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self.tests if test in found]


def killed(mutant: Mutant, tests: list[str], seconds: float) -> bool:
    """Whether the tests, which take so many seconds as they are, notice."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    limit = int(20 + 4 * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    signal.alarm(30 * limit)  # waiting for a lock takes no time of the processor
    for name, module in list(sys.modules.items()):  # all that knows it as it was
        ours = name.startswith("kplus") and not name.startswith("kplus.core.kernels")
        if ours or str(getattr(module, "__file__", "")).startswith(f"{ROOT}/tests/"):
            del sys.modules[name]
    sys.meta_path.insert(0, changed := Changed(mutant, tests))
    files = {name.partition("::")[0] for name in tests}
    os._exit(int(pytest.main([*OPTIONS, *files], plugins=[changed])))


def main() -> None:
    tests = [arg for arg in sys.argv[1:] if arg.startswith("tests/")]
    files = [arg for arg in sys.argv[1:] if arg not in tests] or [""]
    os.chdir(ROOT)
    mutants = [m for m in sample() if any(part in str(m) for part in files)]
    watched = Watched()
    watched.cover.start()
    if pytest.main([*OPTIONS, *(tests or SETTINGS["tests"])], plugins=[watched]):
        sys.exit("The tests fail as they are.")
    watched.cover.stop()
    same = [Mutant(m.path, m.lines, m.path.read_text()) for m in mutants[:1]]
    if any(killed(m, watched.tests_of(m), SETTINGS["budget"]) for m in same):
        sys.exit("The tests fail when a module that did not change is imported again.")
    dead = 0
    for mutant in mutants:
        chosen = watched.tests_of(mutant)
        seconds = sum(watched.seconds[test] for test in chosen)
        noticed = bool(chosen) and killed(mutant, chosen, seconds)
        print("killed" if noticed else "ALIVE", mutant, flush=True)
        dead += noticed
    print(f"{dead} of {len(mutants)} killed")


if __name__ == "__main__":
    main()
