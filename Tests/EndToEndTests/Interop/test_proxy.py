"""The server behind nginx, with the exact snippet of docs/connecting.md, TLS included."""

import datetime
import ipaddress
import json
import os
import re
import shutil
import ssl
import subprocess
import threading
from pathlib import Path

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.exceptions import InvalidStatus

from carillon_peer import APP, PATIENCE, Server, assert_problem, await_value, body_of, free_port
from encryption_peer import Sender

PAGE = Path(__file__).parents[3] / "docs" / "connecting.md"

NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is missing; `Scripts/setup tests` installs it")


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """For localhost, signed with its own key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain, secret = directory / "localhost.pem", directory / "localhost.key"
    chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return chain, secret


def snippet() -> str:
    (found,) = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(), re.S)
    return found


def replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"the page's snippet lacks {old!r}"
    return text.replace(old, new)


def configuration(directory: Path, server_port: int, port: int, chain: Path, secret: Path) -> str:
    text = replaced(snippet(), "/etc/ssl/push.example.com.pem", str(chain))
    text = replaced(text, "/etc/ssl/push.example.com.key", str(secret))
    text = replaced(text, "push.example.com", "localhost")
    text = replaced(text, "127.0.0.1:8080", f"127.0.0.1:{server_port}")
    text = replaced(text, "listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    user = "user root;" if os.geteuid() == 0 else ""
    folders = "".join(
        f"{kind}_temp_path {directory}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""{user}
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log stderr;
events {{ worker_connections 256; }}
http {{
access_log off;
{folders}
{text}
}}
"""


@pytest.fixture(scope="module")
def proxied(executable, tmp_path_factory):
    """A server of which all is reached through nginx."""
    directory = tmp_path_factory.mktemp("proxy")
    chain, secret = make_certificate(directory)
    server = Server(executable, directory, {"CARILLON_ALLOWED_ORIGINS": "https://app.example.com"})
    port = free_port()
    address = f"https://localhost:{port}"
    server.public_url = address
    server.prepare()
    server.start()
    file = directory / "nginx.conf"
    file.write_text(configuration(directory, server.port, port, chain, secret))
    with (directory / "nginx.log").open("wb") as log:
        nginx = subprocess.Popen([NGINX, "-p", directory, "-c", file], stdout=log, stderr=log)
    os.environ["REQUESTS_CA_BUNDLE"] = str(chain)
    server.url = address
    server.tls = ssl.create_default_context(cafile=str(chain))
    server.authority = chain
    try:
        await_value(lambda: is_up(nginx, address, directory / "nginx.log"), bool, "nginx answers")
        yield server
    finally:
        del os.environ["REQUESTS_CA_BUNDLE"]
        nginx.terminate()
        nginx.wait(PATIENCE)
        server.end()


def is_up(proxy, address: str, log: Path) -> bool:
    assert proxy.poll() is None, log.read_text()
    try:
        return requests.get(address + "/health/ready", timeout=PATIENCE).status_code == 200
    except requests.ConnectionError:
        return False


def browser(server, **options):
    socket = server.connect(ssl=server.tls, **options)
    socket.hello()
    return socket


def test_a_browser_gets_its_push_through_the_proxy(proxied):
    with browser(proxied, origin=proxied.url.replace("https", "wss") + "/") as socket:
        channel = socket.register()
        assert channel.endpoint.startswith(proxied.url + "/push/")
        sent = channel.send(b"through")
        assert sent.location.startswith(proxied.url + "/message/")
        frame = socket.notification()
        assert body_of(frame) == b"through"
        socket.ack(frame)
        assert sent.final()["outcome"] == "acknowledged"
        assert socket.before_pong() == []


def test_a_page_of_another_origin_gets_no_socket_through_the_proxy(proxied):
    with pytest.raises(InvalidStatus) as refused:
        browser(proxied, origin="https://evil.example")
    assert refused.value.response.status_code == 403
    browser(proxied, origin="https://app.example.com").close()


def test_events_leave_the_proxy_at_once(proxied):
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


def test_a_long_poll_is_answered_through_the_proxy_when_something_comes(proxied):
    device = proxied.register_device()
    channel = device.open_channel()
    sending = threading.Timer(0.5, lambda: channel.send(b"late"))
    sending.start()
    # The request ends before the poll would.
    answer = device.request("GET", "/v1/inbox?wait=300", timeout=PATIENCE * 2)
    (frame,) = answer.json()["envelopes"]
    assert body_of(frame) == b"late"


def test_a_vapid_token_names_the_public_address(proxied):
    sender = Sender()
    channel = proxied.register_device().open_channel(key=sender.key)
    headers = sender.headers({"aud": proxied.url, "sub": "mailto:ops@example.com"})
    assert channel.post(b"x", headers=headers).status_code == 201
    local = sender.headers({"aud": f"http://127.0.0.1:{proxied.port}", "sub": "mailto:ops@example.com"})
    assert_problem(channel.post(b"x", headers=local), 403, "vapid_invalid")


def test_it_is_the_server_that_refuses_a_large_body(proxied):
    channel = proxied.register_device().open_channel()
    assert_problem(channel.post(bytes(8193)), 413, "body_too_large")
    assert_problem(proxied.request("POST", "/v1/devices", key=proxied.client_key, data=b" " * 70_000), 413)


def test_commands_trust_the_authority_that_is_named(proxied, executable, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CARILLON_")}

    def run(*arguments, **variables):
        return subprocess.run(
            [executable, *arguments, "--server", proxied.url],
            capture_output=True, text=True, timeout=PATIENCE * 3, env=environment | variables,
        )

    untrusted = run("health")
    assert untrusted.returncode == 1
    assert "the certificate is not trusted, or not valid now. If its authority is your own" in untrusted.stderr
    assert not re.search(r"NIO|SSL|Error\(|errno|\.cc", untrusted.stderr), untrusted.stderr
    assert run("health", "--ca", proxied.authority).returncode == 0
    assert run("health", CARILLON_CA=str(proxied.authority)).returncode == 0
    listed = run("apps", "list", "--key", proxied.admin_key, "--ca", proxied.authority)
    assert listed.returncode == 0, listed.stderr
    listening = subprocess.Popen(
        [executable, "listen", "--server", proxied.url, "--key", proxied.client_key, "--app", APP, "--channel", "c",
         "--state", tmp_path / "app", "--ca", proxied.authority],
        stdout=subprocess.PIPE, text=True, env=environment,
    )
    try:
        assert listening.stdout.readline().startswith("opened  " + proxied.url)
    finally:
        listening.kill()
        listening.wait(PATIENCE)


def test_the_proxy_is_more_patient_than_the_longest_poll_and_lets_go_first():
    """Longer than `wait` may be, and shorter than the server keeps an idle connection: too long to be waited for here."""
    seconds = {name: int(number) for name, number in re.findall(r"(\w+_timeout) (\d+)s;", snippet())}
    assert seconds["proxy_read_timeout"] > 300
    assert seconds["proxy_send_timeout"] >= 30
    assert seconds["keepalive_timeout"] < 75
