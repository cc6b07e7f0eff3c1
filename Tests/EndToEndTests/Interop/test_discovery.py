"""The old UnifiedPush discovery and the Matrix gateway, for the server's own endpoints only."""

import json

import pytest
import requests

from carillon_peer import PATIENCE, assert_problem, body_of, free_port
from encryption_peer import Sender

NOTIFY = "/_matrix/push/v1/notify"


def matrix_body(*pushkeys) -> dict:
    devices = [{"app_id": "org.example.chat", "pushkey": key, "pushkey_ts": 1} for key in pushkeys]
    return {
        "notification": {"event_id": "$1", "room_id": "!r:example.org", "counts": {"unread": 2}, "devices": devices}
    }


@pytest.mark.parametrize("suffix", ["", "?up=1"])
def test_get_on_an_endpoint_answers_the_discovery(server, channel, suffix):
    answer = server.request("GET", channel.endpoint + suffix)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.json() == {"unifiedpush": {"version": 1}}


def test_get_on_the_gateway_answers_the_discovery(server):
    answer = server.request("GET", NOTIFY)
    assert answer.status_code == 200
    assert answer.json() == {"unifiedpush": {"gateway": "matrix"}}


def test_a_matrix_notification_reaches_the_endpoint(server, device, channel):
    answer = server.request("POST", NOTIFY, json=matrix_body(channel.endpoint))
    assert (answer.status_code, answer.json()) == (200, {"rejected": []})
    (frame,) = device.inbox()["envelopes"]
    assert frame["channelID"] == channel.id
    assert json.loads(body_of(frame))["notification"]["event_id"] == "$1"
    assert frame["headers"].keys() == {"encoding"}


def test_a_key_that_comes_seventy_eight_times_is_one_message(server, device, channel):
    entry = json.dumps({"pushkey": channel.endpoint}, separators=(",", ":"))
    count = min(78, 8000 // (len(entry) + 1))
    assert count > 40
    body = '{"notification":{"devices":[' + ",".join([entry] * count) + "]}}"
    answer = server.request("POST", NOTIFY, data=body)
    assert (answer.status_code, answer.json()) == (200, {"rejected": []})
    assert len(device.inbox()["envelopes"]) == 1


def test_each_device_is_sent_its_own_entry_only(server, device):
    channels = [device.open_channel() for _ in range(3)]
    stranger = "https://ntfy.example/push/secret"
    keys = [channel.endpoint for channel in channels]
    answer = server.request("POST", NOTIFY, json=matrix_body(*keys, stranger))
    assert answer.json() == {"rejected": [stranger]}
    frames = {frame["channelID"]: body_of(frame).decode() for frame in device.inbox()["envelopes"]}
    for channel in channels:
        told = json.loads(frames[channel.id])["notification"]
        assert told == matrix_body(channel.endpoint)["notification"]
        assert "ntfy.example" not in frames[channel.id]


def test_keys_that_are_not_own_live_endpoints_are_rejected(server, device, channel):
    gone = device.open_channel()
    device.request("DELETE", f"/v1/device/channels/{gone.id}")
    token = channel.endpoint.rsplit("/", 1)[1]
    strange = [
        gone.endpoint,
        f"https://ntfy.example/push/{token}",
        f"http://127.0.0.1:1/push/{token}",
        token,
        "",
        "x",
        server.url + "/push/garbage",
        server.url + "/push/",
        server.url + "/",
        f"file:///push/{token}",
        server.url + f".evil.example/push/{token}",
        f"http://user@127.0.0.1:{server.port}x/push/{token}",
    ]
    answer = server.request("POST", NOTIFY, json=matrix_body(*strange, channel.endpoint))
    assert answer.status_code == 200, answer.text
    assert sorted(answer.json()["rejected"]) == sorted(strange)
    assert len(device.inbox()["envelopes"]) == 1


def test_a_restricted_channel_does_not_take_matrix_notifications(server, device):
    channel = device.open_channel(key=Sender().key)
    answer = server.request("POST", NOTIFY, json=matrix_body(channel.endpoint))
    assert (answer.status_code, answer.json()) == (200, {"rejected": [channel.endpoint]})
    assert device.inbox()["envelopes"] == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"notification":7}',
        b'{"notification":{}}',
        b'{"notification":{"devices":{}}}',
        b'{"notification":{"devices":[{}]}}',
        b'{"notification":{"devices":[{"pushkey":7}]}}',
        b"\xff\xfe",
        b"[" * 5000,
    ],
)
def test_a_malformed_notification_is_refused(server, body):
    assert_problem(server.request("POST", NOTIFY, data=body), 400)


def test_a_large_event_reaches_the_device_without_its_content(make_server):
    port = free_port()
    server = make_server(CARILLON_METRICS_LISTEN=port)
    device = server.register_device()
    channel = device.open_channel()

    def count(result):
        lines = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).text.splitlines()
        name = f'carillon_matrix_notifications_total{{result="{result}"}}'
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    body = matrix_body(channel.endpoint)
    for size in (20_000, 120_000):
        body["notification"]["content"] = {"body": "x" * size}
        answer = server.request("POST", NOTIFY, json=body)
        assert (answer.status_code, answer.json()) == (200, {"rejected": []})
    frames = device.inbox()["envelopes"]
    assert [json.loads(body_of(frame)) for frame in frames] == [matrix_body(channel.endpoint)] * 2
    assert (count("shortened"), count("too_large")) == (2, 0)

    body["notification"]["room_id"] = "!" + "x" * 5000
    answer = server.request("POST", NOTIFY, json=body)
    assert (answer.status_code, answer.json()) == (200, {"rejected": []})
    assert len(device.inbox()["envelopes"]) == 2
    assert (count("shortened"), count("too_large")) == (2, 1)


def test_a_notification_over_the_limit_is_refused(server, channel):
    body = matrix_body(channel.endpoint)
    body["notification"]["content"] = {"body": "x" * 200_000}
    assert_problem(server.request("POST", NOTIFY, json=body), 413)
