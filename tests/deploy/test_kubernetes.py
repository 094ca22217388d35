"""The Kubernetes manifests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.files import KUBERNETES, load, program, run

MANIFESTS = [
    document
    for path in sorted((KUBERNETES / "base").glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
SECRETS = ("database_url", "dashboard_token", "receiver_token", "judge_api_key")


def of_kind(*kinds: str) -> dict[str, Any]:
    """Return the manifests of these kinds by name."""
    return {manifest["metadata"]["name"]: manifest for manifest in MANIFESTS if manifest["kind"] in kinds}


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifests of the production overlay, with secrets."""
    kubectl = program("kubectl")
    folder = tmp_path_factory.mktemp("kubernetes")
    shutil.copytree(KUBERNETES, folder / "kubernetes")
    overlay = folder / "kubernetes" / "overlays" / "production"
    (overlay / "secrets").mkdir()
    for name in SECRETS:
        (overlay / "secrets" / name).write_text("0123456789abcdef0123456789abcdef")
    ended = run(kubectl, "kustomize", overlay)
    assert (ended.returncode, ended.stderr) == (0, "")
    (folder / "rendered.yaml").write_text(ended.stdout)
    return folder / "rendered.yaml"


@pytest.mark.slow
def test_kubernetes_accepts_the_rendered_manifests(rendered: Path) -> None:
    """kubernetes-validate checks them against the schemas of Kubernetes, and rejects unknown fields."""
    ended = run(program("kubernetes-validate"), "--strict", rendered)

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_overlay_sets_image_settings_secrets_and_namespace(rendered: Path) -> None:
    """A changed setting or secret changes its name, so that the pods restart with it."""
    documents = [one for one in yaml.safe_load_all(rendered.read_text()) if one]
    names = {one["metadata"]["name"] for one in documents if one["kind"] in {"ConfigMap", "Secret"}}
    pods = [one["spec"]["template"] for one in documents if one["kind"] in {"Deployment", "Job"}]

    assert len(pods) == 4
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        assert container["image"] == "registry.example.com/germane:0.1.0"
        volumes = [volume for volume in pod["spec"]["volumes"] if volume["name"] in {"settings", "secrets"}]
        used = {volume.get("configMap", {}).get("name") or volume["secret"]["secretName"] for volume in volumes}
        assert used == names
        assert all(name.startswith("germane-") for name in names)
        assert pod["metadata"]["labels"]["app.kubernetes.io/part-of"] == "germane"  # the network policy selects it
    assert {one["metadata"].get("namespace", "germane") for one in documents} == {"germane"}


@pytest.mark.parametrize("name", of_kind("Deployment", "Job"))
def test_pods_run_without_privileges(name: str) -> None:
    """Each pod meets the restricted Pod Security Standard, cannot write to its image, and has a memory limit."""
    pod = of_kind("Deployment", "Job")[name]["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("name", of_kind("Deployment"))
def test_pods_have_probes_on_their_own_ports(name: str) -> None:
    """The health endpoint needs no token."""
    deployment = of_kind("Deployment")[name]["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}

    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] == "/healthz"
        assert container[probe]["httpGet"]["port"] in ports
    arguments = " ".join(map(str, container["args"]))
    assert all(str(port) in arguments or port == 8642 for port in ports.values())


def test_stopping_workers_finish_their_tasks() -> None:
    """The grace period is longer than the shutdown timeout."""
    pod = of_kind("Deployment")["germane-worker"]["spec"]["template"]["spec"]
    arguments = pod["containers"][0]["args"]

    assert pod["terminationGracePeriodSeconds"] > int(arguments[arguments.index("--shutdown-timeout") + 1])


def test_the_autoscaler_uses_a_metric_that_the_adapter_offers() -> None:
    """Its name is that of a rule for prometheus-adapter, whose query uses a gauge that germane exports."""
    autoscaler = of_kind("HorizontalPodAutoscaler")["germane-worker"]["spec"]
    (metric,) = autoscaler["metrics"]
    (rule,) = load(KUBERNETES / "prometheus-adapter.yaml")["externalRules"]

    assert metric["external"]["metric"]["name"] == rule["name"]["as"]
    assert 'germane_queue_depth{state="ready"}' in rule["metricsQuery"]
    assert autoscaler["scaleTargetRef"]["name"] in of_kind("Deployment")
    assert "replicas" not in of_kind("Deployment")["germane-worker"]["spec"]  # applying the manifests would reset it
    assert of_kind("PodDisruptionBudget")["germane-worker"]["spec"]["maxUnavailable"] == 1
