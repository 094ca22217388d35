"""Environments, surroundings and processes of the examples for frameworks."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stub_model import serve_model

from germane.testing import FakeJudge, OTLPReceiver

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "frameworks"
BUILD = ROOT / "build" / "frameworks"
ASK = Path(__file__).with_name("ask.py")


def run_uv(*arguments: object) -> None:
    """Run uv from an environment of its own, which is created if it does not exist."""
    tools = BUILD / "uv"
    if not (tools / "bin" / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", tools], check=True)
        subprocess.run([tools / "bin" / "pip", "install", "--quiet", "uv"], check=True)
    subprocess.run([tools / "bin" / "uv", *map(str, arguments)], check=True, stdout=sys.stderr)


def build_wheel() -> Path:
    """Build germane's wheel from the working tree."""
    shutil.rmtree(BUILD / "wheel", ignore_errors=True)
    run_uv("build", "--quiet", "--wheel", "--out-dir", BUILD / "wheel", ROOT)
    (wheel,) = (BUILD / "wheel").glob("*.whl")
    return wheel


def install(source: Path, wheel: Path, *, newest: bool = False) -> dict[str, str]:
    """Create the environment of an example.

    Args:
        source: The example's directory, with requirements.txt or package.json.
        wheel: germane's wheel.
        newest: Whether to install the newest versions instead of those in the file.

    Returns:
        The versions of the example's direct dependencies.
    """
    target = BUILD / source.name
    if (source / "package.json").exists():
        return _install_packages(source, target, newest=newest)
    if not (target / "bin" / "python").exists():
        run_uv("venv", "--quiet", "--python", sys.executable, target)
    wanted = (source / "requirements.txt").read_text(encoding="utf-8").split()
    names = [re.split(r"[=\[]", requirement)[0] for requirement in wanted]
    if newest:
        wanted = [requirement.partition("==")[0] for requirement in wanted]
    upgrade = ["--upgrade"] if newest else []
    python = target / "bin" / "python"
    run_uv("pip", "install", "--quiet", "--python", python, *upgrade, "--reinstall-package", "germane", wheel, *wanted)
    code = f"import importlib.metadata as m, json; print(json.dumps({{n: m.version(n) for n in {names}}}))"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


def _install_packages(source: Path, target: Path, *, newest: bool) -> dict[str, str]:
    """Install packages of Node.js, next to copies of the example's files."""
    target.mkdir(parents=True, exist_ok=True)
    for file in source.glob("*.*"):
        shutil.copy(file, target)
    package = json.loads((source / "package.json").read_text(encoding="utf-8"))
    names = package.pop("dependencies") if newest else ()
    (target / "package.json").write_text(json.dumps(package), encoding="utf-8")
    # Without a version, npm chooses the newest one that supports the installed Node.js.
    npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--save-exact"]
    subprocess.run([*npm, *names], cwd=target, check=True, stdout=sys.stderr)
    installed: dict[str, str] = json.loads((target / "package.json").read_text(encoding="utf-8"))["dependencies"]
    return installed


@dataclass
class Surroundings:
    """What an example needs: a model, a judge, an OTLP receiver and an empty directory."""

    model_url: str
    judge: FakeJudge
    receiver: OTLPReceiver
    directory: Path

    @property
    def database(self) -> str:
        """The URL of the database."""
        return f"sqlite:///{self.directory}/germane.db"

    def environment(self) -> dict[str, str]:
        """Return the environment variables that the example's documentation names, for these servers."""
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OTEL_"))}
        settings = {f"GERMANE_{name.upper()}": value for name, value in self.judge.settings().items()}
        return {
            **outer,
            **settings,
            **self.receiver.environment(),
            "GERMANE_DATABASE": self.database,
            "GERMANE_POLL_INTERVAL": "0.5",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # DSPy would download it
            "OPENAI_API_KEY": "test",
            "OPENAI_BASE_URL": self.model_url,
            "OPENAI_API_BASE": self.model_url,
            "PYTHONPATH": str(EXAMPLES),
        }


@contextlib.contextmanager
def surroundings() -> Iterator[Surroundings]:
    """Start a model, a judge and an OTLP receiver."""
    with (
        tempfile.TemporaryDirectory(prefix="germane-frameworks-") as folder,
        serve_model() as model_url,
        FakeJudge() as judge,
        OTLPReceiver() as receiver,
    ):
        yield Surroundings(model_url, judge, receiver, Path(folder))


def python_command(path: Path, concurrency: int) -> list[object]:
    """Return the command that asks an example in Python."""
    return [BUILD / path.parent.name / "bin" / "python", ASK, path, concurrency]


def typescript_command(path: Path, concurrency: int) -> list[object]:
    """Return the command that asks an example in TypeScript, for the directory of its environment."""
    example = BUILD / path.parent.name / path.name
    return ["node", "--import", "tsx", ASK.with_suffix(".mjs"), example, concurrency]


def start(stack: contextlib.ExitStack, command: list[str], environment: dict[str, str], directory: Path) -> None:
    """Start a process, which is stopped with SIGTERM when the stack is closed."""
    process = stack.enter_context(running(list(command), environment, directory))
    stack.callback(process.terminate)


def wait_for_line(file: Path, pattern: str, timeout: float = 60) -> str:
    """Wait until a file contains the pattern, and return its group.

    Raises:
        TimeoutError: The file does not contain it after the timeout, in seconds.
    """
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if found := re.search(pattern, file.read_text(encoding="utf-8")):
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(f"{file.name} does not contain {pattern!r}")


@contextlib.contextmanager
def running(
    command: list[object], environment: dict[str, str], directory: Path, cwd: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a process. At the end, close its standard input and wait until it exits."""
    with (directory / "errors.txt").open("a", encoding="utf-8") as errors:
        process = subprocess.Popen(
            list(map(str, command)), env=environment, cwd=cwd or directory,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    watchdog = threading.Timer(300, process.kill)
    watchdog.start()
    try:
        yield process
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
        watchdog.cancel()


def ask(process: subprocess.Popen[str], asked: list[str]) -> list[str]:
    """Send the questions to an example, and return its answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    while line := process.stdout.readline():
        if line.startswith("["):
            answers: list[str] = json.loads(line)
            return answers
    return []
