"""The table of shared resources in docs/guarantees.md: each row is tried with the executable.

A trial uses up the share of one owner and returns the refusal. The test compares it with the row, sees the row's counter grow,
and sees that another device and another app still get what they ask for.
"""

import json
import os
import secrets

import pytest

import test_connection_quotas  # noqa: F401, for its trials
from carillon_peer import APP, Device, assert_problem, free_port, new_channel_id
from raw_peer import RawHTTP
from service_peer import KEY_SET, ServiceDevice
from shared_resources import OTHER_APP, TRIALS, Tried, beyond, rows, rows_of, trial, try_row
from test_attachments import Uploader


# Rates


@trial("Messages to one channel", channel_rate="1:5")
def messages_to_a_channel(world):
    device = world.device()
    channel, second = device.open_channel(), device.open_channel()
    refused = beyond((channel.post(b"x") for _ in range(20)), 5)
    return Tried(refused, [second.post(b"x"), world.channel().post(b"x"), world.channel(OTHER_APP).post(b"x")])


@trial("Messages to one device", device_rate="1:5")
def messages_to_a_device(world):
    device = world.device()
    channels = [device.open_channel() for _ in range(3)]
    refused = beyond((channels[number % 3].post(b"x") for number in range(20)), 5)
    return Tried(refused, [world.channel().post(b"x"), world.channel(OTHER_APP).post(b"x")])


@trial("Messages to one app", app_rate="1:6")
def messages_to_an_app(world):
    channels = [world.channel(), world.channel()]
    refused = beyond((channels[number % 2].post(b"x") for number in range(20)), 6)
    return Tried(refused, [world.channel(OTHER_APP).post(b"x")])


def publish_item(world, item, app=APP):
    return world.server.request(
        "POST", f"/v1/items/{item}/updates", key=world.sender_key(app), json={"fields": {"price": 1}})


@trial("Updates of items", item_rate="1:5")
def updates_of_items(world):
    refused = beyond((publish_item(world, f"stock.{number}") for number in range(20)), 5)
    return Tried(refused, [publish_item(world, "stock.A", OTHER_APP)])


def open_channel(device):
    return device.request("POST", "/v1/device/channels", {"channelID": new_channel_id()})


@trial("Channels opened and registrations changed", registration_rate="1:4")
def changes_of_a_device(world):
    device = world.device()
    refused = beyond((open_channel(device) for _ in range(20)), 4)
    return Tried(refused, [open_channel(world.device()), open_channel(world.device(OTHER_APP))])


def register_from(world, address, app=APP):
    key = world.server.client_key if app == APP else world.other_keys["client"]
    return world.server.request(
        "POST", "/v1/devices", key=key, json={"app": app}, headers={"X-Forwarded-For": address})


@trial("Devices and channels from one address", address_rate="1:5", client_address_header="X-Forwarded-For")
def registrations_from_an_address(world):
    # One /64 of IPv6 is one owner.
    refused = beyond((register_from(world, f"2001:db8::{number + 1:x}") for number in range(20)), 5)
    others = [register_from(world, "2001:db8:0:1::1"), register_from(world, "192.0.2.1", OTHER_APP)]
    return Tried(refused, others)


@trial("Uploads begun", upload_rate="1:3")
def uploads_begun(world):
    uploader = Uploader(world.server)
    refused = beyond((uploader.create(b"x") for _ in range(10)), 3)
    return Tried(refused, [Uploader(world.server).create(b"x")])


# Waiting entries


@trial("Envelopes in an inbox", inbox_envelopes=5)
def envelopes_in_an_inbox(world):
    device = world.device()
    channels = [device.open_channel() for _ in range(2)]
    refused = beyond((channels[number % 2].post(b"x") for number in range(20)), 5)
    return Tried(refused, [world.channel().post(b"x"), world.channel(OTHER_APP).post(b"x")])


@trial("Bytes in an inbox", inbox_bytes=5000)
def bytes_in_an_inbox(world):
    channel = world.channel()
    # Each counts with 128 bytes beside its body.
    refused = beyond((channel.post(bytes(1000)) for _ in range(20)), 4)
    return Tried(refused, [world.channel().post(bytes(1000)), world.channel(OTHER_APP).post(bytes(1000))])


# Rows


@trial("Devices of one app", devices_per_app=3)
def devices_of_an_app(world):
    def register(app):
        key = world.server.client_key if app == APP else world.other_keys["client"]
        return world.server.request("POST", "/v1/devices", key=key, json={"app": app})

    refused = beyond((register(APP) for _ in range(10)), 3)
    return Tried(refused, [register(OTHER_APP)])


