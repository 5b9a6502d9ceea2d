"""kplus: clustering and latent features where the data decide how many.

The public names are loaded on first use, so that ``import kplus`` and
``kplus --help`` stay quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kplus.core.compiled import find_compiled_kernels

__version__ = "0.1.0"

_HOMES = {
    "BPMeans": "kplus.features.bp_means",
    "CRAFT": "kplus.craft.estimator",
    "DPMeans": "kplus.dp_means.estimator",
    "DPMixture": "kplus.dp_mixture.estimator",
    "IBPGibbs": "kplus.ibp.gibbs.estimator",
    "IBPVariational": "kplus.ibp.variational",
    "KFeatures": "kplus.features.k_features",
    "MEIBP": "kplus.ibp.meibp",
    "ProgressBar": "kplus.base.progress_bar",
    "penalty_for": "kplus.dp_means.penalty",
    "penalty_path": "kplus.dp_means.penalty",
    "resources": "kplus.engine.resources",
    "open_files": "kplus.data.files",
    "read_table": "kplus.data.prepared",
    "date_parts": "kplus.data.prepared",
    "ColumnsWarning": "kplus.data.reading",
    "Blocks": "kplus.core.types",
    "convert": "kplus.data.convert",
    "compare": "kplus.validation.compare",
    "stability": "kplus.validation.stability",
    "validate": "kplus.validation.validate",
    "write_answers": "kplus.base.answers",
    "describe": "kplus.base.description",
    "save": "kplus.persist",
    "load": "kplus.persist",
    "inspect": "kplus.persist",
    "CheckpointError": "kplus.core.errors",
    "DataError": "kplus.core.errors",
    "WorkersError": "kplus.core.errors",
    "ModelFormatError": "kplus.core.errors",
    "datasets": "kplus.datasets",
    "observations": "kplus.observations",
    "plots": "kplus.plots",
}

__all__ = [
    "CRAFT",
    "MEIBP",
    "BPMeans",
    "Blocks",
    "CheckpointError",
    "ColumnsWarning",
    "DPMeans",
    "DPMixture",
    "DataError",
    "IBPGibbs",
    "IBPVariational",
    "KFeatures",
    "ModelFormatError",
    "ProgressBar",
    "WorkersError",
    "__version__",
    "compare",
    "convert",
    "datasets",
    "date_parts",
    "describe",
    "inspect",
    "load",
    "observations",
    "open_files",
    "penalty_for",
    "penalty_path",
    "plots",
    "read_table",
    "resources",
    "save",
    "stability",
    "validate",
    "write_answers",
]

if TYPE_CHECKING:
    from kplus import datasets, observations, plots
    from kplus.base.answers import write_answers
    from kplus.base.description import describe
    from kplus.base.progress_bar import ProgressBar
    from kplus.core.errors import (
        CheckpointError,
        DataError,
        ModelFormatError,
        WorkersError,
    )
    from kplus.core.types import Blocks
    from kplus.craft.estimator import CRAFT
    from kplus.data.convert import convert
    from kplus.data.files import open_files
    from kplus.data.prepared import date_parts, read_table
    from kplus.data.reading import ColumnsWarning
    from kplus.dp_means.estimator import DPMeans
    from kplus.dp_means.penalty import penalty_for, penalty_path
    from kplus.dp_mixture.estimator import DPMixture
    from kplus.engine.resources import resources
    from kplus.features.bp_means import BPMeans
    from kplus.features.k_features import KFeatures
    from kplus.ibp.gibbs.estimator import IBPGibbs
    from kplus.ibp.meibp import MEIBP
    from kplus.ibp.variational import IBPVariational
    from kplus.persist.save import inspect, load, save
    from kplus.validation.compare import compare
    from kplus.validation.stability import stability
    from kplus.validation.validate import validate

find_compiled_kernels()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kplus' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if home.__name__ == f"kplus.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
