"""The sender's side of RFC 8030, without VAPID, which test_vapid covers."""

import http.client
import random
import re

import pytest

from carillon_peer import assert_problem, body_of, decode64, encode64
from encryption_peer import Sender, Subscriber
from raw_peer import RawHTTP

MAXIMUM_TTL = 2_592_000


def raw_post(channel, lines: list[str], body: bytes = b"") -> tuple[int, dict, bytes]:
    """A POST with exactly these header lines, repetitions and odd bytes included."""
    path = "/" + channel.endpoint.split("/", 3)[3]
    head = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *lines]
    with RawHTTP(channel.server) as raw:
        raw.send("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
        return raw.read_answer()


# The answer to a push


def test_a_valid_push_is_answered_201_with_an_absolute_location_and_the_real_ttl(server, channel):
    answer = channel.post(b"hello", ttl=60)
    assert answer.status_code == 201
    assert answer.headers["Location"].startswith(server.url + "/")
    assert 0 <= int(answer.headers["TTL"]) <= 60
    assert answer.headers["Carillon-Outcome"] == "waiting"
    assert server.request("GET", answer.headers["Location"]).status_code == 200


def test_two_messages_have_different_locations_of_which_neither_contains_the_token(channel):
    first, second = channel.send(b"a"), channel.send(b"b")
    assert first.location != second.location
    assert channel.endpoint.rsplit("/", 1)[1] not in first.location + second.location


@pytest.mark.parametrize("encoding", ["aes128gcm", "aesgcm"])
def test_http_ece_reads_messages_that_pywebpush_sends(device, channel, encoding):
    subscriber = Subscriber()
    text = "Grüße, 世界! ".encode() * 20
    with device.connect() as socket:
        answer = Sender().webpush(subscriber.subscription(channel), text, content_encoding=encoding, ttl=60)
        assert answer.status_code == 201
        socket.caught_up()
        assert subscriber.read(socket.notification()) == text


# TTL and other headers that occur twice


@pytest.mark.parametrize(
    "ttl",
    [
        "",
        " ",
        "-1",
        "1.5",
        "ten",
        "12h",
        "0x10",
        "1e3",
        "+5",
        "1 2",
        "5,6",
        "60;a=b",
        "6_0",
        "٦".encode().decode("latin-1"),
    ],
)
def test_a_malformed_ttl_is_refused(channel, ttl):
    status, fields, body = raw_post(channel, [f"TTL: {ttl}"])
    assert status == 400, (fields, body)
    assert fields["content-type"].startswith("application/problem+json")


def test_a_missing_ttl_is_refused(channel):
    problem = assert_problem(channel.post(b"x", ttl=None), 400)
    assert "TTL" in problem["title"] + problem["detail"]


@pytest.mark.parametrize("lines", [["TTL: 60", "TTL: 90"], ["TTL: 60, 90"], ["TTL: 60", "TTL:"]])
def test_two_different_ttls_are_refused(channel, lines):
    status, *_ = raw_post(channel, lines)
    assert status == 400


@pytest.mark.parametrize("lines", [["TTL: 60", "TTL: 60"], ["TTL: 60", "TTL: 60 ", "TTL:60"], ["TTL: 60, 60"]])
def test_the_same_ttl_twice_is_one(channel, lines):
    status, fields, _ = raw_post(channel, lines)
    assert (status, fields["ttl"]) == (201, "60")


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["Content-Encoding: aes128gcm", "Content-Encoding: aes128gcm"], 201),
        (["Content-Encoding: aes128gcm", "content-encoding: AES128GCM "], 201),
        (["Content-Encoding: aes128gcm", "Content-Encoding: identity"], 400),
        (["Content-Encoding: aes128gcm", "Content-Encoding: gzip"], 400),
    ],
)
def test_the_same_content_encoding_twice_is_one_and_two_are_refused(channel, lines, status):
    assert raw_post(channel, ["TTL: 60", *lines], b"x")[0] == status


@pytest.mark.parametrize("space", [" ", "\t", " \t  "])
def test_white_space_after_a_value_belongs_to_no_value(device, channel, space):
    """RFC 9112 section 5.1."""
    lines = ["TTL: 60", "Content-Encoding: aes128gcm", "Topic: t", "Urgency: high", "Idempotency-Key: k"]
    status, fields, _ = raw_post(channel, [line + space for line in lines], b"x")
    assert (status, fields["ttl"]) == (201, "60")
    (frame,) = device.inbox()["envelopes"]
    assert frame["headers"] == {"encoding": "aes128gcm"}


