"""Bad HTTP input: slow, oversized, malformed and mislabelled requests, each refused with a problem document."""

import json
import random
import socket
import threading

import pytest

from carillon_peer import APP, assert_problem, await_value, body_of, in_parallel, new_channel_id
from raw_peer import RawHTTP

SLOW = 20  # seconds after which a slow request must be ended
FAR_BEYOND = 50_000_000  # bytes: more than the buffers between two sockets


def path_of(channel) -> str:
    return "/" + channel.endpoint.split("/", 3)[3]


def push_head(channel, *lines: str) -> str:
    head = [f"POST {path_of(channel)} HTTP/1.1", "Host: localhost", "TTL: 60", "Content-Encoding: identity", *lines]
    return "\r\n".join(head) + "\r\n"


@pytest.fixture(autouse=True)
def still_serving(server, channel):
    """After each test, the server continues."""
    yield
    channel.send(b"still here")


# Slow requests


def test_slow_heads_and_bodies_are_ended_with_408(make_server):
    """A byte now and then does not buy time; all of them wait at once, so that the test takes as long as one."""
    server = make_server(CARILLON_HEAD_SECONDS=1, CARILLON_BODY_SECONDS=2)
    device = server.register_device()
    channel = device.open_channel()
    starts = {
        "nothing": ("", ""),
        "a head without end": (push_head(channel), ""),
        "a head byte by byte": (push_head(channel) + "X-Slow: ", "x"),
        "many small fields": (push_head(channel), "X: y\r\n"),
        "a body without end": (push_head(channel, "Content-Length: 10", "") + "abc", ""),
        "a body byte by byte": (push_head(channel, "Content-Length: 5000", ""), "x"),
        "chunks byte by byte": (push_head(channel, "Transfer-Encoding: chunked", ""), "1\r\nx\r\n"),
        "a chunk without end": (push_head(channel, "Transfer-Encoding: chunked", "") + "5\r\nab", ""),
    }

    def run(start, drip):
        with RawHTTP(server, patience=SLOW) as raw:
            if start:
                raw.send(start)
            finished = threading.Event()

            def keep_dripping():
                while drip and not finished.wait(0.2):
                    try:
                        raw.send(drip)
                    except OSError:
                        return

            dripping = threading.Thread(target=keep_dripping, daemon=True)
            dripping.start()
            try:
                answer = raw.read_problem()
                raw.read_to_end()
                return answer[0]
            finally:
                finished.set()
                dripping.join()

    statuses = in_parallel([lambda slow=slow: run(*slow) for slow in starts.values()], patience=SLOW)
    assert dict(zip(starts, statuses)) == dict.fromkeys(starts, 408)
    assert device.inbox()["envelopes"] == []


def test_slow_connections_do_not_keep_others_waiting(server, channel):
    slow = [RawHTTP(server) for _ in range(100)]
    try:
        for raw in slow:
            raw.send("POST /push/x HTTP/1.1\r\nHost: ")
        channel.send(b"x")
    finally:
        for raw in slow:
            raw.socket.close()


def test_a_peer_that_takes_nothing_is_let_go(make_server):
    """Answers that are not read are not kept for ever; the time is a setting."""
    server = make_server(CARILLON_STALL_SECONDS=1)
    device = server.register_device()
    channel = device.open_channel()
    for _ in range(60):
        channel.send(random.randbytes(8192), ttl=600)
    with RawHTTP(server) as raw:
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = f"GET /v1/inbox?max=60 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {device.credential}\r\n\r\n"
        try:
            for _ in range(40):
                raw.send(head)
        except (BrokenPipeError, ConnectionResetError):
            pass
        await_value(server.http_connections, lambda count: count == 0, "connections", patience=SLOW)


# Heads


@pytest.mark.parametrize(
    "lines",
    [
        ["X-Long: " + "x" * 70_000],
        [f"X-{n}: y" for n in range(5000)],
        ["X" * 70_000 + ": y"],
        ["Authorization: Bearer " + "x" * 70_000],
    ],
    ids=["long value", "many fields", "long name", "long secret"],
)
def test_an_oversized_head_is_refused_with_431(server, channel, lines):
    with RawHTTP(server) as raw:
        send_leniently(raw, push_head(channel, *lines, ""))
        assert raw.read_problem()[0] == 431


