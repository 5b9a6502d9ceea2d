"""kplus: clustering and latent features where the data decide how many.

The public names are loaded on first use, so that ``import kplus`` and
``kplus --help`` stay quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "BPMeans": "kplus.estimators",
    "CRAFT": "kplus.estimators",
    "DPMeans": "kplus.estimators",
    "DPMixture": "kplus.estimators",
    "IBPGibbs": "kplus.estimators",
    "IBPVariational": "kplus.estimators",
    "KFeatures": "kplus.estimators",
    "MEIBP": "kplus.estimators",
    "penalty_for": "kplus.estimators",
    "penalty_path": "kplus.estimators",
    "resources": "kplus.engine.resources",
    "open_files": "kplus.data.files",
    "Blocks": "kplus.core.types",
    "convert": "kplus.data.convert",
    "write_answers": "kplus.base.answers",
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
    "DPMeans",
    "DPMixture",
    "DataError",
    "IBPGibbs",
    "IBPVariational",
    "KFeatures",
    "ModelFormatError",
    "WorkersError",
    "__version__",
    "convert",
    "datasets",
    "inspect",
    "load",
    "observations",
    "open_files",
    "penalty_for",
    "penalty_path",
    "plots",
    "resources",
    "save",
    "write_answers",
]

if TYPE_CHECKING:
    from kplus import datasets, observations, plots
    from kplus.base.answers import write_answers
    from kplus.core.errors import (
        CheckpointError,
        DataError,
        ModelFormatError,
        WorkersError,
    )
    from kplus.core.types import Blocks
    from kplus.data.convert import convert
    from kplus.data.files import open_files
    from kplus.engine.resources import resources
    from kplus.estimators import (
        CRAFT,
        MEIBP,
        BPMeans,
        DPMeans,
        DPMixture,
        IBPGibbs,
        IBPVariational,
        KFeatures,
        penalty_for,
        penalty_path,
    )
    from kplus.persist.save import inspect, load, save


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kplus' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if home.__name__ == f"kplus.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
