"""The backend's watch: pings, the events of its channel, the call at the channel's end, and signatures."""

import base64
import sqlite3
import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from backend_peer import Backend
from carillon_peer import PATIENCE, Channel, assert_problem, await_value

SETTINGS = {
    "CARILLON_ALLOW_PRIVATE_ADDRESSES": "true",
    "CARILLON_SHORTEST_PING_SECONDS": 1,
    "CARILLON_CALLBACK_ANSWER_SECONDS": 2,
}


@pytest.fixture
def watching(make_server):
    """A server that pings every second, also at this machine."""
    return make_server(**SETTINGS)


@pytest.fixture
def backend():
    backend = Backend()
    yield backend
    backend.gate.set()
    backend.stop()


def watch(channel, **fields):
    return channel.server.request("PUT", channel.endpoint + "/watch", json=fields)


def put(channel, **fields) -> dict:
    answer = watch(channel, **fields)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def shown(channel) -> dict:
    answer = channel.server.request("GET", channel.endpoint + "/watch")
    assert answer.status_code == 200, answer.text
    return answer.json()


def let_time_pass(server, seconds: int):
    """Waits until another backend, pinged once a second, was pinged so often that all work due by then had its turn."""
    other = Backend()
    channel = server.register_device().open_channel()
    put(channel, pingAddress=other.url, pingIntervalSeconds=1)
    other.await_calls(seconds + 1, patience=PATIENCE + 2 * seconds)
    put(channel, disconnectAddress=other.url)
    other.stop()


def event(socket) -> tuple:
    """The next event of a channel. The first one can come before the socket has caught up."""
    while (frame := socket.receive())["messageType"] == "caughtUp":
        pass
    assert frame["messageType"] == "channel", frame
    socket.ack(frame)
    return frame["event"], frame.get("code")


def test_the_channel_hears_live_why_its_backend_is_gone_and_that_it_is_back(watching, backend):
    device = watching.register_device()
    channel, other = device.open_channel(), watching.register_device().open_channel()
    secret = put(channel, pingAddress=backend.url + "/ping", pingIntervalSeconds=1)["secret"]
    with device.connect() as socket:
        socket.caught_up()
        backend.await_calls(1)
        backend.stop()
        assert event(socket) == ("pingFailed", 601)
        backend.status = 410
        backend.start()
        assert event(socket) == ("pingFailed", 605)
        backend.status = 200
        assert event(socket) == ("recovered", None)
        # The channel is open all the while, and the same token works.
        channel.send(b"after")
        socket.ack(socket.notification())
    for call in backend.calls:
        data = call.verify(secret)
        assert data["type"] == "channel.ping"
        assert data["data"] == {"token": channel.endpoint.rsplit("/", 1)[1]}
    assert other.server.request("GET", other.endpoint + "/watch").status_code == 404


def test_a_token_that_is_lost_again_after_the_backend_registered_anew_is_reported_again(watching, backend):
    device = watching.register_device()
    channel = device.open_channel()
    address = {"pingAddress": backend.url, "pingIntervalSeconds": 1}
    backend.status = 410
    put(channel, **address)
    with device.connect() as socket:
        socket.caught_up()
        for _ in range(2):
            assert event(socket) == ("pingFailed", 605)
            put(channel, **address)
            assert event(socket) == ("recovered", None)


def test_events_that_a_device_missed_are_delivered_at_its_next_connection_once(watching, backend):
    device = watching.register_device()
    channel = device.open_channel()
    backend.status = 500
    put(channel, pingAddress=backend.url, pingIntervalSeconds=1)
    backend.await_calls(2)
    with device.connect() as socket:
        frames = socket.caught_up()
        assert [(frame["event"], frame["code"]) for frame in frames] == [("pingFailed", 604)]
        assert frames[0]["channelID"] == channel.id
        socket.ack(frames[0])
        backend.await_calls(len(backend.calls) + 2)
        assert socket.before_pong() == []
    backend.status = 200
    await_value(lambda: shown(channel)["lastPing"]["result"], lambda it: it == "answered", "a good ping")
    with device.connect() as socket:
        assert [frame["event"] for frame in socket.caught_up()] == ["recovered"]


