"""Sphinx configuration of the documentation site. Run: make docs"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from sphinx.ext.napoleon import Config, GoogleDocstring

LIGHT = {"color-brand-primary": "#1f4fbf", "color-brand-content": "#1f4fbf", "content-padding": "2.5em"}
DARK = {"color-brand-primary": "#8fb4ff", "color-brand-content": "#8fb4ff"}
"""Colors with enough contrast on the theme's backgrounds."""


def web_address(remote: str) -> str | None:
    """Return the web address of a Git remote, or None if it is a local path."""
    found = re.fullmatch(r"(?:https://(?:[^@/]+@)?|ssh://git@|git@)([\w.-]+)[:/](.+?)(?:\.git)?/?", remote.strip())
    return f"https://{found[1]}/{found[2]}" if found else None


def find_repository() -> str | None:
    """Return the address of the repository: REPOSITORY_URL, the package's metadata, or the remote of this clone."""
    urls = metadata.metadata("germane").get_all("Project-URL") or []
    named = [url for name, _, url in (line.partition(", ") for line in urls) if name == "Repository"]
    command = ["git", "-C", str(Path(__file__).parent), "remote", "get-url", "origin"]
    remote = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - a fixed command
    return os.environ.get("REPOSITORY_URL") or next(iter(named), None) or web_address(remote)


project = "germane"
author = "the germane contributors"
release = version = metadata.version("germane")
copyright = author  # noqa: A001 - required by Sphinx

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]
nitpicky = True
html_theme = "furo"
html_title = f"germane {release}"
repository = find_repository()
html_theme_options: dict[str, Any] = {"light_css_variables": LIGHT, "dark_css_variables": DARK}
if repository:
    html_theme_options |= {
        "source_edit_link": f"{repository}/edit/main/docs/{{filename}}",
        "footer_icons": [{"name": "Repository", "url": repository, "html": "Repository", "class": "repository"}],
    }
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
    (
        "py:class",
        r"germane\.settings\.(types|rules|channels|sinks|maintenance|archive)\..*",
    ),  # described in settings.md
    ("py:class", r"germane\.testing\.judge_server\.JudgeReply"),  # an alias of a union of built-in types
]

HERE = Path(__file__).parent
THEMED = r"""<img class="only-light" loading="lazy" src=\2 \3>
<img class="only-dark" loading="lazy" src=\1 \3>"""
"""Replacement of a picture for two themes: the site has a button for the theme, so it cannot rely on the browser's."""
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


def contents(page: str) -> str:
    """Return a toctree for each list of links on the page of contents, captioned with the heading above it."""
    parts = re.split(r"(?m)^## ", page)[1:]
    return "\n".join(_tree(*part.split("\n", 1)) for part in parts)


def _tree(caption: str, listed: str) -> str:
    linked = re.findall(r"(?m)^(?:-|\d+\.) \[([^]]+)\]\((?!https?:)([^)#]+)\.md\)", listed)
    pages = "\n".join(f"{title} <{page}>" for title, page in linked)
    return f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def inside(text: str) -> str:
    """Return Markdown with links to files outside docs/ replaced by links to the pages that include them."""
    for path, page in OUTSIDE.items():
        text = re.sub(rf"\]\(((?:\.\./)*){re.escape(path)}", rf"](\g<1>{page}", text)
    return text


def prepare(_app: Any, name: str, source: list[str]) -> None:
    """Rewrite links to files outside docs/, and append toctrees to the indexes."""
    source[0] = inside(source[0])
    source[0] = re.sub(r"(?s)<picture>.*?srcset=(\S+)>\s*<img src=(\S+) (.*?)>\s*</picture>", THEMED, source[0])
    if name == "index":
        pages = (HERE / "contents.md").read_text(encoding="utf-8")
        source[0] += "\n" + contents(inside(pages)) + "```{toctree}\n:hidden:\n\ncontents\n```\n"
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
    runpy.run_path(str(HERE / "commands.py"))["write_pages"]()


def hide_edit_link(_app: Any, name: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Show no link to edit generated pages, because there is no file to edit."""
    if name.startswith("command-line/"):
        context["page_source_suffix"] = ""


def copy_pictures(app: Any, _exception: object) -> None:
    """Copy the pictures. Sphinx does not detect them, because only raw HTML elements refer to them."""
    shutil.copytree(Path(app.srcdir) / "pictures", Path(app.outdir) / "pictures", dirs_exist_ok=True)


def setup(app: Any) -> None:
    """Register the event handlers with Sphinx."""
    app.connect("builder-inited", write_commands)
    app.connect("html-page-context", hide_edit_link)
    app.connect("build-finished", copy_pictures)
    app.connect("source-read", prepare)
    app.connect("autodoc-process-docstring", structure)
