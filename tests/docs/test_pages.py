"""Pages lead somewhere, say what people look for, and fetch nothing from elsewhere."""

import inspect
import re
from pathlib import Path

import pytest

import kplus
import kplus.datasets
import kplus.plots

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [p for p in DOCS.rglob("*.md") if not {"_build", "generated"} & set(p.parts)]
EXAMPLES = sorted((DOCS / "gallery").glob("*.py"))


def place(page):
    return str(page.relative_to(DOCS))


def text(page):
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)", text(page))
    roles = re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", text(page))
    made = {f"examples/{script.stem}" for script in EXAMPLES} | {"examples/index"}
    for target in links + roles:
        start = DOCS if target.startswith("/") else page.parent
        found = (start / target.lstrip("/")).resolve()
        if found.is_relative_to(DOCS) and str(found.relative_to(DOCS)) in made:
            continue
        assert found.exists() or found.with_name(f"{found.name}.md").exists(), target


def test_every_page_is_in_a_table_of_contents():
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", text(page), re.DOTALL):
            names = [line for line in tree.splitlines() if line and line[0] != ":"]
            listed |= {page.parent / f"{name}.md" for name in names}
    assert set(PAGES) <= listed


def test_every_result_of_the_benchmarks_has_a_page():
    results = {p.name for p in (ROOT / "benchmarks" / "results").glob("*.md")}
    assert results == {p.name for p in (DOCS / "benchmarks").glob("*.md")}


def test_what_people_look_for_is_found():
    said = text(DOCS / "guide" / "faq.md") + text(DOCS / "guide" / "glossary.md")
    terms = """silhouette, elbow, gap statistic, BIC, number of clusters, outlier, GMM,
    missing values, categorical data, k-prototypes, incremental, streaming, HDBSCAN,
    UMAP, scale, one-hot, DBCV, time series, embeddings, dates, cosine, GPU,
    distance matrix"""
    for term in terms.split(","):
        assert term.strip().lower() in said.lower()


@pytest.mark.parametrize("module", [kplus, kplus.plots, kplus.datasets], ids=str)
def test_the_reference_lists_what_is_public(module):
    listed = set(re.findall(r"^   (\w+)$", text(DOCS / "api" / "index.md"), re.M))
    names = [name for name in module.__all__ if not name.startswith("_")]
    assert [
        name
        for name in names
        if name not in listed and not inspect.ismodule(getattr(module, name))
    ] == []


@pytest.mark.parametrize("script", EXAMPLES, ids=place)
def test_examples_make_their_data(script):
    source = text(script)
    compile(source, script.name, "exec")
    assert not re.search(r"\bfetch_|https?:|urlopen|requests", source)


def test_pages_fetch_nothing():
    for file in [DOCS / "conf.py", *(DOCS / "_static").glob("*.css")]:
        assert not re.search(r"cdn|mathjax|@import|url\(", text(file), re.IGNORECASE)


@pytest.mark.parametrize("file", ["CITATION.cff", "docs/cite.md"])
def test_the_version_to_cite_is_this_one(file):
    stated = re.search(r"^\s*version\s*[:=]\s*\{?([\d.]+)", text(ROOT / file), re.M)
    assert stated[1] == kplus.__version__