def test_an_oversized_target_is_refused(server):
    with RawHTTP(server) as raw:
        send_leniently(raw, "GET /push/" + "x" * 70_000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert raw.read_problem()[0] in (414, 431)


def test_a_head_without_end_is_cut_off_at_the_limit(server):
    with RawHTTP(server) as raw:
        sent = 0
        raw.send("GET / HTTP/1.1\r\n")
        try:
            while sent < FAR_BEYOND:
                raw.send("X-More: " + "x" * 60_000 + "\r\n")
                sent += 60_010
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < FAR_BEYOND, "the server went on reading a head that it had refused"


def send_leniently(raw: RawHTTP, text: str):
    """The server may have answered and closed before the last byte."""
    try:
        raw.send(text)
    except (BrokenPipeError, ConnectionResetError):
        pass


@pytest.mark.parametrize(
    "request_text",
    [
        "GARBAGE\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nbad header\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "\0" * 100,
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \r\nContent-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnot a size\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
    ],
    ids=lambda text: repr(text[:70]),
)
def test_data_that_is_not_http_is_answered_4xx_or_5xx_and_closed(server, request_text):
    """No answer of success, and not no answer: a status line and then the end of the connection."""
    with RawHTTP(server) as raw:
        raw.send(request_text)
        status, *_ = raw.read_answer()
        assert 400 <= status < 600
        raw.read_to_end()


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 3", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 3"],
        ["Content-Length: 3", "Content-Length: 4"],
        ["Transfer-Encoding: gzip, chunked"],
        ["Transfer-Encoding: chunked, gzip"],
        ["Transfer-Encoding:", "Content-Length: 3"],
    ],
    ids=str,
)
def test_a_body_of_doubtful_length_is_never_accepted_as_a_push(server, device, channel, lines):
    """RFC 9112 section 6: text that two readers would cut differently could smuggle a request past a proxy."""
    smuggled = push_head(channel, "Content-Length: 0", "")
    with RawHTTP(server) as raw:
        raw.send(push_head(channel, *lines, "") + "0\r\n\r\n" + smuggled)
        status, *_ = raw.read_answer()
        assert 400 <= status < 600
        raw.read_to_end()
    assert device.inbox()["envelopes"] == []


# Bodies


@pytest.mark.parametrize("size", [8193, 100_000, 2**31, 2**62])
def test_a_body_announced_over_the_limit_is_refused_without_being_read(server, channel, size):
    with RawHTTP(server) as raw:
        raw.send(push_head(channel, f"Content-Length: {size}", ""))
        assert raw.read_problem()[0] == 413


