"""The methods that are compared, by the names of the paper, and their settings.

Prefixes as there: "t-" is truncated at K features, "f-" and "i-" are the finite and the
infinite variational approximation. Only MEIBP, UGibbs, NMF and BNMF have nonnegative
factors; for the others the columns are centred.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

Settings = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A kind of fit, a class of kplus or a function of ``ibp_fits.py``.

    ``steps`` names the setting that bounds the number of iterations, ``most`` is its
    highest value. ``centred`` takes the columns' means off. ``init`` is another method,
    whose fit this one starts from.
    """

    name: str
    kind: str
    settings: Settings = field(default_factory=dict)
    steps: str = "max_iter"
    most: int = 1_000
    centred: bool = False
    init: "Method | None" = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def from_json(saved: dict[str, Any]) -> Method:
    init = saved["init"]
    return Method(**(saved | {"init": None if init is None else from_json(init)}))


def meibp(max_components: int | None, negative: str, **settings: Any) -> Method:
    own = {"max_components": max_components, "negative": negative}
    return Method("MEIBP", "MEIBP", own | settings)


def accelerated(max_components: int | None, init: Method | None = None) -> Method:
    """Doshi-Velez & Ghahramani's sampler; if it starts from a fit, on the same rows."""
    name = "AIBP" if max_components is None else "t-AIBP"
    return Method(
        name if init is None else "meibp+aibp",
        "IBPGibbs",
        {"sampler": "accelerated", "prior": "gaussian", "burn_in": 0}
        | {"max_components": max_components},
        steps="n_samples",
        centred=init is None,
        init=init,
    )


def uncollapsed(max_components: int | None, negative: str) -> Method:
    return Method(
        "UGibbs" if max_components is None else "t-UGibbs",
        "IBPGibbs",
        {"sampler": "uncollapsed", "prior": "nonnegative", "burn_in": 0}
        | {"max_components": max_components, "negative": negative},
        steps="n_samples",
    )


def variational(process: str, max_components: int) -> Method:
    return Method(
        f"{process[0]}-VIBP",
        "IBPVariational",
        {"process": process, "max_components": max_components},
        centred=True,
    )


def nmf(n_components: int) -> Method:
    """scikit-learn's, from the complete rows; see ``ibp_fits.fit_nmf``."""
    return Method("NMF", "fit_nmf", {"n_components": n_components}, most=200)


def filled_nmf(n_components: int) -> Method:
    settings = {"n_components": n_components}
    return Method("NMF, filled", "fit_filled_nmf", settings, most=200)


def bnmf(n_components: int) -> Method:
    return Method("BNMF", "fit_bnmf", {"n_components": n_components})


def random_start(method: Method) -> Method:
    """From random features, as in the paper, where ours would search for a start."""
    settings = method.settings | {"init": "random"}
    return replace(method, name=f"{method.name}, random", settings=settings)


def truncated(n_components: int, negative: str) -> list[Method]:
    """All methods that are given the number of features, or the most of them."""
    return [
        meibp(n_components, negative),
        accelerated(n_components),
        uncollapsed(n_components, negative),
        variational("finite", n_components),
        variational("infinite", n_components),
        nmf(n_components),
        bnmf(n_components),
    ]


def unbounded(negative: str) -> list[Method]:
    return [accelerated(None), uncollapsed(None, negative)]


IBP_METHODS = ("MEIBP", "AIBP", "t-AIBP", "UGibbs", "t-UGibbs", "f-VIBP", "i-VIBP")
SAMPLERS = ("AIBP", "t-AIBP", "UGibbs", "t-UGibbs")
VARIATIONAL = ("f-VIBP", "i-VIBP")