@trial("Channels of one device", registration_rate="off", address_rate="off")
def channels_of_a_device(world):
    device = world.device()
    refused = beyond((open_channel(device) for _ in range(1010)), 1000)
    return Tried(refused, [open_channel(world.device()), open_channel(world.device(OTHER_APP))])


def watch(channel):
    body = {"disconnectAddress": "http://127.0.0.1:9/ended"}
    return channel.server.request("PUT", channel.endpoint + "/watch", json=body)


@trial("Watches of one device", allow_private_addresses="true")
def watches_of_a_device(world):
    device = world.device()
    refused = beyond((watch(device.open_channel()) for _ in range(110)), 100)
    return Tried(refused, [watch(world.channel()), watch(world.channel(OTHER_APP))])


def subscribe(device, number):
    body = {"items": [f"stock.{number}"], "fields": ["price"], "trigger": "price > 1.0", "format": {"title": "${price}"}}
    return device.request("POST", "/v1/device/subscriptions", body)


@trial("Subscriptions of one device")
def subscriptions_of_a_device(world):
    for app in (APP, OTHER_APP):
        rules = {"items": [{"pattern": "stock.*", "open": True}], "subscriptionsPerDevice": 4}
        assert world.server.admin("PUT", f"/v1/apps/{app}/items", rules).status_code == 200
    device = world.device()
    refused = beyond((subscribe(device, number) for number in range(10)), 4)
    return Tried(refused, [subscribe(world.device(), 1), subscribe(world.device(OTHER_APP), 1)])


def publish_update(world, app=APP):
    body = {"kind": "content", "payload": {"action": "refresh", "object": secrets.token_hex(4)}, "audience": "level >= 2"}
    return world.server.request("POST", "/v1/updates", key=world.sender_key(app), json=body)


@trial("Live updates of one app without an index")
def live_updates(world):
    for app in (APP, OTHER_APP):
        declared = world.server.admin("PUT", f"/v1/apps/{app}/parameters", {"parameters": {"level": "int"}})
        assert declared.status_code == 200, declared.text
    refused = beyond((publish_update(world) for _ in range(210)), 200)
    return Tried(refused, [publish_update(world, OTHER_APP)])


