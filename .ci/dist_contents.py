"""Check what a wheel and an sdist hold: ``python .ci/dist_contents.py dist``.

The wheel is the package, its data and its licence, and each kernel compiled for every
level, the lowest of which runs on any processor; the sdist is what git tracks.
"""

import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

IS_X86 = platform.machine().lower() in ("x86_64", "amd64")


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
        if IS_X86:
            _check_baseline(archive)
    _compare(wheel.name, found, packed | compiled(packed))
    if not about:
        sys.exit(f"{wheel.name} has no licence.")
    print(f"  {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    with tarfile.open(sdist) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    made = {name for name in found if ".egg-info" in name} | {"", "PKG-INFO"}
    folders = {str(Path(name).parent) for name in tracked}
    folders |= {str(up) for name in folders for up in Path(name).parents}
    _compare(sdist.name, found - made - {"setup.cfg"} - folders, set(tracked))


def compiled(sources: set[str]) -> set[str]:
    """The compiled files that belong to the kernels among the sources."""
    kernels = [name for name in sources if re.search(r"/kernels\w*\.py$", name)]
    levels = ["baseline", "avx2"] if IS_X86 else ["baseline"]
    return {"kplus/_cyutility.abi3.so"} | {
        name.replace("kplus/", f"kplus/_compiled/{level}/", 1).removesuffix(".py")
        + ".abi3.so"
        for name in kernels
        for level in levels
    }


def _check_baseline(archive: zipfile.ZipFile) -> None:
    """No AVX in what must run without it: no 256-bit register is named."""
    names = [name for name in archive.namelist() if name.endswith(".so")]
    lowest = [name for name in names if "_compiled/avx2" not in name]
    with tempfile.TemporaryDirectory() as folder:
        for name in lowest:
            path = archive.extract(name, folder)
            code = subprocess.run(
                ["objdump", "-d", path], check=True, capture_output=True, text=True
            ).stdout
            if "%ymm" in code or "%zmm" in code:
                sys.exit(f"{name} needs AVX, and is for any processor.")
    print(f"  {len(lowest)} compiled files need no AVX")


def _compare(name: str, found: set[str], expected: set[str]) -> None:
    for what, files in (("lacks", expected - found), ("also has", found - expected)):
        if files:
            sys.exit(f"{name} {what} {', '.join(sorted(files)[:10])}.")
    print(f"  {name}: {len(found)} files, as in git")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
