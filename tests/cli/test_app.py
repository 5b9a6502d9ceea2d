"""The command as users start it: in a process of its own."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kplus import __version__, cli

COMMAND = [sys.executable, "-m", "kplus.cli"]


def start(*words, **options):
    env = os.environ | {"NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        env=env,
        text=True,
        capture_output=True,
        timeout=120,
        **options,
    )


def test_version():
    done = start("--version")
    assert (done.returncode, done.stdout) == (0, f"kplus {__version__}\n")


@pytest.mark.parametrize("words", [["--help"], [], ["fit", "--help"]])
def test_help(words):
    done = start(*words)
    assert done.returncode == 0
    assert "fit" in done.stdout


@pytest.mark.parametrize("words", [["--help"], ["fit", "-h"], ["inspect", "--help"]])
def test_help_names_no_value_where_none_follows(words):
    done = start(*words)
    assert done.returncode == 0
    assert "<" not in done.stdout.replace("<path>", "")
    assert "--help" in done.stdout


SLOW = (
    "slow = {'numpy', 'sklearn', 'scipy', 'pyarrow', 'matplotlib', 'narwhals', 'dask', "
    "'pandas', 'polars'} & set(sys.modules); sys.exit(str(slow) if slow else 0)"
)


@pytest.mark.parametrize(
    "code",
    [
        "import kplus",
        "from kplus.cli.app import run; run(['--help'])",
        "from kplus.cli.app import run; run(['fit', '--help'])",
    ],
)
def test_nothing_slow_is_imported(code):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; {SLOW}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_python_runs_it_by_the_name_of_the_package():
    words = [sys.executable, "-m", "kplus", "--version"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout == f"kplus {__version__}\n"


def test_fit_then_predict(data, out):
    done = start("fit", data, "--scale", "-o", out)
    assert done.returncode == 0, done.stderr
    assert "3 clusters" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    again = start("predict", out / "model.kplus", data)
    assert again.stdout == (out / "labels.csv").read_text()


def test_mistake_has_no_traceback(tmp_path):
    done = start("fit", tmp_path / "gone.csv", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_reader_that_leaves_early(kplus, data, out):
    assert kplus("fit", data, "-o", out).code == 0
    words = " ".join([*COMMAND, "predict", str(out / "model.kplus"), str(data)])
    done = subprocess.run(
        f"{words} | true", shell=True, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_signals_leave_nothing_behind(data, tmp_path, number, code):
    """Interrupt a fit as soon as its hidden folder is there."""
    script = (
        "import kplus.cli.fit as f, signal, time, sys\n"
        # Where the tests run in the background, it would be ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "f.fit_model = lambda *_: (print('ready', flush=True), time.sleep(60))\n"
        "from kplus.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    words = ["fit", str(data), "-o", str(tmp_path / "out")]
    with subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert [p.name for p in tmp_path.iterdir()] == [data.name]


def test_without_typer():
    code = (
        "import sys; sys.modules['typer'] = None; import kplus.cli; kplus.cli.main([])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "kplus[cli]" in done.stderr
    assert "Traceback" not in done.stderr


def test_only_public_names_of_others_are_used():
    for file in Path(cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) != "self":
                names = [node.attr]
            for name in names:
                private = name.startswith("_") and not name.endswith("__")
                assert not private, f"{file.name}: {ast.unparse(node)}"
