"""``kplus inspect``: tell what a model file holds."""

import dataclasses
import json
from types import NoneType
from typing import Any

from kplus.cli.console import count, note
from kplus.cli.options import Options
from kplus.cli.results import print_summary
from kplus.cli.scaling import summary_in_units
from kplus.data.reading import Reading
from kplus.persist import inspect as read

__all__ = ["inspect"]

_MOST_COLUMNS = 8


def inspect(options: Options) -> None:
    """Run the command."""
    import kplus

    info, model = read(options.model_file), kplus.load(options.model_file)
    prior = _prior(model)
    summary = summary_in_units(model) if hasattr(model, "portrait_") else None
    reading = getattr(model, "reading_", None) or Reading()
    if options.json:
        told = dataclasses.asdict(info) | ({"prior": prior} if prior else {})
        told |= {"summary": summary or [], "left_out": reading.left_out}
        print(json.dumps(_plain(told), indent=2, allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=str(options.model_file), title_justify="left", show_header=False
    )
    table.add_column("what", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_row("model", info.class_name)
    table.add_row("written by", Text(f"kplus {info.kplus_version}"))
    table.add_row("size", f"{info.file_size:,} bytes")
    sections = {
        "parameters that were set": _changed(model),
        "columns": _of_columns(reading),
        "found": _shown(info.attributes),
        "prior": {k: _by_column(v) for k, v in prior.items()},
    }
    for heading, values in sections.items():
        if values:
            table.add_section()
            table.add_row(heading, "", style="bold")
        for name, value in values.items():
            table.add_row(Text(f"  {name}"), Text(_words(value)))
    console = Console()
    console.print(table)
    if summary:
        print_summary(summary)
    hidden = len(info.attributes) - len(sections["found"])
    note(f"--json also lists {count(hidden, 'attribute')} that hold more than a value.")


def _of_columns(reading: Reading) -> dict[str, str]:
    """How tables are read, where that is not as they are."""
    told = {"left out": reading.left_out_words(), "read": reading.made_words()}
    return {name: words for name, words in told.items() if words}


def _changed(model: Any) -> dict[str, Any]:
    """Parameters that are not at their defaults."""
    usual = type(model)().get_params(deep=False)
    given = model.get_params(deep=False)
    return {k: v for k, v in sorted(given.items()) if repr(v) != repr(usual.get(k))}


def _shown(attributes: dict[str, Any]) -> dict[str, Any]:
    """What fits in a line: no arrays, nor what is made of some."""
    plain = (bool, int, float, str, NoneType)
    return {k: v for k, v in sorted(attributes.items()) if isinstance(v, plain)}


def _prior(model: Any) -> dict[str, Any]:
    """The prior of a mixture; see `prior_values`."""
    if type(model).__name__ != "DPMixture":
        return {}
    from kplus.dp_mixture.families.priors import prior_of

    return prior_of(model)


def _by_column(value: Any) -> Any:
    """Numbers by column in words, of many columns the first."""
    if not isinstance(value, dict):
        return value
    shown = [f"{name} {number:.4g}" for name, number in value.items()]
    left = len(shown) - _MOST_COLUMNS
    if left > 0:
        low, high = min(value.values()), max(value.values())
        more = f"and {count(left, 'column')} more, all from {low:.4g} to {high:.4g}"
        shown = [*shown[:_MOST_COLUMNS], more]
    return ", ".join(shown)


def _words(value: Any) -> str:
    """Describe a value in a line."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """Replace what JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value - value != 0:  # nan and the infinities
        return str(value)
    return value
