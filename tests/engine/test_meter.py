"""Freed memory is used again while it is asked for, where that can be said."""

import platform
import subprocess
import sys

import pytest

from kplus.engine.meter import keeping_freed

CHILD = """
import resource
import numpy as np
from kplus.engine.meter import keeping_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.ones(2**18)  # 2 MB: 512 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
with keeping_freed():
    faults()
    print(faults())
faults()
print(faults())
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="another malloc cannot be told"
)
def test_pages_are_not_cleared_again_and_again(monkeypatch):
    """As in a worker of Dask, whose nanny sets this variable."""
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    child = [sys.executable, "-c", CHILD]
    done = subprocess.run(child, capture_output=True, text=True, check=True)
    before, meanwhile, after = map(int, done.stdout.split())
    assert meanwhile < before / 10
    assert after > before / 2


@pytest.mark.parametrize("value", [None, "", "many"])
def test_other_processes_are_left_alone(monkeypatch, value):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    if value is not None:
        monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", value)
    monkeypatch.setattr("kplus.engine.meter._glibc", lambda: pytest.fail("is asked"))
    with keeping_freed():
        pass