@pytest.mark.parametrize("ttl", [MAXIMUM_TTL + 1, 2**31, 2**31 + 1, 2**63, 2**64, 10**30, "9" * 400])
def test_a_huge_ttl_is_accepted_and_the_shortened_value_reported(channel, ttl):
    answer = channel.post(b"x", ttl=ttl)
    assert answer.status_code == 201, answer.text
    assert int(answer.headers["TTL"]) == MAXIMUM_TTL


@pytest.mark.parametrize("ttl", ["0", "00", "0060", "60"])
def test_every_row_of_digits_is_a_ttl(channel, ttl):
    answer = channel.post(b"x", ttl=ttl)
    assert answer.status_code == 201
    assert int(answer.headers["TTL"]) == int(ttl)


# Topic and urgency


@pytest.mark.parametrize("topic", ["a", "A" * 32, "upd-ates_09", "0"])
def test_a_topic_of_the_alphabet_up_to_32_characters_is_accepted(channel, topic):
    channel.send(b"x", headers={"Topic": topic})


@pytest.mark.parametrize(
    "topic", ["A" * 33, "with space", "dot.", "plus+", "sl/ash", "pad===", "é", "a,b", '"q"', "A" * 2000]
)
def test_a_topic_outside_the_alphabet_or_too_long_is_refused(channel, topic):
    status, fields, body = raw_post(channel, ["TTL: 60", f"Topic: {topic}"])
    assert status == 400, (fields, body)


def test_two_topics_are_refused(channel):
    status, *_ = raw_post(channel, ["TTL: 60", "Topic: a", "Topic: b"])
    assert status == 400


@pytest.mark.parametrize("urgency", ["very-low", "low", "normal", "high", "High", "VERY-LOW"])
def test_each_urgency_is_accepted_in_any_case(channel, urgency):
    """RFC 8030 section 5.3 has the values as ABNF strings, which RFC 5234 compares without case."""
    channel.send(b"x", headers={"Urgency": urgency})


@pytest.mark.parametrize(
    "lines",
    [
        ["Urgency: high, low"],
        ["Urgency: high", "Urgency: low"],
        ["Urgency: high", "Urgency: high"],
        ["Urgency: urgent"],
        ["Urgency: "],
        ["Urgency: high;q=1"],
    ],
)
def test_several_urgencies_or_an_unknown_one_are_refused(channel, lines):
    status, fields, body = raw_post(channel, ["TTL: 60", *lines])
    assert status == 400, (fields, body)


# Bodies and their encodings


@pytest.mark.parametrize("encoding", ["aes128gcm", "identity"])
@pytest.mark.parametrize("size", [1, 4095, 4096, 8192])
def test_a_body_up_to_the_limit_arrives_byte_for_byte(device, channel, encoding, size):
    body = random.Random(size).randbytes(size)
    channel.send(body, encoding=encoding)
    (frame,) = device.inbox()["envelopes"]
    assert body_of(frame) == body
    assert frame["headers"]["encoding"] == encoding


def test_an_aesgcm_body_of_4096_bytes_is_not_too_large(device, channel):
    body = random.Random(1).randbytes(4096)
    headers = {"Encryption": f"salt={encode64(bytes(16))}", "Crypto-Key": f"dh={encode64(b'4' + bytes(64))}"}
    channel.send(body, encoding="aesgcm", headers=headers)
    (frame,) = device.inbox()["envelopes"]
    assert body_of(frame) == body


def test_a_body_over_the_limit_is_refused_and_nothing_is_stored(device, channel):
    assert_problem(channel.post(bytes(8193)), 413)
    assert device.inbox()["envelopes"] == []


def test_a_chunked_body_is_taken_like_any_other(device, channel):
    channel.send(iter([b"one", b"two", bytes(4000)]), encoding="aes128gcm")
    (frame,) = device.inbox()["envelopes"]
    assert body_of(frame) == b"onetwo" + bytes(4000)


def test_an_empty_body_needs_no_content_encoding(channel):
    channel.send(b"")


def test_a_body_without_content_encoding_is_refused(channel):
    assert_problem(channel.post(b"x", encoding=None), 400)


@pytest.mark.parametrize("encoding", ["gzip", "br", "aes128gcm, gzip", "aes256gcm", ""])
def test_an_unknown_content_encoding_is_refused(channel, encoding):
    assert_problem(channel.post(b"x", encoding=encoding), (400, 415))


