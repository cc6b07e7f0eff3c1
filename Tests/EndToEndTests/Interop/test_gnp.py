"""The protocol of BlackBerry's application servers (GNP1.0), as their samples use it."""

import pytest

from carillon_peer import assert_problem, in_parallel
from raw_peer import RawHTTP

CHECK = "/GNP1.0?method=checkToken"
NOTIFY = "/GNP1.0?method=notify"
TEXT = {"Content-Type": "text/plain; charset=utf-8"}


def token_of(channel) -> str:
    return channel.endpoint.rsplit("/", 1)[1]


def code(answer) -> str:
    """The code; the rest of the answer is always the same."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/plain"
    assert answer.headers["Content-Length"] == "0"
    assert answer.content == b""
    return answer.headers["X-Good-GNP-Code"]


def check(server, token) -> str:
    return code(server.request("GET", CHECK, headers={"X-Good-GNP-Token": token}))


def notify(server, token, body: bytes, headers=TEXT) -> str:
    return code(server.request("POST", NOTIFY, data=body, headers=headers | {"X-Good-GNP-Token": token}))


def test_a_live_token_is_ok(server, channel):
    assert check(server, token_of(channel)) == "100 OK"
    assert notify(server, token_of(channel), b"x") == "100 OK"


@pytest.mark.parametrize("token", ["", "null", "nonsense", "A" * 60])
def test_an_empty_or_unknown_token_is_invalid(server, token):
    assert check(server, token) == "402 Invalid Token"
    assert notify(server, token, b"x") == "402 Invalid Token"


def test_the_token_of_a_closed_channel_is_invalid(server, device, channel):
    assert device.request("DELETE", "/v1/device/channels/" + channel.id).status_code == 204
    assert check(server, token_of(channel)) == "402 Invalid Token"
    assert notify(server, token_of(channel), b"x") == "402 Invalid Token"


def test_ten_texts_arrive_in_order_byte_for_byte_the_empty_one_too(server, device, channel):
    texts = [b"", b"a", "Gr\u00fc\u00dfe \U0001f514".encode(), b"x" * 8192, b"\x00", b"{}", b" ", b"a\r\nb", b"5", b"end"]
    from carillon_peer import body_of

    with device.connect() as socket:
        socket.caught_up()
        for text in texts:
            assert notify(server, token_of(channel), text) == "100 OK"
        frames = socket.notifications(len(texts))
        assert [body_of(frame) if "data" in frame else b"" for frame in frames] == texts
        assert all(frame["headers"] == {"encoding": "identity"} for frame in frames if "data" in frame)


def test_a_message_waits_for_its_device(server, device, channel):
    assert notify(server, token_of(channel), b"later") == "100 OK"
    with device.connect() as socket:
        assert len(socket.caught_up()) == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/GNP1.0", None, "404 Unknown Method"),
        ("GET", "/GNP1.0?method=", None, "404 Unknown Method"),
        ("GET", "/GNP1.0?method=checktoken", None, "404 Unknown Method"),
        ("POST", "/GNP1.0?method=send", b"x", "404 Unknown Method"),
        ("POST", CHECK, b"", "405 Wrong HTTP Method"),
        ("GET", NOTIFY, None, "405 Wrong HTTP Method"),
        ("PUT", NOTIFY, b"x", "405 Wrong HTTP Method"),
        ("DELETE", CHECK, None, "405 Wrong HTTP Method"),
        ("POST", NOTIFY, b"x" * 8193, "413 Body Too Large"),
        ("POST", NOTIFY, b"x" * 200_000, "413 Body Too Large"),
        ("POST", NOTIFY, b"\xff\xfe", "415 Body Is Not UTF-8 Text"),
        ("POST", NOTIFY, b"\xed\xa0\x80", "415 Body Is Not UTF-8 Text"),
    ],
)
def test_each_malformed_request_has_a_code_of_its_own(server, channel, method, path, body, expected):
    headers = {"X-Good-GNP-Token": token_of(channel)}
    assert code(server.request(method, path, data=body, headers=headers)) == expected


@pytest.mark.parametrize(("method", "path"), [("GET", CHECK), ("POST", NOTIFY)])
def test_a_request_without_the_header_is_refused(server, method, path):
    assert code(server.request(method, path)) == "401 Missing Token"


def test_a_body_that_ends_early_delivers_nothing(server, device, channel):
    with RawHTTP(server) as raw:
        raw.send(
            f"POST {NOTIFY} HTTP/1.1\r\nHost: x\r\nX-Good-GNP-Token: {token_of(channel)}\r\nContent-Length: 50\r\n\r\nhalf"
        )
    assert device.inbox()["envelopes"] == []


def test_a_full_inbox_is_reported(make_server):
    server = make_server(CARILLON_INBOX_ENVELOPES=2)
    token = token_of(server.register_device().open_channel())
    assert [notify(server, token, b"x") for _ in range(3)] == ["100 OK", "100 OK", "429 Inbox Full"]
    assert check(server, token) == "100 OK"


def test_a_sender_beyond_its_rate_receives_the_time_of_the_next_attempt(make_server):
    server = make_server(CARILLON_CHANNEL_RATE="1:1")
    token = token_of(server.register_device().open_channel())
    headers = TEXT | {"X-Good-GNP-Token": token}
    # At once: one after the other they may take longer than the rate asks for.
    answers = in_parallel([lambda: server.request("POST", NOTIFY, data=b"x", headers=headers)] * 8)
    assert {code(answer) for answer in answers} == {"100 OK", "429 Rate Limited"}
    for answer in answers:
        assert answer.headers.get("Retry-After") in ((None,) if code(answer) == "100 OK" else ("1", "2"))


def test_a_channel_of_one_vapid_key_takes_nothing_this_way(server, device):
    from encryption_peer import Sender

    channel = device.open_channel(key=Sender().key)
    assert notify(server, token_of(channel), b"x") == "403 Sender Not Allowed"


def test_the_path_is_written_as_it_is(server):
    assert_problem(server.request("GET", "/gnp1.0?method=checkToken"), 404, "not_found")


def test_a_failed_ping_leaves_the_token_as_it_is(make_server):
    """No result of a ping closes the channel or requires another token."""
    from backend_peer import Backend

    backend = Backend()
    backend.status = 410
    server = make_server(CARILLON_ALLOW_PRIVATE_ADDRESSES="true", CARILLON_SHORTEST_PING_SECONDS=1)
    device = server.register_device()
    channel = device.open_channel()
    answer = server.request(
        "PUT", channel.endpoint + "/watch", json={"pingAddress": backend.url, "pingIntervalSeconds": 1}
    )
    assert answer.status_code == 201
    backend.await_calls(2)
    assert check(server, token_of(channel)) == "100 OK"
    assert notify(server, token_of(channel), b"x") == "100 OK"
    assert len(device.request("GET", "/v1/device").json()["channels"]) == 1
    backend.stop()
