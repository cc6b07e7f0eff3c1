"""Messages that the server carries and cannot read: the client's own keys against the libraries of PyPI.

The app is `carillon listen --encrypted`, the backend pywebpush; and the other way round, the backend is
`carillon send --encrypt-for`, and the app reads with http_ece and keys of its own.
"""

import base64
import json
import os
import queue
import signal
import subprocess
import threading

import http_ece
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from carillon_peer import APP, PATIENCE, decode64
from encryption_peer import Sender, Subscriber

ENCODINGS = ["aes128gcm", "aesgcm"]
TEXTS = [b"hello", "Grüße \U0001f514".encode(), bytes(range(256)), b"x" * 3993]


class Listener:
    """`carillon listen --encrypted --json` as a process."""

    def __init__(self, server, directory):
        self.state = directory / "state"
        self.server = server
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.server.executable, "listen", "--server", self.server.url, "--key", self.server.client_key, "--app", APP]
            + ["--channel", "com.example.secret", "--state", self.state, "--json", "--encrypted"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines = queue.Queue()
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()

    def _read(self, output):
        for line in output:
            self.lines.put(json.loads(line))

    def next(self, event: str) -> dict:
        while True:
            line = self.lines.get(timeout=PATIENCE)
            if line["event"] == event:
                return line

    def message(self) -> bytes:
        line = self.next("message")
        return line["body"].encode() if "body" in line else decode64(line["bodyBase64"])

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE) == 130
        return self.process.stderr.read()


@pytest.fixture
def listener(server, tmp_path):
    listener = Listener(server, tmp_path)
    listener.subscription = listener.next("opened")["subscription"]
    yield listener
    if listener.process.poll() is None:
        listener.process.kill()
        listener.process.wait()


def outcome(server, location) -> tuple:
    final = server.await_outcome(location)
    return final["outcome"], final.get("code")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_app_reads_messages_that_pywebpush_encrypts(listener, server, encoding):
    for text in TEXTS:
        answer = Sender().webpush(listener.subscription, text, content_encoding=encoding, ttl=60)
        assert answer.status_code == 201, answer.text
        assert listener.message() == text
        assert outcome(server, answer.headers["Location"])[0] == "acknowledged"


def test_a_message_in_several_records_is_read_whole(listener, server):
    key = ec.generate_private_key(ec.SECP256R1())
    text = os.urandom(5000)
    body = http_ece.encrypt(
        text,
        private_key=key,
        dh=decode64(listener.subscription["keys"]["p256dh"]),
        auth_secret=decode64(listener.subscription["keys"]["auth"]),
        version="aes128gcm",
        rs=1024,
    )
    headers = {"TTL": "60", "Content-Encoding": "aes128gcm"}
    assert server.request("POST", listener.subscription["endpoint"], data=body, headers=headers).status_code == 201
    assert listener.message() == text


def test_the_keys_and_the_endpoint_are_the_same_after_a_restart(listener, server):
    listener.stop()
    answer = Sender().webpush(listener.subscription, b"while away", ttl=60)
    listener.start()
    assert listener.next("opened")["subscription"] == listener.subscription
    assert listener.message() == b"while away"
    assert outcome(server, answer.headers["Location"])[0] == "acknowledged"


def bad_bodies(subscription) -> dict:
    other = {**subscription, "keys": Subscriber().subscription_keys()}

    def encrypted(keys, text=b"secret", **options):
        return http_ece.encrypt(
            text,
            private_key=ec.generate_private_key(ec.SECP256R1()),
            dh=decode64(keys["p256dh"]),
            auth_secret=decode64(keys["auth"]),
            version="aes128gcm",
            **options,
        )

    good = encrypted(subscription["keys"])
    return {
        "for another key": encrypted(other["keys"]),
        "cut": good[:-1],
        "cut in the header": good[:50],
        "one byte": good[:1],
        "changed": good[:-1] + bytes([good[-1] ^ 1]),
        "noise": os.urandom(200),
    }


def test_a_message_that_cannot_be_decrypted_is_reported_with_101_and_delays_nothing(listener, server):
    for name, body in bad_bodies(listener.subscription).items():
        headers = {"TTL": "60", "Content-Encoding": "aes128gcm"}
        answer = server.request("POST", listener.subscription["endpoint"], data=body, headers=headers)
        assert answer.status_code == 201, name
        assert outcome(server, answer.headers["Location"]) == ("failed", 101), name
    plain = server.request(
        "POST", listener.subscription["endpoint"], data=b"plain", headers={"TTL": "60", "Content-Encoding": "identity"}
    )
    assert outcome(server, plain.headers["Location"]) == ("failed", 101)
    Sender().webpush(listener.subscription, b"good", ttl=60)
    assert listener.message() == b"good"
    log = listener.stop()
    assert log.count("could not be decrypted") == 7
    token = listener.subscription["endpoint"].rsplit("/", 1)[1]
    assert not any(secret in log for secret in [token, *listener.subscription["keys"].values(), "plain"])


def test_an_empty_message_needs_no_key(listener, server):
    answer = server.request("POST", listener.subscription["endpoint"], headers={"TTL": "60"})
    assert listener.message() == b""
    assert outcome(server, answer.headers["Location"])[0] == "acknowledged"


def test_the_server_has_neither_key_nor_text(listener, server):
    Sender().webpush(listener.subscription, b"nobody else reads this", ttl=60)
    assert listener.message() == b"nobody else reads this"
    secrets = [b"nobody else reads this"] + [decode64(key) for key in listener.subscription["keys"].values()]
    secrets += [key.encode() for key in listener.subscription["keys"].values()]
    for file in [*(path for path in server.data.rglob("*") if path.is_file()), server.log]:
        content = file.read_bytes()
        assert not any(secret in content for secret in secrets), file


# The other way round


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("text", ["hello", "Grüße \U0001f514", "x" * 3993, ""])
def test_http_ece_reads_messages_that_carillon_encrypts(server, device, channel, tmp_path, encoding, text):
    subscriber = Subscriber()
    file = tmp_path / "subscription.json"
    file.write_text(json.dumps(subscriber.subscription(channel)))
    content = tmp_path / "content"
    content.write_bytes(text.encode())
    with device.connect() as socket:
        socket.caught_up()
        done = subprocess.run(
            [server.executable, "send", "--encrypt-for", file, "--encoding", encoding, "--file", content, "--json"],
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["event"] == "accepted"
        notification = socket.notification()
    assert notification["headers"]["encoding"] == encoding
    assert text == "" or text.encode() not in base64.urlsafe_b64decode(notification["data"] + "==")
    assert subscriber.read(notification) == text.encode()


@pytest.mark.parametrize(
    "content",
    ["", "no JSON", "{}", '{"endpoint":"http://127.0.0.1/push/x","keys":{"p256dh":"AAAA","auth":"AAAA"}}'],
    ids=["empty", "no JSON", "no keys", "bad keys"],
)
def test_a_file_that_is_no_subscription_is_a_clear_error(server, tmp_path, content):
    file = tmp_path / "subscription.json"
    file.write_text(content)
    done = subprocess.run(
        [server.executable, "send", "--encrypt-for", file, "hello"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 66, done.stderr
    assert "subscription" in done.stderr
