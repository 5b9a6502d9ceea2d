"""How clusters of mixed tables are looked for."""

from kplus.search.craft.driver import (
    CraftFit,
    CraftSpec,
    fit,
    fit_as_published,
    refit,
    score,
    stream,
)

__all__ = [
    "CraftFit",
    "CraftSpec",
    "fit",
    "fit_as_published",
    "refit",
    "score",
    "stream",
]
