"""The documentation site."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

import pytest

import germane
import germane.testing
from germane.cli.app import SUMMARIES

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
REPOSITORY = "https://git.example.com/team/germane"
LOADED = {"script": "src", "img": "src", "source": "srcset", "iframe": "src", "link": "href"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as by ``make docs``."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", str(DOCS), str(folder)]
    named = {**os.environ, "REPOSITORY_URL": REPOSITORY}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=named)

    assert done.returncode == 0, done.stderr
    return folder


class Loaded(HTMLParser):
    """URLs that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the URL of a script, a picture or a style sheet."""
        self.found += [value for name, value in attrs if value and name == LOADED.get(tag)]


def test_the_site_builds_without_warnings(site: Path) -> None:
    """There are no broken links, no pages missing from the table of contents, and no references to missing names."""
    assert (site / "index.html").is_file()
    pages = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")} - {Path("README")}
    assert pages <= {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}


def test_the_front_page_leads_to_the_most_important_pages(site: Path) -> None:
    """It has a picture for each theme, a snippet, three cards, twelve links, and the list of all pages."""
    page = (site / "index.html").read_text(encoding="utf-8").partition('<section id="germane">')[2]
    start, _, links = page.partition('<section id="find-your-way">')
    table = links.partition("</table>")[0]

    assert re.findall(r'<img class="only-(light|dark)"', start) == ["light", "dark"]
    assert "germane.start" in re.sub(r"<[^>]+>", "", start)
    assert start.count("<li>") == 3
    assert len(re.findall(r'<a class="reference internal" href="[\w/-]+\.html"', table)) == 12
    assert 'href="contents.html"' in links


def test_pages_link_to_the_repository_and_to_their_source(site: Path) -> None:
    """Pages that are generated while the site is built have no source to edit."""
    page, generated = (
        (site / name).read_text(encoding="utf-8") for name in ("alerts.html", "command-line/report.html")
    )

    assert f'href="{REPOSITORY}/edit/main/docs/alerts.md"' in page
    assert f'href="{REPOSITORY}"' in page
    assert f'href="{REPOSITORY}"' in generated
    assert f"{REPOSITORY}/edit" not in generated


def test_the_repository_is_the_remote_of_the_clone() -> None:
    """All forms of remotes lead to a web address without credentials. A local path has none."""
    web_address = runpy.run_path(str(DOCS / "conf.py"))["web_address"]

    for remote in (
        "git@example.com:team/germane.git",
        "https://token@example.com/team/germane.git\n",
        "ssh://git@example.com/team/germane",
        "https://example.com/team/germane/",
    ):
        assert web_address(remote) == "https://example.com/team/germane"
    assert web_address("/srv/git/germane") is None
    assert web_address("") is None


def test_every_command_has_a_page_on_the_site(site: Path) -> None:
    """The page about the command line links to it, and it shows the examples."""
    listed = (site / "command-line.html").read_text(encoding="utf-8")

    for name in SUMMARIES:
        page = (site / "command-line" / f"{name}.html").read_text(encoding="utf-8")
        assert f'href="command-line/{name}.html"' in listed
        assert f"germane {name}" in re.sub(r"<[^>]+>", "", page)


def test_the_site_loads_nothing_from_other_hosts(site: Path) -> None:
    """The site works without a network, and no other server can track its visitors."""
    outside = re.compile(r"(https?:)?//")
    for page in site.rglob("*.html"):
        parser = Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        assert [address for address in parser.found if outside.match(address)] == [], page.name
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert re.findall(r"""url\(\s*["']?(?:https?:)?//|@import""", text) == [], style.name


def test_the_site_shows_the_version_and_the_argument_of_selector_functions(site: Path) -> None:
    """Readers see which release a page describes, and which object a selector function receives."""
    assert f"germane {version('germane')}" in (site / "index.html").read_text(encoding="utf-8")
    reference = (site / "python.html").read_text(encoding="utf-8")
    for name in ("Call", "Call.arguments"):
        assert f'id="germane.tracer.{name}"' in reference


def test_the_site_search_finds_pages(site: Path) -> None:
    """The search index is part of the site."""
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index[index.index("(") + 1 : index.rindex(")")])
    pages = [found["docnames"][number] for number in _listed(found["terms"]["fingerprint"])]

    assert {"trends", "methodology", "baselines"} <= set(pages)


def _listed(numbers: int | list[int]) -> list[int]:
    return [numbers] if isinstance(numbers, int) else numbers


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    """Every name in `__all__` has an entry."""
    page = (site / "python.html").read_text(encoding="utf-8")
    names = [f"germane.{name}" for name in germane.__all__]
    names += [f"germane.testing.{name}" for name in germane.testing.__all__]

    assert [name for name in names if f'id="{name}"' not in page] == []


def test_every_picture_on_the_site_exists(site: Path) -> None:
    """This includes pictures that a page shows in only one theme."""
    for page in site.rglob("*.html"):
        parser = Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        pictures = [address for address in parser.found if "pictures/" in address]
        assert [address for address in pictures if not (page.parent / address).is_file()] == []


def test_pictures_on_the_site_are_small() -> None:
    """Each picture of germane exists for both themes. Each is below 200 kB, and all together are below 3 MB."""
    sizes = {path.stem: path.stat().st_size for path in (DOCS / "pictures").glob("*.png")}
    own = sizes.keys() - {"phoenix", "mlflow"}
    names = {name.rpartition("-")[0] for name in own}

    assert own == {f"{name}-{theme}" for name in names for theme in ("light", "dark")}
    assert max(sizes.values()) < 200_000
    assert sum(sizes.values()) < 3_000_000
