"""The page of claims is complete, true to tests and results, and up to date."""

import importlib
import json
import re
from dataclasses import replace

import pytest

EXPECTED = {"MB": 17, "MO": 18, "CR": 18, "ME": 17}
IN_NAME = re.compile(r"test_(mb|mo|cr|me)_(\d+)_", re.IGNORECASE)
IN_TEXT = re.compile(r"\b(?:MB|MO|CR|ME)-\d+")


@pytest.fixture
def claims():
    return importlib.import_module("claims")


@pytest.fixture
def listed(claims):
    """All claims by their id."""
    return {one.id: one for paper in claims.read_papers() for one in paper.claims}


def ids_of(name, docstring):
    """The claims that a test names, in its name or its docstring."""
    match = IN_NAME.match(name)
    named = {f"{match[1].upper()}-{match[2]}"} if match else set()
    return named | set(IN_TEXT.findall(docstring))


def test_every_claim_is_there_once(claims):
    for paper in claims.read_papers():
        expected = [f"{paper.prefix}-{i + 1}" for i in range(EXPECTED[paper.prefix])]
        assert [claim.id for claim in paper.claims] == expected


def test_every_claim_says_what_shows_it(claims, listed):
    for claim in listed.values():
        shown = bool(claim.tests or claim.results)
        assert shown != bool(claim.open), claim.id
        assert shown == bool(claim.on), claim.id
        assert bool(claim.tests) == bool(claim.verdict) == bool(claim.found), claim.id
        assert claim.says, claim.id
        assert claim.where, claim.id


def test_every_test_that_is_named_exists(claims, listed):
    for claim in listed.values():
        for pattern in claim.tests:
            tests = claims.tests_of(pattern)
            assert tests, f"{claim.id}: no test is {pattern}"
            found = claims.functions(pattern.partition("::")[0])
            for test in tests:
                assert claim.id in ids_of(test, found[test]), f"{test}: {claim.id}"


def test_every_test_that_names_a_claim_is_listed(claims, listed):
    root = claims.REPOSITORY
    for path in sorted((root / "tests").rglob("test_*.py")):
        if not IN_NAME.search(text := path.read_text()) and not IN_TEXT.search(text):
            continue  # to parse them all takes long
        file = path.relative_to(root).as_posix()
        for name, docstring in claims.functions(file).items():
            for ident in ids_of(name, docstring):
                patterns = [p for p in listed[ident].tests if p.startswith(file)]
                found = [test for p in patterns for test in claims.tests_of(p)]
                assert name in found, f"{file}::{name} is not listed at {ident}"


def test_every_claim_that_a_benchmark_judges_is_listed(claims, listed):
    judged = set()
    for path in claims.RESULTS.glob("*.json"):
        for case, entry in json.loads(path.read_text()).items():
            for one in entry.get("claims", []):
                judged.add((one["ident"], f"{path.stem}/{case}"))
    quoted = {
        (claim.id, result["case"])
        for claim in listed.values()
        for result in claim.results
    }
    assert quoted == judged


def test_the_page_is_up_to_date(claims):
    page = claims.page(claims.read_papers())
    assert claims.PAGE.read_text() == page, "run `python benchmarks/claims.py`"


def test_links_lead_somewhere(claims):
    """To tests, guide pages, and headings of the results, by their anchors."""
    page = claims.PAGE.read_text()
    headings = "\n".join(path.read_text() for path in claims.RESULTS.glob("*.md"))
    titles = re.findall(r"^## (.*)$", headings, re.MULTILINE)
    anchors = [claims.anchor(title) for title in titles]
    for target in re.findall(r"\]\(([^)]*)\)", page):
        path, _, place = target.partition("#")
        assert (claims.PAGE.parent / path).resolve().exists(), target
        assert not place or anchors.count(place) == 1, target


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["confirmed"], "confirmed"),
        (["confirmed", "typo"], "typo"),
        (["confirmed", "contradicted"], "partly"),
        (["contradicted", "contradicted"], "contradicted"),
        (["partly", "confirmed"], "partly"),
    ],
)
def test_verdicts_combine(claims, verdicts, expected):
    assert claims.combined(verdicts) == expected


@pytest.mark.parametrize("verdicts", [[], ["right"]])
def test_no_verdict_or_an_unknown_one_is_refused(claims, verdicts):
    with pytest.raises(ValueError, match="verdicts are confirmed"):
        claims.combined(verdicts)


@pytest.fixture
def made(claims, monkeypatch):
    """A claim that one benchmark confirms."""
    one = {
        "ident": "XX-1",
        "claim": "",
        "found": "2 of 2; fast",
        "verdict": "confirmed",
    }
    entry = {"title": "A case (1,000 × 2)", "claims": [one]}
    monkeypatch.setattr(claims, "saved", lambda case: entry)
    results = ({"case": "demo/case", "pick": r"\d.*?(?=;)"},)
    return claims.Claim("XX-1", "all |x| pass", "section 1", "data", results=results)


def test_a_benchmark_is_quoted(claims, made):
    assert claims.find(made) == claims.Finding("confirmed", "*Measured:* 2 of 2.")
    assert claims.case_link("demo/case") == (
        "[demo/case](benchmarks/demo.md#a-case-1000--2)"
    )
    assert r"all \|x\| pass" in claims.table([["a"], [made.says]])


def test_what_is_quoted_has_to_be_there(claims, made):
    other = replace(made, results=({"case": "demo/case", "pick": "slow"},))
    with pytest.raises(ValueError, match="XX-1: demo/case has 0 claims with 'slow'"):
        claims.find(other)


def test_we_may_judge_otherwise_as_long_as_the_benchmark_says_the_same(claims, made):
    judged = {"from": "confirmed", "to": "partly", "because": "half was not run"}
    found = claims.find(replace(made, judged=judged))
    assert found.verdict == "partly"
    assert found.text.endswith("Partly, as half was not run.")
    with pytest.raises(ValueError, match="XX-1: the benchmarks now say confirmed"):
        claims.find(replace(made, judged=judged | {"from": "contradicted"}))


def test_an_unknown_case_names_those_there_are(claims):
    with pytest.raises(KeyError, match=r"dp_means\.json has automatic, blobs"):
        claims.saved("dp_means/blob")
