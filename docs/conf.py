"""Settings of Sphinx, which makes a site of these pages. Run: make docs"""

from __future__ import annotations

import re
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

from sphinx.ext.napoleon import Config, GoogleDocstring

project = "germane"
author = "the germane contributors"
release = version = metadata.version("germane")
copyright = author  # noqa: A001 - Sphinx' name for it

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]
nitpicky = True
html_theme = "furo"
html_title = "germane"
html_copy_source = html_show_sphinx = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_class_signature = "separated"
nitpick_ignore_regex = [
    ("py:.*", r"(?!germane\b).*"),  # what others define: to look it up would take a network
    ("py:class", r"germane\..*\.(F|T|Function)"),  # type variables
    ("py:class", r"germane\.testing\.judge_server\.Reply"),  # a name for a union of plain types
]

OUTSIDE = {"../CONTRIBUTING.md": "contributing.md", "../CHANGELOG.md": "changes.md"}
"""Files of the repository that are no pages, and the pages that hold them."""


def contents(index: str) -> str:
    """Return the trees of contents that the index's lists make, one for each heading above a list."""
    parts = re.split(r"(?m)^## ", index)[1:]
    return "\n".join(_tree(*part.split("\n", 1)) for part in parts)


def _tree(caption: str, listed: str) -> str:
    found = re.findall(r"(?m)^- \[([^]]+)\]\((?!https?:)([^)#]+)\.md\)", listed)
    pages = "\n".join(f"{title} <{page}>" for title, page in found)
    return f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def prepare(_app: Any, name: str, source: list[str]) -> None:
    """Lead links of the repository to pages of the site, and give the index its trees."""
    for path, page in OUTSIDE.items():
        source[0] = source[0].replace(f"]({path}", f"]({page}")
    if name == "index":
        source[0] += "\n" + contents(source[0])


def structure(_app: Any, what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Make sections of "Args" and the like. What is said of an attribute is a sentence, which may hold a colon."""
    if what not in {"attribute", "property", "data"}:
        lines[:] = GoogleDocstring(lines, Config(), what=what).lines()


def bring_pictures(app: Any, _exception: object) -> None:
    """Put the pictures beside the pages: elements of HTML, which know light and dark, name them."""
    shutil.copytree(Path(app.srcdir) / "pictures", Path(app.outdir) / "pictures", dirs_exist_ok=True)


def setup(app: Any) -> None:
    """Tell Sphinx of it."""
    app.connect("build-finished", bring_pictures)
    app.connect("source-read", prepare)
    app.connect("autodoc-process-docstring", structure)
