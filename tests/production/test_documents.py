"""The pages about production agree with each other: paths, ports, periods and limits."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import wire
import yaml
from ports import reserve_port
from proxies import block
from shelf_replicas import KEYS
from snippets import ROOT

from gudgeon import SyncClient

CONTAINERS, REPLICAS = "docs/containers.md", "docs/replicas.md"
SHUTDOWN_GRACE = 10.0  # default of the option
STOPPING = 3.0  # for handlers that do not stop
KEEP_ALIVE, IDLE_TIMEOUT, PING = 15.0, 75.0, 75.0
NOBODY = 65534


def options_of_run(code: str) -> dict[str, Any]:
    """Returns the address and the options of `app.run` in a program."""
    (call,) = [
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run"
    ]
    options = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
    return {"at": ast.literal_eval(call.args[0]), **options}


SERVER = options_of_run(block(REPLICAS, "server.py"))
OBJECTS = {found["kind"]: found for found in yaml.safe_load_all(block(CONTAINERS, "shelf.yaml"))}
POD = OBJECTS["Deployment"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def seconds(text: object) -> float:
    number, unit = re.fullmatch(r"(\d+)(ms|s|m)?", str(text)).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60, None: 0.001}[unit]


def directive(text: str, name: str) -> str:
    """Returns the value of a line of nginx's or HAProxy's configuration."""
    (value,) = re.findall(rf"^ *{name} +([^;#\n]+?) *(?:;|#|$)", text, re.M)
    return value


def test_the_servers_of_both_pages_have_the_same_probes() -> None:
    other = options_of_run(block("docs/production.md", "production.py"))
    for name in ("at", "allowed_hosts", "health", "ready", "drain_delay"):
        assert other[name] == SERVER[name]


def test_kubernetes_asks_the_paths_and_the_port_of_the_server() -> None:
    paths = {name: CONTAINER[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert paths == {"startup": SERVER["health"], "liveness": SERVER["health"], "readiness": SERVER["ready"]}
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
    assert f":{ports['http']}/" in SERVER["at"]
    assert {CONTAINER[f"{name}Probe"]["httpGet"]["port"] for name in paths} <= ports.keys()
    (service_port,) = OBJECTS["Service"]["spec"]["ports"]
    assert service_port["targetPort"] in ports
    (rule,) = OBJECTS["Ingress"]["spec"]["rules"]
    assert rule["host"] in SERVER["allowed_hosts"]
    for path in rule["http"]["paths"]:
        assert path["backend"]["service"] == {"name": "shelf", "port": {"name": service_port["name"]}}
    assert rule["http"]["paths"][0]["path"] == "/mcp" and SERVER["at"].endswith("/mcp")


def test_kubernetes_gives_the_server_time_to_end_and_the_balancer_time_to_notice() -> None:
    assert POD["terminationGracePeriodSeconds"] >= SERVER["drain_delay"] + SHUTDOWN_GRACE + STOPPING
    probe = CONTAINER["readinessProbe"]
    assert SERVER["drain_delay"] > probe["periodSeconds"] * probe["failureThreshold"]
    assert OBJECTS["Deployment"]["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert OBJECTS["PodDisruptionBudget"]["spec"]["minAvailable"] < OBJECTS["Deployment"]["spec"]["replicas"]


def test_kubernetes_selects_the_pods_and_takes_rights_from_them() -> None:
    labels = OBJECTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [OBJECTS[kind]["spec"]["selector"] for kind in ("Deployment", "PodDisruptionBudget")]
    assert [selector["matchLabels"] for selector in selectors] == [labels, labels]
    assert OBJECTS["Service"]["spec"]["selector"] == labels
    assert POD["securityContext"]["runAsNonRoot"] and POD["securityContext"]["runAsUser"] == NOBODY
    rights = CONTAINER["securityContext"]
    assert rights["readOnlyRootFilesystem"] and rights["allowPrivilegeEscalation"] is False
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert [variable["name"] for variable in CONTAINER["env"]] == ["GUDGEON_STATE_KEYS"]


@pytest.mark.parametrize("document", ["docs/behind-proxies.md", REPLICAS])
def test_nginx_has_limits_that_fit_the_server(document: str) -> None:
    text = block(document, "shelf.conf")
    assert seconds(directive(text, "proxy_read_timeout")) > max(PING, 2 * KEEP_ALIVE)
    assert directive(text, "client_max_body_size") == "4m"
    assert "keepalive_timeout" not in text  # nginx's default is 60 s


@pytest.mark.parametrize("document, name", [("docs/behind-proxies.md", "http.cfg"), (REPLICAS, "haproxy.cfg")])
def test_haproxy_has_limits_that_fit_the_server(document: str, name: str) -> None:
    text = block(document, name)
    assert seconds(directive(text, "timeout server")) > 2 * KEEP_ALIVE
    assert seconds(directive(text, "timeout tunnel")) > PING


def test_haproxy_notices_a_drain_before_its_end() -> None:
    text = block(REPLICAS, "haproxy.cfg")
    assert f"uri {SERVER['ready']}\n" in text
    check = dict(re.findall(r"(inter|fall|rise) (\w+)", directive(text, "default-server")))
    assert seconds(check["inter"]) * int(check["fall"]) < SERVER["drain_delay"]


def test_envoy_routes_to_both_servers_with_limits_that_fit() -> None:
    resources = yaml.safe_load(block(REPLICAS, "envoy.yaml"))["static_resources"]
    (listener,), (cluster,) = resources["listeners"], resources["clusters"]
    (chain,) = listener["filter_chains"]
    (manager,) = [found["typed_config"] for found in chain["filters"]]
    (host,) = manager["route_config"]["virtual_hosts"]
    assert host["domains"] == SERVER["allowed_hosts"]
    endpoint = host["routes"][0]
    assert endpoint["match"] == {"prefix": "/mcp"} and endpoint["route"]["timeout"] == "0s"
    assert {route["route"]["cluster"] for route in host["routes"]} == {cluster["name"]}
    # A retry after the server may have read a call would run it twice.
    assert endpoint["route"]["retry_policy"] == {"retry_on": "connect-failure"}
    assert manager["route_config"]["request_headers_to_remove"] == ["forwarded", "x-forwarded-host"]
    assert manager["use_remote_address"] is True
    (check,) = cluster["health_checks"]
    assert check["http_health_check"]["path"] == SERVER["ready"]
    assert seconds(check["interval"]) * check["unhealthy_threshold"] < SERVER["drain_delay"]
    (protocol,) = cluster["typed_extension_protocol_options"].values()
    assert seconds(protocol["common_http_protocol_options"]["idle_timeout"]) < IDLE_TIMEOUT
    (endpoints,) = cluster["load_assignment"]["endpoints"]
    addresses = [found["endpoint"]["address"]["socket_address"] for found in endpoints["lb_endpoints"]]
    named = re.findall(r"server ((?:\d+\.){3}\d+):(\d+)", block(REPLICAS, "shelf.conf"))
    assert [(found["address"], str(found["port_value"])) for found in addresses] == named


def as_nobody() -> list[str]:
    """Returns the words before a command that run it as the image's user, or none if this user may not.

    The capability lets it read programs in folders of other users, as those of an image can be read by all.
    """
    right = "-all,+dac_read_search"
    words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    words += [f"--inh-caps={right}", f"--ambient-caps={right}", "--no-new-privs", "--"]
    try:
        return words if subprocess.run([*words, "true"], capture_output=True).returncode == 0 else []
    except FileNotFoundError:
        return []


def test_the_image_runs_as_another_user_who_may_write_nowhere_and_has_no_home(tmp_path: Path) -> None:
    """The steps of the Dockerfile, without its base image."""
    steps = dict(line.split(None, 1) for line in block(CONTAINERS, "Dockerfile").splitlines())
    assert steps["COPY"].split()[0] == "server.py" and steps["STOPSIGNAL"] == "SIGTERM"
    assert steps["USER"] == f"{NOBODY}:{NOBODY}" and f":{steps['EXPOSE']}/" in SERVER["at"]
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    assert steps["RUN"] == f"pip install --no-cache-dir gudgeon=={version}"
    assert ast.literal_eval(steps["CMD"]) == ["python", "server.py"]
    address = ("127.0.0.1", reserve_port())
    code = block(REPLICAS, "server.py").replace("0.0.0.0:8000", f"127.0.0.1:{address[1]}")
    (tmp_path / "server.py").write_text(code)
    tmp_path.chmod(0o555)
    set_in_image = dict(pair.split("=") for pair in steps["ENV"].split())
    process = subprocess.Popen(
        [*as_nobody(), sys.executable, "server.py"],
        cwd=tmp_path,
        env={**set_in_image, "PATH": os.environ["PATH"], "GUDGEON_STATE_KEYS": KEYS, "TMPDIR": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert "shelf serves" in process.stderr.readline()
        with wire.Connection(address) as connection:
            assert [connection.ask("GET", SERVER[probe]).status for probe in ("health", "ready")] == [200, 200]
        with SyncClient(f"http://127.0.0.1:{address[1]}/mcp") as client:
            assert client.call_tool("add", {"a": 1, "b": 2}).data == 3
        process.terminate()
        assert "Traceback" not in process.communicate(timeout=60)[1]
        assert process.returncode == 0
    finally:
        process.kill()
        tmp_path.chmod(0o755)
