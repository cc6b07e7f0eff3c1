"""Peers that misuse a connection: they flood, do not read, leave in the middle, or send many requests at once."""

import contextlib
import json
import os
import resource
import signal
import socket as sockets
import subprocess
import time
from pathlib import Path

import pytest
import requests

from carillon_peer import ENVIRONMENT, PATIENCE, Server, await_value, free_port, in_parallel

HOST = "Host: 127.0.0.1\r\n"


def connect(server, receive_buffer: int | None = None) -> sockets.socket:
    peer = sockets.socket()
    if receive_buffer:
        peer.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, receive_buffer)
        peer.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_MAXSEG, 536)
    peer.connect(("127.0.0.1", server.port))
    peer.settimeout(PATIENCE * 2)
    return peer


def read_all(peer) -> bytes:
    data = b""
    while chunk := peer.recv(65536):
        data += chunk
    return data


def resident_mib(server) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def flood(peer, data: bytes, mebibytes: int):
    """Sends as much as is taken within two seconds."""
    peer.settimeout(0.5)
    end = time.monotonic() + 2
    try:
        for _ in range(mebibytes * (1 << 20) // len(data)):
            peer.sendall(data)
            if time.monotonic() > end:
                return
    except OSError:
        return


@pytest.mark.parametrize(
    "head",
    [
        "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        f"GET /health/live HTTP/1.1\r\n{HOST}Connection: upgrade\r\nUpgrade: x\r\n\r\n",
    ],
    ids=["CONNECT", "upgrade"],
)
def test_nothing_is_hoarded_behind_a_request_that_leaves_http(make_server, head):
    server = make_server()
    before = resident_mib(server)
    with connect(server) as peer:
        peer.sendall(head.encode())
        flood(peer, b"x" * 65536, 200)
        assert resident_mib(server) - before < 40


def test_answers_do_not_pile_up_for_a_peer_that_never_reads(make_server):
    server = make_server()
    before = resident_mib(server)
    request = f"GET /health/live HTTP/1.1\r\n{HOST}\r\n".encode()
    with connect(server) as peer:
        flood(peer, request * 1000, 200)
        time.sleep(1)
        assert resident_mib(server) - before < 40


def test_every_request_that_came_before_the_end_of_the_input_is_answered(device, channel, server):
    path = channel.endpoint.split(str(server.port), 1)[1]
    count = 200
    with connect(server) as peer:
        for number in range(count):
            body = f"message {number}"
            peer.sendall(
                f"POST {path} HTTP/1.1\r\n{HOST}TTL: 60\r\nContent-Encoding: identity\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
        peer.shutdown(sockets.SHUT_WR)
        answers = read_all(peer)
    assert answers.count(b"HTTP/1.1 201") == count
    assert len(device.inbox(max=500)["envelopes"]) == count


@pytest.mark.parametrize("path", ["/nothing", "/v1/devices", "/health/live", "/v1/device"])
def test_an_answer_to_head_has_no_body(server, path):
    with connect(server) as peer:
        peer.sendall(f"HEAD {path} HTTP/1.1\r\n{HOST}\r\n".encode())
        peer.shutdown(sockets.SHUT_WR)
        head, _, body = read_all(peer).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 ")
    assert body == b""


def test_a_handshake_behind_another_request_is_heard(server):
    handshake = (
        f"GET / HTTP/1.1\r\n{HOST}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    hello = b'{"messageType":"hello","use_webpush":true}'
    with connect(server) as peer:
        peer.sendall((f"GET /health/ready HTTP/1.1\r\n{HOST}\r\n" + handshake).encode())
        time.sleep(0.5)
        peer.sendall(bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello)
        data = b""
        while b'"uaid"' not in data:
            chunk = peer.recv(65536)
            assert chunk, data
            data += chunk
    assert b"HTTP/1.1 200" in data and b"HTTP/1.1 101" in data


def test_a_request_without_a_host_is_refused(server):
    with connect(server) as peer:
        peer.sendall(b"GET /health/live HTTP/1.1\r\n\r\n")
        assert read_all(peer).startswith(b"HTTP/1.1 400")


def fill(channel, count: int):
    for _ in range(count):
        channel.send(os.urandom(8192), ttl=600)


def stream_head(device) -> bytes:
    return (
        f"GET /v1/inbox HTTP/1.1\r\n{HOST}Accept: text/event-stream\r\nAuthorization: Bearer {device.credential}\r\n\r\n"
    ).encode()


def test_a_stream_without_a_reader_does_not_delay_the_stop(make_server):
    server = make_server(CARILLON_STOP_SECONDS=300)
    device = server.register_device()
    fill(device.open_channel(), 64)
    with connect(server, receive_buffer=2304) as peer:
        peer.sendall(stream_head(device))
        time.sleep(1)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE * 2) == 0


def test_a_peer_that_reads_slowly_gets_everything(make_server):
    """For longer than a peer may take nothing: it takes something all the time. The server sees only how its own buffer
    empties, which the system lets happen by the third."""
    server = make_server(CARILLON_STALL_SECONDS=10)
    device = server.register_device()
    fill(device.open_channel(), 350)
    with connect(server, receive_buffer=4096) as peer:
        peer.sendall(
            (
                f"GET /v1/inbox?max=350 HTTP/1.1\r\n{HOST}Connection: close\r\nAuthorization: Bearer {device.credential}\r\n\r\n"
            ).encode()
        )
        data = b""
        end = time.monotonic() + 15
        while chunk := peer.recv(65536):
            data += chunk
            if time.monotonic() < end:
                time.sleep(0.1)
    head, _, rest = data.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.lower()
    body, size = b"", 1
    while size:
        line, _, rest = rest.partition(b"\r\n")
        size = int(line, 16)
        body, rest = body + rest[:size], rest[size + 2:]
    assert len(json.loads(body)["envelopes"]) == 350


def test_a_poll_of_a_peer_that_left_ends(device, server):
    with connect(server) as peer:
        peer.sendall(
            f"GET /v1/inbox?wait=300 HTTP/1.1\r\n{HOST}Authorization: Bearer {device.credential}\r\n\r\n".encode()
        )
        time.sleep(0.3)
        peer.shutdown(sockets.SHUT_WR)
        # The socket waits for a minute, and the poll has five.
        assert read_all(peer).startswith(b"HTTP/1.1 200")


def test_a_cancelled_message_is_not_sent_to_a_stream_that_was_not_read_yet(make_server):
    server = make_server()
    device = server.register_device()
    channel = device.open_channel()
    with connect(server, receive_buffer=2304) as peer:
        peer.sendall(stream_head(device))
        time.sleep(0.5)
        sent = [channel.send(os.urandom(8192), ttl=600) for _ in range(20)]
        time.sleep(0.5)
        last = sent[-1]
        assert server.request("DELETE", last.location).status_code == 204
        data = b""
        try:
            while chunk := peer.recv(65536):
                data += chunk
                # All expected data has arrived; the rest of the time is for data that must not arrive.
                if sent[-2].id.encode() in data:
                    peer.settimeout(3)
        except TimeoutError:
            pass
    assert sent[0].id.encode() in data
    assert last.id.encode() not in data


def test_one_more_connection_than_allowed_gets_an_error(make_server):
    server = make_server(CARILLON_MAX_CONNECTIONS=3)
    await_value(lambda: server.is_ready(), bool, "ready")
    peers = [connect(server) for _ in range(3)]
    request = f"GET /health/live HTTP/1.1\r\n{HOST}\r\n".encode()
    for peer in peers:
        peer.sendall(request)
        assert peer.recv(65536).startswith(b"HTTP/1.1 200")
    with connect(server) as peer:
        assert read_all(peer).startswith(b"HTTP/1.1 503")
    for peer in peers:
        peer.close()


def cpu_seconds(server) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# The last files, which no connection gets (FileReserve).
RESERVE = 32


def leave_files(server, connections: int):
    limit = len(os.listdir(f"/proc/{server.process.pid}/fd")) + connections + RESERVE
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, limit))


