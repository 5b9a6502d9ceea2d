"""Where CPU time goes, by the library that a sample of `perf` was taken in.

Linux only. `perf` looks at the process from outside, a few hundred times a second, and
slows it down by less than a per cent. A sample counts for the library it was taken in:
what a compiled kernel spends in exp or in drawing numbers counts as numpy's.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Self

PARTS = ("system", "BLAS", "kernels", "numpy", "Python")
_BLAS = ("blas", "lapack", "mkl", "blis")


def part_of(library: str, symbol: str) -> str:
    """Which of `PARTS` a sample belongs to.

    >>> part_of("kernels_lloyd.abi3.so", "_meet"), part_of("libc.so.6", "__memmove_avx")
    ('kernels', 'numpy')
    """
    if library.startswith(("[kernel", "[vdso]", "[hypervisor")):
        return "system"
    if library.startswith("kernels"):
        return "kernels"
    if any(name in library.lower() for name in _BLAS):
        return "BLAS"
    if library.startswith("libc.") and "__mem" in symbol:
        return "numpy"  # copies and fills of arrays
    if ".cpython-" in library or library.startswith(("libm.", "libarrow", "libmvec")):
        return "numpy"
    return "Python"


def shares_of(report: str) -> dict[str, float] | None:
    """Shares of the parts, from lines ``samples | library | symbol``."""
    counts = dict.fromkeys(PARTS, 0)
    for line in report.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 3 and fields[0].isdigit():
            counts[part_of(fields[1], fields[2].partition("]")[2])] += int(fields[0])
    total = sum(counts.values())
    return {part: n / total for part, n in counts.items()} if total else None


class Sampler:
    """Lets `perf` watch this process; `shares` stays None where it cannot."""

    def __init__(self, per_second: int = 499):
        self.per_second = per_second
        self.shares: dict[str, float] | None = None
        self._perf: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if shutil.which("perf") is not None:
            self._folder = tempfile.TemporaryDirectory(prefix="kplus-perf-")
            self._start()
        return self

    def _start(self) -> None:
        """Start perf and wait until it says that it counts."""
        orders_out, orders = os.pipe()
        answers, answers_in = os.pipe()
        self._perf = subprocess.Popen(
            [
                *("perf", "record", "-q", "-p", str(os.getpid()), "-o", self._data),
                *("-e", "cpu-clock", "-F", str(self.per_second)),
                *("--control", f"fd:{orders_out},{answers_in}"),
            ],
            pass_fds=(orders_out, answers_in),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(orders_out)
        os.close(answers_in)  # so that reading ends if perf does
        with contextlib.suppress(BrokenPipeError):
            os.write(orders, b"enable\n")
        os.read(answers, 16)
        self._pipes = orders, answers  # perf ends when these are closed

    @property
    def _data(self) -> Path:
        return Path(self._folder.name) / "perf.data"

    def __exit__(self, *error: object) -> None:
        if self._perf is None:
            return
        self._perf.send_signal(signal.SIGINT)
        self._perf.wait()
        for pipe in self._pipes:
            os.close(pipe)
        if self._data.exists():
            report = subprocess.run(
                [
                    *("perf", "report", "-q", "--stdio", "-i", self._data),
                    *("-t", "|", "-F", "sample,dso,sym"),
                ],
                capture_output=True,
                text=True,
            )
            self.shares = shares_of(report.stdout)
        self._folder.cleanup()
