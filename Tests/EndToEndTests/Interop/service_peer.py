"""A device that provides and calls services, written after docs/services.md: HPKE is pyhpke, signatures are cryptography's."""

import hashlib
import json
import secrets
import time

import jwt
from carillon_peer import Device, decode64, encode64
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from log_secrets import LEDGER
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey

SUITE = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.CHACHA20_POLY1305)
# Of the app's own server, which signs the tokens of users.
SIGNER = ed25519.Ed25519PrivateKey.generate()
KEY_SET = {"keys": [json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(SIGNER.public_key())) | {"kid": "one"}]}
SUITE_NAME = "Curve25519_SHA256_ChachaPoly"


def raw(key) -> bytes:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def user_token(user: str, app: str) -> str:
    token = jwt.encode({"sub": user, "aud": app, "exp": int(time.time()) + 600}, SIGNER, "EdDSA", {"kid": "one"})
    LEDGER.note(token)
    return token


def public(key: bytes):
    return KEMKey.from_pyca_cryptography_key(x25519.X25519PublicKey.from_public_bytes(key))


def info(*parts) -> bytes:
    """The values to which a sealed body is bound: SHA-256 over each part with its length before it."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.digest()


def request_info(direction, header, consumer, provider, sender_key, receiver_key, content, request_hash=b"") -> bytes:
    return info(
        "carillon services 1", direction, header["id"], *consumer, *provider, sender_key, receiver_key,
        header["service"], header["version"], header["method"], header["deadline"], header["foreground"],
        content.get("files", 0), content.get("fileBytes", 0), request_hash,
    )  # fmt: skip


class ServiceDevice:
    def __init__(self, device: Device, app: str):
        self.device = device
        self.app = app
        self.identity = ed25519.Ed25519PrivateKey.generate()
        self.new_key()

    @property
    def peer(self):
        return (self.app, self.device.id)

    def new_key(self):
        self.key = x25519.X25519PrivateKey.generate()
        self.key_id = secrets.token_hex(8)

    @property
    def bundle(self) -> dict:
        until = int(time.time() * 1000) + 7 * 86_400_000
        signed = f"carillon key 1\n{self.device.id}\n{self.key_id}\n{until}\n".encode() + raw(self.key.public_key())
        return {
            "identity": encode64(raw(self.identity.public_key())),
            "id": self.key_id,
            "key": encode64(raw(self.key.public_key())),
            "until": until,
            "signature": encode64(self.identity.sign(signed)),
        }

    def sign_in(self, user: str):
        answer = self.device.request("PATCH", "/v1/device", {"userToken": user_token(user, self.app)})
        assert answer.status_code == 200, answer.text

    def offer(self, *services, name="Peer"):
        body = {
            "name": name,
            "version": "1.0",
            "services": [{"id": id, "version": version} for id, version in services],
            "keys": self.bundle,
        }
        answer = self.device.request("PUT", "/v1/device/services", body)
        assert answer.status_code == 204, answer.text

    def providers(self, query="") -> list[dict]:
        answer = self.device.request("GET", "/v1/services" + query)
        assert answer.status_code == 200, answer.text
        return answer.json()["providers"]

    # Sealed content

    def seal(self, payload: bytes, receiver: bytes, context: bytes) -> tuple[bytes, bytes]:
        enc, sender = SUITE.create_sender_context(
            public(receiver), info=context, sks=KEMKey.from_pyca_cryptography_key(self.key)
        )
        return enc, sender.seal(payload)

    def open(self, content: dict, context: bytes) -> bytes:
        recipient = SUITE.create_recipient_context(
            decode64(content["enc"]),
            KEMKey.from_pyca_cryptography_key(self.key),
            info=context,
            pks=public(decode64(content["sender"]["key"])),
        )
        return recipient.open(decode64(content["body"]))

    @staticmethod
    def check(bundle: dict, device: str):
        signed = f"carillon key 1\n{device}\n{bundle['id']}\n{bundle['until']}\n".encode() + decode64(bundle["key"])
        key = ed25519.Ed25519PublicKey.from_public_bytes(decode64(bundle["identity"]))
        key.verify(decode64(bundle["signature"]), signed)

    # Asking

    def request(self, provider: dict, method: tuple[str, str, str], value, **changes) -> dict:
        """A request as it is posted."""
        self.check(provider["keys"], provider["device"])
        header = {
            "id": secrets.token_hex(16), "service": method[0], "version": method[1], "method": method[2],
            "deadline": 60, "foreground": "none",
        } | changes  # fmt: skip
        payload = json.dumps({"value": value, "files": []}).encode()
        context = request_info(
            "request", header, self.peer, (provider["app"], provider["device"]), self.key_id,
            provider["keys"]["id"], {},
        )  # fmt: skip
        enc, body = self.seal(payload, decode64(provider["keys"]["key"]), context)
        return header | {
            "app": provider["app"], "device": provider["device"], "suite": SUITE_NAME, "keyID": provider["keys"]["id"],
            "sender": self.bundle, "enc": encode64(enc), "body": encode64(body), "files": 0, "fileBytes": 0,
        }  # fmt: skip

    def ask(self, request: dict):
        return self.device.request("POST", "/v1/services/requests", request)

    def open_reply(self, request: dict, event: dict) -> dict:
        self.check(event["sender"], request["device"])
        assert event["keyID"] == self.key_id
        digest = hashlib.sha256(decode64(request["enc"]) + decode64(request["body"])).digest()
        context = request_info(
            "reply", request, self.peer, (request["app"], request["device"]), event["sender"]["id"], event["keyID"],
            event, digest,
        )  # fmt: skip
        return json.loads(self.open(event, context))

    # Answering

    def open_request(self, event: dict) -> dict:
        self.check(event["sender"], event["from"]["device"])
        context = request_info(
            "request", event, (event["from"]["app"], event["from"]["device"]), self.peer, event["sender"]["id"],
            event["keyID"], event,
        )  # fmt: skip
        return json.loads(self.open(event, context))

    def reply(self, event: dict, content: dict, **changes) -> dict:
        """A reply as it is posted."""
        digest = hashlib.sha256(decode64(event["enc"]) + decode64(event["body"])).digest()
        context = request_info(
            "reply", event, (event["from"]["app"], event["from"]["device"]), self.peer, self.key_id,
            event["sender"]["id"], {}, digest,
        )  # fmt: skip
        payload = json.dumps({"files": []} | content).encode()
        enc, body = self.seal(payload, decode64(event["sender"]["key"]), context)
        return {
            "suite": SUITE_NAME, "keyID": event["sender"]["id"], "sender": self.bundle, "enc": encode64(enc),
            "body": encode64(body), "files": 0, "fileBytes": 0,
        } | changes  # fmt: skip

    def post_reply(self, event: dict, reply: dict):
        return self.device.request("POST", f"/v1/services/requests/{event['id']}/reply", reply)

    # The inbox

    def events(self, wait=5) -> list[dict]:
        answer = self.device.request("GET", f"/v1/inbox?carillon=6&wait={wait}", timeout=wait + 30)
        assert answer.status_code == 200, answer.text
        envelopes = [it for it in answer.json()["envelopes"] if it["messageType"] == "service"]
        for envelope in envelopes:
            self.device.results({"version": envelope["version"], "result": "acknowledged"})
        return [it["service"] for it in envelopes]

    def next(self, name: str) -> dict:
        """The next event of a name; others are passed over."""
        for _ in range(10):
            for event in self.events():
                if event["event"] == name:
                    return event
        raise AssertionError(f"no {name} came")
