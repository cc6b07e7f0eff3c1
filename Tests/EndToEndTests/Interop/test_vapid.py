"""VAPID (RFC 8292 and the draft before it): the credentials that a restricted channel accepts or refuses."""

import base64
import hashlib
import hmac
import json
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from carillon_peer import assert_problem, body_of, decode64, encode64
from encryption_peer import Sender, Subscriber, public_point

DAY = 86400


@pytest.fixture(scope="module")
def sender():
    return Sender()


@pytest.fixture
def restricted(device, sender):
    return device.open_channel(key=sender.key)


def claims_for(channel, **changes) -> dict:
    """Sound claims; a change to None leaves the claim out."""
    claims = {
        "aud": channel.server.url,
        "exp": int(time.time()) + DAY // 2,
        "sub": "mailto:ops@example.com",
    } | changes
    return {name: value for name, value in claims.items() if value is not None}


def sign(sender: Sender, claims, header=None) -> str:
    """A JWT of exactly these claims: py_vapid would mend or refuse the unsound ones."""
    header = header or {"typ": "JWT", "alg": "ES256"}
    text = encode64(json.dumps(header).encode()) + "." + encode64(json.dumps(claims).encode())
    return text + "." + encode64(raw_signature(sender.vapid.private_key, text.encode()))


def raw_signature(private_key, data: bytes) -> bytes:
    r, s = decode_dss_signature(private_key.sign(data, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


def post_with(channel, authorization: str | None, **headers):
    fields = {} if authorization is None else {"Authorization": authorization}
    return channel.post(b"x", headers=fields | {name.replace("_", "-"): value for name, value in headers.items()})


def refused(answer):
    problem = assert_problem(answer, (401, 403))
    assert "eyJ" not in answer.text, "a refusal repeats no token"
    return problem


# Both generations of the header


@pytest.mark.parametrize("encoding", ["aes128gcm", "aesgcm"])
def test_pywebpush_reaches_a_restricted_channel(device, restricted, sender, encoding):
    subscriber = Subscriber()
    answer = sender.webpush(subscriber.subscription(restricted), b"text", content_encoding=encoding, ttl=60)
    assert answer.status_code == 201
    (frame,) = device.inbox()["envelopes"]
    assert subscriber.read(frame) == b"text"


@pytest.mark.parametrize("generation", [1, 2])
def test_both_generations_of_py_vapid_are_accepted(restricted, sender, generation):
    headers = sender.headers({"aud": restricted.server.url, "sub": "mailto:ops@example.com"}, generation)
    assert restricted.post(b"x", headers=headers).status_code == 201


@pytest.mark.parametrize("joint", [";", ",", "; ", ", "])
@pytest.mark.parametrize("key_first", [True, False])
def test_the_older_generation_has_crypto_key_with_the_keys_of_aesgcm(
    device, restricted, sender, joint, key_first
):
    headers = sender.headers({"aud": restricted.server.url, "sub": "mailto:ops@example.com"}, generation=1)
    parts = [headers["Crypto-Key"], "dh=" + encode64(b"\x04" + bytes(64))]
    headers["Crypto-Key"] = joint.join(parts if key_first else parts[::-1])
    headers["Encryption"] = "salt=" + encode64(bytes(16))
    answer = restricted.post(b"x", headers=headers, encoding="aesgcm")
    assert answer.status_code == 201, answer.text
    (frame,) = device.inbox()["envelopes"]
    assert decode64(frame["headers"]["crypto_key"].split("dh=")[1].split(";")[0].split(",")[0]) == b"\x04" + bytes(
        64
    )
    assert sender.key not in json.dumps(frame), "the sender's key stays here"


@pytest.mark.parametrize("scheme", ["WebPush", "Bearer", "webpush", "BEARER"])
def test_the_older_generation_is_accepted_under_both_names(restricted, sender, scheme):
    token = sign(sender, claims_for(restricted))
    assert post_with(restricted, f"{scheme} {token}", Crypto_Key=f"p256ecdsa={sender.key}").status_code == 201


@pytest.mark.parametrize(
    "shape",
    [
        "vapid t={t},k={k}",
        "vapid t={t}, k={k}",
        "vapid k={k}, t={t}",
        "vapid k={k},t={t}",
        "VAPID t={t}, k={k}",
        "Vapid  t={t} , k={k}",
        "vapid t={t}, k={k}=",
        "vapid t={t}, k={k}, x=1",
        "vapid x=1, t={t}, k={k}",
        "vapid T={t}, K={k}",
        'vapid t="{t}", k="{k}"',
    ],
)
def test_scheme_case_spacing_order_padding_and_unknown_parameters_are_tolerated(restricted, sender, shape):
    """Parameters are auth-params of RFC 7235: named without case, and quoted where the sender likes."""
    token = sign(sender, claims_for(restricted))
    answer = post_with(restricted, shape.format(t=token, k=sender.key))
    assert answer.status_code == 201, answer.text


def test_a_key_in_standard_base64_is_tolerated(device):
    sender = Sender()
    while not set("-_") & set(sender.key):
        sender = Sender()
    channel = device.open_channel(key=sender.key)
    standard = base64.b64encode(decode64(sender.key)).decode()
    token = sign(sender, claims_for(channel))
    assert post_with(channel, f"vapid t={token}, k={standard}").status_code == 201


# Accepted claims


@pytest.mark.parametrize(
    "changes",
    [
        lambda url: {"exp": int(time.time()) + DAY},
        lambda url: {"exp": int(time.time()) + DAY + 60},
        lambda url: {"exp": int(time.time()) - 10},
        lambda url: {"exp": time.time() + DAY / 2},
        lambda url: {"sub": None},
        lambda url: {"sub": "https://example.com/contact"},
        lambda url: {"aud": [url]},
        lambda url: {"aud": ["https://other.example", url]},
        lambda url: {"iat": int(time.time()), "more": {"a": [1]}},
    ],
    ids=[
        "24 h",
        "24 h and a minute",
        "just expired",
        "fraction",
        "no sub",
        "https sub",
        "aud array",
        "aud among others",
        "more claims",
    ],
)
def test_sound_claims_are_accepted(restricted, sender, changes):
    token = sign(sender, claims_for(restricted, **changes(restricted.server.url)))
    answer = post_with(restricted, f"vapid t={token}, k={sender.key}")
    assert answer.status_code == 201, answer.text


# Refused credentials


def test_no_credentials_are_answered_401_with_a_challenge_but_not_for_vapid(restricted):
    """RFC 9110 section 15.5.2 wants a challenge in a 401, and RFC 8292 section 3 forbids one for its own scheme."""
    answer = post_with(restricted, None)
    assert_problem(answer, 401, "vapid_missing")
    assert answer.headers["WWW-Authenticate"]
    assert "vapid" not in answer.headers["WWW-Authenticate"].lower()


def test_a_refused_push_leaves_nothing_behind(device, restricted):
    refused(post_with(restricted, None))
    assert device.inbox()["envelopes"] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://other.example"},
        {"aud": None},
        {"aud": ""},
        {"aud": []},
        {"aud": ["https://other.example"]},
        {"aud": 7},
        {"aud": {"a": 1}},
        {"aud": "http://127.0.0.1:1"},
        {"aud": "http://127.0.0.1"},
        {"exp": None},
        {"exp": "2999999999"},
        {"exp": 0},
        {"exp": -1},
        {"exp": 1e300},
        {"exp": 10**40},
        {"exp": True},
        {"exp": [1]},
        {"exp": {}},
    ],
    ids=str,
)
def test_unsound_claims_are_refused(restricted, sender, changes):
    token = sign(sender, claims_for(restricted, **changes))
    refused(post_with(restricted, f"vapid t={token}, k={sender.key}"))


