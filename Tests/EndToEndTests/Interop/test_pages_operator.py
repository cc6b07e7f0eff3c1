"""The examples of the pages for operators of a server."""

import configparser
import json
import re
import shlex
import signal
import socket as sockets
import subprocess
from urllib.parse import urlsplit

import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as connect_websocket

from carillon_peer import APP, PATIENCE, assert_problem, free_port, new_channel_id
from log_secrets import LEDGER
from page_blocks import filled
from page_shell import LIMIT, assert_like, example
from test_discovery import matrix_body
from test_service_manager import PASS

PUBLIC = "https://push.example.com"


def autopush(address: str, origin: str | None = None, **hello) -> dict:
    """The answer to the `hello` of a client that never registered."""
    with connect_websocket(re.sub("^http", "ws", address) + "/", proxy=None, origin=origin, open_timeout=PATIENCE) as socket:
        socket.send(json.dumps({"messageType": "hello", "use_webpush": True, **hello}))
        answer = json.loads(socket.recv(timeout=PATIENCE))
        LEDGER.note_body(json.dumps(answer))
        return answer


def test_backups(page, shell, make_server):
    backup = page("docs/backup.md")
    server = make_server()
    update = {"kind": "content", "payload": {"action": "resync"}}
    published = [
        server.request("POST", "/v1/updates", key=server.sender_key, json=update).json()["id"] for _ in range(2)
    ]
    file = shell.directory / "backup"
    shell.run(filled(backup.take("carillon backup").code, {
        "/backups/carillon-2026-11-21": file, "/var/lib/carillon": server.data}))  # fmt: skip
    assert file.stat().st_mode & 0o777 == 0o600
    server.stop()
    for number in range(2):
        data = shell.directory / f"restored-{number}"
        shell.run(filled(backup.take("carillon restore").code, {
            "/backups/carillon-2026-11-21": file, "/var/lib/carillon": data}))  # fmt: skip
        assert (data / "carillon.sqlite").exists()
    url = f"http://127.0.0.1:{free_port()}"
    shell.serve(f"carillon serve --data {data} --listen {url[7:]}", url)
    listed, withdraw, resume = [
        filled(command, {"ADMIN-KEY": server.admin_key}) for command in backup.take("carillon updates list").commands
    ]
    assert all(update in shell.run(listed, CARILLON_SERVER=url) for update in published)
    shell.run(filled(withdraw, {"UPDATE": published[0]}), CARILLON_SERVER=url)
    shell.run(resume, CARILLON_SERVER=url)
    assert not any(update in shell.run(listed, CARILLON_SERVER=url) for update in published)
    states = [
        requests.get(f"{url}/v1/updates/{update}", headers={"Authorization": f"Bearer {server.sender_key}"}).json()
        for update in published
    ]
    assert [state.get("paused", False) for state in states] == [False, False], states


def test_connections(page, shell):
    connecting = page("docs/connecting.md")
    url = f"http://127.0.0.1:{free_port()}"
    own = {"127.0.0.1:8080": url[7:], "/var/lib/carillon": shell.directory / "data"}
    firefox = shell.serve(filled(connecting.take("carillon serve --data").code.strip(), own), url)
    greeting = autopush(url)
    assert greeting["status"] == 200 and greeting["uaid"]

    settings = configparser.ConfigParser()
    settings.optionxform = str
    settings.read_string(filled(connecting.take("[PushProvider]").code, {PUBLIC: url}))
    assert settings["PushProvider"]["Type"] == "Autopush"
    assert autopush(settings["Autopush"]["Url"])["status"] == 200
    assert firefox.end() == 0

    block = connecting.take('{"public-url"')
    shell.file("carillon.json", block.code)
    data = f"--data {shell.directory}/data --listen {url[7:]} --anonymous-devices"
    moved = shell.serve(f"carillon serve --config carillon.json {data}", url)
    names = json.loads(block.code)
    with connect_websocket(url.replace("http", "ws") + "/", proxy=None) as socket:
        socket.send(json.dumps({"messageType": "hello", "use_webpush": True}))
        LEDGER.note_body(socket.recv(timeout=PATIENCE))
        socket.send(json.dumps({"messageType": "register", "channelID": new_channel_id()}))
        endpoint = json.loads(socket.recv(timeout=PATIENCE))["pushEndpoint"]
    LEDGER.note_path(endpoint)
    assert endpoint.startswith(names["public-url"] + "/push/")
    (former,) = names["former-public-urls"]
    for address, rejected in [(former, 0), ("https://other.example.com", 1)]:
        key = endpoint.replace(names["public-url"], address)
        answer = requests.post(f"{url}/_matrix/push/v1/notify", json=matrix_body(key), timeout=PATIENCE)
        assert answer.status_code == 200 and len(answer.json()["rejected"]) == rejected, answer.text
    assert moved.end() == 0

    shell.serve(filled(connecting.take("carillon serve …").code.strip(), {"…": data}), url)
    for origin in ("https://app.example.com", "https://admin.example.com"):
        assert autopush(url, origin)["status"] == 200
    with pytest.raises(InvalidStatus):
        autopush(url, "https://other.example.com")


