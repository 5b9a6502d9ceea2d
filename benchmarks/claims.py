"""What the papers claim and what is found: ``python benchmarks/claims.py``.

`papers/*.toml` say in our words what is claimed, and which tests and benchmark cases
show it. Numbers and verdicts of benchmarks come from `results/*.json`; those of tests
stand beside the claim. Both are written to `docs/claims.md`.
"""

import ast
import fnmatch
import json
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from runner import HERE, REPOSITORY

PAPERS = HERE / "papers"
RESULTS = HERE / "results"
PAGE = REPOSITORY / "docs" / "claims.md"

VERDICTS = {
    "confirmed": "it holds as far as it was checked",
    "typo": "it holds once a misprint of the formula is mended",
    "partly": "some of it holds; the rest does not, or was not checked",
    "contradicted": "its main point does not hold",
    "open": "nothing here shows it; the row says why",
}

HEAD = """\
<!-- Written by benchmarks/claims.py from benchmarks/papers and benchmarks/results. -->

# What the papers claim

kplus rests on four papers. These are the {n} claims in them that can be checked, in
our words, each with what we find. Claims about formulas are checked by tests, which
run with every change; those that need a paper's pictures run where these are at hand.
Claims about speed and quality are checked by benchmarks. Times of the papers are those
of other machines, so only orders and ratios are compared. A verdict is about what the
paper says; where kplus departs from it, the row says so. Tests carry the number of the
claim in their name or docstring.

{counts}

{meanings}

`make reproduce` measures everything again and writes this page anew.
"""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and what shows it.

    `tests` are ``path::name`` with wildcards, and `found` and `verdict` what they show;
    `results` are cases as ``file/case``, each with a pattern that picks what to quote;
    `see` are cases that are related. `judged` sets another verdict than the rule of a
    benchmark gives, with the reason. A claim that nothing shows says why in `open`.
    """

    id: str
    says: str
    where: str
    on: str = ""
    tests: tuple[str, ...] = ()
    verdict: str = ""
    found: str = ""
    results: tuple[dict[str, str], ...] = ()
    judged: dict[str, str] | None = None
    see: tuple[str, ...] = ()
    note: str = ""
    misprint: str = ""
    open: str = ""


@dataclass(frozen=True)
class Paper:
    """One of the papers and its claims, in order."""

    prefix: str
    title: str
    paper: str
    guide: str
    claims: tuple[Claim, ...]
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """What is found of a claim, in words."""

    verdict: str
    text: str


def read_papers(folder: Path = PAPERS) -> list[Paper]:
    """All papers, in the order of the page."""
    tables = [tomllib.loads(path.read_text()) for path in folder.glob("*.toml")]
    papers = [
        Paper(claims=tuple(Claim(**entry) for entry in table.pop("claim")), **table)
        for table in tables
    ]
    return sorted(
        papers, key=lambda paper: ("MB", "MO", "CR", "ME").index(paper.prefix)
    )


@cache
def saved(case: str) -> dict[str, Any]:
    """What the committed results say of ``file/case``."""
    name, _, entry = case.partition("/")
    cases = json.loads((RESULTS / f"{name}.json").read_text())
    if entry not in cases:
        raise KeyError(f"{case}: benchmarks/results/{name}.json has {', '.join(cases)}")
    return cases[entry]


@cache
def functions(path: str) -> dict[str, str]:
    """Names of the tests in a file, with their docstrings; the file is not run."""
    nodes = ast.walk(ast.parse((REPOSITORY / path).read_text()))
    found = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    tests = [node for node in found if node.name.startswith("test")]
    return {node.name: ast.get_docstring(node) or "" for node in tests}


def tests_of(pattern: str) -> list[str]:
    """The tests that a pattern ``path::name`` names."""
    path, _, name = pattern.partition("::")
    return fnmatch.filter(functions(path), name)


def find(claim: Claim) -> Finding:
    """Verdict and words of a claim, from its tests and from the results."""
    if claim.open:
        return Finding("open", claim.open)
    verdicts = [claim.verdict] if claim.tests else []
    texts = [claim.found] if claim.found else []
    for result in claim.results:
        verdict, text = quoted(claim.id, **result)
        verdicts.append(verdict)
        texts.append(f"*Measured:* {text.removesuffix('.')}.")
    verdict = combined(verdicts)
    if claim.judged:
        verdict, reason = overruled(claim, verdict)
        texts.append(f"{verdict.capitalize()}, as {reason}.")
    texts += [claim.note] if claim.note else []
    texts += [f"*Misprint:* {claim.misprint}"] if claim.misprint else []
    return Finding(verdict, " ".join(texts))


def quoted(ident: str, case: str, pick: str = ".*") -> tuple[str, str]:
    """Verdict of a benchmark on one claim, and the part of its text to quote."""
    parts = [
        (one["verdict"], match.group())
        for one in saved(case)["claims"]
        if one["ident"] == ident and (match := re.search(pick, one["found"]))
    ]
    if len(parts) != 1:
        raise ValueError(
            f"{ident}: {case} has {len(parts)} claims with {pick!r}, not 1"
        )
    return parts[0]


def combined(verdicts: list[str]) -> str:
    """One verdict of several: partly, unless they agree but for a misprint."""
    found = set(verdicts)
    if not found <= set(VERDICTS) or not found:
        raise ValueError(f"verdicts are {', '.join(VERDICTS)}; got {verdicts}")
    if found == {"confirmed", "typo"}:
        return "typo"
    return found.pop() if len(found) == 1 else "partly"


def overruled(claim: Claim, verdict: str) -> tuple[str, str]:
    """Our verdict in place of the rule's, as long as that is what we judged."""
    assert claim.judged is not None
    if verdict != claim.judged["from"]:
        raise ValueError(
            f"{claim.id}: the benchmarks now say {verdict}; it was judged when they "
            f"said {claim.judged['from']}. Look again at `judged` in benchmarks/papers."
        )
    return claim.judged["to"], claim.judged["because"]


