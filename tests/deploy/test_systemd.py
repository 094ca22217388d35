"""The systemd units."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import click
import httpx2
import pytest
from tests.deploy.files import DEPLOY, UNITS, program, run

from germane.cli.app import group

FREE_PORTS = {
    "worker": ("--metrics", "0"),
    "serve": ("--port", "0"),
    "receive": ("--http", "0", "--grpc", "0"),
}
"""Options that replace a service's ports, so that several tests can run at a time."""
MAX_EXPOSURE = 20
"""Maximum exposure level in tenths, as systemd rates it: 0 is best, and a unit without hardening has 96."""


def command_of(unit: Path, credentials: Path) -> list[str]:
    """Return the arguments with which a unit runs germane, given the directory of its credentials."""
    found = re.search(r"(?m)^ExecStart=/opt/germane/bin/germane (.*)$", unit.read_text(encoding="utf-8"))
    assert found is not None
    return found[1].replace("%d", str(credentials)).split()


@pytest.fixture(params=UNITS, ids=lambda path: path.name)
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a unit that runs a program that exists here."""
    path: Path = request.param
    copy = tmp_path / path.name
    text = path.read_text(encoding="utf-8")
    copy.write_text(text.replace("/opt/germane/bin/germane", program("germane")), encoding="utf-8")
    return copy


@pytest.mark.slow
def test_systemd_accepts_the_unit(unit: Path) -> None:
    """systemd knows each section and option, and the program exists."""
    ended = run(program("systemd-analyze"), "verify", "--man=no", unit)

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
def test_systemd_rates_the_unit_as_confined(unit: Path) -> None:
    """The service can reach the network and its own directory, and little else."""
    ended = run(program("systemd-analyze"), "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", unit)

    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_the_command_of_the_unit_is_valid(path: Path, tmp_path: Path) -> None:
    """The command line accepts it, and a stopping service has more time than its shutdown timeout."""
    (tmp_path / "dashboard_token").touch()
    (tmp_path / "receiver_token").touch()
    verb, *options = command_of(path, tmp_path)
    command = group.get_command(click.Context(group), verb)
    assert command is not None

    command.make_context(verb, options).close()
    stop = re.search(r"(?m)^TimeoutStopSec=(\d+)$", path.read_text(encoding="utf-8"))
    assert stop is not None
    assert int(stop[1]) > 30


@pytest.mark.slow
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_the_command_of_the_unit_runs_and_stops(path: Path, bare: Path) -> None:
    """With the shipped settings, the process is healthy, and exits with 0 when systemd stops it."""
    settings = (DEPLOY / "systemd" / "germane.toml").read_text(encoding="utf-8")
    (bare / "germane.toml").write_text(settings.replace("/etc/germane", str(bare)), encoding="utf-8")
    (bare / "database_url").write_text(f"sqlite:///{bare / 'germane.db'}\n")
    for name in ("dashboard_token", "receiver_token"):
        (bare / name).write_text("0123456789abcdef0123456789abcdef")
    verb, *options = command_of(path, bare)
    options = options[:-2] if verb == "worker" else options
    process = subprocess.Popen(
        [program("germane"), verb, *options, *FREE_PORTS[verb]], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        address = None
        while address is None:
            line = process.stderr.readline()
            assert line, "the process ended"
            address = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert httpx2.get(f"{address[0]}/healthz").text == "ok\n"
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()

    assert process.returncode == 0, rest
