"""The files in deploy/: valid by their own tools where these are installed, safe as they are, and true of this tree."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config import Settings
from tests.helpers.paths import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
MANIFESTS: list[dict[str, Any]] = list(yaml.safe_load_all((DEPLOY / "kubernetes/folio.yaml").read_text("utf-8")))
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
EXAMPLE = (DEPLOY / ".env.example").read_text(encoding="utf-8")
TOOLS = [name for name in SERVICES if "tools" in SERVICES[name].get("profiles", ())]  # run once, by a person
SECRET = re.compile(r"TOKEN|PASSWORD|SECRET|ACCESS_KEY|_USER$")


def variables() -> set[str]:
    """What compose.yaml takes from .env."""
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    return set(re.findall(r"\$\{(\w+)", text))


def given() -> dict[str, str]:
    """An environment with something for everything in .env."""
    return {**os.environ, **{name: "/tmp" if name == "PAPERS" else f"a-{name.lower()}" for name in variables()}}


def pods() -> Iterator[dict[str, Any]]:
    """The pods' specifications; a volume that each pod is given its own of is named as the others are."""
    for manifest in MANIFESTS:
        if manifest["kind"] == "StatefulSet":
            pod = manifest["spec"]["template"]["spec"]
            own = [{"name": claim["metadata"]["name"]} for claim in manifest["spec"]["volumeClaimTemplates"]]
            yield {**pod, "volumes": [*pod["volumes"], *own]}
        elif manifest["kind"] == "CronJob":
            yield manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


# By their own tools


def test_docker_compose_reads_the_compose_file() -> None:
    command = [tool("docker-compose"), "-f", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
    subprocess.run(command, env=given(), check=True)
    refused = subprocess.run(command, env={**given(), "PUBLIC_URL": ""}, capture_output=True, text=True)
    assert (refused.returncode != 0, "set it in deploy/.env" in refused.stderr) == (True, True)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("check-jsonschema", ["--builtin-schema", "vendor.compose-spec", "compose.yaml"]),
        ("hadolint", ["Dockerfile"]),
        ("kubernetes-validate", ["--strict", "--quiet", "kubernetes/folio.yaml"]),
        ("caddy", ["validate", "--config", "Caddyfile", "--adapter", "caddyfile"]),
    ],
)
def test_a_file_is_valid_by_its_own_tool(tmp_path: Path, program: str, arguments: list[str]) -> None:
    home = {name: str(tmp_path) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")} if program == "caddy" else {}
    environment = {**os.environ, **home, "FOLIO_SERVERS": "folio-1:8420 folio-2:8420"}
    subprocess.run([tool(program), *arguments], cwd=DEPLOY, env=environment, check=True, capture_output=True)


# Safe as they are


def test_every_image_has_a_version() -> None:
    images = [service["image"] for service in SERVICES.values()]
    images += [container["image"] for pod in pods() for container in pod["containers"]]
    images += re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    others = {image for image in images if image != "folio:local"}  # built here, of this tree
    assert len(others) == 4
    assert all(re.fullmatch(r"[\w./-]+:[A-Za-z.]*\d+[.-]\d+[.-][\w.-]+", image) for image in others)


def test_only_the_balancer_can_be_reached_and_only_locally() -> None:
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"balancer": ["127.0.0.1:8420:8420"]}
    outside = {name for name, service in SERVICES.items() if "outside" in service["networks"]}
    assert outside == {"balancer", "ollama-pull"}
    assert [name for name, network in COMPOSE["networks"].items() if network != {"internal": True}] == ["outside"]
    assert not any("network_mode" in service or "privileged" in service for service in SERVICES.values())
    kinds = {manifest["kind"]: manifest for manifest in MANIFESTS}
    assert not kinds.keys() & {"Ingress", "Secret"}
    assert kinds["Service"]["spec"]["type"] == "ClusterIP"
    assert not re.search(r"hostPort|hostNetwork|nodePort|hostPath", (DEPLOY / "kubernetes/folio.yaml").read_text())


