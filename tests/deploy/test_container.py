"""The Dockerfile and the compose file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner
from tests.deploy.files import COMPOSE, DEPLOY, ROOT, check_schema, load, program, run

from germane.cli.app import group
from germane.settings import load_settings

DOCKERFILE = DEPLOY / "docker" / "Dockerfile"
SERVICES: dict[str, Any] = load(COMPOSE / "compose.yaml")["services"]
GERMANE = {name: service for name, service in SERVICES.items() if "GERMANE_DATABASE" in service.get("environment", {})}


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    """It checks both Docker's rules and the shell commands."""
    ended = run(program("hadolint"), DOCKERFILE)

    assert (ended.returncode, ended.stdout) == (0, "")


def test_the_image_is_pinned_and_runs_without_privileges() -> None:
    """Each stage needs the digest, which has no default. The last stage has a user and a health check."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    last = text[text.rindex("\nFROM ") :]

    assert re.findall(r"(?m)^ARG BASE_DIGEST(.*)$", text) == [""]
    assert {line.split()[1] for line in re.findall(r"(?m)^FROM .*$", text)} == {"${BASE_IMAGE}@${BASE_DIGEST}"}
    assert "\nUSER 10001:10001\n" in last
    assert "\nHEALTHCHECK " in last


def test_the_build_sends_only_what_the_image_needs() -> None:
    """Each copied path is in the build context, from which everything else is excluded."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    copied = {name for line in re.findall(r"(?m)^COPY (?!--from)(.*)$", text) for name in line.split()[:-1]}
    ignored = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()

    assert "*" in ignored
    assert {name.removeprefix("./") for name in copied} == {line[1:] for line in ignored if line.startswith("!")}
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.slow
def test_the_compose_file_matches_the_specification() -> None:
    """It is checked against the schema of the compose specification."""
    check_schema("compose-spec", COMPOSE / "compose.yaml")


def test_every_germane_container_is_confined() -> None:
    """Its files are read-only, it has no capabilities, and it can stop gracefully."""
    for name, service in GERMANE.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert int(service["stop_grace_period"].removesuffix("s")) > 30, name


def test_compose_publishes_ports_only_on_this_machine() -> None:
    """A host that is reachable from the internet does not expose the pages by accident."""
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]

    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_no_compose_variable_contains_a_secret() -> None:
    """Passwords and tokens are files that ``prepare`` writes."""
    for service in SERVICES.values():
        for name, value in (service.get("environment") or {}).items():
            if re.search("PASSWORD|TOKEN|DATABASE$", name):
                assert value.removeprefix("file:").startswith("/run/secrets/"), name


@pytest.mark.parametrize("service", [name for name in GERMANE if name != "setup"])
def test_compose_commands_are_valid(service: str) -> None:
    """The command line accepts each command and option."""
    verb, *options = map(str, GERMANE[service]["command"])
    command = group.get_command(click.Context(group), verb)
    assert command is not None

    command.make_context(verb, options).close()


@pytest.mark.parametrize(
    "file",
    [COMPOSE, DEPLOY / "systemd", *(DEPLOY / "kubernetes" / path for path in ("base", "overlays/production"))],
    ids=lambda path: path.name,
)
def test_shipped_settings_are_valid(file: Path, bare: Path) -> None:
    """Each germane.toml loads, also with the lines that are commented out."""
    secret = bare / "secret"
    secret.write_text("sqlite:///germane.db")
    shipped = (file / "germane.toml").read_text(encoding="utf-8")
    uncommented = re.sub(r"(?m)^# (?=(\w+ = |\[)|$)", "", shipped)
    for text in {shipped, uncommented}:
        (bare / "germane.toml").write_text(re.sub(r'"file:/[^"]+"', f'"file:{secret}"', text), encoding="utf-8")
        load_settings()


def test_grafana_provider_equals_the_file_that_germane_writes() -> None:
    """Grafana reads the dashboards that the setup container writes."""
    provider = (COMPOSE / "grafana" / "provider.yaml").read_text(encoding="utf-8")
    variables = SERVICES["grafana"]["environment"]

    assert provider == CliRunner().invoke(group, ["grafana", "--print", "provider"]).stdout
    assert f"grafana-files:{variables['GERMANE_DASHBOARDS']}:ro" in SERVICES["grafana"]["volumes"]


@pytest.mark.slow
def test_prometheus_accepts_the_shipped_configuration(tmp_path: Path) -> None:
    """The compose file's configuration, and the scrape configuration for a cluster.

    Debian builds Prometheus without the discovery of Kubernetes, so that section is left out.
    """
    promtool = program("promtool")
    cluster = load(DEPLOY / "kubernetes" / "prometheus.yaml")
    for scrape in cluster["scrape_configs"]:
        del scrape["kubernetes_sd_configs"]
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(cluster))
    for path in (COMPOSE / "prometheus.yaml", tmp_path / "cluster.yaml"):
        ended = run(promtool, "check", "config", "--syntax-only", path)

        assert ended.returncode == 0, ended.stdout + ended.stderr


