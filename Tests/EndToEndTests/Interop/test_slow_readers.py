"""A peer that does not read costs memory that is bounded, however much is sent to it.

`CARILLON_REPLACED=100000` makes the run longer.
"""

import base64
import json
import os
import socket

import pytest
from carillon_peer import PATIENCE, in_parallel
from raw_peer import RawHTTP

REPLACED = int(os.environ.get("CARILLON_REPLACED", "6000"))
SENDERS = 24


def resident_mib(server) -> float:
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def unread_socket(server, device):
    """A socket that sent hello, and reads nothing from then on."""
    link = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    key = base64.b64encode(bytes(16)).decode()
    link.sendall(
        f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: {key}\r\n\r\n".encode()
    )
    hello = json.dumps({"messageType": "hello", "carillon": 1, "credential": device.credential}).encode()
    assert len(hello) < 126
    link.sendall(bytes([0x81, 0x80 | len(hello)]) + bytes(4) + hello)
    return await_caught_up(link)


def await_caught_up(link):
    seen = b""
    while b"caughtUp" not in seen:
        received = link.recv(65536)
        assert received, seen
        seen += received
    return link


def unread_stream(server, device):
    link = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    link.sendall(
        f"GET /v1/inbox HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
        f"Authorization: Bearer {device.credential}\r\n\r\n".encode()
    )
    return await_caught_up(link)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("unread", [unread_socket, unread_stream])
def test_messages_replaced_for_a_peer_that_does_not_read_use_no_memory(make_server, unread):
    server = make_server(
        CARILLON_CHANNEL_RATE="off", CARILLON_DEVICE_RATE="off", CARILLON_STALL_SECONDS="3600",
        CARILLON_KEEP_ALIVE_SECONDS="3600",
    )
    device = server.register_device()
    channel = device.open_channel()
    path = "/" + channel.endpoint.split("/", 3)[3]
    body = bytes(8192)
    request = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nTTL: 600\r\nTopic: a\r\nContent-Encoding: identity\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body

    def send(count):
        with RawHTTP(server, patience=60) as sender:
            for _ in range(count):
                sender.send(request)
                assert sender.read_answer()[0] == 201
        return True

    with unread(server, device):
        begun = REPLACED // 4
        assert all(in_parallel([lambda: send(begun // SENDERS)] * SENDERS, patience=600))
        after_a_while = resident_mib(server)
        assert all(in_parallel([lambda: send((REPLACED - begun) // SENDERS)] * SENDERS, patience=600))
        grown = resident_mib(server) - after_a_while
        print(f"{resident_mib(server):.0f} MiB, {grown:.0f} more than after {begun}")
        assert grown < 16