def test_a_client_that_does_not_speak_carillon_hears_nothing_of_it(watching, backend):
    backend.status = 410
    browser = watching.browser()
    channel = browser.register()
    put(channel, pingAddress=backend.url, pingIntervalSeconds=1)
    backend.await_calls(3)
    channel.send(b"x")
    assert browser.notification()["channelID"] == channel.id
    assert browser.before_pong() == []
    browser.close()


def test_pings_come_about_every_interval_and_end_with_the_watch(watching, backend):
    channel = watching.register_device().open_channel()
    put(channel, pingAddress=backend.url, pingIntervalSeconds=2)
    backend.await_calls(1)
    began, before = time.monotonic(), len(backend.calls)
    backend.await_calls(before + 3)
    assert time.monotonic() - began >= 3.5
    assert watching.request("DELETE", channel.endpoint + "/watch").status_code == 204
    assert_problem(watching.request("GET", channel.endpoint + "/watch"), 404, "watch_unknown")
    after = len(backend.calls)
    let_time_pass(watching, 3)
    assert len(backend.calls) <= after + 1


@pytest.mark.parametrize("ending", ["socket", "http", "revoked", "failed", "device", "operator", "app"])
def test_the_end_of_a_channel_is_called_back_once_and_ends_the_pings(watching, backend, ending):
    device = watching.register_device()
    channel = device.open_channel()
    secret = put(channel, pingAddress=backend.url, pingIntervalSeconds=1, disconnectAddress=backend.url + "/gone")["secret"]
    backend.await_calls(1)
    reason = "revoked"
    if ending == "socket":
        reason = "unregistered"
        with device.connect() as socket:
            socket.caught_up()
            socket.unregister(channel.id)
    elif ending == "http":
        reason = "unregistered"
        assert device.request("DELETE", "/v1/device/channels/" + channel.id).status_code == 204
    elif ending in ("revoked", "failed"):
        body = {"code": 503} if ending == "failed" else None
        answer = watching.admin("POST", f"/v1/devices/{device.id}/channels/{channel.id}/revoke", body)
        assert answer.status_code == 204
    elif ending == "device":
        reason = "device_deleted"
        assert device.request("DELETE", "/v1/device").status_code == 204
    elif ending == "operator":
        reason = "device_deleted"
        assert watching.admin("DELETE", "/v1/devices/" + device.id).status_code == 204
    else:
        reason = "app_deleted"
        assert watching.admin("DELETE", "/v1/apps/com.example.app").status_code == 204
    gone = await_value(
        lambda: [call for call in backend.calls if call.path == "/gone"], bool, "the callback"
    )
    data = gone[0].verify(secret)
    assert data["type"] == "channel.disconnected"
    assert data["data"] == {"token": channel.endpoint.rsplit("/", 1)[1], "reason": reason}
    after = len(backend.calls)
    if ending != "app":
        # Nothing of the app is left that could be pinged meanwhile.
        let_time_pass(watching, 3)
    assert len(backend.calls) <= after + 1, "the pings must end"
    assert len([call for call in backend.calls if call.path == "/gone"]) == 1
    assert_problem(watching.request("GET", channel.endpoint + "/watch"), 410, "token_gone")


def test_the_loss_of_a_connection_is_no_disconnect(watching, backend):
    device = watching.register_device()
    channel = device.open_channel()
    put(channel, disconnectAddress=backend.url)
    with device.connect() as socket:
        socket.caught_up()
    let_time_pass(watching, 2)
    assert backend.calls == []
    assert "pingAddress" not in shown(channel)


def test_a_callback_survives_kill_9_and_is_not_repeated_once_answered(watching, backend):
    device = watching.register_device()
    channel = device.open_channel()
    secret = put(channel, disconnectAddress=backend.url)["secret"]
    backend.status = 500
    assert device.request("DELETE", "/v1/device").status_code == 204
    backend.await_calls(1)
    watching.kill()
    backend.status = 200
    watching.start()
    # Killed within a call, the lease must end first; killed after it, the next attempt is due sooner.
    calls = backend.await_calls(2, patience=PATIENCE * 5)
    assert {call.id for call in calls} == {calls[0].id}
    for call in calls:
        call.verify(secret)
    watching.restart()
    let_time_pass(watching, 2)
    assert len(backend.calls) == 2