# Encrypted bodies and their headers


@pytest.mark.parametrize(
    "body",
    [
        b'{"notification":{"counts":{"unread":1}}}',
        bytes(range(256)),
        b"\0",
        b"\r\n\r\n",
        "é".encode("latin-1"),
        b"=" * 17,
    ],
)
def test_unstructured_bytes_labelled_aes128gcm_arrive_unchanged(device, channel, body):
    with device.connect() as socket:
        socket.caught_up()
        channel.send(body, encoding="aes128gcm")
        frame = socket.notification()
    assert body_of(frame) == body
    assert "=" not in frame["data"]
    assert frame["headers"] == {"encoding": "aes128gcm"}


@pytest.mark.parametrize(
    ("encryption", "crypto_key"),
    [
        ("salt=AAAAAAAAAAAAAAAAAAAAAA==", "dh={dh}="),
        ('salt="AAAAAAAAAAAAAAAAAAAAAA=="', 'dh="{dh}="'),
        ("keyid=p256dh;salt=AAAAAAAAAAAAAAAAAAAAAA", "keyid=p256dh;dh={dh}"),
        ("salt=AAAAAAAAAAAAAAAAAAAAAA;rs=4096", "dh={dh}"),
    ],
)
def test_the_headers_of_aesgcm_reach_the_client_without_padding_or_quotes(device, channel, encryption, crypto_key):
    point = b"\x04" + bytes(64)
    headers = {"Encryption": encryption, "Crypto-Key": crypto_key.format(dh=encode64(point))}
    channel.send(b"old", encoding="aesgcm", headers=headers)
    (frame,) = device.inbox()["envelopes"]
    told = frame["headers"]
    assert told["encoding"] == "aesgcm"
    assert '"' not in told["encryption"] + told["crypto_key"]
    assert decode64(re.search(r"salt=([\w-]+)(;|,|$)", told["encryption"])[1]) == bytes(16)
    assert decode64(re.search(r"dh=([\w-]+)(;|,|$)", told["crypto_key"])[1]) == point
    if "rs=" in encryption:
        assert "rs=4096" in told["encryption"]


@pytest.mark.parametrize("keyid", ["http://example.org/bob/keys/123", "a+b/c=", "p256dh", "x y", "a;b,c"])
def test_a_keyid_is_an_opaque_text(device, channel, keyid):
    """As autopush's own suite sends it; and so that a reader of the header finds the same text."""
    headers = {
        "Encryption": f'keyid="{keyid}";salt="{encode64(bytes(16))}=="',
        "Crypto-Key": f'keyid="{keyid}";dh="{encode64(bytes(65))}="',
    }
    channel.send(b"old", encoding="aesgcm", headers=headers)
    (frame,) = device.inbox()["envelopes"]
    for name in ("encryption", "crypto_key"):
        told = frame["headers"][name]
        assert re.match(r'keyid=("[^"]*"|[^;,]*);', told)[1].strip('"') == keyid, told


def test_a_keyid_that_lacks_its_second_quote_is_survived(device, channel):
    headers = {
        "Encryption": f'keyid="http://example.org/bob/keys/123;salt="{encode64(bytes(16))}=="',
        "Crypto-Key": f'dh="{encode64(bytes(65))}="',
    }
    channel.send(b"old", encoding="aesgcm", headers=headers)
    (frame,) = device.inbox()["envelopes"]
    assert f"salt={encode64(bytes(16))}" in frame["headers"]["encryption"]


# Tokens that are not valid


def dead_or_unknown(answer):
    assert_problem(answer, (404, 410))


@pytest.mark.parametrize("token", ["x", "A" * 68, "%00", "%2e%2e%2f", "é", "A" * 4000, "a b", "token=="])
def test_a_garbage_token_is_404(server, token):
    answer = server.request("POST", "/push/" + token, headers={"TTL": "60"})
    assert_problem(answer, 404)


def test_a_token_with_any_character_changed_is_404(server, channel):
    token = channel.endpoint.rsplit("/", 1)[1]
    for index in range(len(token) - 1):
        other = "A" if token[index] != "A" else "B"
        changed = token[:index] + other + token[index + 1 :]
        assert server.request("POST", "/push/" + changed, headers={"TTL": "60"}).status_code == 404, index


