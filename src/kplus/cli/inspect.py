"""``kplus inspect``: tell what a model file holds."""

import dataclasses
import json
from typing import Any

from kplus.cli.options import Options
from kplus.persist import ArrayInfo
from kplus.persist import inspect as read

__all__ = ["inspect"]


def inspect(options: Options) -> None:
    """Run the command."""
    info = read(options.model_file)
    if options.json:
        print(json.dumps(_plain(dataclasses.asdict(info)), indent=2, allow_nan=False))
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
    for heading, values in (("parameters", info.params), ("fitted", info.attributes)):
        table.add_section()
        table.add_row(heading, "", style="bold")
        for name, value in sorted(values.items()):
            table.add_row(Text(f"  {name}"), Text(_words(value)))
    Console().print(table)


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