def test_a_ping_that_was_under_way_when_the_server_was_killed_comes_again(watching, backend):
    device = watching.register_device()
    channel = device.open_channel()
    backend.gate.clear()
    secret = put(channel, pingAddress=backend.url, pingIntervalSeconds=1)["secret"]
    backend.await_calls(1)
    watching.kill()
    backend.gate.set()
    backend.status = 410
    watching.start()
    with device.connect() as socket:
        frame = socket.receive(PATIENCE * 5)
        while frame["messageType"] == "caughtUp":
            frame = socket.receive(PATIENCE * 5)
        assert (frame["event"], frame["code"]) == ("pingFailed", 605)
    assert backend.calls[-1].verify(secret)


def test_a_secret_is_kept_until_a_new_one_is_asked_for_and_is_not_in_the_data(watching, backend):
    channel = watching.register_device().open_channel()
    first = put(channel, pingAddress=backend.url, pingIntervalSeconds=1)["secret"]
    assert first.startswith("whsec_") and len(base64.b64decode(first[6:])) == 32
    assert "secret" not in put(channel, pingAddress=backend.url, pingIntervalSeconds=1)
    assert "secret" not in shown(channel)
    backend.await_calls(1)[0].verify(first)
    second = put(channel, pingAddress=backend.url, pingIntervalSeconds=1, renewSecret=True)["secret"]
    assert second != first
    call = backend.await_calls(len(backend.calls) + 2)[-1]
    call.verify(second)
    with pytest.raises(WebhookVerificationError):
        call.verify(first)
    assert watching.stop() == 0
    stored = b"".join(path.read_bytes() for path in watching.data.rglob("*") if path.is_file())
    token = channel.endpoint.rsplit("/", 1)[1]
    log = watching.log.read_text()
    for secret in (first, second, token):
        assert secret.encode() not in stored and secret not in log
    for secret in (first, second):
        assert base64.b64decode(secret[6:]) not in stored


def test_a_watch_whose_secret_is_lost_is_reported_and_registered_anew_with_another(watching, backend):
    device = watching.register_device()
    channel = device.open_channel()
    first = put(channel, pingAddress=backend.url, pingIntervalSeconds=1, disconnectAddress=backend.url + "/gone")["secret"]
    ended = device.open_channel()
    put(ended, disconnectAddress=backend.url + "/gone")
    backend.await_calls(1)[0].verify(first)
    assert watching.stop() == 0
    with sqlite3.connect(watching.data / "carillon.sqlite") as database:
        # The key that tokens and secrets are sealed under is replaced by another.
        database.execute("UPDATE token_key SET id = id + 1, bytes = randomblob(32)")
    watching.start()
    before = len(backend.calls)
    with device.connect() as socket:
        frame = socket.receive(PATIENCE * 5)
        while frame["messageType"] != "channel":
            frame = socket.receive(PATIENCE * 5)
        assert (frame["event"], frame["code"]) == ("pingFailed", 605)
        socket.ack(frame)
        # The app opens the channel again under its name, as required, and sends the new token to its backend.
        answer = device.request("POST", "/v1/device/channels", {"channelID": channel.id})
        assert answer.status_code in (200, 201)
        renewed = Channel(watching, channel.id, answer.json()["endpoint"])
        second = put(renewed, pingAddress=backend.url, pingIntervalSeconds=1)["secret"]
        assert second != first
        assert event(socket) == ("recovered", None)
    assert len(backend.calls[before:]) == 0 or backend.calls[before].verify(second)
    backend.await_calls(before + 2)[-1].verify(second)
    assert device.request("DELETE", "/v1/device/channels/" + ended.id).status_code == 204
    let_time_pass(watching, 2)
    assert [call.path for call in backend.calls if call.path == "/gone"] == []


