"""``kplus inspect``: tell what a model file holds."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from kplus.cli.console import count
from kplus.cli.options import Options
from kplus.persist import ArrayInfo
from kplus.persist import inspect as read

__all__ = ["inspect"]

_MOST_COLUMNS = 8
_PRIOR = {"observations_"}  # shapes of what is told as the prior


def inspect(options: Options) -> None:
    """Run the command."""
    info = read(options.model_file)
    prior = _prior(options.model_file) if info.class_name == "DPMixture" else {}
    if options.json:
        told = dataclasses.asdict(info) | ({"prior": prior} if prior else {})
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
    fitted = {k: v for k, v in info.attributes.items() if not (prior and k in _PRIOR)}
    sections = {
        "parameters": dict(sorted(info.params.items())),
        "fitted": dict(sorted(fitted.items())),
        "prior": {k: _by_column(v) for k, v in prior.items()},
    }
    for heading, values in sections.items():
        if values:
            table.add_section()
            table.add_row(heading, "", style="bold")
        for name, value in values.items():
            table.add_row(Text(f"  {name}"), Text(_words(value)))
    Console().print(table)


def _prior(path: Path) -> dict[str, Any]:
    """The prior of a mixture, which takes its arrays; see `prior_values`."""
    import kplus
    from kplus.dp_mixture.families.priors import prior_of

    return prior_of(kplus.load(path))


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
    if isinstance(value, ArrayInfo):
        shape = " × ".join(map(str, value.shape)) or "one"
        kind = "text" if value.dtype == "object" else value.dtype
        return f"{shape} {kind}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_words(item)}" for key, item in value.items())
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple) and any(isinstance(v, ArrayInfo) for v in value):
        return ", ".join(map(_words, value))
    return str(value)


def _plain(value: Any) -> Any:
    """Replace what JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value - value != 0:  # nan and the infinities
        return str(value)
    return value
