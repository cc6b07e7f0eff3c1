"""The client's socket: greetings, channels, frames, evicted connections and acknowledgements."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.exceptions import ConnectionClosed

from carillon_peer import assert_problem, body_of, new_channel_id
from raw_peer import PING, PONG, RawWebSocket

# User agent identifiers and credentials in the greeting


def test_hello_without_uaid_receives_a_new_one(server):
    with server.browser() as first, server.browser() as second:
        for socket in (first, second):
            assert socket.greeting["status"] == 200
            assert re.fullmatch("[0-9a-f]{32}", socket.uaid)
        assert first.uaid != second.uaid


@pytest.mark.parametrize(
    "uaid", ["0" * 32, "not-a-uaid", "", "A" * 32, "é", "x" * 5000, "0" * 31, "0" * 33, "null"]
)
def test_hello_with_an_unknown_or_malformed_uaid_receives_a_new_one(server, uaid):
    with server.browser(uaid) as socket:
        assert socket.greeting["status"] == 200
        assert re.fullmatch("[0-9a-f]{32}", socket.uaid)
        assert socket.uaid != uaid


def test_hello_with_the_own_uaid_receives_the_same(server):
    with server.browser() as first:
        first.register()
    with server.browser(first.uaid) as second:
        assert second.uaid == first.uaid


def test_a_uaid_that_never_registered_was_not_stored(server):
    with server.browser() as first:
        pass
    with server.browser(first.uaid) as second:
        assert second.uaid != first.uaid


def test_the_id_of_a_registered_device_is_no_uaid(server, device, channel):
    """Its credential opens a device's inbox; the id alone must not."""
    channel.send(b"private")
    with server.browser(device.id) as socket:
        assert socket.uaid != device.id
        assert socket.before_pong() == []


@pytest.mark.parametrize("uaid", [7, None, ["x"], {"a": 1}, True])
def test_a_uaid_of_another_type_than_text_disconnects_no_device(server, uaid):
    """Either a new uaid or a clean close; autopush takes a malformed one for none."""
    with server.connect() as socket:
        socket.send({"messageType": "hello", "use_webpush": True, "uaid": uaid})
        assert socket.expect("hello")["status"] == 200


def test_a_carillon_client_is_greeted_and_caught_up(device):
    with device.connect() as socket:
        assert socket.greeting["status"] == 200
        assert socket.caught_up() == []


@pytest.mark.parametrize("change", ["device", "credential", "both", "empty", "missing", "other device's"])
def test_a_carillon_client_with_a_bad_credential_is_closed_with_4401(server, device, change):
    other = server.register_device()
    fields = {
        "device": {"device": "0" * 32, "credential": device.credential},
        "credential": {"device": device.id, "credential": device.credential[:-1] + "!"},
        "both": {"device": "x", "credential": "y"},
        "empty": {"device": device.id, "credential": ""},
        "missing": {"device": device.id},
        "other device's": {"device": device.id, "credential": other.credential},
    }[change]
    with server.connect() as socket:
        socket.send({"messageType": "hello", "carillon": 1, **fields})
        assert socket.close_code() == 4401


# Greetings of browsers


def test_hello_without_use_webpush_or_subprotocol_works(server):
    with server.connect() as socket:
        socket.send({"messageType": "hello"})
        greeting = socket.expect("hello")
        assert greeting["use_webpush"] is True
        assert greeting["status"] == 200
        assert isinstance(greeting["broadcasts"], dict)
        socket.register()


def test_the_handshake_of_firefox_is_accepted(server):
    url = server.url.replace("http", "ws")
    with server.connect(subprotocols=["push-notification"], origin=url + "/", compression="deflate") as socket:
        socket.send(
            {"messageType": "hello", "broadcasts": {"remote-settings/monitor_changes": '"1"'}, "use_webpush": True}
        )
        greeting = socket.expect("hello")
        assert greeting["use_webpush"] is True
        channel = socket.register(key=None)
        channel.send(b"x")
        assert body_of(socket.notification()) == b"x"


def test_unknown_fields_of_hello_are_ignored(server):
    with server.connect() as socket:
        socket.hello(channelIDs=["x", 7], wakeup_hostport={"ip": "x"}, mobilenetwork={}, interface="x")


# Registering and unregistering channels