# ------------------------------------------------------------------------- the page


def page(papers: list[Paper]) -> str:
    """The whole page as Markdown."""
    findings = {c.id: find(c) for paper in papers for c in paper.claims}
    head = HEAD.format(
        n=len(findings),
        counts=count_table(papers, findings),
        meanings="\n".join(f"- **{name}**: {text}" for name, text in VERDICTS.items()),
    )
    return "\n".join([head, *(section(paper, findings) for paper in papers)])


def count_table(papers: list[Paper], findings: dict[str, Finding]) -> str:
    """How many claims of each paper have which verdict."""
    rows = [["", "claims", *VERDICTS]]
    for paper in papers:
        counts = Counter(findings[claim.id].verdict for claim in paper.claims)
        rows.append(
            [paper.title, len(paper.claims), *map(counts.__getitem__, VERDICTS)]
        )
    totals = [sum(column) for column in list(zip(*rows[1:], strict=True))[1:]]
    rows.append(["**all**", *(f"**{total}**" for total in totals)])
    return table(rows, numbers=True)


def section(paper: Paper, findings: dict[str, Finding]) -> str:
    """A paper with a table of its claims."""
    rows = [["", "the paper says", "what we find"]]
    for claim in paper.claims:
        found = findings[claim.id]
        says = f"{claim.says}<br>*In {claim.where}.*"
        shown = "".join(f"<br>{line}." for line in shown_by(claim))
        rows.append([f"{claim.id}<br>**{found.verdict}**", says, found.text + shown])
    parts = [f"## {paper.title}", f"{paper.paper} [Guide]({paper.guide}).", paper.note]
    return "\n\n".join([*filter(None, parts), table(rows)]) + "\n"


def shown_by(claim: Claim) -> list[str]:
    """Links to tests and to sections of the benchmarks, and the data they use."""
    files = Counter()
    for pattern in claim.tests:
        files[pattern.partition("::")[0]] += len(tests_of(pattern))
    parts = [
        f"{'a test' if n == 1 else f'{n} tests'} in {test_link(path)}"
        for path, n in files.items()
    ]
    parts += [f"benchmark {case_link(result['case'])}" for result in claim.results]
    shown = [f"*Shown by* {', '.join(parts)}, on {claim.on}"] if parts else []
    return shown + [f"See benchmark {case_link(case)}" for case in claim.see]


def test_link(path: str) -> str:
    return f"[{path.removeprefix('tests/')}](../{path})"


def case_link(case: str) -> str:
    """A link to the section of a case, whose heading is the title in the results."""
    page = case.partition("/")[0]
    return f"[{case}](benchmarks/{page}.md#{anchor(saved(case)['title'])})"


def anchor(title: str) -> str:
    """The anchor that MyST makes of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower().replace(" ", "-"))


def table(rows: list[list[Any]], numbers: bool = False) -> str:
    """Rows as a Markdown table, the first as its head."""
    cells = [[str(cell).replace("|", r"\|") for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    rule = ["---"] + ["---:" if numbers else "---"] * (len(rows[0]) - 1)
    return "\n".join([lines[0], "| " + " | ".join(rule) + " |", *lines[1:]])


if __name__ == "__main__":
    papers = read_papers()
    PAGE.write_text(page(papers))
    verdicts = Counter(
        find(claim).verdict for paper in papers for claim in paper.claims
    )
    print(f"{PAGE}: " + ", ".join(f"{verdicts[name]} {name}" for name in VERDICTS))