def test_out_of_files_the_listener_waits_instead_of_spinning_and_comes_back(make_server):
    server = make_server()
    channel = server.register_device().open_channel()
    leave_files(server, 5)
    peers = [connect(server) for _ in range(30)]
    await_value(lambda: "cannot accept connections" in server.log.read_text(), bool, "the listener waits")
    before = cpu_seconds(server)
    time.sleep(2)
    # A listener that spins takes all of the two seconds.
    assert cpu_seconds(server) - before < 1
    for peer in peers:
        peer.close()
    channel.send(b"still here")


def test_without_free_files_connected_clients_still_work(make_server):
    """Also code that opens files itself: libdispatch ends the process if it cannot read its own threads."""
    server = make_server()
    channel = server.register_device().open_channel()
    sessions = [requests.Session() for _ in range(4)]

    def send(session) -> int:
        headers = {"TTL": "60", "Content-Encoding": "aes128gcm"}
        return session.post(channel.endpoint, data=b"x", headers=headers, timeout=PATIENCE).status_code

    assert in_parallel([lambda session=session: send(session) for session in sessions]) == [201] * 4
    leave_files(server, 5)
    peers = [connect(server) for _ in range(30)]
    end = time.monotonic() + 5

    def work(session) -> set[int]:
        answers = set()
        # On a busy machine, until each session was answered.
        while time.monotonic() < end or (201 not in answers and time.monotonic() < end + PATIENCE):
            answers.add(send(session))
        return answers

    answers = in_parallel([lambda session=session: work(session) for session in sessions])
    assert all(201 in each and each <= {201, 429} for each in answers), answers
    for peer in [*peers, *sessions]:
        peer.close()
    channel.send(b"still here")