def test_a_chunked_body_is_read_no_further_than_the_limit(server, device, channel):
    chunk = f"{1000:x}\r\n" + "x" * 1000 + "\r\n"
    with RawHTTP(server) as raw:
        raw.send(push_head(channel, "Transfer-Encoding: chunked", "") + chunk * 9)
        assert raw.read_problem()[0] == 413
        sent = 0
        try:
            while sent < FAR_BEYOND:
                raw.send(chunk * 60)
                sent += 60 * len(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < FAR_BEYOND, "the server went on reading a body that it had refused"
    assert device.inbox()["envelopes"] == []


@pytest.mark.parametrize("piece", ["x" * 1000, "\r\nx\r\n1;" + "x" * 1000], ids=["one", "many"])
def test_chunk_extensions_are_read_no_further_than_a_limit(server, device, channel, piece):
    """RFC 9112 section 7.1.1: a server ought to limit them; they count against no body."""
    with RawHTTP(server) as raw:
        raw.send(push_head(channel, "Transfer-Encoding: chunked", "") + "1;x=")
        sent = 0
        try:
            while sent < FAR_BEYOND:
                raw.send(piece * 60)
                sent += 60 * len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < FAR_BEYOND, "the server went on reading what it does not look at"
    assert device.inbox()["envelopes"] == []


def test_chunk_extensions_of_a_reasonable_size_are_passed_over(server, device, channel):
    body = "".join(f"1;name=value;other=\"quoted\"\r\n{letter}\r\n" for letter in "abc") + "0;last\r\n\r\n"
    with RawHTTP(server) as raw:
        raw.send(push_head(channel, "Transfer-Encoding: chunked", "") + body)
        assert raw.read_answer()[0] == 201
    (frame,) = device.inbox()["envelopes"]
    assert body_of(frame) == b"abc"


def test_expect_100_continue_is_refused_before_the_body(server, channel):
    with RawHTTP(server) as raw:
        raw.send(push_head(channel, "Expect: 100-continue", "Content-Length: 100000", ""))
        assert raw.read_problem()[0] == 413


def test_expect_100_continue_is_honoured(server, channel):
    with RawHTTP(server) as raw:
        raw.send(push_head(channel, "Expect: 100-continue", "Content-Length: 3", ""))
        status, *_ = raw.read_answer()
        if status == 100:
            raw.send("abc")
            status, *_ = raw.read_answer()
        assert status == 201


CUT_SHORT = {
    "nothing of 10 bytes": ("Content-Length: 10", ""),
    "3 of 10 bytes": ("Content-Length: 10", "abc"),
    "chunks without the last": ("Transfer-Encoding: chunked", "3\r\nabc\r\n"),
    "half a chunk": ("Transfer-Encoding: chunked", "5\r\nab"),
}


@pytest.mark.parametrize("field, body", CUT_SHORT.values(), ids=CUT_SHORT)
def test_a_body_cut_short_by_a_lost_connection_is_no_message(server, device, channel, field, body):
    """RFC 9112 section 8: an incomplete message must not be taken for a whole one."""
    with RawHTTP(server) as raw:
        raw.send(push_head(channel, field, "") + body)
        raw.socket.shutdown(socket.SHUT_WR)
        raw.read_to_end()
    marker = channel.send(b"marker")
    assert [frame["version"] for frame in device.inbox()["envelopes"]] == [marker.id]


def test_a_cut_request_of_an_operator_changes_nothing(server):
    body = '{"id":"com.example.cut"}'
    with RawHTTP(server) as raw:
        raw.send(
            f"POST /v1/apps HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.admin_key}\r\n"
            f"Content-Length: {len(body) + 100}\r\n\r\n{body}"
        )
        raw.socket.shutdown(socket.SHUT_WR)
        raw.read_to_end()
    server.admin("POST", "/v1/apps", {"id": "com.example.marker"})
    assert "com.example.cut" not in server.admin("GET", "/v1/apps").text


@pytest.mark.parametrize(
    "path", ["/v1/devices", "/v1/device/channels", "/v1/inbox/results", "/v1/keys", "/v1/apps"]
)
def test_an_oversized_json_body_is_refused_with_413(server, device, path):
    key = {"/v1/devices": server.client_key, "/v1/keys": server.admin_key, "/v1/apps": server.admin_key}
    body = b'{"app":"' + b" " * 2_000_000 + b'"}'
    assert_problem(server.request("POST", path, key=key.get(path, device.credential), data=body), 413)


def test_pipelined_pushes_are_answered_in_order(server, device, channel):
    one = push_head(channel, "Content-Length: 1", "")
    with RawHTTP(server) as raw:
        raw.send("".join(one + letter for letter in "abcde"))
        locations = [raw.read_answer()[1]["location"].rsplit("/", 1)[1] for _ in range(5)]
    assert [frame["version"] for frame in device.inbox()["envelopes"]] == locations


@pytest.mark.parametrize("upgrade", ["h2c", "TLS/1.0", "x-unknown"])
def test_an_offer_to_upgrade_to_something_else_is_ignored(channel, upgrade):
    """RFC 9110 section 7.8. `curl --http2` and Java's HttpClient offer h2c with every first request."""
    offer = [
        "Connection: Upgrade, HTTP2-Settings",
        f"Upgrade: {upgrade}",
        "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
    ]
    with RawHTTP(channel.server) as raw:
        raw.send(push_head(channel, *offer, "Content-Length: 1", "") + "x")
        assert raw.read_answer()[0] == 201


def test_http_1_0_is_answered_and_closed(server):
    with RawHTTP(server) as raw:
        raw.send("GET /health/live HTTP/1.0\r\n\r\n")
        assert raw.read_answer()[0] == 200
        assert raw.read_to_end() == b""


# JSON


MALFORMED = [
    b"{",
    b"}",
    b"nonsense",
    b"[]",
    b"null",
    b"7",
    b'"x"',
    b"\xff\xfe{}",
    b'{"app":"\xff"}',
    b"[" * 4000,
    b'{"a":' * 1500,
    b'{"app":"com.example.app"} trailing',
    b"{'app':'com.example.app'}",
    b'{"app":"com.example.app",}',
    b'{"app":"a\x00b"}',
]


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: repr(body[:30]))
@pytest.mark.parametrize(
    "path", ["/v1/devices", "/v1/device/channels", "/v1/inbox/results", "/v1/apps", "/v1/keys"]
)
def test_malformed_json_is_refused(server, device, path, body):
    key = {"/v1/devices": server.client_key, "/v1/keys": server.admin_key, "/v1/apps": server.admin_key}
    assert_problem(server.request("POST", path, key=key.get(path, device.credential), data=body), 400)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/devices", {"app": 7}),
        ("/v1/devices", {"app": [APP]}),
        ("/v1/inbox/results", {}),
        ("/v1/keys", {}),
        ("/v1/devices", {"app": APP, "extra": 1}),
        ("/v1/device/channels", {}),
        ("/v1/device/channels", {"channelID": 7}),
        ("/v1/device/channels", {"channelID": "x"}),
        ("/v1/device/channels", {"channelID": ""}),
        ("/v1/device/channels", {"channelID": new_channel_id(), "name": 7}),
        ("/v1/device/channels", {"channelID": new_channel_id(), "name": "x" * 5000}),
        ("/v1/device/channels", {"channelID": new_channel_id(), "key": 7}),
        ("/v1/device/channels", {"channelID": new_channel_id(), "extra": 1}),
        ("/v1/apps", {}),
        ("/v1/apps", {"id": "com.example.extra", "extra": 1}),
    ],
    ids=str,
)
def test_missing_fields_wrong_types_and_unknown_fields_are_refused(server, device, path, body):
    keys = {"/v1/devices": server.client_key, "/v1/keys": server.admin_key, "/v1/apps": server.admin_key}
    key = keys.get(path, device.credential)
    problem = assert_problem(server.request("POST", path, key=key, json=body), 400)
    assert "x" * 100 not in json.dumps(problem)