def test_passwords_are_files_and_have_no_default() -> None:
    for name, service in SERVICES.items():
        for key, value in service.get("environment", {}).items():
            assert not SECRET.search(key) or value.startswith("/run/secrets/"), f"{name}: {key}"
            assert not re.search(r"://[^/@]*:[^/@]*@", value), f"{name}: {key} has a password"
    secrets = COMPOSE["secrets"]
    assert {each["file"] for each in secrets.values()} == {f"./secrets/{name}" for name in secrets}
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    assert len(re.findall(r"\$\{\w+:\?set it in deploy/.env\}", text)) == text.count("${")
    example = dict(re.findall(r"^(\w+)=(.*)$", EXAMPLE, re.MULTILINE))
    assert example.keys() - {"COMPOSE_PROJECT_NAME"} == variables()
    assert {name for name, value in example.items() if value} == {"PUBLIC_URL", "COMPOSE_PROJECT_NAME"}
    for pod in pods():
        for container in pod["containers"]:
            given = {each["name"]: each for each in container["env"]}
            assert "secretKeyRef" in given["DATABASE_URL"]["valueFrom"]
            assert {name for name, each in given.items() if "value" in each} <= {"PAPERS_DIR"}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_few_rights_and_limits(name: str) -> None:
    service, is_tool = SERVICES[name], name in TOOLS
    rights = {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"], "read_only": True}
    assert service.items() >= {**rights, "restart": "no" if is_tool else "unless-stopped"}.items()
    assert {"mem_limit", "cpus", "pids_limit", "logging"} <= service.keys()
    assert is_tool or service["image"] == "folio:local" or "test" in service["healthcheck"]  # or by its Dockerfile
    volumes = [each.partition(":")[0] for each in service.get("volumes", ()) if each[0] not in ".$"]
    assert set(volumes) <= COMPOSE["volumes"].keys()


def test_pods_have_few_rights_and_limits() -> None:
    rights = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    for pod in pods():
        assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
        (container,) = pod["containers"]
        assert container["securityContext"] == rights
        assert container["resources"]["limits"].keys() == {"cpu", "memory"}
        assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}


# True of this tree


def test_every_setting_is_one_of_ours() -> None:
    ours = Settings.model_fields.keys()
    for name in ("folio-1", "folio-2", "worker"):
        assert SERVICES[name]["environment"].keys() <= ours
    (config,) = (manifest for manifest in MANIFESTS if manifest["kind"] == "ConfigMap")
    assert config["data"].keys() <= ours
    for pod in pods():
        named = {each["name"] for container in pod["containers"] for each in container.get("env", ())}
        assert named - {"POD"} <= ours  # PAPERS_DIR has the name of the pod in it
    made = set(re.findall(r"^(?:ENV )?\s*([A-Z_]+)=", DOCKERFILE, re.MULTILINE))
    assert {name for name in made if not re.match(r"PYTHON|PIP_|HOME$", name)} <= ours
    for settings in (SERVICES["folio-1"]["environment"], config["data"]):
        known = {name: value for name, value in settings.items() if not value.startswith("${")}
        Settings(_env_file=None, **known)  # type: ignore[call-arg]


def test_every_file_of_the_image_is_there() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [line[1:] for line in ignored if line.startswith("!")]
    copied = [words for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.MULTILINE) for words in line.split()[:-1]]
    assert {"ingest.py", "serve.py"} <= set(copied)
    for path in (each.rstrip("/") for each in copied):
        assert (ROOT / path).exists()
        assert any(fnmatch.fnmatch(path, pattern) for pattern in let_in)
    for service in SERVICES.values():
        for mounted in service.get("volumes", ()):
            assert not mounted.startswith("./") or (DEPLOY / mounted.partition(":")[0]).exists()
