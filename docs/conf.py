"""Sphinx configuration of the documentation site. Run: make docs"""

from __future__ import annotations

import re
import runpy
import shutil
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from sphinx.ext.napoleon import Config, GoogleDocstring

project = "germane"
author = "the germane contributors"
release = version = metadata.version("germane")
copyright = author  # noqa: A001 - required by Sphinx

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]
nitpicky = True
html_theme = "furo"
html_title = f"germane {release}"
# The repository's address is known once the package's metadata names it, under [project.urls].
repositories = [
    address
    for name, _, address in (line.partition(", ") for line in metadata.metadata("germane").get_all("Project-URL") or [])
    if name == "Repository"
]
html_theme_options = (
    {"source_repository": repositories[0], "source_branch": "main", "source_directory": "docs/"} if repositories else {}
)
html_copy_source = html_show_sphinx = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_class_signature = "separated"
nitpick_ignore_regex = [
    ("py:.*", r"(?!germane\b).*"),  # defined elsewhere; resolving it would need the network
    ("py:class", r"germane\..*\.(F|T|Function)"),  # type variables
    ("py:class", r"germane\.settings\.(types|rules|channels|maintenance|archive)\..*"),  # described in settings.md
    ("py:class", r"germane\.testing\.judge_server\.JudgeReply"),  # an alias of a union of built-in types
]

OUTSIDE = {"../CONTRIBUTING.md": "contributing.md", "../CHANGELOG.md": "changes.md"}
"""Files outside docs/, and the pages that include them."""


MEMBERS = {
    "ScoreSpanProcessor": "",
    "tracer.CurrentExchange": "",
    "tracer.Call": ":members: arguments",
    "recognizers.RawValue": "",
    "recognizers.UnreadableReason": ":members:\n:undoc-members:",
    "UnscoredReason": ":members:\n:undoc-members:",
}
"""Options of classes in the Python reference whose documented members are not all shown."""


def contents(index: str) -> str:
    """Return a toctree for each list of links in the index, captioned with the heading above it."""
    parts = re.split(r"(?m)^## ", index)[1:]
    return "\n".join(_tree(*part.split("\n", 1)) for part in parts)


def _tree(caption: str, listed: str) -> str:
    linked = re.findall(r"(?m)^(?:-|\d+\.) \[([^]]+)\]\((?!https?:)([^)#]+)\.md\)", listed)
    pages = "\n".join(f"{title} <{page}>" for title, page in linked)
    return f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def prepare(_app: Any, name: str, source: list[str]) -> None:
    """Rewrite links to files outside docs/, and append toctrees to the indexes."""
    for path, page in OUTSIDE.items():
        source[0] = re.sub(rf"\]\(((?:\.\./)*){re.escape(path)}", rf"](\g<1>{page}", source[0])
    if name == "index":
        source[0] += "\n" + contents(source[0])
    elif name == "python":
        source[0] = re.sub(r"(?ms)^```\{api\}\n(.*?)^```$", _documented, source[0])
    elif name == "command-line":
        names = re.findall(r"(?m)^\|[^|]*\| `germane (\w+)` \|", source[0])
        source[0] = re.sub(r"(?m)^(\|[^|]*\| )`germane (\w+)` \|", r"\1[`germane \2`](command-line/\2.md) |", source[0])
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(f"command-line/{name}" for name in names) + "\n```\n"
    elif name.endswith("/index"):
        source[0] += "\n" + _tree("Pages", source[0])


def _documented(block: re.Match[str]) -> str:
    """Return directives that document the names in a block, which are relative to germane."""
    directives = []
    for path in re.findall(r"[\w.]+", block[1]):
        owner, _, name = f"germane.{path}".rpartition(".")
        target = getattr(import_module(owner), name)
        kind = "autoclass" if isinstance(target, type) else "autofunction"
        options = MEMBERS.get(path, ":members:") if isinstance(target, type) else ""
        directives.append(f".. {kind}:: {owner}.{name}\n" + "".join(f"   {line}\n" for line in options.splitlines()))
    return "```{eval-rst}\n" + "".join(directives) + "```"


def structure(_app: Any, what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Convert Google-style sections such as "Args". Attribute docstrings are sentences that may contain a colon."""
    if what not in {"attribute", "property", "data"}:
        lines[:] = GoogleDocstring(lines, Config(), what=what).lines()


def write_commands(_app: Any) -> None:
    """Write a page for each command."""
    runpy.run_path(str(Path(__file__).with_name("commands.py")))["write_pages"]()


def copy_pictures(app: Any, _exception: object) -> None:
    """Copy the pictures. Sphinx does not detect them, because only raw HTML elements refer to them."""
    shutil.copytree(Path(app.srcdir) / "pictures", Path(app.outdir) / "pictures", dirs_exist_ok=True)


def setup(app: Any) -> None:
    """Register the event handlers with Sphinx."""
    app.connect("builder-inited", write_commands)
    app.connect("build-finished", copy_pictures)
    app.connect("source-read", prepare)
    app.connect("autodoc-process-docstring", structure)