def test_register_echoes_the_channel_id_and_returns_an_absolute_endpoint(server):
    with server.browser() as socket:
        channel_id = new_channel_id()
        channel = socket.register(channel_id)
        assert channel.id == channel_id
        assert channel.endpoint.startswith(server.url + "/push/")
        assert len(channel.endpoint) <= 1000


def test_a_repeated_register_keeps_the_earlier_endpoint_working(server):
    with server.browser() as socket:
        first = socket.register()
        again = socket.register(first.id)
        for channel in (first, again):
            sent = channel.send(b"x")
            frame = socket.notification()
            assert (frame["channelID"], frame["version"]) == (first.id, sent.id)
            socket.ack(frame)


@pytest.mark.parametrize("channel_id", ["", "x", "0" * 32, 7, None, ["a"], "é" * 36, "x" * 9000])
def test_a_badly_formed_channel_id_loses_nothing(server, channel_id):
    """autopush closes with 1011, Carillon may as well answer 400; both are clean, neither makes an endpoint."""
    with server.browser() as socket:
        kept = socket.register()
        socket.send({"messageType": "register", "channelID": channel_id})
        try:
            frame = socket.receive()
        except ConnectionClosed as closed:
            assert closed.rcvd is not None and closed.rcvd.code != 4774
        else:
            assert frame["messageType"] == "register" and frame["status"] == 400, frame
    with server.browser(socket.uaid) as again:
        assert again.uaid == socket.uaid
        kept.send(b"x")
        again.notification()


def test_a_registration_beyond_a_rate_is_no_bad_request(make_server):
    """To a client of this protocol 400 is final; Carillon's own clients also get the code and the time to wait."""
    server = make_server(CARILLON_REGISTRATION_RATE="1:2")

    def refusal(socket):
        for _ in range(10):
            socket.send({"messageType": "register", "channelID": new_channel_id()})
            frame = socket.expect("register")
            if frame["status"] != 200:
                return frame
        raise AssertionError("nothing was refused")

    with server.browser() as browser:
        frame = refusal(browser)
        assert set(frame) == {"messageType", "channelID", "status"} and frame["status"] == 500, frame
    with server.register_device().connect() as socket:
        socket.caught_up()
        frame = refusal(socket)
        assert (frame["status"], frame["code"]) == (500, "rate_limited") and frame["retryAfter"] >= 1, frame


def test_unregister_kills_the_endpoint_before_it_is_answered(server):
    with server.browser() as socket:
        channel, other = socket.register(), socket.register()
        channel.send(b"waiting")
        socket.notification()
        assert socket.unregister(channel.id) == {
            "messageType": "unregister",
            "channelID": channel.id,
            "status": 200,
        }
        assert_problem(channel.post(b"x"), (404, 410))
        other.send(b"x")
        assert socket.notification()["channelID"] == other.id


def test_unregister_of_an_unknown_channel_is_answered(server):
    with server.browser() as socket:
        socket.register()
        assert socket.unregister(new_channel_id())["status"] in (200, 404, 500)
        assert socket.before_pong() == []


# Endpoints of one device


def longest_common_part(first: str, second: str) -> int:
    longest = 0
    for start in range(len(first)):
        while first[start : start + longest + 1] in second and start + longest < len(first):
            longest += 1
    return longest


def test_two_endpoints_have_no_recognisable_part_in_common(server):
    with server.browser() as socket:
        channel = socket.register()
        tokens = [socket.register().endpoint.rsplit("/", 1)[1] for _ in range(3)]
        tokens += [socket.register(channel.id).endpoint.rsplit("/", 1)[1] for _ in range(2)]
        for index, first in enumerate(tokens):
            assert len(first) * 6 >= 120
            for second in tokens[:index]:
                assert longest_common_part(first, second) <= 5
            assert socket.uaid not in first and channel.id not in first


# Two clients


def test_one_client_cannot_unregister_or_acknowledge_for_another(server):
    with server.browser() as owner, server.browser() as stranger:
        channel = owner.register()
        stranger.register()
        sent = channel.send(b"x")
        frame = owner.notification()
        stranger.ack(frame)
        stranger.send({"messageType": "nack", "version": frame["version"], "code": 301})
        stranger.unregister(channel.id)
        assert stranger.before_pong() == []
        assert sent.status()["state"] == "waiting"
        channel.send(b"still there")
        assert body_of(owner.notification()) == b"still there"