COLLECTOR_FIELDS = {
    "extensions.bearertokenauth/germane": {"filename", "header", "scheme", "token", "tokens"},
    "receivers.otlp.protocols": {"grpc", "http"},
    "receivers.otlp.protocols.grpc": {"endpoint", "max_recv_msg_size_mib", "tls"},
    "receivers.otlp.protocols.http": {"cors", "endpoint", "max_request_body_size", "tls"},
    "processors.memory_limiter": {
        "check_interval", "limit_mib", "limit_percentage", "spike_limit_mib", "spike_limit_percentage",
    },
    "processors.batch": {
        "metadata_cardinality_limit", "metadata_keys", "send_batch_max_size", "send_batch_size", "timeout",
    },
    "exporters.otlphttp/germane": {
        "auth", "compression", "encoding", "endpoint", "headers", "logs_endpoint", "retry_on_failure", "sending_queue",
        "timeout", "tls", "traces_endpoint",
    },
    "exporters.otlphttp/germane.retry_on_failure": {"enabled", "initial_interval", "max_elapsed_time", "max_interval"},
    "exporters.otlphttp/germane.sending_queue": {"enabled", "num_consumers", "queue_size", "sizer", "storage"},
}  # fmt: skip
"""Fields from the documentation of the OpenTelemetry Collector, by component."""


def test_the_collector_configuration_is_valid() -> None:
    """It has documented fields, its pipelines use components that it defines, and the memory limiter is first."""
    configuration = load(COMPOSE / "collector.yaml")
    for path, fields in COLLECTOR_FIELDS.items():
        section = configuration
        for part in path.split("."):
            section = section[part]
        assert section.keys() <= fields, path
    exporter = configuration["exporters"]["otlphttp/germane"]
    assert exporter["auth"]["authenticator"] in configuration["service"]["extensions"]
    for pipeline in configuration["service"]["pipelines"].values():
        assert pipeline["processors"][0] == "memory_limiter"
        for kind, names in pipeline.items():
            assert set(names) <= configuration[kind].keys()


def test_compose_services_find_each_other() -> None:
    """Each host name in the configuration of another program is a service of the compose file."""
    shipped = [yaml.safe_dump(load(COMPOSE / name)) for name in ("collector.yaml", "prometheus.yaml")]
    shipped.append(yaml.safe_dump(load(COMPOSE / "grafana" / "datasource.yaml")))
    hosts = {host for text in shipped for host in re.findall(r"(?:http://|- )([a-z]+):\d+", text)}

    assert hosts == {"receiver", "serve", "prometheus"}
    assert hosts <= SERVICES.keys()


@pytest.mark.slow
def test_the_prepare_script_writes_secrets_once(tmp_path: Path) -> None:
    """They are random, in a directory that only the owner can open, and a second run keeps them."""
    script = tmp_path / "prepare"
    script.write_bytes((COMPOSE / "prepare").read_bytes())
    (tmp_path / ".env").write_text("BASE_DIGEST=sha256:0")
    (tmp_path / "key").write_text("a-key-of-a-judge")
    first = run("sh", script, "key", cwd=tmp_path)
    secrets = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    second = run("sh", script, cwd=tmp_path)

    assert (first.returncode, first.stderr, second.returncode, second.stdout) == (0, "", 0, "")
    assert secrets == {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert {f"secrets/{name}" for name in secrets} == {
        secret["file"] for secret in load(COMPOSE / "compose.yaml")["secrets"].values()
    }
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert secrets["judge_api_key"] == "a-key-of-a-judge"
    assert secrets["database_url"] == f"postgresql://germane:{secrets['postgres_password']}@postgres:5432/germane"
    tokens = [secrets[name] for name in ("postgres_password", "dashboard_token", "receiver_token", "grafana_password")]
    assert len(set(tokens)) == 4
    assert all(re.fullmatch("[0-9a-f]{48}", token) for token in tokens)


@pytest.mark.slow
def test_the_prepare_script_replaces_only_the_placeholder_of_the_key(tmp_path: Path) -> None:
    """A key can be added after a run without one. A key is never replaced, and a missing file changes nothing."""
    script = tmp_path / "prepare"
    script.write_bytes((COMPOSE / "prepare").read_bytes())
    (tmp_path / ".env").write_text("BASE_DIGEST=sha256:0")
    (tmp_path / "first").write_text("the-first-key\n")
    (tmp_path / "second").write_text("the-second-key")
    (tmp_path / "first").chmod(0o600)
    secret = tmp_path / "secrets" / "judge_api_key"
    written = []
    for arguments in ([], ["missing"], ["first"], ["second"], []):
        ended = run("sh", script, *arguments, cwd=tmp_path)
        written.append((ended.returncode == 0, secret.read_text()))

    assert written == [
        (True, "none"),
        (False, "none"),
        (True, "the-first-key\n"),
        (True, "the-first-key\n"),
        (True, "the-first-key\n"),
    ]
    assert secret.stat().st_mode & 0o777 == 0o644  # the containers run as other users


@pytest.mark.slow
@pytest.mark.parametrize("existing", [None, "", "POSTGRES_IMAGE=postgres:17.6", "POSTGRES_IMAGE=postgres:17.6\n"])
def test_the_prepare_script_adds_the_digest_to_an_existing_env_file(existing: str | None, tmp_path: Path) -> None:
    """The other lines are kept. A digest that the file already contains is kept, too."""
    (tmp_path / "prepare").write_bytes((COMPOSE / "prepare").read_bytes())
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text('#!/bin/sh\nif [ "$1" = image ]; then echo python@sha256:1; fi\n')
    docker.chmod(0o755)
    environment = {**os.environ, "PATH": f"{docker.parent}{os.pathsep}{os.environ['PATH']}"}
    file = tmp_path / ".env"
    if existing is not None:
        file.write_text(existing)
    ended = [run("sh", tmp_path / "prepare", cwd=tmp_path, env=environment) for _ in range(2)]

    assert [(one.returncode, one.stderr) for one in ended] == [(0, ""), (0, "")]
    assert file.read_text().splitlines() == [*(existing or "").splitlines(), "BASE_DIGEST=sha256:1"]
