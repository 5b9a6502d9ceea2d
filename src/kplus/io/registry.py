"""The classes that a model file may hold, and where each one lives.

A file names a class by a key of these tables and nothing else is ever
imported. To make another estimator or value class storable, add its line; families of
observations come from their own list.
"""

from importlib import import_module

from kplus.observations.names import NAMES, home

__all__ = ["ESTIMATORS", "RECORDS", "find_class", "is_listed"]

ESTIMATORS = {
    "BPMeans": "kplus.estimators",
    "CRAFT": "kplus.estimators",
    "DPMeans": "kplus.estimators",
    "DPMixture": "kplus.estimators",
    "IBPGibbs": "kplus.estimators",
    "IBPVariational": "kplus.estimators",
    "KFeatures": "kplus.estimators",
    "MEIBP": "kplus.estimators",
}

# Frozen dataclasses of arrays and scalars that fitted attributes may hold.
RECORDS = {
    "PenaltyPath": "kplus.estimators",
    "FitReport": "kplus.estimators._report",
    "Coding": "kplus.sources.categories",
    "Clusters": "kplus.models.craft.params",
    "CraftModel": "kplus.models.craft.model",
    "Layout": "kplus.models.craft.layout",
}
# Observations as users choose them, and with their priors settled.
for _name, _about in NAMES.items():
    RECORDS[_about.cls] = RECORDS[f"{_about.cls}Family"] = home(_name)


def find_class(name: str, table: dict[str, str]) -> type:
    """Import the class that `table` lists under `name`."""
    found: type = getattr(import_module(table[name]), name)
    return found


def is_listed(cls: type, table: dict[str, str]) -> bool:
    """Whether `table` lists this very class, not a namesake or a subclass."""
    name = cls.__name__
    return name in table and find_class(name, table) is cls