def test_two_clients_may_use_the_same_channel_id(server):
    channel_id = new_channel_id()
    with server.browser() as first, server.browser() as second:
        one, two = first.register(channel_id), second.register(channel_id)
        one.send(b"one")
        two.send(b"two")
        assert body_of(first.notification()) == b"one"
        assert body_of(second.notification()) == b"two"
        first.unregister(channel_id)
        two.send(b"two again")
        assert body_of(second.notification()) == b"two again"


# Pings, dead peers and deadlines


def test_an_empty_object_is_answered_with_one(server):
    with server.browser() as socket:
        assert socket.before_pong() == []
        assert socket.last_text == "{}"


def test_a_ping_frame_is_answered_with_its_payload(server):
    with RawWebSocket(server) as raw:
        raw.send_frame(PING, b"before hello")
        assert raw.read_frame() == (PONG, b"before hello")
        raw.hello()
        raw.send_frame(PING, bytes(125))
        assert raw.read_frame() == (PONG, bytes(125))


def test_the_message_type_ping_is_answered(server):
    with server.browser() as socket:
        socket.send({"messageType": "ping"})
        assert socket.receive().get("messageType", "ping") == "ping"


def test_a_dead_peer_is_closed_with_4408_and_its_messages_kept(make_server):
    server = make_server(CARILLON_KEEP_ALIVE_SECONDS=1, CARILLON_KEEP_ALIVE_ANSWER_SECONDS=10)
    with server.browser() as living, RawWebSocket(server) as dead:
        uaid = dead.hello()["uaid"]
        channel_id = new_channel_id()
        dead.send_text(json.dumps({"messageType": "register", "channelID": channel_id}))
        endpoint = json.loads(dead.read_frame()[1])["pushEndpoint"]
        assert dead.close_code() == 4408
        answer = server.request("POST", endpoint, headers={"TTL": "60"})
        assert answer.headers["Carillon-Outcome"] == "waiting"
        with server.browser(uaid) as again:
            assert again.notification()["version"] == answer.headers["Location"].rsplit("/", 1)[1]
        assert living.before_pong() == []


@pytest.mark.parametrize("fault", ["nonsense", '{"messageType":"hello"}', b"binary"])
def test_a_connection_that_the_server_ended_is_offered_nothing_any_more(device, channel, fault):
    with device.connect() as socket:
        socket.send(fault)
        socket.close_code()
        assert channel.send(b"now", ttl=0).outcome_header == "dropped"
        assert channel.send(b"later").outcome_header == "waiting"


def test_an_idle_connection_is_closed_with_1008_after_the_hello_deadline(make_server):
    """Not before it: a client on a slow line counts on the whole of it."""
    server = make_server(CARILLON_HELLO_SECONDS=1)
    for _ in range(3):
        with server.connect() as socket:
            begin = time.monotonic()
            assert socket.close_code() == 1008
            assert time.monotonic() - begin >= 0.99


# Data and headers of a notification


def test_a_notification_has_data_and_headers_or_neither(device, channel):
    channel.send(b"")
    channel.send(b"body", encoding="identity")
    with device.connect() as socket:
        empty, full = socket.caught_up()
    assert empty.keys() == {"messageType", "channelID", "version"}
    assert full.keys() == {"messageType", "channelID", "version", "data", "headers"}


def test_an_empty_body_with_a_content_encoding_is_an_empty_message(device, channel):
    """`data: ""` with headers would be error 101 in Firefox."""
    channel.send(b"", headers={"Content-Encoding": "aes128gcm"})
    (frame,) = device.inbox()["envelopes"]
    assert "data" not in frame and "headers" not in frame


# Frames that are invalid or unknown


