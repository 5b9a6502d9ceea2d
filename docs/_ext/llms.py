"""Writes llms.txt beside the pages: what there is, a line each, for language models."""

from pathlib import Path

from docutils import nodes
from sphinx.addnodes import toctree
from sphinx.util import logging

HEAD = """# kplus

> A Python library and command for clustering and latent features in which the data
> decide how many groups there are: scikit-learn estimators for numbers, mixed tables,
> counts, text and gaps, from a hundred rows to more than memory holds.

Install: `pip install "kplus[cli,plot]"`. First fit: `from kplus import DPMixture`,
`DPMixture(random_state=0).fit(X).labels_`. From a shell: `kplus fit table.csv`.
Each page below is Markdown or reST as it was written.
"""


def write(app, error):
    if error or app.builder.format != "html":
        return
    lines, listed = [HEAD], {app.config.root_doc}
    for tree in app.env.get_doctree(app.config.root_doc).findall(toctree):
        lines.append(f"## {tree['caption']}\n")
        for page in tree["includefiles"]:
            for name in [page, *below(app.env, page)]:
                listed.add(name)
                lines.append(line(app.env, name))
        lines.append("")
    for name in app.env.found_docs - listed:
        logging.getLogger(__name__).warning("%s is not in llms.txt", name)
    Path(app.outdir, "llms.txt").write_text("\n".join(lines), encoding="utf-8")


def below(env, page):
    """Yield the pages that a page's own tables of contents lead to."""
    for child in env.toctree_includes.get(page, []):
        yield child
        yield from below(env, child)


def line(env, name):
    """Return a link to the source of a page, and how its text begins."""
    source = f"_sources/{name}{Path(env.doc2path(name)).suffix}.txt"
    return f"- [{env.titles[name].astext()}]({source}): {begins(env.get_doctree(name))}"


def begins(doctree):
    """Return the first sentence of a page."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > 40 and not isinstance(paragraph.parent, nodes.Admonition):
            return text.split(". ")[0].rstrip(".:") + "."
    return ""


def setup(app):
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