@pytest.mark.parametrize("ahead", [-3600, -60, -31, DAY + 400, DAY + 3600, 2 * DAY])
def test_an_exp_in_the_past_or_beyond_a_day_is_refused(restricted, sender, ahead):
    token = sign(sender, claims_for(restricted, exp=int(time.time()) + ahead))
    refused(post_with(restricted, f"vapid t={token}, k={sender.key}"))


def test_another_backends_sound_token_is_refused(restricted):
    other = Sender()
    refused(post_with(restricted, f"vapid t={sign(other, claims_for(restricted))}, k={other.key}"))


def test_a_token_signed_by_another_key_than_it_names_is_refused(restricted, sender):
    token = sign(Sender(), claims_for(restricted))
    refused(post_with(restricted, f"vapid t={token}, k={sender.key}"))


def test_a_token_whose_claims_were_changed_is_refused(restricted, sender):
    header, _, signature = sign(sender, claims_for(restricted)).split(".")
    changed = encode64(json.dumps(claims_for(restricted, sub="mailto:mallory@example.com")).encode())
    refused(post_with(restricted, f"vapid t={header}.{changed}.{signature}, k={sender.key}"))


@pytest.mark.parametrize(
    "header", [{"alg": "none"}, {"alg": "HS256"}, {"alg": "ES384"}, {"alg": "es256"}, {}, {"alg": 1}]
)
def test_an_algorithm_other_than_es256_is_refused(restricted, sender, header):
    header = header | {"typ": "JWT"}
    refused(post_with(restricted, f"vapid t={sign(sender, claims_for(restricted), header)}, k={sender.key}"))


def test_an_unsigned_token_is_refused(restricted, sender):
    text = sign(sender, claims_for(restricted), {"typ": "JWT", "alg": "none"}).rsplit(".", 1)[0]
    refused(post_with(restricted, f"vapid t={text}., k={sender.key}"))


def test_a_token_signed_with_the_public_key_as_a_shared_secret_is_refused(restricted, sender):
    text = sign(sender, claims_for(restricted), {"typ": "JWT", "alg": "HS256"}).rsplit(".", 1)[0]
    signature = hmac.new(decode64(sender.key), text.encode(), hashlib.sha256).digest()
    refused(post_with(restricted, f"vapid t={text}.{encode64(signature)}, k={sender.key}"))


