"""Two workers of one thread each, for tests marked `dask`."""

from contextlib import contextmanager

import pytest


@contextmanager
def two_workers(**options):
    """A client of theirs, which is not the default one."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            worker_dashboard_address=None,
            **options,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
