"""Check what a wheel and an sdist hold: ``python .ci/dist_contents.py dist``.

The wheel is the package, its data and its licence, and nothing that was compiled; the
sdist is what git tracks.
"""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path


def main(folder: Path) -> None:
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    tracked = subprocess.run(
        ["git", "ls-files"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    packed = {
        name.removeprefix("src/") for name in tracked if name.startswith("src/kplus/")
    }
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
        about = [name for name in archive.namelist() if name.endswith("/LICENSE")]
    _compare(wheel.name, found, packed)
    if not about:
        sys.exit(f"{wheel.name} has no licence.")
    with tarfile.open(sdist) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    _compare(sdist.name, found - {"PKG-INFO"}, set(tracked))


def _compare(name: str, found: set[str], expected: set[str]) -> None:
    for what, files in (("lacks", expected - found), ("also has", found - expected)):
        if files:
            sys.exit(f"{name} {what} {', '.join(sorted(files)[:10])}.")
    print(f"  {name}: {len(found)} files, as in git")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