def test_metrics_are_scraped(page, shell, make_server):
    port = free_port()
    make_server(CARILLON_METRICS_LISTEN=port)
    block = page("docs/metrics.md").take("scrape_configs:")
    shell.file("prometheus.yml", filled(block.code, {"127.0.0.1:9464": f"127.0.0.1:{port}"}))
    assert "SUCCESS" in shell.run("promtool check config prometheus.yml")
    (target,) = re.findall(r'targets: \["(.*?)"\]', (shell.directory / "prometheus.yml").read_text())
    assert "carillon_sockets" in requests.get(f"http://{target}/metrics", timeout=PATIENCE).text


def test_service_managers(page, shell):
    """Starts the server as systemd does: the command and the sockets of the units, and the socket for its states."""
    managers = page("docs/service-managers.md")
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(managers.take("# /etc/systemd/system/carillon.service").code)
    service = unit["Service"]
    assert (service["Type"], service["StateDirectory"]) == ("notify", "carillon")
    port = free_port()
    command = filled(service["ExecStart"], {
        "/usr/local/bin/carillon": shell.executable, "/var/lib/carillon": shell.directory / "data",
        "127.0.0.1:8080": f"127.0.0.1:{port}"})  # fmt: skip
    socket_unit = managers.take("# /etc/systemd/system/carillon.socket").code
    tcp, path = re.findall(r"^ListenStream=(.*)$", socket_unit, re.M)
    assert (tcp, path) == ("127.0.0.1:8080", "/run/carillon/socket")
    block = managers.take("HEALTHCHECK CMD")
    check = shlex.join(json.loads(block.code.removeprefix("HEALTHCHECK CMD ")))
    variables = {"NOTIFY_SOCKET": f"{shell.directory}/notify", "WATCHDOG_USEC": f"{int(service['WatchdogSec'])}000000"}

    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_DGRAM) as states:
        states.bind(variables["NOTIFY_SOCKET"])
        states.settimeout(LIMIT)
        server = shell.start(command, **variables)
        await_state(states, "READY=1")
        shell.run(filled(check, {"127.0.0.1:8080": f"127.0.0.1:{port}"}))
        server.process.send_signal(signal.SIGTERM)
        await_state(states, "STOPPING=1")
        assert server.process.wait(int(service["TimeoutStopSec"])) == 0

    unix = f"{shell.directory}/socket"
    with sockets.socket(sockets.AF_UNIX) as listener:
        listener.bind(unix)
        listener.listen()
        server = subprocess.Popen(
            ["python3", "-c", PASS, str(listener.fileno()), *shlex.split(command)], pass_fds=[listener.fileno()],
            env=shell.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            shell.run(f"carillon health --server unix:{unix}")
        finally:
            server.terminate()
            assert server.wait(LIMIT) == 0


def await_state(states, name: str):
    while name not in states.recv(1024).decode().splitlines():
        pass


def test_credentials_for_pushes(page, shell):
    serve, credentials = page("docs/pushes.md").take("carillon serve").commands
    url = f"http://127.0.0.1:{free_port()}"
    shell.run(f"carillon apps create {APP} --data DIR --init --key-file carillon.key")
    made = shell.run("carillon keys create --role admin --data DIR --key-file carillon.key --json")
    shell.serve(filled(serve, {"…": f"--listen {url[7:]}"}), url)
    key = ec.generate_private_key(ec.SECP256R1())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    shell.file("AuthKey_ABC1234567.p8", key.private_bytes(*form))
    admin = json.loads(made)["secret"]
    shell.run(re.sub(r"--server URL --key ADMIN$", f"--server {url} --key {admin}", credentials))
    shown = requests.get(
        f"{url}/v1/apps/{APP}/credentials", headers={"Authorization": f"Bearer {admin}"}, timeout=PATIENCE).json()
    assert [(it["keyID"], it["teamID"]) for it in shown["credentials"]] == [("ABC1234567", "DEF1234567")]


def test_pushes_from_the_command_line(page, shell, simulator):
    block = page("docs/command-line.md").take("carillon apns check")
    simulator.add_device("00ff00ff")
    shell.file("tokens.txt", "00ff00ff\n")
    own = {"AuthKey_ABC1234567.p8": f"{simulator.data}/AuthKey_{simulator.key_id}.p8", "DEF1234567": simulator.team}
    # The simulator is in place of Apple's service.
    place = f" --endpoint https://localhost:{simulator.ports['push']} --ca {simulator.data}/authority.pem"
    for command in block.commands:
        shell.run(filled(command, own) + place)
    (shown,) = simulator.api("GET", "devices/00ff00ff")["shown"]
    assert (shown["title"], shown["body"]) == ("Kettle", "The water boils.")


def test_a_refusal_is_the_problem_that_the_page_shows(page, channel):
    shown = example(page("docs/errors.md").take('{"type"').code)
    answer = channel.post(b"x", ttl=None)
    real = assert_problem(answer, 400, "ttl_missing")
    assert_like(shown, real)
    detail, cut = shown.pop("detail").split(" …")
    assert cut == "" and real["detail"].startswith(detail)
    assert {name: real[name] for name in shown} == shown
