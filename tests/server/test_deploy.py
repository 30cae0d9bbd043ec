"""The files that run the server elsewhere: an image, compose, a chart, a unit of systemd. None is built here: each is
linted and read, and its command is a command of this program.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import tacit
from tacit.catalog_file import catalog_from
from tests.changes import PROJECT
from tests.server.conftest import write_folder

DEPLOY = PROJECT / "deploy"
CHART = DEPLOY / "helm" / "tacit"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNIT = (DEPLOY / "tacit.service").read_text()


def rendered(values: dict[str, Any]) -> dict[str, Any]:
    """The chart's documents, by kind; its templates use only values, the release's name and toJson."""

    def value(found: re.Match[str]) -> str:
        name, _, function = (part.strip() for part in found[1].partition("|"))
        plain = "office" if name == ".Release.Name" else values[name.removeprefix(".Values.")]
        assert function in ("", "toJson"), found[0]
        return json.dumps(plain) if function else str(plain)

    texts = [path.read_text() for path in sorted((CHART / "templates").glob("*.yaml"))]
    documents = [yaml.safe_load(re.sub(r"\{\{(.+?)\}\}", value, text)) for text in texts]
    return {each["kind"]: each for each in documents}


VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
CHARTED = rendered(VALUES)
CONTAINER = CHARTED["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]


def commands() -> dict[str, list[str]]:
    """The words after `tacit` in each of the files."""
    last = re.findall(r"^CMD (\[.+\])$", DOCKERFILE, re.MULTILINE)[-1]
    started = re.findall(r"^ExecStart=/opt/tacit/bin/tacit (.+)$", UNIT, re.MULTILINE)[0]
    composed = [
        re.sub(r"\$\{(\w+)[^}]*\}", "data.example.org", word) for word in COMPOSE["services"]["server"]["command"]
    ]
    return {"image": json.loads(last), "compose": composed, "chart": CONTAINER["args"], "systemd": started.split()}


@pytest.mark.far
@pytest.mark.parametrize("place", ["image", "compose", "chart", "systemd"])
def test_the_command_of_each_file_starts_a_server(place: str, tmp_path: Path, certificate: dict[str, str]) -> None:
    write_folder(tmp_path)
    here = {"/tls/tls.crt": certificate["certificate"], "/tls/tls.key": certificate["key"]}
    here |= {"/etc/tacit/tacit.toml": str(tmp_path / "tacit.toml"), "--postgres=5433": "--postgres=0"}
    words = commands()[place]
    for old, new in here.items():
        words = [word.replace(old, new) for word in words]
    code = "from tacit.cli.app import main; import sys; main(sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", code, *words, "--port", "0", "--no-log"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.terminate()
    assert lines[1].startswith("serving "), lines
    assert process.returncode == 0


def test_the_image_runs_without_rights_and_says_whether_it_is_well() -> None:
    steps = re.findall(r"^([A-Z]+) (.+)$", DOCKERFILE, re.MULTILINE)
    assert [rest for step, rest in steps if step == "USER"] == ["10001:10001"]
    last = [step for step, _ in steps].index("USER")
    assert not [step for step, _ in steps[last:] if step in ("RUN", "COPY", "ADD")]
    assert "/health" in dict(steps)["HEALTHCHECK"]
    assert len([step for step, _ in steps if step == "FROM"]) == 2  # compilers and caches stay behind
    ignored = (PROJECT / ".dockerignore").read_text().split()
    copied = {word for step, rest in steps if step == "COPY" and "--from" not in rest for word in rest.split()[:-1]}
    assert ignored[0] == "*"
    assert copied == {word.removeprefix("!") for word in ignored[1:]}
    assert all((PROJECT / word).exists() for word in copied)


def test_the_image_passes_a_linter() -> None:
    program = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("hadolint is not installed, so the image's file was only read: the extra test has it")
    done = subprocess.run([program, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_compose_keeps_the_ledger_inside_and_roots_read_only() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"server", "proxy", "ledger"}
    assert services["proxy"]["network_mode"] == "service:server"  # the server trusts a proxy of its own machine only
    assert "--behind-proxy" in services["server"]["command"]
    assert "--host" not in services["server"]["command"]
    assert services["ledger"]["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"]["internal"]
    assert [name for name, each in services.items() if "ports" in each] == ["server"]
    for name in ("server", "proxy"):
        assert services[name]["read_only"]
        assert services[name]["cap_drop"] == ["ALL"]
    for each in services.values():
        assert each["security_opt"] == ["no-new-privileges:true"]
    named = {word.split(":")[0] for each in services.values() for word in each["volumes"] if word[0] != "."}
    assert named == set(COMPOSE["volumes"])
    assert services["ledger"]["environment"]["POSTGRES_PASSWORD"] == "${LEDGER_PASSWORD}"


def test_the_chart_renders_to_a_server_without_rights_that_encrypts() -> None:
    assert set(CHARTED) == {"ConfigMap", "Service", "StatefulSet"}
    pod = CHARTED["StatefulSet"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]
    assert CONTAINER["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "--certificate=/tls/tls.crt" in CONTAINER["args"]
    assert f"--host-names={VALUES['host']}" in CONTAINER["args"]
    assert {CONTAINER[name]["httpGet"]["scheme"] for name in ("livenessProbe", "readinessProbe")} == {"HTTPS"}
    given = {each["name"] for each in pod["volumes"]} | {"state"}
    assert {each["name"] for each in CONTAINER["volumeMounts"]} == given
    ports = {each["containerPort"] for each in CONTAINER["ports"]}
    assert {each["targetPort"] for each in CHARTED["Service"]["spec"]["ports"]} == ports
    file = catalog_from(Path("tacit.toml"), CHARTED["ConfigMap"]["data"]["tacit.toml"])
    assert list(file.tables) == ["visits"]
    used = set(re.findall(r"\.Values\.(\w+)", "".join(path.read_text() for path in CHART.rglob("*.yaml"))))
    assert used == set(VALUES)


def test_the_chart_and_the_client_in_r_have_the_products_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == VALUES["image"].partition(":")[2] == tacit.__version__
    assert f"\nVersion: {tacit.__version__}\n" in (PROJECT / "clients" / "r" / "DESCRIPTION").read_text()


def test_a_value_of_the_chart_stays_a_value() -> None:
    odd = rendered({**VALUES, "catalog": '"\n: {{ x\n#"', "image": "a: b"})
    assert odd["ConfigMap"]["data"]["tacit.toml"] == '"\n: {{ x\n#"'


def test_the_unit_has_no_rights_and_is_read_by_systemd(tmp_path: Path) -> None:
    lines = [line for line in UNIT.splitlines() if "=" in line and not line.startswith("#")]
    settings = {line.partition("=")[0]: line.partition("=")[2] for line in lines}
    for name in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices"):
        assert settings[name] == "yes"
    assert settings["User"] == "tacit"
    assert settings["ProtectSystem"] == "strict"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here, so the unit was only read: Debian has it as systemd")
    unit = tmp_path / "tacit.service"
    unit.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", UNIT))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert not [line for line in done.stderr.splitlines() if "tacit.service" in line], done.stderr


@pytest.mark.far
def test_the_files_that_the_image_copies_make_the_package(tmp_path: Path) -> None:
    for rest in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE):
        for word in rest.split()[:-1]:
            copy = shutil.copytree if (PROJECT / word).is_dir() else shutil.copy
            copy(PROJECT / word, tmp_path / word)
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path / "made"), "."]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [path.name for path in (tmp_path / "made").iterdir()] == [f"tacit-{tacit.__version__}-py3-none-any.whl"]
