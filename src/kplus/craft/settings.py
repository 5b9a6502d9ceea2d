"""Parameters of `CRAFT`: which are refused, and what they mean for a search."""

from typing import Any

from kplus.craft.joining import wished
from kplus.craft.paper.algorithm import PaperSpec
from kplus.craft.search import CraftSpec

__all__ = ["check", "paper_spec", "search_spec"]

_PAPER_FRACTION = 0.5  # m, without which the paper's algorithm does not run


def check(craft: Any) -> None:
    """Refuse parameters that do not go together."""
    n, most = wished(craft.n_clusters), craft.max_clusters
    if n is not None and most is not None and most < n:
        raise ValueError(
            f"max_clusters={most} is below n_clusters={n}; leave one of them out, "
            f"or raise max_clusters."
        )
    if craft.variant == "paper":
        _check_paper(craft)


def _check_paper(craft: Any) -> None:
    """Refuse what Algorithms 1 and 2 have no place for."""
    if craft.sharing == 1.0:
        raise ValueError(
            "sharing=1 does not go with variant='paper', where it means ρ = 0 and no "
            "cluster is ever opened; give less, or use variant='likelihood'."
        )
    if craft.numeric != "gaussian":
        raise ValueError(
            f"numeric={craft.numeric!r} does not go with variant='paper'; leave it out."
        )
    if wished(craft.n_clusters) is None and isinstance(craft.penalty, str):
        raise ValueError(
            "variant='paper' needs a penalty or n_clusters: the paper has no rule for "
            "either. Give one, or use variant='likelihood'."
        )


def search_spec(craft: Any, levels: tuple[int | None, ...]) -> CraftSpec:
    """The settings of a search."""
    return CraftSpec(
        levels=levels,
        numeric=craft.numeric,
        n_clusters=wished(craft.n_clusters),
        max_clusters=craft.max_clusters,
        penalty=None if isinstance(craft.penalty, str) else float(craft.penalty),
        fraction=craft.feature_fraction,
        sharing=float(craft.sharing),
        smoothing=float(craft.smoothing),
        n_init=craft.n_init,
    )


def paper_spec(craft: Any, levels: tuple[int | None, ...]) -> PaperSpec:
    """The same for the algorithm as published."""
    m = _PAPER_FRACTION if craft.feature_fraction is None else craft.feature_fraction
    rho = None
    if craft.sharing > 0.0 and m < 1.0:
        rho = (1.0 - float(craft.sharing)) * m * (1.0 - m)
    return PaperSpec(
        levels=levels,
        fraction=float(m),
        rho=rho,
        penalty=None if isinstance(craft.penalty, str) else float(craft.penalty),
        n_clusters=wished(craft.n_clusters),
        smoothing=float(craft.smoothing),
        variance_floor=float(craft.variance_floor),
        category_threshold=craft.category_threshold,
        variance_threshold=craft.variance_threshold,
        max_iter=craft.max_iter,
    )
