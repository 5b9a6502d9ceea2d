"""Fit every estimator with the wheel on other versions of Python, where they are found.

``python .ci/try_wheel.py dist``: one wheel serves Python 3.11 and all that follow.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSIONS = ("3.12", "3.13")
FITS = str(Path(__file__).with_name("first_fits.py").resolve())


def find(version: str) -> str | None:
    """An interpreter of that version: on the path, or one that pyenv has."""
    homes = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    candidates = [shutil.which(f"python{version}"), *map(str, homes)]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    return None


def main(folder: Path) -> None:
    (wheel,) = folder.resolve().glob("*.whl")
    for version in VERSIONS:
        python = find(version)
        if python is None:
            print(f"  Python {version}: not tried, there is none here")
            continue
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([python, "-m", "venv", place], check=True)
            own = str(Path(place) / "bin" / "python")
            install = [own, "-m", "pip", "install", "-qq", str(wheel)]
            subprocess.run([*install, "--disable-pip-version-check"], check=True)
            print(f"  Python {version}: {wheel.name}", flush=True)
            subprocess.run([own, FITS], check=True, cwd=place)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
