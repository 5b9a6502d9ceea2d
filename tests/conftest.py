"""What all tests share: the reference on the path, repeatable hypothesis, data."""

import numpy as np
import pytest
from hypothesis import settings

# No deadline: machines are busy at times.
settings.register_profile("kplus", deadline=None, derandomize=True, database=None)
settings.load_profile("kplus")


@pytest.fixture(scope="session")
def blobs():
    """Four well separated groups of 50 rows in three columns."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0, 0], [40, 0, 0], [0, 40, 0], [0, 0, 40]])
    X = np.repeat(centers, 50, axis=0) + rng.normal(size=(200, 3))
    X.flags.writeable = False
    return X
