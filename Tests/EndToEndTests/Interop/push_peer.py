"""`carillon apns` as a person uses it: its output, and its exit code."""

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apns_peer import TOPIC, Simulator

LIMIT = 180  # seconds that one command may take on a busy machine


@dataclass
class Ended:
    status: int
    out: str
    err: str

    @property
    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def results(self) -> list[dict]:
        return [event for event in self.events if event["event"] == "result"]

    @property
    def summary(self) -> dict:
        last = self.events[-1]
        assert last["event"] == "summary"
        return last


class Person:
    """Somebody with the simulator's key, at a command line."""

    def __init__(self, executable: Path, simulator: Simulator, directory: Path):
        self.executable = executable
        self.simulator = simulator
        self.directory = directory
        self.key = [f"--key={simulator.data}/AuthKey_{simulator.key_id}.p8", f"--team-id={simulator.team}"]
        self.endpoint = [f"--endpoint=https://localhost:{simulator.ports['push']}", f"--ca={simulator.data}/authority.pem"]
        self.manage = [f"--manage=https://localhost:{simulator.ports['management']}"]
        self.topic = [f"--topic={TOPIC}"]

    def run(self, *arguments, stdin: str | bytes | None = None, environment: dict | None = None) -> Ended:
        given = stdin.encode() if isinstance(stdin, str) else stdin or b""
        ended = subprocess.run(
            [self.executable, "apns", *map(str, arguments)],
            input=given,
            capture_output=True,
            timeout=LIMIT,
            env={**os.environ, **(environment or {})},
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def begin(self, *arguments, **options) -> subprocess.Popen:
        """A command that is not awaited; it takes Ctrl-C even where this process ignores it."""
        return subprocess.Popen(
            [self.executable, "apns", *map(str, arguments)],
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            **options,
        )

    def access(self) -> list[str]:
        return [*self.key, *self.topic, *self.endpoint]

    def send(self, *arguments, **options) -> Ended:
        return self.run("send", *self.access(), *arguments, **options)

    def check(self, *arguments, **options) -> Ended:
        return self.run("check", *self.access(), *arguments, **options)

    def channels(self, work: str, *arguments) -> Ended:
        return self.run("channels", work, *arguments, *self.access(), *self.manage)

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.directory / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(0o600)
        return path


def make_certificate(key_file: Path, file: Path, first: int, last: int):
    """A certificate without an authority, valid from and until these numbers of days from now."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(timezone.utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "push")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = (
        builder.not_valid_before(now + timedelta(days=first)).not_valid_after(now + timedelta(days=last, hours=1))
    ).sign(key, hashes.SHA256())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    key_file.write_bytes(key.private_bytes(*form))
    key_file.chmod(0o600)
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
