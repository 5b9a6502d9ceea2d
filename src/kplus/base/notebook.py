"""What notebooks show of a fitted estimator: its groups, and scikit-learn's diagram."""

import math
from html import escape
from typing import Any

from sklearn.utils import estimator_html_repr

from kplus.base.description import N_TOLD, summary_columns

__all__ = ["html_of"]

_MOST_SHOWN = 20  # groups

# Colours and fonts are those of the notebook, light or dark.
_STYLE = (
    "<style>"
    ".kplus-summary{border-collapse:collapse;margin:0 0 .8em;text-align:left}"
    ".kplus-summary caption{text-align:left;padding:0 0 .3em}"
    ".kplus-summary th,.kplus-summary td{padding:.2em .7em;vertical-align:top;"
    "text-align:left;border-bottom:1px solid rgba(128,128,128,.35)}"
    ".kplus-summary .number{text-align:right;font-variant-numeric:tabular-nums}"
    "</style>"
)


def html_of(model: Any) -> str:
    """The summary of a fitted model, if it has one, and scikit-learn's diagram."""
    diagram = str(estimator_html_repr(model))
    return summary_table(model) + diagram if hasattr(model, "portrait_") else diagram


def summary_table(model: Any) -> str:
    """What `summary()` says, as a table; of very many groups the largest."""
    columns = summary_columns(model, model.portrait_, model._told(N_TOLD))
    noun = model._group_noun
    lines = list(zip(*columns.values(), strict=True))
    n_rows, K = model.portrait_.n_rows, model.portrait_.K
    title = f"{K:,} {noun}{'s' * (K != 1)} of {n_rows:,.0f} rows"
    if len(lines) > _MOST_SHOWN:
        lines = sorted(lines, key=lambda line: -line[1])[:_MOST_SHOWN]
        title += f", the {_MOST_SHOWN} largest"
    headings = [noun, "rows", "share", "sureness", "name", "set apart by"]
    head = "".join(f"<th scope='col'>{text}</th>" for text in headings)
    body = "".join(f"<tr>{_cells(*line)}</tr>" for line in lines)
    return (
        f"{_STYLE}<table class='kplus-summary'><caption>{title}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cells(
    group: int, size: float, share: float, sureness: float, name: str, apart: str
) -> str:
    numbers = [
        str(group),
        f"{size:,.0f}",
        f"{share:.1%}",
        "" if math.isnan(sureness) else f"{sureness:.2f}",
    ]
    words = [escape(name), "<br>".join(map(escape, apart.split("; ")))]
    return "".join(
        [f"<td class='number'>{text}</td>" for text in numbers]
        + [f"<td>{text}</td>" for text in words]
    )
