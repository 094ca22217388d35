"""The instructions in the guides work."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient
from tests.docs.blocks import Block, of
from tests.docs.test_documents import module

import germane
from germane.scorers.judge.client import ModelServer
from germane.settings import Settings, load_settings

pytestmark = pytest.mark.slow

ADDRESSES = {
    "gpt-4o-mini": "https://api.openai.com/v1/",
    "my-gpt-deployment": "https://my-resource.openai.azure.com/openai/v1/",
    "Qwen/Qwen3-8B": "http://127.0.0.1:8000/v1/",
    "qwen3:8b": "http://127.0.0.1:11434/v1/",
    "my-model": "http://127.0.0.1:8080/v1/",
    "claude-or-whatever-it-is-called-there": "https://gateway.example.com/openai/v1/",
}
"""URL of the server, by judge."""


def blocks(page: str, language: str) -> list[Block]:
    """Return a page's blocks in one language."""
    return [block for block in of(language) if block.page.name == page]


def settings_of(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return a block's settings, after creating the secrets that they name."""
    shown = block.text.replace("/run/secrets/gateway-key", str(folder / "key"))
    (folder / "key").write_text("the-key-itself")
    for variable in re.findall(r'"env:(\w+)"', shown):
        monkeypatch.setenv(variable, "the-key-itself")
    (folder / "germane.toml").write_text(shown, encoding="utf-8")
    return load_settings()


def test_the_judge_guide_shows_settings_for_each_server(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each server's judge has a settings block."""
    judges = [settings_of(block, bare, monkeypatch).judge for block in blocks("judge.md", "toml")]

    assert [judge for judge in ADDRESSES if judge not in judges] == []


SERVERS = [block for block in blocks("judge.md", "toml") if "base_url" in block.text or "api_key" in block.text]


@pytest.mark.parametrize("block", SERVERS, ids=lambda block: block.name)
def test_requests_use_the_url_and_key_from_the_judge_guide(
    block: Block, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client uses the URL from the guide, and the key as a bearer token; without a key, the token is `none`."""
    settings = settings_of(block, bare, monkeypatch)
    key = settings.api_key.get_secret_value() if settings.api_key else None
    address = settings.base_url.get_secret_value() if settings.base_url else None

    client = ModelServer(api_key=key, base_url=address).connect()

    assert str(client.base_url) == ADDRESSES[settings.judge]
    assert client.auth_headers == {"Authorization": f"Bearer {key or 'none'}"}
    assert dict(client.default_query) == ({"team": "search"} if "gateway" in ADDRESSES[settings.judge] else {})


def ask_fastapi(app: Any) -> None:
    """Ask an application from the guide."""
    with TestClient(app) as client:
        posts = "post" in app.openapi()["paths"]["/ask"]
        answered = client.post("/ask", json={"question": "When?"}) if posts else client.get("/ask?question=When?")

        assert answered.status_code == 200


def ask_flask(app: Any) -> None:
    """Ask an application from the guide."""
    assert app.test_client().post("/ask", json={"question": "When?"}).status_code == 200


APPS: dict[str, Callable[[Any], None]] = {"FastAPI(": ask_fastapi, "flask.Flask(": ask_flask}
APPLICATIONS = [
    pytest.param(block, ask, id=block.name)
    for page in ("README.md", "integrating.md", "troubleshooting.md")
    for block in blocks(page, "python")
    for made, ask in APPS.items()
    if made in block.text
]


@pytest.mark.parametrize(("block", "ask"), APPLICATIONS)
def test_requests_to_each_application_in_the_guide_are_captured(
    block: Block, ask: Callable[[Any], None], bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exchange has the question and answer of a request that the framework's test client sends."""
    monkeypatch.setenv("GERMANE_ROLE", "capture")
    made = module(block.text, bare / "from_the_guide.py")
    with germane.testing.strict():
        ask(made.app)
    germane.stop()
    store = germane.Store()
    captured = store.answers.list_exchanges()[0]
    store.close()

    assert captured.question == "When?"
    assert captured.answer
    assert captured.status == "ok"


@pytest.fixture(scope="module")
def surroundings() -> dict[str, str]:
    """This process's environment variables, without the variables that germane reads."""
    read = ("GERMANE_", "OPENAI_", "OTEL_", "OPENINFERENCE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(read)}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, surroundings: dict[str, str]) -> Path:
    """A folder in which the first guide's program has run without an API key or a server."""
    if find_spec("onnxruntime") is None:
        pytest.skip("the local extra is not installed, and the first guide needs it")
    folder = tmp_path_factory.mktemp("start")
    (folder / "app.py").write_text(blocks("getting-started.md", "python")[0].text, encoding="utf-8")
    subprocess.run([sys.executable, "app.py"], cwd=folder, env=surroundings, check=True, timeout=240)
    return folder


def test_following_the_first_guide_leads_to_a_chart(started: Path, surroundings: dict[str, str]) -> None:
    """After three commands, a page shows a chart of forty scores."""
    command = [sys.executable, "-m", "germane", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=started, stderr=subprocess.PIPE, text=True, env=surroundings) as serving:
        try:
            assert serving.stderr is not None
            line = serving.stderr.readline()
            page = httpx2.get(line.split()[-1] + "/", timeout=60).text
        finally:
            serving.send_signal(signal.SIGTERM)
            serving.communicate(timeout=60)

    assert "<svg" in page
    assert "n=40" in page
    assert "refusal" in page
    assert serving.returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["report"], "40 of 40"), (["worst"], "Are you hiring?"), (["doctor", "--offline"], "40 seen")],
)
def test_the_other_commands_in_the_first_guide_work(
    started: Path, surroundings: dict[str, str], words: list[str], expected: str
) -> None:
    """The commands report on the same forty answers, without errors."""
    command = [sys.executable, "-m", "germane", *words]
    done = subprocess.run(command, cwd=started, env=surroundings, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
