"""What all tests share: the reference on the path, repeatable hypothesis, data."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import kplus
from kplus.core.compiled import level

# No deadline: machines are busy at times.
settings.register_profile("kplus", deadline=None, derandomize=True, database=None)
settings.load_profile("kplus")


def pytest_sessionstart():
    """Refuse to test kernels that were changed after they were compiled."""
    sources = Path(kplus.__file__).parent
    compiled = sources / "_compiled" / level()
    old = []
    for path in compiled.rglob("kernels*.*"):
        name = path.relative_to(compiled).with_name(path.name.partition(".")[0])
        files = sources.glob(f"{name}.p[yx]*")
        if any(f.stat().st_mtime > path.stat().st_mtime for f in files):
            old.append(str(name))
    if old and (sources.parents[1] / "setup.py").exists():
        names = ", ".join(sorted(old))
        raise pytest.UsageError(
            f"Changed since they were compiled: {names}. Run `make test`, which "
            "compiles them, or set KPLUS_KERNELS=python."
        )


@pytest.fixture(scope="session")
def blobs():
    """Four well separated groups of 50 rows in three columns."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0, 0], [40, 0, 0], [0, 40, 0], [0, 0, 40]])
    X = np.repeat(centers, 50, axis=0) + rng.normal(size=(200, 3))
    X.flags.writeable = False
    return X
