"""Run the examples of a Markdown file with the Python that runs this script.

``pycon`` blocks are doctests. In ``console`` blocks each line that starts with
``$ kplus`` is a command, and what follows is its expected output, where ``...``
stands for anything; white space and seconds do not matter. Commands run in an empty
folder that holds a copy of the bundled ``wine.csv``.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run_python(block: str) -> bool:
    test = doctest.DocTestParser().get_doctest(block, {}, "README", None, 0)
    return doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0


def hide_seconds(text: str) -> str:
    return re.sub(r"\d+\.\d+ s\b", "? s", text)


def run_command(line: str, expected: str) -> bool:
    tool = str(Path(sys.executable).with_name("kplus"))
    words = [tool, *shlex.split(line)[1:]]
    env = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        words, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    want, got = hide_seconds(expected), hide_seconds(done.stdout)
    matches = doctest.OutputChecker().check_output(want, got, FLAGS)
    if done.returncode or not matches:
        print(f"$ {line}\nexit code {done.returncode}, and instead of\n{expected}")
        print(f"the output was\n{done.stdout}")
    return done.returncode == 0 and matches


def run_console(block: str) -> bool:
    parts = re.split(r"^\$ (kplus .*)\n", block, flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return all(run_command(line, expected) for line, expected in pairs)


def main() -> None:
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    python, console = blocks(text, "pycon"), blocks(text, "console")
    if not (python and console):
        sys.exit("no examples found: has the README changed its shape?")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(str(files("kplus") / "datasets" / "wine.csv"), folder)
        os.chdir(folder)
        good = [*map(run_python, python), *map(run_console, console)]
        os.chdir("/")
    if not all(good):
        sys.exit("an example of the README does not do what it says")
    print(f"The README's {len(good)} examples do what they say.")


if __name__ == "__main__":
    main()
