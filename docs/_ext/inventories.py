"""Inventories for intersphinx, made of the names in a text file instead of fetched."""

import zlib
from pathlib import Path

HEAD = b"""# Sphinx inventory version 2
# Project: %s
# Version:
# The remainder of this file is compressed using zlib.
"""


def read(text):
    """Return the address and the entries of each project in the text."""
    projects = {}
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            name, address = line.strip("[]").split()
            projects[name] = (address, [])
        elif line and not line.startswith("#"):
            role, entry, page = line.split()
            projects[name][1].append((role, entry, page.replace("$", entry)))
    return projects


def write(listed, folder):
    """Write an inventory for each project; return what intersphinx is to be told."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for name, (address, entries) in read(Path(listed).read_text("utf-8")).items():
        lines = "".join(f"{entry} {role} 1 {page} -\n" for role, entry, page in entries)
        file = folder / f"{name}.inv"
        file.write_bytes(HEAD % name.encode() + zlib.compress(lines.encode()))
        mapping[name] = (address, str(file))
    return mapping
