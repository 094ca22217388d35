"""A browser, and the sample week served from SQLite and PostgreSQL."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright
from tests.browser.servers import Site, served
from tests.browser.visitor import Visitor, visiting
from tests.conftest import PostgreSQL
from tests.dashboard.conftest import WeekTemplate, shared_folder, week_on_postgresql, week_on_sqlite
from tests.dashboard.http_server import NOW

from germane.testing import Clock

__all__ = ["shared_folder", "week_on_postgresql", "week_on_sqlite"]
DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)]
"""Databases of a test whose page other tests show over PostgreSQL."""
expect.set_options(timeout=30_000)  # the default of 5 seconds is too short on a busy machine


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The installed Chromium. The fixture has function scope, because the browser's event loop disturbs async tests."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium on this machine: apt install chromium")
    with ExitStack() as opened:
        try:
            playwright = opened.enter_context(sync_playwright())
            chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except (Error, OSError) as error:
            pytest.skip(f"no Chromium can run on this machine: {str(error).splitlines()[0]}")
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No germane environment variables, and an empty working directory."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in [name for name in os.environ if name.startswith(("GERMANE_", "OPENAI_", "OTEL_"))]:
            patch.delenv(variable)
        folder = tmp_path_factory.mktemp("alone")
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module", params=DATABASES)
def site(request: pytest.FixtureRequest, alone: Path) -> Iterator[Site]:
    """The sample week, served from each database. Tests must not write to it."""
    with _copy(request, alone) as (url, original), served(url, original.seeded, Clock(NOW)) as running:
        yield running


@pytest.fixture(scope="module")
def one_site(request: pytest.FixtureRequest, alone: Path) -> Iterator[Site]:
    """The sample week, served from SQLite, for tests that do not depend on the database."""
    original: WeekTemplate = request.getfixturevalue("week_on_sqlite")
    with served(f"sqlite:///{original.place}", original.seeded, Clock(NOW)) as running:
        yield running


@pytest.fixture(params=DATABASES)
def own(request: pytest.FixtureRequest, alone: Path, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Serve a copy of the week that one test can write to; accepts the arguments of ``create_app``."""
    with ExitStack() as opened:
        url, original = opened.enter_context(_copy(request, tmp_path))
        yield lambda **given: opened.enter_context(served(url, original.seeded, Clock(NOW), **given))


@contextmanager
def _copy(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, WeekTemplate]]:
    original: WeekTemplate = request.getfixturevalue(f"week_on_{request.param}")
    if request.param == "sqlite":
        yield f"sqlite:///{shutil.copy(original.place, folder / 'week.db')}", original
        return
    server: PostgreSQL = request.getfixturevalue("postgresql")
    name = server.create(template=original.place)
    try:
        yield server.url(name), original
    finally:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """Open a browser profile on a site, and assert that the browser reports no problems; accepts context options."""
    with ExitStack() as opened:
        yield lambda site, **options: opened.enter_context(visiting(browser, site.address, **options))


@pytest.fixture
def page(visitor: Callable[..., Visitor], site: Site) -> Page:
    """A tab on the overview."""
    return visitor(site).look(site.url())


@pytest.fixture
def one_page(visitor: Callable[..., Visitor], one_site: Site) -> Page:
    """A tab on the overview of ``one_site``."""
    return visitor(one_site).look(one_site.url())


@pytest.fixture
def overflow_of() -> Callable[[Page], Any]:
    """Return the number of pixels by which a page is wider than the screen."""
    return lambda page: page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
