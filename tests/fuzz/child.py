"""Hurt files and read them, in a process that may crash: ``child.py COUNT SEED KIND..``

Prints a JSON object: for each kind how often which error came out, what should not
have, the longest time and the most memory that reading took. The number of a mutation
is written to the file ``last`` of its folder before it is read, for those who wonder
where a process crashed.
"""

import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from fuzz.kinds import KINDS

SECONDS = 10  # until a read counts as hanging
ADDRESSES = 6 * 2**30  # beyond those in use: so that no harm is done


class Hanging(BaseException):
    """Not an Exception: nobody may catch it."""


def hang(signum, frame):
    raise Hanging


def bytes_of(name: str) -> int:
    """A line of the process's status, such as VmHWM, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def outcome(kind, path: Path) -> str:
    """What came of a read: "read", the name of an error, or the story of a wrong one.

    The first line of a story tells it from others.
    """
    signal.alarm(SECONDS)
    try:
        kind.read(path)
        return "read"
    except kind.errors as error:
        return type(error).__name__
    except Hanging:
        return "HANGS: \n" + "".join(traceback.format_stack(limit=6))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} {last.filename}:{last.lineno}"
        return f"WRONG: {where}\n" + "".join(traceback.format_exception(error))[-1500:]
    finally:
        signal.alarm(0)


def fuzz(name: str, count: int, seed: int, folder: Path) -> dict:
    """Read so many hurt files of a kind."""
    samples = folder / "samples"
    samples.mkdir()
    kind = KINDS[name][0](samples)
    for number, sample in enumerate(kind.samples):  # all can be read; and to warm up
        kind.read(kind.put(folder / f"whole-{number}", sample))
    counts: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    seconds, memory = 0.0, 0
    for number in range(count):
        rng = random.Random(f"{name} {seed} {number}")
        here = folder / "hurt"
        path = kind.put(here, kind.hurt(rng))
        (folder.parent / "last").write_text(f"{name} {seed} {number}")
        forget_peak()
        before, begun = bytes_of("VmRSS"), time.perf_counter()
        found = outcome(kind, path)
        seconds = max(seconds, time.perf_counter() - begun)
        taken = bytes_of("VmHWM") - before
        memory = max(memory, taken)
        counts[found.split(":")[0]] += 1
        if ":" in found:
            wrong.setdefault(found.split("\n")[0], f"mutation {number}\n{found}")
        shutil.rmtree(here)
    return {
        "counts": counts,
        "wrong": list(wrong.values())[:20],
        "seconds": seconds,
        "memory": memory,
        "size": max(sum(map(len, sample.values())) for sample in kind.samples),
    }


def main() -> None:
    count, seed, *names = sys.argv[1:]
    signal.signal(signal.SIGALRM, hang)
    most = bytes_of("VmSize") + ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warnings.simplefilter("ignore")
    for module in ("kplus.persist", "kplus.data.files"):
        importlib.import_module(module)
    report = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("FUZZ_FOLDER")) as folder:
        for number, name in enumerate(names):
            own = Path(folder) / str(number)
            own.mkdir()
            share = KINDS[name][1]
            report[name] = fuzz(name, round(int(count) * share), int(seed), own)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