def test_an_unknown_field_is_named(server):
    body = {"app": APP, "colour": 1}
    problem = assert_problem(server.request("POST", "/v1/devices", key=server.client_key, json=body), 400)
    assert "colour" in problem["detail"]


# Addresses and methods


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/push",
        "/push/",
        "/v1",
        "/v1/",
        "/v2/devices",
        "/message",
        "/message/",
        "/wpush/v1/x",
        "/.env",
        "/v1/devices/../apps",
        "/%2e%2e/etc/passwd",
        "/health",
        "/health/other",
        "/%",
        "/%zz",
        "/\u00e9",
    ],
)
def test_an_unknown_address_is_404(server, path):
    with RawHTTP(server) as raw:
        raw.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        status, problem = raw.read_problem()
        assert status in (400, 404), problem


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/push/x"),
        ("DELETE", "/push/x"),
        ("POST", "/message/x"),
        ("PUT", "/message/x"),
        ("DELETE", "/v1/devices"),
        ("POST", "/v1/device"),
        ("PUT", "/v1/device/channels"),
        ("PUT", "/v1/inbox"),
        ("GET", "/v1/inbox/results"),
        ("PUT", "/v1/apps"),
        ("PATCH", "/v1/keys"),
        ("POST", "/health/live"),
        ("DELETE", "/_matrix/push/v1/notify"),
    ],
)
def test_a_wrong_method_is_405_and_lists_the_right_ones(server, method, path):
    answer = server.request(method, path)
    assert_problem(answer, 405)
    assert answer.headers["Allow"]


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PROPFIND"])
def test_a_method_that_no_address_takes_does_not_make_the_address_unknown(server, channel, method):
    """RFC 9110 section 9.1: 405 or 501. OPTIONS may be answered as well."""
    answer = server.request(method, channel.endpoint)
    assert answer.status_code in ((200, 204, 405, 501) if method == "OPTIONS" else (405, 501))


@pytest.mark.parametrize("path", ["//push//{token}", "/push/{token}/", "//push/{token}//"])
def test_slashes_in_a_row_and_at_the_end_make_no_other_address(server, device, channel, path):
    token = channel.endpoint.rsplit("/", 1)[1]
    with RawHTTP(server) as raw:
        head = push_head(channel, "Content-Length: 1", "").split("\r\n", 1)[1]
        raw.send(f"POST {path.format(token=token)} HTTP/1.1\r\n{head}x")
        assert raw.read_answer()[0] == 201
    for other in ("/health//live", "/health/live/", "//health/live"):
        with RawHTTP(server) as raw:
            raw.send(f"GET {other} HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert raw.read_answer()[0] == 200


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_health_is_answered(server, path):
    assert server.request("GET", path).status_code == 200
    assert server.request("HEAD", path).content == b""


def test_head_of_an_event_stream_has_no_length_and_the_next_answer_is_in_step(server, device):
    fields = f"Host: localhost\r\nAuthorization: Bearer {device.credential}\r\nAccept: text/event-stream\r\n\r\n"
    with RawHTTP(server) as raw:
        raw.send(f"HEAD /v1/inbox HTTP/1.1\r\n{fields}GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, head, _ = raw.read_answer()
        assert (status, head["content-type"]) == (200, "text/event-stream")
        assert "content-length" not in head
        assert raw.read_answer()[0] == 200


def test_connect_and_absolute_targets_do_not_make_a_proxy(server):
    for line in ("CONNECT example.com:443 HTTP/1.1", "GET http://example.com/ HTTP/1.1"):
        with RawHTTP(server) as raw:
            raw.send(line + "\r\nHost: example.com\r\nConnection: close\r\n\r\n")
            assert raw.read_answer()[0] >= 400


def test_the_location_does_not_follow_the_host_field(server, channel):
    """A sender's Host must not choose the addresses that others receive."""
    answer = channel.post(b"x", headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"})
    assert answer.status_code == 201
    assert answer.headers["Location"].startswith(server.url + "/")
