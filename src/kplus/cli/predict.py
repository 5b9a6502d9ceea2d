"""``kplus predict``: give rows of a table the clusters or features of a saved model."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kplus.cli.console import CommandError, note, notes_for_warnings, status
from kplus.cli.models import feature_answers, finds_features, has_probabilities
from kplus.cli.output import check_file, put_rows
from kplus.cli.resources import allowed
from kplus.cli.saved import input_for, read_for
from kplus.cli.tables import Table
from kplus.io.answers import parts_of

__all__ = ["PredictOptions", "predict"]


@dataclass(frozen=True)
class PredictOptions:
    """What the user asked for; the help of ``kplus predict`` tells what it means."""

    model: Path
    data: Path
    output: Path | None
    index: str | None
    proba: bool
    json: bool
    quiet: bool
    force: bool
    memory_limit: str | None = None
    scratch: Path | None = None
    scheduler: str | None = None


def predict(options: PredictOptions) -> None:
    """Run the command."""
    check_file(options.output, options.force)
    with allowed(options):
        _run(options)


def _run(options: PredictOptions) -> None:
    from kplus.io.save import load

    model = load(options.model)
    if options.proba:
        _check_proba(model)
    with status(f"Reading {options.data}", options.quiet):
        table = read_for(model, options.data, options.index)
    X = input_for(model, table)
    with status("Labelling", options.quiet), notes_for_warnings(options.quiet):
        if options.output is None and options.json:
            result = _all_answers(model, X, options.proba)
        else:
            result = _put_answers(model, X, table, options)
    if options.json:
        print(json.dumps({"n_rows": table.source.n_rows} | result, allow_nan=False))
    elif options.output is not None and not options.quiet:
        note(f"Wrote {options.output}")


def _all_answers(model: Any, X: Any, proba: bool) -> dict[str, Any]:
    answers = _answers(model, X, proba)
    return {kind: values.tolist() for kind, values in answers.items()}


def _put_answers(
    model: Any, X: Any, table: Table, options: PredictOptions
) -> dict[str, Any]:
    """Write or print the answers, some rows after the other."""
    _, parts = parts_of(model, X)
    pieces = (_answers(model, part, options.proba) for part in parts)
    put_rows(table, pieces, options.output)
    if options.output is None:
        return {}
    main = "features" if finds_features(model) else "labels"
    return {"files": {main: os.fspath(options.output)}}


def _check_proba(model: Any) -> None:
    """Refuse to give probabilities that a model does not have."""
    if hasattr(model, "predict_proba") or has_probabilities(model):
        return
    plain = "has a feature or has it not"
    if not finds_features(model):
        plain = "is in one cluster"
    raise CommandError(
        f"--proba: a {type(model).__name__} has no shares; a row {plain}."
    )


def _answers(model: Any, X: Any, proba: bool) -> dict[str, NDArray[Any]]:
    """What the model says of each row."""
    if finds_features(model):
        answers = feature_answers(model, X)
        return answers if proba else {"features": answers["features"]}
    answers = {"labels": model.predict(X)}
    return answers | {"shares": model.predict_proba(X)} if proba else answers
