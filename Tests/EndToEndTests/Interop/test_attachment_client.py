"""`carillon attachments` and the library beneath, through cuts, kills and a proxy."""

import base64
import hashlib
import json
import math
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from carillon_peer import ENVIRONMENT, PATIENCE, await_value, free_port
from cutting_proxy import CuttingProxy
from test_attachments import Uploader, files, rows

CHUNK = 65_536
NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")


def open_sealed(sealed: bytes, manifest: dict) -> bytes:
    """The contents of docs/attachments.md, with another library."""
    assert base64.b64encode(hashlib.sha256(sealed).digest()).decode() == manifest["digest"]
    key = AESGCM(base64.b64decode(manifest["key"]))
    chunks = [sealed[at : at + CHUNK + 16] for at in range(0, len(sealed), CHUNK + 16)]
    padded = b"".join(
        key.decrypt(number.to_bytes(11, "big") + bytes([number == len(chunks) - 1]), chunk, None)
        for number, chunk in enumerate(chunks)
    )
    length = manifest["length"]
    assert len(padded) == padded_length(length) and not any(padded[length:])
    return padded[:length]


def padded_length(length: int) -> int:
    if length < 2:
        return length
    exponent = math.floor(math.log2(length))
    kept = math.floor(math.log2(exponent)) + 1 if exponent else 0
    step = 2 ** max(0, exponent - kept)
    return -(-length // step) * step


class Command:
    def __init__(self, server, tmp_path, url=None):
        self.server, self.directory = server, tmp_path
        self.url = url or server.url
        self.uploader = Uploader(server)

    def start(self, device, *arguments, state="state", url=None, **options):
        environment = ENVIRONMENT | {"CARILLON_KEY": device.credential, "CARILLON_SERVER": url or self.url}
        return subprocess.Popen(
            [self.server.executable, "attachments", *arguments, "--state", state],
            cwd=self.directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def run(self, device, *arguments, code=0, patience=120, **options):
        process = self.start(device, *arguments, **options)
        out, error = process.communicate(timeout=patience)
        assert process.returncode == code, (out, error)
        return out + error

    def put(self, name, *arguments, **options):
        return self.run(self.uploader.device, "put", name, "--for", self.uploader.reader.id, *arguments, **options)

    def get(self, manifest, to, *arguments, **options):
        return self.run(self.uploader.reader, "get", manifest, "--to", to, *arguments, state="other", **options)


@pytest.fixture
def command(server, tmp_path):
    return Command(server, tmp_path)


@pytest.mark.parametrize("length", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 1_000_000])
def test_a_file_is_transferred_and_another_library_opens_the_servers_copy(command, length):
    data = random.Random(length).randbytes(length)
    (command.directory / "file").write_bytes(data)
    command.put("file", "--manifest", "m")
    manifest = json.loads((command.directory / "m").read_text())
    assert (command.directory / "m").stat().st_mode & 0o777 == 0o600
    sealed = command.uploader.get("/v1/attachments/" + manifest["id"]).content
    assert open_sealed(sealed, manifest) == data and manifest["length"] == length
    command.get("m", "copy")
    assert (command.directory / "copy").read_bytes() == data
    assert sorted(path.name for path in command.directory.iterdir()) == ["copy", "file", "m", "other", "state"]
    # The server was notified that it has arrived, and does not keep it.
    assert command.uploader.get("/v1/attachments/" + manifest["id"]).status_code == 404
    for state in ("state", "other"):
        assert [path.name for path in (command.directory / state).iterdir()] == ["lock"]


def test_sentences_and_exit_codes(command):
    (command.directory / "file").write_bytes(b"x")
    (command.directory / "taken").write_bytes(b"mine")
    assert "missing" in command.put("missing", code=66)
    assert "no file" in command.put(".", code=66)
    assert "taken" in command.put("file", "--manifest", "taken", code=74)
    command.run(command.uploader.device, "put", "file", "--for", "nobody", code=65)
    assert [path.name for path in (command.directory / "state").iterdir()] == ["lock"], "it is not tried again"
    command.put("file", "--manifest", "m")
    assert "there already" in command.get("m", "taken", code=74)
    assert (command.directory / "taken").read_bytes() == b"mine"
    assert "is not the manifest of an attachment" in command.get("file", "copy", code=65)
    stranger = command.server.register_device()
    assert "no such attachment" in command.run(stranger, "get", "m", "--to", "copy", code=65, state="third")
    stranger.credential = stranger.credential[:-4] + "AAAA"
    assert "credential_invalid" in command.run(stranger, "get", "m", "--to", "copy", code=77, state="third")
    manifest = json.loads((command.directory / "m").read_text())
    for name, value in (("key", base64.b64encode(bytes(32)).decode()), ("digest", base64.b64encode(bytes(32)).decode()), ("length", 2)):
        (command.directory / "wrong").write_text(json.dumps(manifest | {name: value}))
        assert "not what was sealed" in command.get("wrong", "copy", code=65)
        assert not (command.directory / "copy").exists()
    for bad in ({"id": "../../etc"}, {"key": "AA=="}, {"length": -1}):
        (command.directory / "wrong").write_text(json.dumps(manifest | bad))
        command.get("wrong", "copy", code=65)
    assert sorted(path.name for path in command.directory.iterdir()) == ["file", "m", "other", "state", "taken", "third", "wrong"]
    command.get("m", "copy")
    # Of two processes that use a directory, the second one gets an error.
    waiting = command.start(
        command.uploader.device, "put", "file", "--for", command.uploader.reader.id, url="http://127.0.0.1:1")
    await_value(lambda: len(list((command.directory / "state").iterdir())), lambda it: it == 3, "it is sealed")
    assert "state open" in command.run(command.uploader.device, "resume", code=73)
    waiting.send_signal(signal.SIGINT)
    assert "resume" in waiting.communicate(timeout=PATIENCE)[1] and waiting.returncode == 130


def test_an_added_file_is_moved_and_one_that_changes_meanwhile_is_sealed_once(command):
    path = command.directory / "file"
    path.write_bytes(random.Random(1).randbytes(3_000_000))
    command.put("file", "--manifest", "m", "--move")
    assert not path.exists()
    # The server is away while it is sealed; it changes; the sealed content is sent.
    first = random.Random(2).randbytes(500_000)
    path.write_bytes(first)
    process = command.start(
        command.uploader.device, "put", "file", "--for", command.uploader.reader.id, url="http://127.0.0.1:1")
    state = command.directory / "state"
    await_value(lambda: [p.name for p in state.iterdir() if p.suffix == ".upload"], lambda it: len(it) == 1, "it is sealed")
    path.write_bytes(random.Random(3).randbytes(500_000))
    process.send_signal(signal.SIGKILL)
    process.wait()
    (command.directory / "m2").write_text(command.run(command.uploader.device, "resume"))
    command.get("m2", "copy")
    assert (command.directory / "copy").read_bytes() == first


def test_it_crosses_ten_cuts_and_three_kills_each_way_without_sending_much_again(make_server, tmp_path):
    """CARILLON_ATTACHMENT_MIB=1024 tests it with a gibibyte, and checks the memory of both sides."""
    mib = int(os.environ.get("CARILLON_ATTACHMENT_MIB", "48"))
    command = Command(make_server(), tmp_path)
    length = mib << 20
    path = tmp_path / "file"
    with path.open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(1 << 20))
    choice = random.Random(5)
    proxy = CuttingProxy(command.server.port, [choice.randrange(length) for _ in range(10)])
    memory = {"server": [], "client": []}

    def follow(process, kill_at):
        """Kills the client when so many bytes went through the proxy."""
        while process.poll() is None:
            for name, pid in (("server", command.server.process.pid), ("client", process.pid)):
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                    memory[name].append(int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) >> 10)
                except (OSError, AttributeError):
                    pass
            if kill_at is not None and proxy.moved >= kill_at:
                process.kill()
                process.wait()
                return False
            time.sleep(0.01)
        return process.returncode == 0

    device, reader = command.uploader.device, command.uploader.reader
    process = command.start(device, "put", "file", "--for", reader.id, "--manifest", "m", url=proxy.url)
    done = follow(process, length // 4)
    for kill_at in (length // 2, 3 * length // 4, None):
        if done:
            break
        process = command.start(device, "resume", url=proxy.url)
        done = follow(process, kill_at)
        if done:
            (tmp_path / "m").write_text(process.stdout.read())
    assert done and proxy.cut == 10, (process.stderr.read(), proxy.cut)
    sealed = length + 16 * (length // CHUNK)
    # The data in flight when it was cut or killed: the buffers of two connections on this machine.
    again = proxy.to_server - sealed
    print(f"{mib} MiB up, 10 cuts, 3 kills: {again:,} bytes went again")
    assert again < 13 * (8 << 20)
    proxy.close()

    proxy = CuttingProxy(command.server.port, [choice.randrange(length) for _ in range(10)])
    for kill_at in (length // 4, length // 2, 3 * length // 4, None):
        process = command.start(reader, "get", "m", "--to", "copy", state="other", url=proxy.url)
        if follow(process, kill_at):
            break
    assert process.returncode == 0 and proxy.cut == 10, process.stderr.read()
    with path.open("rb") as one, (tmp_path / "copy").open("rb") as other:
        while piece := one.read(1 << 20):
            assert other.read(1 << 20) == piece
        assert not other.read(1)
    assert files(command.server) == [] and rows(command.server, "counter WHERE name LIKE 'attachment%'") == []
    for name, values in memory.items():
        print(f"{name}: {values[0]} to {max(values)} MiB")
    proxy.close()


@pytest.mark.timeout(3600)
def test_whenever_the_client_is_killed_one_file_arrives_whole(make_server, tmp_path, seed):
    """CARILLON_CLIENT_KILLS=300 kills it that often."""
    command, choice = Command(make_server(), tmp_path), random.Random(seed)
    device, reader = command.uploader.device, command.uploader.reader
    wanted = int(os.environ.get("CARILLON_CLIENT_KILLS", "10"))
    kills = sends = 0

    def run(*arguments, **options):
        """Its output; whether it was killed."""
        nonlocal kills
        process = command.start(*arguments, **options)
        if kills < wanted and choice.random() < 0.8:
            time.sleep(choice.uniform(0, 0.25))
            process.kill()
        out, error = process.communicate(timeout=PATIENCE)
        kills += process.returncode == -signal.SIGKILL
        assert process.returncode in (0, -signal.SIGKILL), error
        return out, process.returncode != 0

    def whole(text):
        try:
            return json.loads(text)
        except ValueError:
            return None

    while kills < wanted:
        data = choice.randbytes(choice.choice([0, 70_000, 3_000_000]))
        (tmp_path / "file").write_bytes(data)
        (tmp_path / "m").unlink(missing_ok=True)
        sends += 1
        run(device, "put", "file", "--for", reader.id, "--manifest", "m")
        said, killed = [], True
        while killed:
            out, killed = run(device, "resume")
            said += filter(None, map(whole, out.splitlines()))
        if (tmp_path / "m").exists() and (manifest := whole((tmp_path / "m").read_text())):
            said.append(manifest)
        # Nothing was begun, or each time the same came of it.
        assert len({manifest["id"] for manifest in said}) == len(rows(command.server, "attachment")) == bool(said)
        assert [path.name for path in (tmp_path / "state").iterdir()] in ([], ["lock"])
        if said:
            (tmp_path / "m").write_text(json.dumps(said[0]))
            while not (tmp_path / "copy").exists():
                run(reader, "get", "m", "--to", "copy", state="other")
            assert (tmp_path / "copy").read_bytes() == data
            (tmp_path / "copy").unlink()
            # It may have been killed before it could notify the server that it has it.
            command.uploader.delete("/v1/attachments/" + said[0]["id"])
        shutil.rmtree(tmp_path / "other", ignore_errors=True)
        assert files(command.server) == [] and rows(command.server, "counter WHERE name LIKE 'attachment%'") == []
    left = {path.name for path in tmp_path.iterdir()} - {"file", "m", "state"}
    assert not [name for name in left if name.startswith(".")], "parts of downloads"
    print(f"{kills} kills of the client, {sends} files")


def test_a_lost_answer_begins_nothing_again(make_server, tmp_path):
    command = Command(make_server(), tmp_path)
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    # The request reaches the server; its answer does not return.
    proxy = CuttingProxy(command.server.port, [1])
    command.put("file", "--manifest", "m", url=proxy.url)
    proxy.close()
    assert proxy.cut == 1 and len(rows(command.server, "attachment")) == 1


@pytest.mark.skipif(NGINX is None, reason="nginx is missing; `Scripts/setup tests` installs it")
def test_behind_nginx_with_104_switched_off(make_server, tmp_path):
    command = Command(make_server(CARILLON_UPLOAD_RESUMPTION="off"), tmp_path)
    port = free_port()
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(f"""
        daemon off; master_process off; pid {tmp_path}/nginx.pid; error_log {tmp_path}/error.log;
        events {{}}
        http {{
            access_log off; client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/proxy;
            fastcgi_temp_path {tmp_path}/f; uwsgi_temp_path {tmp_path}/u; scgi_temp_path {tmp_path}/s;
            server {{
                listen 127.0.0.1:{port};
                client_max_body_size 0; proxy_request_buffering off; proxy_http_version 1.1;
                location / {{ proxy_pass http://127.0.0.1:{command.server.port}; }}
            }}
        }}""")
    nginx = subprocess.Popen([NGINX, "-c", configuration, "-p", tmp_path])
    try:
        await_value(lambda: socket.socket().connect_ex(("127.0.0.1", port)), lambda it: it == 0, "nginx listens")
        data = os.urandom(5_000_000)
        (tmp_path / "file").write_bytes(data)
        url = f"http://127.0.0.1:{port}"
        proxy = CuttingProxy(port, [1_000_000, 3_000_000, 7_000_000])
        command.put("file", "--manifest", "m", url=proxy.url)
        command.get("m", "copy", url=proxy.url)
        assert (tmp_path / "copy").read_bytes() == data and proxy.cut == 3
        proxy.close()
        # By hand, a client that announces its version gets the true answer.
        answer = subprocess.run(
            ["curl", "-si", "-X", "POST", f"{url}/v1/attachments?readers={command.uploader.reader.id}", "--data-binary", "data",
             "-H", f"Authorization: Bearer {command.uploader.device.credential}", "-H", "Upload-Complete: ?1",
             "-H", "Upload-Draft-Interop-Version: 8"], capture_output=True, text=True, timeout=PATIENCE).stdout
        assert answer.startswith("HTTP/1.1 201"), answer
    finally:
        # It has nothing to finish.
        nginx.kill()
        nginx.wait(PATIENCE)


def test_nothing_of_a_file_is_where_the_server_keeps_things(make_server, tmp_path):
    port = free_port()
    command = Command(make_server(CARILLON_METRICS_LISTEN=port, CARILLON_LOG="debug"), tmp_path)
    secret = b"the plain text of the file " * 20_000
    (tmp_path / "secret-name.txt").write_bytes(secret)
    command.put("secret-name.txt", "--manifest", "m")
    manifest = json.loads((tmp_path / "m").read_text())
    metrics = command.server.request("GET", f"http://127.0.0.1:{port}/metrics").text
    command.server.stop()
    places = [path for path in command.server.data.rglob("*") if path.is_file()] + [command.server.log]
    kept = b"".join(path.read_bytes() for path in places) + metrics.encode()
    assert len(kept) > len(secret)
    names = " ".join(str(path) for path in places)
    for needle in (b"plain text", b"secret-name", base64.b64decode(manifest["key"]), manifest["key"].encode(),
                   base64.b64decode(manifest["key"]).hex().encode()):
        assert needle not in kept
    assert "secret" not in names
