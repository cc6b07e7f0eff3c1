"""The server behind Caddy 2.6.2 and behind HAProxy 2.6, with the exact snippets of docs/connecting.md."""

import json
import os
import re
import shutil
import ssl
import subprocess
import threading

import pytest
import requests

from carillon_peer import PATIENCE, Server, await_value, body_of, free_port
from test_metrics import read
from test_proxy import PAGE, browser, is_up, make_certificate, replaced

PROXIES = {
    "caddy": shutil.which("caddy"),
    "haproxy": shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin"),
}


def snippet(name: str) -> str:
    (found,) = re.findall(rf"```{name}\n(.*?)```", PAGE.read_text(), re.S)
    return found


def caddy(directory, server_port: int, port: int, chain, secret) -> list:
    site = f"https://localhost:{port} {{\n    bind 127.0.0.1\n    tls {chain} {secret}"
    text = replaced(snippet("caddy"), "push.example.com {", site)
    text = replaced(text, "127.0.0.1:8080", f"127.0.0.1:{server_port}")
    file = directory / "Caddyfile"
    options = "{\n    admin off\n    auto_https disable_redirects\n    skip_install_trust\n    grace_period 1s\n}\n"
    file.write_text(options + text)
    return [PROXIES["caddy"], "run", "--config", file, "--adapter", "caddyfile"]


def haproxy(directory, server_port: int, port: int, chain, secret) -> list:
    both = directory / "both.pem"
    both.write_bytes(chain.read_bytes() + secret.read_bytes())
    text = replaced(snippet("haproxy"), ":443 ssl crt /etc/ssl/push.example.com.pem", f"127.0.0.1:{port} ssl crt {both}")
    text = replaced(text, "127.0.0.1:8080", f"127.0.0.1:{server_port}")
    file = directory / "haproxy.cfg"
    file.write_text(text)
    return [PROXIES["haproxy"], "-db", "-f", file]


@pytest.fixture(scope="module", params=[caddy, haproxy], ids=["caddy", "haproxy"])
def proxied(request, executable, tmp_path_factory):
    """A server of which all is reached through the proxy."""
    name = request.param.__name__
    if PROXIES[name] is None:
        pytest.skip(f"{name} is missing; `Scripts/setup tests` installs it")
    directory = tmp_path_factory.mktemp(name)
    chain, secret = make_certificate(directory)
    metrics = free_port()
    server = Server(
        executable, directory, {"CARILLON_CLIENT_ADDRESS_HEADER": "X-Forwarded-For", "CARILLON_METRICS_LISTEN": metrics})
    server.metrics = f"http://127.0.0.1:{metrics}/metrics"
    port = free_port()
    address = f"https://localhost:{port}"
    server.public_url = address
    server.prepare()
    server.start()
    command = request.param(directory, server.port, port, chain, secret)
    folders = {"HOME": str(directory), "XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
    said = directory / "proxy.log"
    with said.open("wb") as log:
        proxy = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | folders)
    os.environ["REQUESTS_CA_BUNDLE"] = str(chain)
    server.url = address
    server.tls = ssl.create_default_context(cafile=str(chain))
    try:
        await_value(lambda: is_up(proxy, address, said), bool, f"{name} answers")
        yield server
    finally:
        del os.environ["REQUESTS_CA_BUNDLE"]
        proxy.terminate()
        proxy.wait(PATIENCE)
        server.end()


def test_a_push_reaches_a_socket_through_a_proxy(proxied):
    with browser(proxied) as socket:
        channel = socket.register()
        assert channel.endpoint.startswith(proxied.url + "/push/")
        sent = channel.send(b"through")
        frame = socket.notification()
        assert body_of(frame) == b"through"
        socket.ack(frame)
        assert sent.final()["outcome"] == "acknowledged"


def test_events_leave_a_proxy_at_once(proxied):
    device = proxied.register_device()
    channel = device.open_channel()
    headers = {"Authorization": f"Bearer {device.credential}", "Accept": "text/event-stream"}
    with requests.get(proxied.url + "/v1/inbox", headers=headers, stream=True, timeout=PATIENCE) as stream:
        lines = stream.iter_lines()
        assert next(line for line in lines if line.startswith(b"event:")) == b"event: caughtUp"
        for number in range(3):
            body = f"event {number}".encode()
            channel.send(body)
            data = next(line for line in lines if line.startswith(b"data:") and b"notification" in line)
            assert body_of(json.loads(data[5:])) == body


def test_a_long_poll_is_answered_through_a_proxy_when_something_comes(proxied):
    device = proxied.register_device()
    channel = device.open_channel()
    sending = threading.Timer(0.5, lambda: channel.send(b"late"))
    sending.start()
    # The request ends before the poll would.
    answer = device.request("GET", "/v1/inbox?wait=300", timeout=PATIENCE * 2)
    (frame,) = answer.json()["envelopes"]
    assert body_of(frame) == b"late"


def test_the_server_reads_the_client_address_that_a_proxy_sends(proxied):
    assert proxied.request("GET", "/v1/server", headers={"X-Forwarded-For": "garbage"}).status_code == 200
    name = "carillon_client_address_invalid_total"
    assert read(proxied).get(name, 0) == 0
    assert "cannot read the client address" not in proxied.log.read_text()
    # Without a proxy the server reads the field of the client.
    address = f"http://127.0.0.1:{proxied.port}/v1/server"
    assert requests.get(address, headers={"X-Forwarded-For": "garbage"}, timeout=PATIENCE).status_code == 200
    assert read(proxied)[name] == 1


def test_caddy_closes_idle_connections_before_the_server_does():
    (seconds,) = re.findall(r"keepalive (\d+)s", snippet("caddy"))
    assert int(seconds) < 75


def test_haproxy_checks_the_server_with_options_by_default(proxied):
    """`option httpchk` alone sends `OPTIONS /`; the snippet asks for readiness."""
    assert requests.options(f"http://127.0.0.1:{proxied.port}/", timeout=PATIENCE).status_code == 204
    assert "option httpchk GET /health/ready" in snippet("haproxy")