@trial("Bytes of audiences of one app's live updates")
def bytes_of_audiences(world):
    def publish(app, length):
        audience = "user == '" + (length - len("user == ''")) * "u" + "'"
        body = {"kind": "definitions", "audience": audience}
        return world.server.request("POST", "/v1/updates", key=world.sender_key(app), json=body)

    refused = beyond((publish(APP, 48_000) for _ in range(180)), (8 << 20) // 48_000)
    return Tried(refused, [publish(APP, 100), publish(OTHER_APP, 48_000)])


@trial("Names of items")
def names_of_items(world):
    lines = "".join(json.dumps({"item": f"stock.{number}", "fields": {"p": 1}}) + "\n" for number in range(100_000))
    answer = world.server.request(
        "POST", "/v1/items/updates", key=world.sender_key(), data=lines.encode(), timeout=800)
    assert answer.json()["accepted"] == 100_000, answer.text
    return Tried(publish_item(world, "one.too.many"), [publish_item(world, "stock.7"), publish_item(world, "a", OTHER_APP)])


# Attachments: each counts with at least 64 KiB


@trial("Unfinished uploads of one device", uploads_per_device=2)
def unfinished_uploads(world):
    uploader = Uploader(world.server)
    refused = beyond((uploader.create(length=10, complete="?0") for _ in range(5)), 2)
    return Tried(refused, [Uploader(world.server).create(length=10, complete="?0")])


@trial("Bytes of attachments of one user", attachment_bytes_per_user=2 * 65_536)
def bytes_of_a_user(world):
    uploader = Uploader(world.server)
    refused = beyond((uploader.create(os.urandom(4000), length=4000) for _ in range(5)), 2)
    return Tried(refused, [Uploader(world.server).create(bytes(4000), length=4000)])


@trial("Bytes of attachments of one app", attachment_bytes_per_app=2 * 65_536)
def bytes_of_an_app(world):
    refused = beyond((Uploader(world.server).create(os.urandom(4000), length=4000) for _ in range(5)), 2)
    key, reader = world.sender_key(OTHER_APP), world.device(OTHER_APP)
    path = f"/v1/attachments?readers={reader.id}"
    return Tried(refused, [world.server.request("POST", path, key=key, data=bytes(4000), headers={"Upload-Length": "4000"})])


# Services


class House:
    """Two users with a consumer and a provider each."""

    METHOD = ("com.example.echo", "1.0", "echo")

    def __init__(self, world):
        rules = world.server.admin("PUT", f"/v1/apps/{APP}/users", {"jwks": KEY_SET})
        assert rules.status_code == 200, rules.text
        self.world = world

    def pair(self, user):
        consumer, provider = (ServiceDevice(self.world.device(), APP) for _ in range(2))
        for peer in (consumer, provider):
            peer.sign_in(user)
        provider.offer(self.METHOD[:2])
        (found,) = consumer.providers(f"?service={self.METHOD[0]}")
        return consumer, found

    def ask(self, consumer, found):
        return consumer.ask(consumer.request(found, self.METHOD, 1))


@trial("Requests of services made by one device", service_request_rate="1:3")
def service_requests_of_a_device(world):
    house = House(world)
    consumer, found = house.pair("ada")
    refused = beyond((house.ask(consumer, found) for _ in range(10)), 3)
    return Tried(refused, [house.ask(*house.pair("ben"))])


@trial("Requests of one consumer in a provider's inbox", inbox_envelopes=40)
def requests_of_a_consumer(world):
    house = House(world)
    consumer, found = house.pair("ada")
    second = ServiceDevice(world.device(), APP)
    second.sign_in("ada")
    (same,) = second.providers(f"?service={house.METHOD[0]}")
    refused = beyond((house.ask(consumer, found) for _ in range(10)), 4)
    return Tried(refused, [house.ask(second, same), house.ask(*house.pair("ben"))])


# Rows that are not refused, but replaced or withheld


@trial("Profiles of one device")
def profiles_of_a_device(world):
    device, other = world.device(), world.device(OTHER_APP)

    def poll(owner, number):
        answer = owner.request("POST", "/v1/inbox", {"protocol": 1, "kinds": ["content"], "profile": f"p{number}"})
        assert answer.status_code == 200, answer.text

    for number in range(102):
        poll(device, number)
    # The one that was removed begins anew.
    poll(device, 0)
    poll(other, 0)


@trial("Log lines with one text about one app", allow_private_addresses="true")
def log_lines(world):
    for app in (APP, OTHER_APP):
        hook = world.server.admin("PUT", f"/v1/apps/{app}/veto", {"url": f"https://127.0.0.1:{free_port()}/"})
        assert hook.status_code == 200, hook.text

    def lines():
        return len(world.server.log.read_text().splitlines())

    def refused(app):
        key = world.server.client_key if app == APP else world.other_keys["client"]
        answer = world.server.request("POST", "/v1/devices", key=key, json={"app": app}, timeout=30)
        assert_problem(answer, 503, "veto_unavailable")

    before = lines()
    for _ in range(10):
        refused(APP)
    assert lines() - before == 1, world.server.log.read_text()
    refused(OTHER_APP)
    assert lines() - before == 2, "another app has a line of its own"


# Expressions and transfers


@trial("Compared expressions of one item")
def compared_expressions(world):
    for app in (APP, OTHER_APP):
        rules = {"items": [{"pattern": "stock.*", "open": True}]}
        assert world.server.admin("PUT", f"/v1/apps/{app}/items", rules).status_code == 200

    def compare(device, number):
        body = {
            "items": ["stock.A"], "fields": [f"x{number}", "y"], "trigger": f"x{number} + y < 0.0",
            "format": {"title": "${y}"},
        }
        return device.request("POST", "/v1/device/subscriptions", body)

    device = world.device()
    refused = beyond((compare(device, number) for number in range(60)), 50)
    return Tried(refused, [compare(world.device(), 1000), compare(world.device(OTHER_APP), 1)])


@trial("Transfers of attachments of one device")
def transfers_of_a_device(world):
    uploader = Uploader(world.server)
    location = uploader.create(bytes(100_000_000)).headers["Location"]
    raws = []
    try:
        for _ in range(8):
            raws.append(RawHTTP(world.server))
            raws[-1].send(uploader.head_of("GET", location))
        assert all(raw.socket.recv(12) == b"HTTP/1.1 200" for raw in raws)
        refused = uploader.get(location, device=uploader.device, Range="bytes=0-1")
        return Tried(refused, [uploader.get(location, Range="bytes=0-1"), Uploader(world.server).create(b"x")])
    finally:
        for raw in raws:
            raw.socket.close()


@trial("Bytes that unfinished uploads of one user reserve", attachment_bytes_per_app=2 << 30)
def reserved_bytes(world):
    uploader = Uploader(world.server)
    refused = beyond((uploader.create(length=64 << 20, complete="?0") for _ in range(4)), 1)
    return Tried(refused, [Uploader(world.server).create(length=64 << 20, complete="?0")])


# A hundred thousand items take a debug build nearly two minutes.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("row", rows_of(__name__), ids=lambda row: row.resource)
def test_a_quota_is_refused_beyond_its_end_and_others_get_theirs(make_server, row):
    try_row(make_server, row)


def test_every_trial_has_a_row():
    assert sorted(TRIALS) == sorted(row.resource for row in rows())
