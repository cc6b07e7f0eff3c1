"""Limits of the inbox and of a connection: 429, idempotency, topics in flight, partial acks, the window."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.exceptions import InvalidStatus

from carillon_peer import assert_problem, await_value, body_of, in_parallel

# A full inbox


def refused_as_full(answer):
    assert_problem(answer, 429)
    assert int(answer.headers["Retry-After"]) > 0


def test_a_full_inbox_refuses_the_sender_with_429_and_retry_after(make_server):
    server = make_server(CARILLON_INBOX_ENVELOPES=5)
    device, other = server.register_device(), server.register_device()
    channel, second = device.open_channel(), device.open_channel()
    sent = [channel.send(f"{n}".encode()) for n in range(5)]
    refused_as_full(channel.post(b"one too many"))
    refused_as_full(second.post(b"another door of the same inbox"))
    other.open_channel().send(b"another inbox has room")
    assert [frame["version"] for frame in device.inbox()["envelopes"]] == [s.id for s in sent]
    with device.connect() as socket:
        frames = socket.caught_up()
        socket.ack(frames[2])
        sent[2].final()
        channel.send(b"there is room again")
        refused_as_full(channel.post(b"and full again"))


def test_a_replacement_finds_room_in_a_full_inbox(make_server):
    server = make_server(CARILLON_INBOX_ENVELOPES=3)
    device = server.register_device()
    channel = device.open_channel()
    first = channel.send(b"old", headers={"Topic": "t"})
    channel.send(b"1"), channel.send(b"2")
    newest = channel.send(b"new", headers={"Topic": "t"})
    assert first.status()["outcome"] == "replaced"
    assert [frame["version"] for frame in device.inbox()["envelopes"]][-1] == newest.id
    refused_as_full(channel.post(b"x", headers={"Topic": "other"}))


@pytest.mark.parametrize("make_room", ["cancel", "expire", "unregister"])
def test_each_message_that_leaves_a_full_inbox_makes_space(make_server, make_room):
    server = make_server(CARILLON_INBOX_ENVELOPES=2)
    device = server.register_device()
    channel, doomed = device.open_channel(), device.open_channel()
    sent = [doomed.send(b"x", ttl=1 if make_room == "expire" else 60) for _ in range(2)]
    refused_as_full(channel.post(b"x"))
    if make_room == "cancel":
        assert server.request("DELETE", sent[0].location).status_code == 204
    elif make_room == "expire":
        sent[0].final()
    else:
        assert device.request("DELETE", f"/v1/device/channels/{doomed.id}").status_code == 204
    channel.send(b"x")


def test_the_limit_applies_to_concurrent_senders(make_server):
    server = make_server(CARILLON_INBOX_ENVELOPES=10)
    device = server.register_device()
    channel = device.open_channel()
    statuses = in_parallel([lambda: channel.post(b"x").status_code for _ in range(30)])
    assert (statuses.count(201), statuses.count(429)) == (10, 20)
    assert len(device.inbox()["envelopes"]) == 10


def test_the_limit_is_the_same_after_a_restart(make_server):
    server = make_server(CARILLON_INBOX_ENVELOPES=3)
    channel = server.register_device().open_channel()
    for _ in range(3):
        channel.send(b"x")
    server.restart()
    refused_as_full(channel.post(b"x"))


def test_a_live_device_that_acknowledges_accepts_more_than_its_inbox_has(make_server):
    server = make_server(CARILLON_INBOX_ENVELOPES=3)
    device = server.register_device()
    channel = device.open_channel()
    with device.connect() as socket:
        socket.caught_up()
        for _ in range(12):
            sent = channel.send(b"x")
            socket.ack(socket.notification())
            assert sent.final()["outcome"] == "acknowledged"


# Idempotency


def with_key(key="a-key", **fields) -> dict:
    return {"Idempotency-Key": key, **fields}


def test_a_repeat_gets_the_first_answer_and_sends_nothing(device, channel):
    first = channel.post(b"x", headers=with_key())
    again = channel.post(b"x", headers=with_key())
    for answer in (first, again):
        assert answer.status_code == 201
    for name in ("Location", "TTL"):
        assert first.headers[name] == again.headers[name]
    assert len(device.inbox()["envelopes"]) == 1


def test_a_repeat_after_the_acknowledgement_sends_nothing(device, channel):
    with device.connect() as socket:
        socket.caught_up()
        sent = channel.send(b"x", headers=with_key())
        socket.ack(socket.notification())
        sent.final()
        assert channel.send(b"x", headers=with_key()).location == sent.location
        assert socket.before_pong() == []


def test_a_repeat_is_known_after_sigkill(make_server):
    server = make_server()
    device = server.register_device()
    channel = device.open_channel()
    first = channel.send(b"x", headers=with_key())
    server.kill()
    server.start()
    assert channel.send(b"x", headers=with_key()).location == first.location
    assert len(device.inbox()["envelopes"]) == 1


@pytest.mark.parametrize("connected", [False, True], ids=["absent", "connected"])
def test_concurrent_repeats_are_one_message(device, channel, connected):
    socket = device.connect() if connected else None
    if socket:
        socket.caught_up()
    answers = in_parallel([lambda: channel.post(b"x", headers=with_key()) for _ in range(12)])
    assert {answer.status_code for answer in answers} == {201}
    (location,) = {answer.headers["Location"] for answer in answers}
    if socket:
        assert socket.notification()["version"] == location.rsplit("/", 1)[1]
        assert socket.before_pong() == []
        socket.close()
    assert [frame["version"] for frame in device.inbox()["envelopes"]] == [location.rsplit("/", 1)[1]]


@pytest.mark.parametrize("change", ["body", "ttl", "topic", "urgency"])
def test_a_key_used_for_another_message_is_refused(device, channel, change):
    channel.send(b"x", headers=with_key())
    changed = {
        "body": lambda: channel.post(b"y", headers=with_key()),
        "ttl": lambda: channel.post(b"x", ttl=61, headers=with_key()),
        "topic": lambda: channel.post(b"x", headers=with_key(Topic="t")),
        "urgency": lambda: channel.post(b"x", headers=with_key(Urgency="high")),
    }[change]()
    assert_problem(changed, (409, 422))
    assert len(device.inbox()["envelopes"]) == 1


def test_the_same_key_on_another_channel_is_another_message(device, channel):
    other = device.open_channel()
    assert channel.send(b"x", headers=with_key()).location != other.send(b"x", headers=with_key()).location
    assert len(device.inbox()["envelopes"]) == 2


def test_a_refused_request_does_not_use_up_its_key(device, channel):
    assert channel.post(b"x", ttl="never", headers=with_key()).status_code == 400
    channel.send(b"x", headers=with_key())
    assert len(device.inbox()["envelopes"]) == 1


def test_a_request_refused_by_a_full_inbox_does_not_use_up_its_key(make_server):
    server = make_server(CARILLON_INBOX_ENVELOPES=1)
    device = server.register_device()
    channel = device.open_channel()
    blocking = channel.send(b"blocking")
    refused_as_full(channel.post(b"x", headers=with_key()))
    assert server.request("DELETE", blocking.location).status_code == 204
    sent = channel.send(b"x", headers=with_key())
    assert [frame["version"] for frame in device.inbox()["envelopes"]] == [sent.id]


def test_a_repeat_is_answered_even_when_the_inbox_is_full(make_server):
    server = make_server(CARILLON_INBOX_ENVELOPES=1)
    channel = server.register_device().open_channel()
    first = channel.send(b"x", headers=with_key())
    assert channel.send(b"x", headers=with_key()).location == first.location


def test_a_dropped_message_is_not_delivered_by_its_repeat(device, channel):
    first = channel.post(b"x", ttl=0, headers=with_key())
    assert first.headers["Carillon-Outcome"] == "dropped"
    with device.connect() as socket:
        socket.caught_up()
        again = channel.post(b"x", ttl=0, headers=with_key())
        assert again.headers["Location"] == first.headers["Location"]
        assert socket.before_pong() == []


@pytest.mark.parametrize("key", ["k" * 5000, ""], ids=["long", "empty"])
def test_a_malformed_key_is_refused(channel, key):
    assert_problem(channel.post(b"x", headers=with_key(key)), 400)


# Topics in flight


def test_a_message_replaced_in_flight_is_replaced_with_any_ack(device, channel):
    with device.connect() as socket:
        socket.caught_up()
        first = channel.send(b"1", headers={"Topic": "t"})
        old = socket.notification()
        second = channel.send(b"2", headers={"Topic": "t"})
        new = socket.notification()
        assert (new["version"], body_of(new)) == (second.id, b"2")
        socket.ack(old)
        assert socket.before_pong() == []
        assert second.status()["state"] == "waiting"
        assert first.status()["outcome"] == "replaced"
        socket.ack(new)
        assert second.final()["outcome"] == "acknowledged"
    with device.connect() as socket:
        assert socket.caught_up() == []


def test_only_the_newest_of_a_topic_comes_again_after_a_reconnect(device, channel):
    with device.connect() as socket:
        socket.caught_up()
        for n in range(3):
            newest = channel.send(f"{n}".encode(), headers={"Topic": "t"})
            socket.notification()
    with device.connect() as socket:
        assert [frame["version"] for frame in socket.caught_up()] == [newest.id]


def test_concurrent_messages_of_a_topic_leave_exactly_one(device, channel):
    sent = in_parallel([lambda n=n: channel.send(f"{n}".encode(), headers={"Topic": "t"}) for n in range(12)])
    (left,) = device.inbox()["envelopes"]
    outcomes = {s.id: s.status() for s in sent}
    assert outcomes.pop(left["version"])["state"] == "waiting"
    assert {status["outcome"] for status in outcomes.values()} == {"replaced"}


def test_replacements_behind_a_closed_window_free_it(make_server):
    """A replaced envelope that was offered no longer counts as unacknowledged."""
    server = make_server(CARILLON_WINDOW_ENVELOPES=1)
    device = server.register_device()
    channel = device.open_channel()
    with device.connect() as socket:
        socket.caught_up()
        for n in range(4):
            sent = channel.send(f"{n}".encode(), headers={"Topic": "t"})
            assert socket.notification()["version"] == sent.id


# The window and partial acks


@pytest.fixture
def narrow(make_server):
    server = make_server(CARILLON_WINDOW_ENVELOPES=3)
    return server.register_device()


def versions(frames):
    return [frame["version"] for frame in frames]


def test_no_more_than_the_window_is_offered_unacknowledged(narrow):
    """The newest is acknowledged first. The server may wait for more than one free place before it offers more."""
    channel = narrow.open_channel()
    sent = [channel.send(f"{n}".encode()).id for n in range(8)]
    seen, unacknowledged = [], []
    with narrow.connect() as socket:
        while (frame := socket.receive())["messageType"] == "notification":
            seen.append(frame["version"])
            unacknowledged.append(frame)
            assert len(unacknowledged) <= 3
            if len(unacknowledged) == 3 and len(seen) < len(sent):
                assert socket.before_pong() == []
                socket.ack(unacknowledged.pop(), *unacknowledged[1:])
                del unacknowledged[1:]
        assert frame["messageType"] == "caughtUp"
        socket.ack(*unacknowledged)
    assert seen == sent
    assert_nothing_waits(narrow)


def assert_nothing_waits(device):
    await_value(lambda: device.inbox()["envelopes"], lambda envelopes: envelopes == [], "an empty inbox")


def test_live_messages_beyond_the_window_wait_their_turn_in_order(narrow):
    channel = narrow.open_channel()
    with narrow.connect() as socket:
        socket.caught_up()
        sent = [channel.send(f"{n}".encode()).id for n in range(7)]
        seen = []
        while len(seen) < 7:
            frame = socket.notification()
            seen.append(frame["version"])
            socket.ack(frame)
        assert seen == sent
    assert_nothing_waits(narrow)


def test_messages_beyond_the_window_can_be_cancelled(narrow):
    channel = narrow.open_channel()
    with narrow.connect() as socket:
        socket.caught_up()
        sent = [channel.send(f"{n}".encode()) for n in range(6)]
        offered = socket.notifications(3)
        assert narrow.server.request("DELETE", sent[4].location).status_code == 204
        socket.ack(*offered)
        assert versions(socket.notifications(2)) == [sent[3].id, sent[5].id]


@pytest.mark.parametrize("leaving", ["cancel", "expire"])
def test_offered_messages_that_leave_the_inbox_free_the_window(narrow, leaving):
    """A message that has left the inbox needs no acknowledgement, and must not delay those in it."""
    channel = narrow.open_channel()
    with narrow.connect() as socket:
        socket.caught_up()
        first = [channel.send(b"x", ttl=1 if leaving == "expire" else 60) for _ in range(3)]
        socket.notifications(3)
        waiting = channel.send(b"waiting")
        for sent in first:
            if leaving == "cancel":
                assert narrow.server.request("DELETE", sent.location).status_code == 204
            sent.final()
        assert socket.notification()["version"] == waiting.id


def test_a_ttl_0_message_behind_a_closed_window_is_not_delivered_late(narrow):
    """Deliver now or drop: the answer must agree with the delivery."""
    channel = narrow.open_channel()
    with narrow.connect() as socket:
        socket.caught_up()
        for _ in range(3):
            channel.send(b"x")
        offered = socket.notifications(3)
        answer = channel.post(b"now", ttl=0)
        assert answer.status_code == 201
        outcome = answer.headers["Carillon-Outcome"]
        expected = {"dropped": [], "offered": [b"now"]}[outcome]
        assert [body_of(frame) for frame in socket.before_pong()] == expected
        socket.ack(*offered)
        assert socket.before_pong() == []


def test_results_over_http_open_the_window_of_the_socket(narrow):
    channel = narrow.open_channel()
    sent = [channel.send(f"{n}".encode()) for n in range(4)]
    with narrow.connect() as socket:
        offered = socket.notifications(3)
        narrow.results(*[{"version": frame["version"], "result": "acknowledged"} for frame in offered])
        assert socket.notification()["version"] == sent[3].id


def test_random_partial_acks_over_several_connections_deliver_each_message_until_its_ack(narrow):
    channel = narrow.open_channel()
    waiting = [channel.send(f"{n}".encode()).id for n in range(20)]
    while waiting:
        with narrow.connect() as socket:
            offered = socket.notifications(min(3, len(waiting)))
            assert versions(offered) == waiting[:3]
            chosen = offered[len(waiting) % len(offered)]
            socket.ack(chosen)
            waiting.remove(chosen["version"])
            await_acknowledged(narrow, chosen["version"])


def await_acknowledged(device, version):
    await_value(
        lambda: device.server.outcome("/message/" + version), lambda status: status["state"] == "final", "the ack"
    )


# Sockets


def test_a_connection_over_the_limit_is_refused_and_the_others_go_on(make_server):
    server = make_server(CARILLON_MAX_SOCKETS=3)
    sockets = [server.browser() for _ in range(3)]
    channel = sockets[0].register()
    with pytest.raises(InvalidStatus) as refused:
        server.connect()
    assert refused.value.response.status_code == 503
    assert "Retry-After" in refused.value.response.headers
    channel.send(b"x")
    assert body_of(sockets[0].notification()) == b"x"
    sockets[2].close()
    await_value(lambda: can_connect(server), bool, "a free place")


def can_connect(server) -> bool:
    try:
        server.browser().close()
        return True
    except InvalidStatus:
        return False


def test_messages_from_many_senders_arrive_once_each_in_the_order_of_the_inbox(device):
    channels = [device.open_channel() for _ in range(4)]
    seen = []
    with device.connect() as socket:
        socket.caught_up()
        done = threading.Event()

        def read():
            while not done.is_set() or len(seen) < 120:
                frame = socket.notification()
                seen.append(frame["version"])
                socket.ack(frame)
                if len(seen) == 120:
                    return

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        with ThreadPoolExecutor(4) as pool:
            posted = list(pool.map(lambda channel: [channel.send(b"x").id for _ in range(30)], channels))
        done.set()
        reader.join(30)
        assert len(seen) == 120
        for ids in posted:
            assert [version for version in seen if version in ids] == ids
        assert socket.before_pong() == []
