"""Results of a benchmark: printed as a table, kept as JSON and Markdown."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner import commit, machine

Row = dict[str, Any]


@dataclass(frozen=True)
class Check:
    """A target and whether the numbers reach it."""

    target: str
    reached: str
    met: bool


@dataclass(frozen=True)
class Claim:
    """What a paper says, what was found, and whether that agrees."""

    ident: str
    claim: str
    found: str
    verdict: str


def claim(ident: str, says: str, found: str, *holds: bool) -> Claim:
    """A claim of one part or several, of which some may hold and some not."""
    verdict = "confirmed" if all(holds) else "partly" if any(holds) else "contradicted"
    return Claim(ident, says, found, verdict)


@dataclass(frozen=True)
class CaseResult:
    """Rows of one case of a benchmark; all rows have the same keys."""

    title: str
    rows: list[Row] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)


def show(value: Any) -> str:
    """A value as people read it: thousands separated, about three digits otherwise."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 4
    return f"{value:.{digits}f}"


def text_table(rows: list[Row]) -> str:
    """Rows as aligned plain text; numbers to the right."""
    lines = _cells(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [_is_number_column(rows, name) for name in rows[0]]
    out = []
    for line in lines:
        cells = zip(line, widths, right, strict=True)
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in cells)
        out.append("  ".join(padded).rstrip())
    out.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(out)


def markdown_table(rows: list[Row]) -> str:
    """Rows as a Markdown table; numbers to the right."""
    lines = ["| " + " | ".join(line) + " |" for line in _cells(rows)]
    rule = ["---:" if _is_number_column(rows, name) else "---" for name in rows[0]]
    return "\n".join([lines[0], "| " + " | ".join(rule) + " |", *lines[1:]])


def _cells(rows: list[Row]) -> list[list[str]]:
    return [list(rows[0]), *([show(value) for value in row.values()] for row in rows)]


def _is_number_column(rows: list[Row], name: str) -> bool:
    return any(isinstance(row[name], int | float) for row in rows)


def print_case(result: CaseResult) -> None:
    """Print the table of a case, its notes and its targets."""
    print(f"\n{result.title}")
    if result.rows:
        print(text_table(result.rows))
    for note in result.notes:
        print(f"note: {note}")
    for check in result.checks:
        word = "met   " if check.met else "MISSED"
        print(f"{word}  {check.target}: {check.reached}", flush=True)
    for one in result.claims:
        print(f"{one.ident}  {one.claim}: {one.found} ({one.verdict})", flush=True)


def save_case(folder: Path, benchmark: str, case: str, result: CaseResult) -> Path:
    """Add a case to the benchmark's JSON file, beside cases of earlier runs.

    Each case keeps its own date, commit, machine and versions, so that cases can be
    measured one by one. The Markdown file is written anew from all of them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{benchmark}.json"
    cases = json.loads(path.read_text()) if path.exists() else {}
    cases[case] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": machine(),
        **asdict(result),
    }
    cases = dict(sorted(cases.items()))
    path.write_text(json.dumps(cases, indent=2, ensure_ascii=False) + "\n")
    parts = [markdown_case(entry) for entry in cases.values()]
    parts += markdown_claims(list(cases.values()))
    path.with_suffix(".md").write_text("\n\n".join(parts) + "\n")
    return path


def markdown_case(entry: dict[str, Any]) -> str:
    """A saved case as a section of a Markdown page."""
    parts = [f"## {entry['title']}"]
    if entry["rows"]:
        parts.append(markdown_table(entry["rows"]))
    parts += entry["notes"]
    if entry["checks"]:
        parts.append("\n".join(_markdown_check(check) for check in entry["checks"]))
    return "\n\n".join([*parts, _provenance(entry)])


def markdown_claims(entries: list[dict[str, Any]]) -> list[str]:
    """The claims of all cases as one section, in order of their numbers."""
    claims = [one for entry in entries for one in entry.get("claims", [])]
    if not claims:
        return []
    rows = [
        {
            "": one["ident"],
            "what the paper says": one["claim"],
            "what was found": one["found"],
            "verdict": one["verdict"],
        }
        for one in sorted(claims, key=lambda one: int(one["ident"].split("-")[1]))
    ]
    return ["## What the paper says", markdown_table(rows)]


def _markdown_check(check: dict[str, Any]) -> str:
    word = "met" if check["met"] else "missed"
    return f"- {check['target']}: {check['reached']} ({word})"


def _provenance(entry: dict[str, Any]) -> str:
    where = entry["machine"]
    versions = ", ".join(f"{name} {v}" for name, v in entry["versions"].items())
    return (
        f"{where['cpu']}, {where['cores']} cores, {where['memory_gb']} GB; {versions}; "
        f"commit {entry['commit']}, {entry['date']}."
    )
