"""Delivery: TTL, collapse keys and repetition, with restarts and SIGKILL."""

import random
import threading
import time
from datetime import datetime, timezone

import pytest
import requests

from carillon_peer import body_of, new_channel_id


def versions(frames) -> list[str]:
    return [frame["version"] for frame in frames]


# TTL


def test_a_ttl_0_message_reaches_a_connected_device(device, channel):
    with device.connect() as socket:
        socket.caught_up()
        sent = channel.send(b"now", ttl=0)
        assert sent.outcome_header == "offered"
        frame = socket.notification()
        assert body_of(frame) == b"now"
        socket.ack(frame)


def test_a_ttl_0_message_for_an_absent_device_is_accepted_and_dropped(device, channel):
    answer = channel.post(b"now", ttl=0)
    assert answer.status_code == 201
    assert answer.headers["TTL"] == "0"
    assert answer.headers["Carillon-Outcome"] == "dropped"
    # The answer contains everything; nothing is kept of the message.
    assert device.server.request("GET", answer.headers["Location"]).status_code == 404
    with device.connect() as socket:
        assert socket.caught_up() == []


def test_a_ttl_0_message_that_was_not_acknowledged_does_not_come_again(device, channel):
    with device.connect() as socket:
        socket.caught_up()
        channel.send(b"now", ttl=0)
        socket.notification()
    with device.connect() as socket:
        assert socket.caught_up() == []


def test_a_message_is_not_delivered_after_its_ttl(device, channel):
    sent, marker = channel.send(b"short", ttl=1), channel.send(b"long")
    expires = datetime.fromisoformat(sent.status()["expiresAt"])
    time.sleep(max(0.0, (expires - datetime.now(timezone.utc)).total_seconds()) + 0.01)
    with device.connect() as socket:
        assert versions(socket.caught_up()) == [marker.id]
    assert versions(device.inbox()["envelopes"]) == [marker.id]
    assert sent.final()["outcome"] == "expired"


def test_an_unacknowledged_message_does_not_come_again_after_its_ttl(device, channel):
    with device.connect() as socket:
        socket.caught_up()
        sent = channel.send(b"short", ttl=1)
        socket.notification()
        assert sent.final()["outcome"] == "expired"
    with device.connect() as socket:
        assert socket.caught_up() == []


# Messages that replace earlier ones


def test_of_several_messages_of_a_topic_only_the_newest_arrives(device, channel):
    other = device.open_channel()
    first = channel.send(b"1", headers={"Topic": "score"})
    plain = channel.send(b"plain")
    elsewhere = other.send(b"elsewhere", headers={"Topic": "score"})
    second = channel.send(b"2", headers={"Topic": "score"})
    another = channel.send(b"another", headers={"Topic": "weather"})
    third = channel.send(b"3", headers={"Topic": "score"})
    with device.connect() as socket:
        assert versions(socket.caught_up()) == [plain.id, elsewhere.id, another.id, third.id]
    assert first.status()["outcome"] == second.status()["outcome"] == "replaced"


def test_a_replacement_replaces_the_ttl_as_well(device, channel):
    channel.send(b"long", ttl=3600, headers={"Topic": "t"})
    short = channel.send(b"short", ttl=1, headers={"Topic": "t"})
    assert short.final()["outcome"] == "expired"
    assert device.inbox()["envelopes"] == []


def test_an_acknowledged_message_is_not_replaced(device, channel):
    with device.connect() as socket:
        socket.caught_up()
        first = channel.send(b"1", headers={"Topic": "t"})
        socket.ack(socket.notification())
        first.final()
    second = channel.send(b"2", headers={"Topic": "t"})
    assert first.status()["outcome"] == "acknowledged"
    assert versions(device.inbox()["envelopes"]) == [second.id]


# Messages that were not acknowledged


def test_unacknowledged_messages_come_again_with_the_same_version_in_the_same_order(device, channel):
    sent = [channel.send(f"{n}".encode()).id for n in range(8)]
    for _ in range(3):
        with device.connect() as socket:
            assert versions(socket.caught_up()) == sent


def test_acknowledged_messages_never_come_again_even_when_earlier_ones_wait(device, channel):
    sent = [channel.send(f"{n}".encode()) for n in range(12)]
    with device.connect() as socket:
        frames = socket.caught_up()
        socket.ack(frames[11], frames[2], frames[7])
        for index in (2, 7, 11):
            assert sent[index].final()["outcome"] == "acknowledged"
    with device.connect() as socket:
        assert versions(socket.caught_up()) == [s.id for n, s in enumerate(sent) if n not in (2, 7, 11)]


def test_a_live_message_that_was_not_acknowledged_comes_again(device, channel):
    with device.connect() as socket:
        socket.caught_up()
        channel.send(b"live")
        seen = socket.notification()
    with device.connect() as socket:
        assert socket.caught_up() == [seen]


def test_autopush_clients_get_the_same_treatment(server):
    with server.browser() as socket:
        channel = socket.register()
        sent = [channel.send(f"{n}".encode()) for n in range(5)]
        frames = socket.notifications(5)
        socket.ack(frames[1], frames[3])
        for index in (1, 3):
            sent[index].final()
    with server.browser(socket.uaid) as again:
        assert versions(again.notifications(3)) == [sent[n].id for n in (0, 2, 4)]
        assert again.before_pong() == []