@pytest.mark.parametrize(
    "text",
    [
        '{"messageType":"dance"}',
        '{"messageType":7}',
        '{"messageType":null}',
        '{"type":"hello"}',
        "[]",
        "null",
        "7",
        '"x"',
        "{",
        "",
        "nonsense",
        '{"messageType":"ack"}',
        '{"messageType":"ack","updates":7}',
        '{"messageType":"ack","updates":[7]}',
        '{"messageType":"hello"}',
        '{"messageType":"register"}',
        '{"messageType":"unregister"}',
        '{"messageType":"nack"}',
        '{"a":' * 5000,
        "[" * 30000,
        '{"messageType":"notification"}',
    ],
)
def test_a_frame_that_makes_no_sense_ends_or_leaves_this_connection_and_loses_nothing(server, text):
    with server.browser() as bystander, server.browser() as socket:
        channel = socket.register()
        sent = channel.send(b"x")
        socket.notification()
        socket.send(text)
        try:
            socket.before_pong()
        except ConnectionClosed as closed:
            assert closed.rcvd is not None and closed.rcvd.code in (1002, 1007), closed
        assert bystander.before_pong() == []
    with server.browser(socket.uaid) as again:
        assert again.notification()["version"] == sent.id


@pytest.mark.parametrize(
    "text",
    [
        '{"messageType":"broadcast_v2","broadcasts":{"a":{"b":[1]}}}',
        '{"messageType":"notification","data":"x"}',
        '{"messageType":""}',
        '{"messageType":"ack","updates":[],"more":{"a":null}}',
    ],
)
def test_frames_of_a_later_browser_are_accepted(server, text):
    with server.browser() as socket:
        channel = socket.register()
        socket.send(text)
        socket.before_pong()
        channel.send(b"still here")
        assert body_of(socket.notification()) == b"still here"


def test_a_carillon_client_with_an_unknown_frame_receives_an_error(device):
    with device.connect() as socket:
        socket.send({"messageType": "dance"})
        assert socket.close_code() == 1002


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nonsense", 1002),
        ('{"messageType":"hello"}', 1002),
        (b"binary", 1003),
        ("x" * 65537, 1009),
    ],
    ids=["bad JSON", "second hello", "binary", "oversized"],
)
def test_each_fault_has_its_close_code(server, text, code):
    with server.browser() as socket:
        socket.send(text)
        assert socket.close_code() == code


@pytest.mark.parametrize(
    "frame",
    ['{"messageType":"register","channelID":"x"}', "{}", '{"messageType":"ack","updates":[]}', "nonsense", b"\0"],
)
def test_anything_but_hello_at_first_closes(server, frame):
    with server.connect() as socket:
        socket.send(frame)
        assert socket.close_code() in (1002, 1003, 1008)


# Several connections of one device


@pytest.mark.parametrize("kind", ["autopush", "carillon"])
def test_the_newer_connection_evicts_the_older_and_gets_the_messages(server, kind):
    if kind == "carillon":
        device = server.register_device()
        channel, connect = device.open_channel(), device.connect
        older = connect()
        older.caught_up()
    else:
        older = server.browser()
        channel, connect = older.register(), lambda: server.browser(older.uaid)
    first = channel.send(b"1")
    older.notification()
    newer = connect()
    assert newer.notification()["version"] == first.id
    assert older.close_code() == 4409
    second = channel.send(b"2")
    frames = [newer.receive() for _ in range(2 if kind == "carillon" else 1)]
    assert second.id in [frame.get("version") for frame in frames]
    newer.close()


def test_many_connections_of_one_device_end_with_one_and_lose_nothing(device, channel):
    sent = [channel.send(f"{n}".encode()).id for n in range(5)]
    with ThreadPoolExecutor(8) as pool:
        raced = list(pool.map(lambda _: try_to_connect(device), range(16)))
    with device.connect() as last:
        assert [frame["version"] for frame in last.caught_up()] == sent
        assert {socket.close_code() for socket in raced if socket} <= {4409}
        assert last.before_pong() == []


def try_to_connect(device):
    try:
        return device.connect()
    except ConnectionClosed as closed:
        assert closed.rcvd is not None and closed.rcvd.code == 4409


def test_messages_sent_while_connections_change_all_arrive(device, channel):
    seen = []

    def connect_and_take_what_waits():
        with device.connect() as socket:
            while (frame := socket.receive())["messageType"] != "caughtUp":
                seen.append(frame["version"])
                socket.ack(frame)

    with ThreadPoolExecutor(1) as pool:
        posting = pool.submit(lambda: [channel.send(f"{n}".encode()) for n in range(60)])
        while not posting.done():
            connect_and_take_what_waits()
        connect_and_take_what_waits()
    assert set(seen) == {sent.id for sent in posting.result()}
    for sent in posting.result():
        assert sent.final()["outcome"] == "acknowledged"


# Acknowledgements with and without a code


