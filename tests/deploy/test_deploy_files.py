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
    without = {**given(), "PUBLIC_URL": ""}
    refused = subprocess.run(command, env=without, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "set it in deploy/.env" in refused.stderr


def test_the_compose_file_follows_its_specification() -> None:
    command = [tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(DEPLOY / "compose.yaml")]
    subprocess.run(command, check=True, capture_output=True)


def test_caddy_reads_its_configuration(tmp_path: Path) -> None:
    command = [tool("caddy"), "validate", "--config", str(DEPLOY / "Caddyfile"), "--adapter", "caddyfile"]
    home = {name: str(tmp_path) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    environment = {**os.environ, **home, "FOLIO_SERVERS": "folio-1:8420 folio-2:8420"}
    subprocess.run(command, env=environment, check=True, capture_output=True)


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    subprocess.run([tool("hadolint"), str(DEPLOY / "Dockerfile")], check=True)


def test_the_manifests_follow_the_schema_of_kubernetes() -> None:
    command = [tool("kubernetes-validate"), "--strict", "--quiet", str(DEPLOY / "kubernetes" / "folio.yaml")]
    subprocess.run(command, check=True, capture_output=True)


# Safe as they are


def test_every_image_has_a_version() -> None:
    images = [service["image"] for service in SERVICES.values()]
    images += [container["image"] for pod in pods() for container in pod["containers"]]
    images += re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    others = {image for image in images if image != "folio:local"}  # built here, of this tree
    assert len(others) == 4
    assert all(re.fullmatch(r"[\w./-]+:[A-Za-z.]*\d+[.-]\d+[.-][\w.-]+", image) for image in others)


def test_the_balancer_alone_can_be_reached_and_from_this_computer_alone() -> None:
    assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == {
        "balancer": ["127.0.0.1:8420:8420"]
    }
    outside = {name for name, service in SERVICES.items() if "outside" in service["networks"]}
    assert outside == {"balancer", "ollama-pull"}
    internal = {"internal": True}
    assert COMPOSE["networks"] == {"front": internal, "data": internal, "models": internal, "outside": {}}
    assert not any("network_mode" in service or "privileged" in service for service in SERVICES.values())
    assert SERVICES["database"]["networks"] == ["data"]
    assert "data" not in SERVICES["balancer"]["networks"]
    kinds = {manifest["kind"] for manifest in MANIFESTS}
    assert not kinds & {"Ingress", "Secret"}
    assert [each["spec"]["type"] for each in MANIFESTS if each["kind"] == "Service"] == ["ClusterIP"]
    assert not re.search(r"hostPort|hostNetwork|nodePort|hostPath", (DEPLOY / "kubernetes/folio.yaml").read_text())


def test_passwords_are_files_and_have_no_default() -> None:
    for name, service in SERVICES.items():
        for key, value in service.get("environment", {}).items():
            assert not SECRET.search(key) or value.startswith("/run/secrets/"), f"{name}: {key}"
            assert not re.search(r"://[^/@]*:[^/@]*@", value), f"{name}: {key} has a password"
    secrets = COMPOSE["secrets"]
    assert {each["file"] for each in secrets.values()} == {f"./secrets/{name}" for name in secrets}
    used = {name for service in SERVICES.values() for name in service.get("secrets", ())}
    assert used == secrets.keys() == {"token", "database_password"}
    assert SERVICES["database"]["secrets"] == ["database_password"]
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


def test_the_superuser_of_the_database_has_no_password_and_folio_is_none() -> None:
    made = (DEPLOY / "database.sql").read_text(encoding="utf-8")
    assert "ALTER ROLE postgres PASSWORD NULL;" in made
    assert "CREATE ROLE folio LOGIN PASSWORD :'password';" in made
    assert not re.search(r"SUPERUSER|CREATEROLE|CREATEDB", made)
    url = SERVICES["folio-1"]["environment"]["DATABASE_URL"]
    assert "CREATE DATABASE folio OWNER folio;" in made
    assert url == "postgresql://folio@database/folio"
    assert "database:5432:folio:folio:" in SERVICES["folio-1"]["entrypoint"][2]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_few_rights_and_limits(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert {"mem_limit", "cpus", "pids_limit", "logging"} <= service.keys()
    assert service["restart"] == ("no" if name in TOOLS else "unless-stopped")
    is_checked = "test" in service.get("healthcheck", {}) or service["image"] == "folio:local"  # by its Dockerfile
    assert is_checked or name in TOOLS
    volumes = [each.partition(":")[0] for each in service.get("volumes", ()) if each[0] not in ".$"]
    assert set(volumes) <= COMPOSE["volumes"].keys()


def test_pods_have_few_rights_and_limits() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
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
    assert copied
    for path in (each.rstrip("/") for each in copied):
        assert (ROOT / path).exists()
        assert any(fnmatch.fnmatch(path, pattern) for pattern in let_in)
    commands = re.findall(r"\w+\.py", str([SERVICES[name]["command"] for name in ("folio-1", "folio-2", "worker")]))
    commands += re.findall(r'CMD \["(\w+\.py)"', DOCKERFILE)
    assert set(commands) == {"ingest.py", "serve.py"}
    assert set(commands) <= set(copied)
    for service in SERVICES.values():
        for mounted in service.get("volumes", ()):
            if mounted.startswith("./"):
                assert (DEPLOY / mounted.partition(":")[0]).exists()


def test_the_balancer_knows_every_server() -> None:
    servers = [name for name, service in SERVICES.items() if "serve.py" in service.get("command", ())]
    assert servers == ["folio-1", "folio-2"]
    balancer = SERVICES["balancer"]
    assert balancer["environment"]["FOLIO_SERVERS"].split() == [f"{name}:8420" for name in servers]
    assert balancer["depends_on"].keys() == set(servers)
    # Folio accepts its own host name, which the balancer's health check asks it by.
    assert [SERVICES[name]["hostname"] for name in servers] == servers


def test_servers_share_the_papers_and_have_index_files_of_their_own() -> None:
    places = {name: SERVICES[name]["volumes"] for name in ("folio-1", "folio-2", "worker")}
    papers = {volumes[0].removesuffix(":ro") for volumes in places.values()}
    assert papers == {"${PAPERS:?set it in deploy/.env}:/data/papers"}
    assert len({volumes[1] for volumes in places.values()}) == len(places)