@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: t[1:], lambda t: t + "A", lambda t: t + "="])
def test_a_shortened_or_lengthened_token_is_404(server, channel, change):
    token = channel.endpoint.rsplit("/", 1)[1]
    answer = server.request("POST", "/push/" + change(token), headers={"TTL": "60"})
    assert_problem(answer, 404)


def test_the_token_of_another_server_is_404(server, make_server):
    foreign = make_server().register_device().open_channel()
    token = foreign.endpoint.rsplit("/", 1)[1]
    assert_problem(server.request("POST", "/push/" + token, headers={"TTL": "60"}), 404)


def test_an_unregistered_channel_is_dead_at_once_and_for_good(device, channel):
    channel.send(b"before")
    assert device.request("DELETE", f"/v1/device/channels/{channel.id}").status_code == 204
    dead_or_unknown(channel.post(b"after"))
    device.open_channel(channel.id)
    answer = channel.post(b"after a new registration")
    dead_or_unknown(answer)
    if answer.status_code == 410:
        assert answer.headers["Cache-Control"] == "max-age=86400"
    assert device.inbox()["envelopes"] == []


def test_the_channel_of_a_deleted_device_is_dead(device, channel):
    assert device.request("DELETE", "/v1/device").status_code == 204
    dead_or_unknown(channel.post(b"x"))


# Headers that the client does not receive


def test_authorization_topic_and_urgency_never_reach_the_client(server, device):
    sender = Sender()
    channel = device.open_channel(key=sender.key)
    headers = sender.headers({"aud": server.url, "sub": "mailto:ops@example.com"})
    headers |= {
        "Topic": "SecretTopic",
        "Urgency": "very-low",
        "X-Other": "SecretOther",
        "Idempotency-Key": "SecretKey",
    }
    with device.connect() as socket:
        socket.caught_up()
        channel.send(b"x", headers=headers)
        frame = socket.notification()
        assert frame.keys() == {"messageType", "channelID", "version", "data", "headers"}
        for secret in [
            "Secret",
            "very-low",
            sender.key,
            headers["Authorization"].split("t=")[1][:20],
            "ops@example",
        ]:
            assert secret not in socket.last_text


# Receipts


def test_a_request_for_a_receipt_is_answered_201(channel):
    answer = channel.post(b"x", headers={"Prefer": "respond-async"})
    assert answer.status_code == 201
    assert "Location" in answer.headers


# Cancelling a message


def test_a_cancelled_message_is_not_delivered(server, device, channel):
    kept, cancelled = channel.send(b"kept"), channel.send(b"cancelled")
    assert server.request("DELETE", cancelled.location).status_code == 204
    assert [frame["version"] for frame in device.inbox()["envelopes"]] == [kept.id]
    assert cancelled.status()["outcome"] == "cancelled"
    with device.connect() as socket:
        assert [frame["version"] for frame in socket.caught_up()] == [kept.id]


def test_cancelling_twice_is_answered_204_again(server, channel):
    sent = channel.send(b"x")
    assert server.request("DELETE", sent.location).status_code == 204
    assert server.request("DELETE", sent.location).status_code == 204


def test_an_acknowledged_message_cannot_be_cancelled(server, device, channel):
    with device.connect() as socket:
        socket.caught_up()
        sent = channel.send(b"x")
        socket.ack(socket.notification())
        assert sent.final()["outcome"] == "acknowledged"
    assert_problem(server.request("DELETE", sent.location), 409, "message_final")
    assert sent.status()["outcome"] == "acknowledged"


@pytest.mark.parametrize("message", ["x", "A" * 32, "A" * 33, "%00", "..%2f", "é"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unknown_message_is_404(server, method, message):
    assert_problem(server.request(method, "/message/" + message), 404)


# Refusals on one connection; test_inbox_limits covers 429 and Retry-After


def test_a_kept_alive_connection_carries_accepted_and_refused_pushes_in_turn(channel):
    """A refusal leaves the sender's connection in step with its next request."""
    connection = http.client.HTTPConnection("127.0.0.1", channel.server.port, timeout=30)
    path = "/" + channel.endpoint.split("/", 3)[3]
    statuses = []
    for headers in [{"TTL": "60"}, {}, {"TTL": "60"}, {"TTL": "x"}, {"TTL": "60", "Topic": "a.b"}, {"TTL": "60"}]:
        connection.request("POST", path, b"body", headers | {"Content-Encoding": "aes128gcm"})
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    assert statuses == [201, 400, 201, 400, 400, 201]