@pytest.mark.parametrize(
    "signature", ["", "AAAA", encode64(bytes(64)), encode64(bytes(63)), encode64(b"\xff" * 64), "*"]
)
def test_a_signature_that_is_none_is_refused(restricted, sender, signature):
    text = sign(sender, claims_for(restricted)).rsplit(".", 1)[0]
    refused(post_with(restricted, f"vapid t={text}.{signature}, k={sender.key}"))


@pytest.mark.parametrize(
    "shape",
    [
        "vapid",
        "vapid ",
        "vapid t={t}",
        "vapid k={k}",
        "vapid t=, k=",
        "vapid t=a.b.c, k={k}",
        "vapid t={t}, k=AAAA",
        "vapid t={t}, k=" + encode64(b"\x04" + bytes(64)),
        "vapid t={t}, k=***",
        "Basic {t}",
        "{t}",
        "vapid {t}",
        "WebPush {t}",
        "Bearer {k}",
        "vapid ,,,,",
    ],
)
def test_malformed_credentials_are_refused(restricted, sender, shape):
    token = sign(sender, claims_for(restricted))
    refused(post_with(restricted, shape.format(t=token, k=sender.key)))


@pytest.mark.parametrize("crypto_key", ["p256ecdsa=AAAA", "p256ecdsa=", ";;;", "p256ecdsa={other}"])
def test_the_older_generation_with_an_unfit_key_is_refused(restricted, sender, crypto_key):
    token = sign(sender, claims_for(restricted))
    refused(post_with(restricted, f"WebPush {token}", Crypto_Key=crypto_key.format(other=Sender().key)))


def test_claims_that_are_not_an_object_are_refused(restricted, sender):
    for claims in ([], "text", 7, None):
        refused(post_with(restricted, f"vapid t={sign(sender, claims)}, k={sender.key}"))


def test_a_deeply_nested_token_is_refused(restricted, sender):
    text = encode64(b'{"alg":"ES256"}') + "." + encode64(b'{"a":' * 1000 + b"1" + b"}" * 1000)
    token = text + "." + encode64(raw_signature(sender.vapid.private_key, text.encode()))
    refused(post_with(restricted, f"vapid t={token}, k={sender.key}"))


# The key of a channel


@pytest.mark.parametrize("padding", ["", "="])
def test_a_key_restricts_alike_with_padding_and_without(server, sender, padding):
    with server.browser() as socket:
        channel = socket.register(key=sender.key + padding)
        assert_problem(post_with(channel, None), 401)
        assert post_with(channel, f"vapid t={sign(sender, claims_for(channel))}, k={sender.key}").status_code == 201
        assert body_of(socket.notification()) == b"x"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "AAAA",
        "*" * 87,
        encode64(bytes(65)),
        encode64(b"\x04" + bytes(64)),
        encode64(b"\x04" + b"\xff" * 64),
        encode64(b"\x05" + public_point(ec.generate_private_key(ec.SECP256R1()))[1:]),
        encode64(public_point(ec.generate_private_key(ec.SECP384R1()))[:65]),
        "A" * 4000,
    ],
)
def test_a_bad_key_is_refused_with_400_and_the_socket_stays_usable(server, device, key):
    channel_id = "0b1c4f4e-31a5-4f0c-9d58-0d5c4b3a2f10"
    with server.browser() as socket:
        socket.send({"messageType": "register", "channelID": channel_id, "key": key})
        frame = socket.expect("register")
        assert (frame["channelID"], frame["status"]) == (channel_id, 400)
        assert "pushEndpoint" not in frame
        socket.register(channel_id)
    assert_problem(device.request("POST", "/v1/device/channels", {"channelID": channel_id, "key": key}), 400)


def test_an_open_channel_keeps_the_key_that_it_was_opened_with(device, sender):
    other = Sender()
    channel = device.open_channel(key=sender.key)
    for fields in ({"key": other.key}, {}):
        again = device.request("POST", "/v1/device/channels", {"channelID": channel.id, **fields})
        assert_problem(again, (400, 409))
    device.open_channel(channel.id, key=sender.key + "=")
    assert post_with(channel, f"vapid t={sign(sender, claims_for(channel))}, k={sender.key}").status_code == 201
    refused(post_with(channel, f"vapid t={sign(other, claims_for(channel))}, k={other.key}"))


def test_a_sound_token_does_no_harm_on_an_unrestricted_channel(channel, sender):
    assert post_with(channel, f"vapid t={sign(sender, claims_for(channel))}, k={sender.key}").status_code == 201


def test_a_forged_token_is_refused_on_an_unrestricted_channel(device, channel, sender):
    """RFC 8292 section 4.2: present credentials are checked, in each place."""
    forged = sign(Sender(), claims_for(channel))
    assert_problem(post_with(channel, f"vapid t={forged}, k={sender.key}"), 403, "vapid_invalid")
    elsewhere = sign(sender, claims_for(channel, aud="https://other.example"))
    assert_problem(post_with(channel, f"vapid t={elsewhere}, k={sender.key}"), 403, "vapid_invalid")
    assert device.inbox()["envelopes"] == []
