"""Users: tokens that PyJWT signs, key sets that Python's own server publishes, and forged tokens."""

import base64
import datetime
import http.server
import ipaddress
import json
import ssl
import threading
import time

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from carillon_peer import APP, assert_problem

KEYS = {
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
ALGORITHMS = {
    "ES256": jwt.algorithms.ECAlgorithm,
    "RS256": jwt.algorithms.RSAAlgorithm,
    "EdDSA": jwt.algorithms.OKPAlgorithm,
}


def jwk(name: str) -> dict:
    return json.loads(ALGORITHMS[name].to_jwk(KEYS[name].public_key())) | {"kid": name, "use": "sig"}


def key_set() -> dict:
    """As identity providers publish them: with keys for other purposes among them."""
    encryption = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEYS["RS256"].public_key()))
    return {"keys": [encryption | {"kid": "e", "use": "enc", "alg": "RSA-OAEP"}, *map(jwk, KEYS)]}


def token(name: str, key=None, headers=None, **claims) -> str:
    claims = {"sub": "ada", "aud": APP, "exp": int(time.time()) + 60} | claims
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, key or KEYS[name], name, {"kid": name} | (headers or {}))


def say(device, value):
    return device.server.request("PATCH", "/v1/device", key=device.credential, json={"userToken": value})


@pytest.fixture(scope="module")
def users(server):
    answer = server.admin("PUT", f"/v1/apps/{APP}/users", {"jwks": key_set()})
    assert answer.status_code == 200, answer.text
    assert answer.json()["algorithms"] == ["ES256", "RS256", "EdDSA"]
    yield
    assert server.admin("DELETE", f"/v1/apps/{APP}/users").status_code == 204


@pytest.mark.parametrize("name", KEYS)
def test_a_token_makes_a_device_its_users(server, users, name):
    device = server.register_device()
    answer = say(device, token(name, sub=f"ada by {name}"))
    assert answer.status_code == 200, answer.text
    assert answer.json()["user"] == f"ada by {name}"
    assert "user" not in say(device, None).json()


def unsigned(**claims) -> str:
    return jwt.encode({"sub": "eve", "aud": APP, "exp": int(time.time()) + 60} | claims, None, "none", {"kid": "ES256"})


def confused() -> str:
    """HS256 with the published key as its secret, which PyJWT itself would not sign."""
    pem = KEYS["RS256"].public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    import hashlib
    import hmac

    def part(value) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    message = part({"alg": "HS256", "kid": "RS256"}) + "." + part({"sub": "eve", "aud": APP, "exp": time.time() + 60})
    signature = hmac.new(pem, message.encode(), hashlib.sha256).digest()
    return message + "." + base64.urlsafe_b64encode(signature).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "forged",
    [
        lambda: unsigned(),
        lambda: confused(),
        lambda: token("ES256", key=ec.generate_private_key(ec.SECP256R1())),
        lambda: token("ES256", headers={"kid": "unknown"}),
        lambda: token("ES256", headers={"kid": "e"}),
        lambda: token("ES256", exp=int(time.time()) - 31),
        lambda: token("ES256", nbf=int(time.time()) + 60),
        lambda: token("ES256", aud="com.example.other"),
        lambda: token("ES256", aud=None),
        lambda: token("ES256", sub=None),
        lambda: token("ES256", exp=None),
        lambda: token("ES256", headers={"crit": ["exp"]}),
        lambda: token("ES256")[:-4] + "AAAA",
        lambda: "",
        lambda: "eyJhbGciOiJub25lIn0.e30.",
    ],
)
def test_a_forged_token_is_refused(server, users, forged):
    device = server.register_device()
    assert_problem(say(device, forged()), 401, "user_token_invalid")
    assert "user" not in server.request("GET", "/v1/device", key=device.credential).json()


def test_a_watcher_receives_the_reason_why_a_channel_ended(server, users):
    device = server.register_device()
    assert say(device, token("ES256")).status_code == 200
    channel = server.request(
        "POST", "/v1/device/channels", key=device.credential,
        json={"channelID": "6d9a2c36-0000-4000-8000-000000000001"},
    ).json()
    sent = server.request("POST", channel["endpoint"], headers={"TTL": "60"})
    assert sent.status_code == 201
    assert say(device, token("RS256", sub="bob")).status_code == 200
    assert_problem(server.request("POST", channel["endpoint"], headers={"TTL": "60"}), (404, 410))
    message = server.request("GET", sent.headers["Location"]).json()
    assert message["outcome"] == "gone"


# A key set at an address


class KeySetServer:
    def __init__(self, directory):
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "key sets")])
        now = datetime.datetime.now(datetime.timezone.utc)
        certificate = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
            .sign(key, hashes.SHA256())
        )
        self.certificate = directory / "certificate.pem"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private = directory / "key.pem"
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        self.status, self.body, self.asked = 200, json.dumps(key_set()).encode(), 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner.asked += 1
                self.send_response(owner.status)
                self.send_header("Content-Length", str(len(owner.body)))
                if owner.status == 302:
                    self.send_header("Location", "/keys")
                self.end_headers()
                self.wfile.write(owner.body)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, private)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.http.server_port}/keys"


@pytest.fixture
def key_sets(tmp_path):
    published = KeySetServer(tmp_path)
    yield published
    published.http.shutdown()


def test_a_key_set_is_fetched_once(make_server, key_sets):
    server = make_server(CARILLON_OUTWARD_CA=key_sets.certificate, CARILLON_ALLOW_PRIVATE_ADDRESSES="true")
    assert server.admin("PUT", f"/v1/apps/{APP}/users", {"jwksURL": key_sets.url}).status_code == 200
    for name in KEYS:
        device = server.register_device()
        assert say(device, token(name)).json()["user"] == "ada"
    assert key_sets.asked == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [(302, b""), (500, b"{}"), (200, b"<html>"), (200, b'{"keys":[]}'), (200, b" " * 65_537)],
)
def test_an_invalid_key_set_is_reported_and_requested_again_later(make_server, key_sets, status, body):
    key_sets.status, key_sets.body = status, body
    server = make_server(CARILLON_OUTWARD_CA=key_sets.certificate, CARILLON_ALLOW_PRIVATE_ADDRESSES="true")
    server.admin("PUT", f"/v1/apps/{APP}/users", {"jwksURL": key_sets.url})
    device = server.register_device()
    for _ in range(3):
        answer = say(device, token("ES256"))
        assert_problem(answer, 503, "user_keys_unavailable")
        assert 0 < int(answer.headers["Retry-After"]) <= 300
    assert key_sets.asked == 1
    # Everything else goes on.
    assert server.request("PATCH", "/v1/device", key=device.credential, json={"locale": "de"}).status_code == 200


def test_a_key_set_in_a_private_network_is_not_fetched(make_server, key_sets):
    server = make_server(CARILLON_OUTWARD_CA=key_sets.certificate)
    answer = server.admin("PUT", f"/v1/apps/{APP}/users", {"jwksURL": key_sets.url})
    assert_problem(answer, 400, "user_rules_invalid")
    assert key_sets.asked == 0
