"""Trials of the rows about connections, answers that are not read, and requests that take long."""

import threading
import time

import pytest

from carillon_peer import APP, PATIENCE, Socket, new_channel_id
from raw_peer import RawHTTP
from shared_resources import OTHER_APP, Tried, rows_of, trial, try_row

HEADER = "X-Forwarded-For"


class Unread:
    """Requests whose answers are not read, until the end of the trial."""

    def __init__(self, server):
        self.server = server
        self.connections = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.connections:
            connection.socket.close()

    def ask(self, path: str, key: str, **fields) -> RawHTTP:
        connection = RawHTTP(self.server)
        lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {key}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        connection.send("\r\n".join(lines) + "\r\n\r\n")
        self.connections.append(connection)
        return connection

    def begin(self, path: str, key: str, **fields):
        """Asks, and waits until the answer begins."""
        assert self.ask(path, key, **fields).socket.recv(12) == b"HTTP/1.1 200"


def device_with_messages(world, app=APP, count=100, address=None):
    device = world.device(app)
    channel = device.open_channel()
    for _ in range(count):
        assert channel.post(bytes(8000)).status_code == 201
    return device


def until_waiting(world, count: int):
    """Returns when so many requests wait for messages: a request before that would take the place of one of them."""
    end = time.monotonic() + PATIENCE
    while (waiting := world.count("carillon_waiters")) != count:
        assert time.monotonic() < end, f"{waiting} requests wait, not {count}"
        time.sleep(0.05)


@trial("Connections of one device")
def connections_of_a_device(world):
    device = world.device()
    with Unread(world.server) as unread:
        for _ in range(16):
            unread.ask("/v1/inbox?wait=60", device.credential)
        until_waiting(world, 16)
        refused = device.request("GET", "/v1/inbox")
        return Tried(refused, [world.device().request("GET", "/v1/inbox"), world.device(OTHER_APP).request("GET", "/v1/inbox")])


@trial("Connections of one address", connections_per_address=3, client_address_header=HEADER)
def connections_of_an_address(world):
    devices = [world.device() for _ in range(3)]
    with Unread(world.server) as unread:
        for number, device in enumerate(devices):
            unread.ask("/v1/inbox?wait=60", device.credential, X_Forwarded_For=f"2001:db8::{number + 1}")
        until_waiting(world, 3)
        refused = world.server.request("GET", "/v1/server", headers={HEADER: "2001:db8::9"})
        others = [world.server.request("GET", "/v1/server", headers={HEADER: other}) for other in ("2001:db8:0:1::1", "192.0.2.1")]
        healthy = world.server.request("GET", "/health/ready", headers={HEADER: "2001:db8::9"})
        return Tried(refused, [*others, healthy])


@trial("Sockets of one address", sockets_per_address=2, client_address_header=HEADER)
def sockets_of_an_address(world):
    def upgrade(address):
        headers = {
            HEADER: address, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "push-notification"}
        return world.server.request("GET", "/", headers=headers, stream=True)

    open_sockets = [upgrade("192.0.2.1") for _ in range(2)]
    assert [answer.status_code for answer in open_sockets] == [101, 101]
    refused = upgrade("192.0.2.1")
    assert upgrade("192.0.2.2").status_code == 101
    tried = Tried(refused, [world.server.request("GET", "/v1/server", headers={HEADER: "192.0.2.1"})])
    for answer in open_sockets:
        answer.close()
    return tried


def register_anonymous(world, address):
    """The status of a channel's registration by an anonymous device."""
    with Socket(world.server, additional_headers={HEADER: address}) as socket:
        socket.hello()
        socket.send({"messageType": "register", "channelID": new_channel_id()})
        return socket.expect("register")["status"]


@trial("Anonymous devices of one address", anonymous_per_address=2, client_address_header=HEADER)
def anonymous_devices(world):
    statuses = [register_anonymous(world, f"2001:db8::{number + 1}") for number in range(3)]
    # A client that is not Carillon's gets the status alone.
    assert statuses == [200, 200, 500], statuses
    assert [register_anonymous(world, other) for other in ("2001:db8:0:1::1", "192.0.2.1")] == [200, 200]


@trial("Large answers of one device")
def large_answers_of_a_device(world):
    device = device_with_messages(world)
    with Unread(world.server) as unread:
        for _ in range(2):
            unread.begin("/v1/inbox?max=500", device.credential)
        refused = device.request("GET", "/v1/inbox?max=500")
        other = device_with_messages(world, OTHER_APP, 20)
        return Tried(refused, [device.request("GET", "/v1/device"), other.request("GET", "/v1/inbox?max=500")])


def publish_large_updates(world, app, count=50):
    for _ in range(count):
        body = {"kind": "com.example.route", "payload": {"style": "notification", "title": "t", "lines": ["x" * 1000] * 7}}
        answer = world.server.request("POST", "/v1/updates", key=world.sender_key(app), json=body)
        assert answer.status_code == 201, answer.text


@trial("Large answers of one key")
def large_answers_of_a_key(world):
    publish_large_updates(world, APP)
    publish_large_updates(world, OTHER_APP, 12)
    with Unread(world.server) as unread:
        for _ in range(8):
            unread.begin("/v1/updates?limit=500", world.sender_key())
        refused = world.server.request("GET", "/v1/updates?limit=500", key=world.sender_key())
        return Tried(refused, [world.server.request("GET", "/v1/updates?limit=500", key=world.sender_key(OTHER_APP))])


@trial("Answers to one address", answer_bytes=1_600_000, client_address_header=HEADER)
def answers_to_an_address(world):
    devices = [device_with_messages(world) for _ in range(2)]
    with Unread(world.server) as unread:
        for device in devices:
            unread.begin("/v1/inbox?max=500", device.credential, X_Forwarded_For="192.0.2.1")
        other = device_with_messages(world, OTHER_APP, 20)
        refused = other.request("GET", "/v1/inbox?max=500", headers={HEADER: "192.0.2.1"})
        return Tried(refused, [other.request("GET", "/v1/inbox?max=500", headers={HEADER: "192.0.2.2"})])


def at_once(count, ask):
    """The answers to many requests that are sent together."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def refused_of(count, ask):
    answers = at_once(count, ask)
    return next(answer for answer in answers if answer.status_code >= 400)


@trial("Previews of audiences")
def previews(world):
    for app in (APP, OTHER_APP):
        declared = world.server.admin("PUT", f"/v1/apps/{app}/parameters", {"parameters": {"level": "int"}})
        assert declared.status_code == 200, declared.text
    for _ in range(300):
        said = {"protocol": 1, "kinds": ["content"], "parameters": {"values": {"level": 1}, "revision": "1"}}
        answer = world.device().request("POST", "/v1/inbox", said)
        assert answer.status_code == 200, answer.text
    audience = " && ".join(f"level + {number} != {number}" for number in range(100))

    def preview(app=APP):
        return world.server.request("POST", "/v1/updates/explain", key=world.sender_key(app), json={"audience": audience})

    return Tried(refused_of(150, preview), [preview(OTHER_APP)])


@trial("Long lists")
def long_lists(world):
    for _ in range(300):
        world.device()

    def devices(app=APP):
        return world.server.admin("GET", f"/v1/apps/{app}/devices?limit=1000")

    return Tried(refused_of(250, devices), [devices(OTHER_APP)])


@pytest.mark.parametrize("row", rows_of(__name__), ids=lambda row: row.resource)
def test_a_quota_is_refused_beyond_its_end_and_others_get_theirs(make_server, row):
    try_row(make_server, row)
