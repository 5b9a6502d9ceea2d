"""What is measured again: all there is, once, and not twice with the same code."""

import importlib
import subprocess
import sys

import pytest


@pytest.fixture
def reproduce(monkeypatch, tmp_path):
    module = importlib.import_module("reproduce")
    monkeypatch.setattr(module, "LOG", tmp_path / "build" / "reproduce.log")
    return module


@pytest.fixture
def script(monkeypatch, tmp_path, reproduce):
    """Benchmarks are a script that does what its case is called."""
    path = tmp_path / "demo.py"
    path.write_text(
        "import pathlib, sys\n"
        "case, folder = sys.argv[2], pathlib.Path(sys.argv[4])\n"
        "if case == 'saves': (folder / 'demo.json').write_text('{}')\n"
        "sys.exit(case == 'fails')\n"
    )
    monkeypatch.setattr(reproduce, "HERE", tmp_path)
    (tmp_path / "results").mkdir()
    return lambda case: reproduce.run(
        reproduce.Step("demo", case), "abc", tmp_path / "results"
    )


def test_every_benchmark_with_cases_is_a_part(reproduce):
    root = importlib.import_module("runner").HERE
    scripts = {path.stem for path in root.glob("*.py") if "\nCASES" in path.read_text()}
    assert scripts == set(reproduce.PARTS)
    assert len(set(reproduce.PARTS)) == len(reproduce.PARTS)


def test_parts_and_cases_are_found(reproduce):
    steps = reproduce.steps_of(["features", "skewed_tables:spiked"])
    assert str(steps[0]) == "features:tabletop"
    assert str(steps[-1]) == "skewed_tables:spiked"
    assert len(reproduce.steps_of(reproduce.RACE)) == len(reproduce.RACE)
    assert reproduce.cases_of("skewed_tables") == ["skewed", "spiked"]
    assert len(reproduce.steps_of(reproduce.PARTS)) > 90


@pytest.mark.parametrize(
    ("part", "words"),
    [("crafts", "unknown part 'crafts'; there are dp_means, "),
     ("skewed_tables:flat", "unknown case .*; there are skewed, ")],
)  # fmt: skip
def test_an_unknown_part_or_case_is_named(reproduce, part, words):
    with pytest.raises(SystemExit, match=words):
        reproduce.steps_of([part])


def test_what_ended_well_is_done_with_this_code_only(reproduce, script):
    assert reproduce.finished(reproduce.LOG, "abc") == set()
    outcomes = [script(case) for case in ("saves", "nothing", "fails")]
    assert outcomes == ["done", "skipped", "failed"]
    lines = reproduce.LOG.read_text().splitlines()
    assert [line.split()[1:3] for line in lines] == [
        ["abc", "demo:saves"], ["abc", "demo:nothing"], ["abc", "demo:fails"],
    ]  # fmt: skip
    assert reproduce.finished(reproduce.LOG, "abc") == {"demo:saves"}
    assert reproduce.finished(reproduce.LOG, "abd") == set()


def test_only_what_is_left_runs_and_the_page_is_written(
    reproduce, monkeypatch, tmp_path
):
    ran = []
    monkeypatch.setattr(reproduce, "HERE", tmp_path)
    (tmp_path / "claims.py").write_text("open('page', 'w').close()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "code_version", lambda: "abc")
    monkeypatch.setattr(reproduce, "cases_of", lambda part: ["skewed", "spiked"])
    monkeypatch.setattr(
        reproduce, "run", lambda step, code: ran.append(str(step)) or "failed"
    )
    reproduce.write(
        reproduce.LOG,
        reproduce.Ended("now", "abc", "skewed_tables:skewed", "3", "done"),
    )
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--part", "skewed_tables"])
    assert reproduce.main() == 1
    assert ran == ["skewed_tables:spiked"]
    assert (tmp_path / "page").exists()
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--again"])
    reproduce.main()
    assert ran[1:] == ["skewed_tables:skewed", "skewed_tables:spiked"]


def test_a_race_begins_no_case_after_its_time(reproduce, monkeypatch, tmp_path, capsys):
    ran = []
    monkeypatch.setattr(reproduce, "RACE_RESULTS", tmp_path)
    monkeypatch.setattr(reproduce, "RACE", ("skewed_tables",))
    monkeypatch.setattr(reproduce, "run", lambda *step: ran.append(step) or "done")
    assert reproduce.race() == 0
    assert len(ran) == 2
    assert ran[0][2] == tmp_path
    monkeypatch.setattr(reproduce, "RACE_MINUTES", 0.0)
    reproduce.race()
    assert len(ran) == 2
    assert (
        "skewed_tables:spiked: left out, 0 minutes are over" in capsys.readouterr().out
    )


@pytest.fixture
def repository(monkeypatch, tmp_path):
    """A repository with some code, which the scripts take for their own."""
    for file in ("src/a.py", "benchmarks/b.py", "benchmarks/results/b.json"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("1")
    runner = importlib.import_module("runner")
    monkeypatch.setattr(runner, "HERE", tmp_path / "benchmarks")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]

    def commit():
        for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "x"]):
            subprocess.run(["git", *arguments], cwd=tmp_path, check=True)

    commit()
    return tmp_path, commit, runner


def test_results_are_no_other_code(reproduce, repository):
    folder, commit, runner = repository
    head, code = runner.commit(), reproduce.code_version()
    (folder / "benchmarks" / "results" / "b.json").write_text("2")
    assert (runner.commit(), reproduce.code_version()) == (head, code)
    commit()
    assert runner.commit() != head
    assert reproduce.code_version() == code
    (folder / "src" / "a.py").write_text("2")
    changed = reproduce.code_version()
    assert changed.startswith(f"{code}+")
    assert runner.commit().endswith("+")
    (folder / "src" / "a.py").write_text("3")
    assert reproduce.code_version() not in (code, changed)
    commit()
    assert "+" not in reproduce.code_version() != code
