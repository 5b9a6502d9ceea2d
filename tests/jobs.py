"""Jobs for searches that are called without an estimator."""

from kplus.core.job import Job
from kplus.engine import make_engine
from kplus.engine.resources import Resources


def make_job(*given, resources=None, **more):
    """A job with an engine factory, as estimators make them."""
    resources = Resources() if resources is None else resources
    return Job(*given, make_engine=make_engine, resources=resources, **more)