def test_acks_with_code_without_code_and_for_unknown_versions_are_no_error(server):
    with server.browser() as socket:
        channel = socket.register()
        plain, coded = channel.send(b"plain"), channel.send(b"coded")
        first, second = socket.notifications(2)
        socket.ack(first, code=None)
        socket.ack(second, code=100)
        for version in ("x", "A" * 32, "", "é", "x" * 5000):
            socket.ack({"channelID": channel.id, "version": version})
            socket.send({"messageType": "nack", "version": version})
        socket.ack({"channelID": new_channel_id(), "version": first["version"]})
        socket.send({"messageType": "ack", "updates": []})
        assert socket.before_pong() == []
        assert plain.final()["outcome"] == coded.final()["outcome"] == "acknowledged"


@pytest.mark.parametrize("code", [101, 102])
def test_an_error_code_of_an_ack_is_found_in_the_outcome(server, code):
    with server.browser() as socket:
        sent = socket.register().send(b"x")
        socket.ack(socket.notification(), code=code)
        final = sent.final()
        assert (final["outcome"], final["code"]) == ("failed", code)


@pytest.mark.parametrize(("code", "told"), [(301, 301), (302, 302), (303, 303), (None, 303)])
def test_a_nack_is_found_in_the_outcome(server, code, told):
    with server.browser() as socket:
        sent = socket.register().send(b"x")
        version = socket.notification()["version"]
        socket.send({"messageType": "nack", "version": version} | ({} if code is None else {"code": code}))
        final = sent.final()
        assert (final["outcome"], final["code"]) == ("failed", told)


def test_a_nack_after_the_ack_of_firefox_is_no_error(server):
    """A failing worker in Firefox sends ack 100 and then nack 301."""
    with server.browser() as socket:
        sent = socket.register().send(b"x")
        frame = socket.notification()
        socket.ack(frame)
        socket.send({"messageType": "nack", "version": frame["version"], "code": 301})
        assert socket.before_pong() == []
        assert sent.final()["state"] == "final"


def test_a_broadcast_subscription_is_no_error(server):
    with server.browser() as socket:
        socket.send(
            {"messageType": "broadcast_subscribe", "broadcasts": {"remote-settings/monitor_changes": '"1"'}}
        )
        assert all(frame["messageType"] == "broadcast" for frame in socket.before_pong())


def device_with(server, channel) -> str:
    """The id by which operators know the anonymous device that opened the channel."""
    for device in reversed(server.devices_of("anonymous")):
        known = server.admin("GET", "/v1/devices/" + device).json()
        if channel.id in [open_channel["channelID"] for open_channel in known["channels"]]:
            return device
    raise AssertionError("no anonymous device has the channel")


# Autopush clients and anonymous devices


def test_an_autopush_client_is_never_sent_a_frame_of_carillons_own(server):
    known = {"hello", "register", "unregister", "notification", "broadcast"}
    with server.browser() as socket:
        channel, revoked = socket.register(), socket.register()
        channel.send(b"x")
        frames = [socket.notification()]
        path = f"/v1/devices/{device_with(server, revoked)}/channels/{revoked.id}/revoke"
        assert server.admin("POST", path, {}).status_code in (200, 202, 204)
        frames += socket.before_pong()
    with server.browser(socket.uaid) as again:
        again.notification()
        frames += again.before_pong()
    assert {frame["messageType"] for frame in frames} <= known
    assert_problem(revoked.post(b"x"), (404, 410))


def test_the_socket_wants_get_upgrade_and_the_root(server):
    assert_problem(server.request("GET", "/"), (400, 404, 426))
    assert_problem(server.request("POST", "/", data=b"x"), (404, 405))


def test_an_anonymous_device_belongs_to_the_anonymous_app(server):
    with server.browser() as socket:
        device = device_with(server, socket.register())
        assert server.admin("GET", f"/v1/devices/{device}").json()["app"] == "anonymous"


def test_the_id_of_an_anonymous_device_does_not_open_its_inbox(server):
    """The uaid is its only credential; operators and logs know the device by another id."""
    with server.browser() as socket:
        channel = socket.register()
        device = device_with(server, channel)
        assert device != socket.uaid
        with server.browser(device) as stranger:
            channel.send(b"private")
            assert stranger.before_pong() == []
        assert body_of(socket.notification()) == b"private"