def test_the_files_that_waiting_needs_are_open_before_the_first_connection(make_server):
    server = make_server()
    # The system may take a moment to open the requested files. Each loop has a queue of events and a timer; Dispatch has
    # a queue and a timer for each of three clocks.
    await_value(
        lambda: open_files(server),
        lambda files: files.count("anon_inode:[timerfd]") == files.count("anon_inode:[eventpoll]") + 2,
        "the files are open",
    )


def open_files(server) -> list[str]:
    files = []
    for file in os.scandir(f"/proc/{server.process.pid}/fd"):
        # The connection by which it was found ready may be closed meanwhile.
        with contextlib.suppress(FileNotFoundError):
            files.append(os.readlink(file.path))
    return files


def test_more_connections_than_the_system_has_files_for_are_refused_when_the_server_starts(executable, tmp_path):
    server = Server(executable, tmp_path)
    server.prepare()
    for limit, settings, is_good in [
        (1000, {"CARILLON_MAX_SOCKETS": "5000"}, False),
        (1000, {"CARILLON_MAX_CONNECTIONS": "1001"}, False),
        (1000, {"CARILLON_MAX_SOCKETS": "500", "CARILLON_MAX_CONNECTIONS": "500"}, False),
        (1000, {"CARILLON_MAX_SOCKETS": "500", "CARILLON_MAX_CONNECTIONS": "100"}, True),
        (1000, {"CARILLON_MAX_SOCKETS": "500"}, True),
        (1000, {}, True),
    ]:
        arguments = ["serve", "--data", server.data, "--listen", f"127.0.0.1:{free_port()}"]
        process = subprocess.Popen(
            [executable, *arguments],
            env=ENVIRONMENT | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
        )
        if is_good:
            said = ""
            while " serving" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            asked = {"CARILLON_MAX_SOCKETS", "CARILLON_MAX_CONNECTIONS"} <= settings.keys()
            assert ("few open files" in said) == (not asked), said
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        else:
            said, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode == 64, said
            assert str(limit) in said and "max-sockets" in said


@pytest.mark.parametrize("origins", ["app.example.com", "https://app.example.com/path", "https://a.example,nonsense"])
def test_a_list_that_names_no_origins_is_refused_when_the_server_starts(executable, tmp_path, origins):
    listen = f"127.0.0.1:{free_port()}"
    done = subprocess.run(
        [executable, "serve", "--data", tmp_path / "data", "--listen", listen, "--allowed-origins", origins],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 64
    # The argument is not repeated: it can contain a password.
    assert "allowed-origins" in done.stderr and "not an origin" in done.stderr
    assert "/path" not in done.stderr and "nonsense" not in done.stderr