# A restart


def test_messages_channels_devices_and_keys_survive_a_restart(make_server):
    server = make_server()
    device = server.register_device()
    channel = device.open_channel(name="news")
    with server.browser() as browser:
        subscription = browser.register()
    waiting = channel.send(b"waiting")
    stored = subscription.send(b"stored")
    with device.connect() as socket:
        (frame,) = socket.caught_up()
        socket.ack(frame)
        waiting.final()
    left = channel.send(b"left", headers={"Topic": "t"})
    server.restart()
    assert waiting.status()["outcome"] == "acknowledged"
    assert left.status()["state"] == "waiting"
    replacing = channel.send(b"replacing", headers={"Topic": "t"})
    after = channel.send(b"after")
    with device.connect() as socket:
        frames = socket.caught_up()
        assert versions(frames) == [replacing.id, after.id]
        assert body_of(frames[0]) == b"replacing"
    with server.browser(browser.uaid) as again:
        assert again.greeting["uaid"] == browser.uaid
        assert versions(again.notifications(1)) == [stored.id]
    assert server.admin("GET", "/v1/apps").status_code == 200
    assert [c["name"] for c in device.request("GET", "/v1/device/channels").json()["channels"]] == ["news"]


def test_a_message_that_expires_while_the_server_is_down_is_not_delivered(make_server):
    server = make_server()
    device = server.register_device()
    channel = device.open_channel()
    sent = channel.send(b"short", ttl=1)
    expires = datetime.fromisoformat(sent.status()["expiresAt"])
    server.kill()
    time.sleep(max(0.0, (expires - datetime.now(timezone.utc)).total_seconds()) + 0.01)
    server.start()
    with device.connect() as socket:
        assert socket.caught_up() == []
    assert sent.final()["outcome"] == "expired"


# SIGKILL


@pytest.mark.parametrize("connected", [False, True], ids=["absent device", "connected device that does not answer"])
def test_an_accepted_message_survives_sigkill_right_after_the_answer(make_server, connected):
    server = make_server()
    device = server.register_device()
    channel = device.open_channel()
    accepted = []
    for round in range(4):
        socket = device.connect() if connected else None
        body = random.Random(round).randbytes(4096)
        accepted.append((channel.send(body).id, body))
        server.kill()
        if socket is not None:
            socket.close()
        server.start()
    with device.connect() as socket:
        assert [(frame["version"], body_of(frame)) for frame in socket.caught_up()] == accepted


def test_everything_accepted_under_load_survives_sigkill(make_server):
    server = make_server()
    device = server.register_device()
    channels = [device.open_channel() for _ in range(4)]
    accepted: list[str] = []

    def post(channel):
        try:
            while True:
                accepted.append(channel.send(b"load").id)
        except requests.RequestException:
            return

    for _ in range(3):
        threads = [threading.Thread(target=post, args=(channel,), daemon=True) for channel in channels]
        goal = len(accepted) + 60
        for thread in threads:
            thread.start()
        while len(accepted) < goal:
            time.sleep(0.005)
        server.kill()
        for thread in threads:
            thread.join()
        server.start()
    seen: set[str] = set()
    with device.connect() as socket:
        while (frame := socket.receive())["messageType"] != "caughtUp":
            assert frame["version"] not in seen, "one connection is offered an envelope once"
            seen.add(frame["version"])
            socket.ack(frame)
    assert set(accepted) <= seen


def test_a_reported_outcome_is_final_across_sigkill(make_server):
    server = make_server()
    device = server.register_device()
    channel = device.open_channel()
    with device.connect() as socket:
        socket.caught_up()
        acknowledged, waiting = channel.send(b"a"), channel.send(b"b")
        socket.ack(socket.notification())
        socket.notification()
        told = acknowledged.final()
    cancelled = channel.send(b"c")
    assert server.request("DELETE", cancelled.location).status_code == 204
    server.kill()
    server.start()
    assert acknowledged.status() == told
    assert cancelled.status()["outcome"] == "cancelled"
    with device.connect() as socket:
        assert versions(socket.caught_up()) == [waiting.id]


def test_answers_about_channels_and_devices_survive_sigkill(make_server):
    server = make_server()
    kept, deleted = server.register_device(), server.register_device()
    alive, dead = kept.open_channel(), kept.open_channel()
    with server.browser() as browser:
        subscription, dropped = browser.register(), browser.register()
        assert browser.unregister(dropped.id)["status"] == 200
        assert kept.request("DELETE", f"/v1/device/channels/{dead.id}").status_code == 204
        assert deleted.request("DELETE", "/v1/device").status_code == 204
        late = kept.open_channel(new_channel_id())
        server.kill()
    server.start()
    for channel in (alive, subscription, late):
        channel.send(b"x")
    for channel in (dead, dropped):
        assert channel.post(b"x").status_code in (404, 410)
    assert deleted.request("GET", "/v1/device").status_code == 401
