"""Writes llms.txt beside the pages: what there is, a line each, for language models."""

from pathlib import Path

from docutils import nodes

HEAD = """# kplus

> A Python library and command for clustering and latent features in which the data
> decide how many groups there are: scikit-learn estimators for numbers, mixed tables,
> counts, text and gaps, from a hundred rows to more than memory holds.

Install: `pip install "kplus[cli,plot]"`. First fit: `from kplus import DPMixture`,
`DPMixture(random_state=0).fit(X).labels_`. From a shell: `kplus fit table.csv`.
Each page below is Markdown or reST as it was written.
"""


def first_sentence(doctree):
    """Return how the text of a page begins."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > 40 and not isinstance(paragraph.parent, nodes.Admonition):
            return text.split(". ")[0].rstrip(".:") + "."
    return ""


def sections(app):
    """Yield the captions of the table of contents with the pages below each."""
    root = app.env.get_doctree(app.config.root_doc)
    from sphinx.addnodes import toctree

    for tree in root.findall(toctree):
        pages = []
        for name in tree["includefiles"]:
            pages.append(name)
            pages += sorted(below(app, name, {name}))
        yield tree["caption"] or "Pages", pages


def below(app, name, seen):
    """Return the pages that a page's own tables of contents lead to."""
    found = []
    for child in app.env.toctree_includes.get(name, []):
        if child not in seen:
            seen.add(child)
            found += [child, *below(app, child, seen)]
    return found


def write(app, error):
    if error or app.builder.format != "html":
        return
    lines, pages_done = [HEAD], set()
    for caption, pages in sections(app):
        lines.append(f"## {caption}\n")
        for name in pages:
            pages_done.add(name)
            title = app.env.titles[name].astext()
            about = first_sentence(app.env.get_doctree(name))
            suffix = Path(app.env.doc2path(name)).suffix
            link = f"_sources/{name}{suffix}.txt"
            lines.append(f"- [{title}]({link}): {about}")
        lines.append("")
    Path(app.outdir, "llms.txt").write_text("\n".join(lines), encoding="utf-8")


def setup(app):
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