def test_a_signature_does_not_fit_another_body_another_time_or_another_id(watching, backend):
    channel = watching.register_device().open_channel()
    secret = put(channel, pingAddress=backend.url, pingIntervalSeconds=1)["secret"]
    call = backend.await_calls(1)[0]
    verifier = Webhook(secret)
    assert abs(int(call.headers["webhook-timestamp"]) - time.time()) < PATIENCE
    for changed in (
        {"webhook-id": call.id + "x"},
        {"webhook-timestamp": str(int(call.headers["webhook-timestamp"]) + 1)},
        {"webhook-signature": call.headers["webhook-signature"][:-4] + "AAA="},
    ):
        with pytest.raises(WebhookVerificationError):
            verifier.verify(call.body, call.headers | changed)
    with pytest.raises(WebhookVerificationError):
        verifier.verify(call.body + b" ", call.headers)


def test_a_watch_requires_a_live_token_of_this_server(watching, backend):
    device = watching.register_device()
    channel = device.open_channel()
    body = {"pingAddress": backend.url}
    foreign = "A" * 60
    for method in ("PUT", "GET", "DELETE"):
        json = body if method == "PUT" else None
        for token in (foreign, "x", "%00", channel.endpoint.rsplit("/", 1)[1][:-1] + "!"):
            assert_problem(watching.request(method, f"/push/{token}/watch", json=json), 404, "token_unknown")
    assert device.request("DELETE", "/v1/device/channels/" + channel.id).status_code == 204
    for method in ("PUT", "GET", "DELETE"):
        json = body if method == "PUT" else None
        assert_problem(watching.request(method, channel.endpoint + "/watch", json=json), 410, "token_gone")
    assert backend.calls == []


def test_a_channel_of_one_vapid_key_is_watched_by_its_holder_only(watching, backend):
    from encryption_peer import Sender

    sender, stranger = Sender(), Sender()
    channel = watching.register_device().open_channel(key=sender.key)
    claims = {"sub": "mailto:ops@example.com", "aud": watching.url, "exp": int(time.time()) + 600}
    body = {"pingAddress": backend.url}
    assert_problem(watch(channel, **body), 401, "vapid_missing")
    address = channel.endpoint + "/watch"
    refused = watching.request("PUT", address, json=body, headers=stranger.headers(claims))
    assert_problem(refused, 403, "vapid_invalid")
    assert watching.request("PUT", address, json=body, headers=sender.headers(claims)).status_code == 201
    assert_problem(watching.request("GET", address), 401, "vapid_missing")


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:1", "http://[::1]:1", "http://[::ffff:7f00:1]", "http://10.1.2.3", "http://169.254.169.254/latest",
     "http://localhost", "http://[fe80::1]", "http://[64:ff9b::10.0.0.1]", "http://[2002:7f00:1::1]", "http://0.0.0.0"],
)
def test_private_addresses_are_refused_where_the_operator_does_not_allow_them(server, channel, address):
    assert_problem(watch(channel, pingAddress=address), 403, "watch_address_forbidden")
    assert_problem(watch(channel, disconnectAddress=address), 403, "watch_address_forbidden")


@pytest.mark.parametrize(
    "address", ["http://2130706433", "http://0177.0.0.1", "http://0x7f000001", "http://127.1", "ftp://example.com",
                "http://u:p@example.com", "example.com", "http://example.com:99999"],
)
def test_addresses_that_are_read_in_two_ways_or_none_are_refused(server, channel, address):
    assert_problem(watch(channel, pingAddress=address), 400, "watch_address_invalid")


def test_a_server_for_development_calls_this_machine(make_server, backend):
    channel = make_server(CARILLON_DEV="true").register_device().open_channel()
    assert watch(channel, disconnectAddress=backend.url).status_code == 201


def test_a_name_that_leads_to_this_machine_is_found_out_when_it_is_called(make_server, backend):
    """`localtest.me` and the like lead to 127.0.0.1; here the machine's own name does."""
    import socket

    name = socket.gethostname().lower()
    if "." not in name and name == "localhost":
        pytest.skip("this machine has no name but localhost")
    server = make_server(CARILLON_SHORTEST_PING_SECONDS=1)
    device = server.register_device()
    channel = device.open_channel()
    answer = watch(channel, pingAddress=f"http://{name}:{backend.port}", pingIntervalSeconds=1)
    if answer.status_code != 201:
        pytest.skip(f"{name} is not a host name")
    last = await_value(lambda: shown(channel).get("lastPing"), bool, "a ping")
    assert last["code"] in (600, 601)
    assert backend.calls == []
