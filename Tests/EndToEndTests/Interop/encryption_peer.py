"""A subscriber and a sender as the Web Push libraries of PyPI know them."""

import os

import http_ece
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid import Vapid01, Vapid02
from pywebpush import webpush

from carillon_peer import PATIENCE, Channel, body_of, decode64, encode64


def public_point(private_key) -> bytes:
    return private_key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


class Subscriber:
    """The keys of a user agent, and the decryption of messages for them."""

    def __init__(self):
        self.private_key = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)

    def subscription_keys(self) -> dict:
        return {"p256dh": encode64(public_point(self.private_key)), "auth": encode64(self.auth)}

    def subscription(self, channel: Channel) -> dict:
        return {"endpoint": channel.endpoint, "keys": self.subscription_keys()}

    def read(self, notification: dict) -> bytes:
        headers = notification["headers"]
        if headers["encoding"] == "aes128gcm":
            return http_ece.decrypt(
                body_of(notification), private_key=self.private_key, auth_secret=self.auth, version="aes128gcm"
            )
        salt = headers["encryption"].split("salt=")[1].split(";")[0]
        sender = next(
            part.strip()[3:]
            for part in headers["crypto_key"].replace(",", ";").split(";")
            if part.strip()[:3] == "dh="
        )
        assert "=" not in salt + sender, "Firefox rejects padded values"
        return http_ece.decrypt(
            body_of(notification),
            salt=decode64(salt),
            private_key=self.private_key,
            dh=decode64(sender),
            auth_secret=self.auth,
            version="aesgcm",
        )


class Sender:
    """A backend with a VAPID key pair."""

    def __init__(self):
        self.vapid = Vapid02()
        self.vapid.generate_keys()

    @property
    def key(self) -> str:
        """The key to which a subscription is restricted: 87 characters."""
        return encode64(public_point(self.vapid.private_key))

    def generation(self, number: int):
        return {1: Vapid01, 2: Vapid02}[number](self.vapid.private_key)

    def headers(self, claims: dict, generation: int = 2) -> dict:
        return dict(self.generation(generation).sign(claims))

    def webpush(self, subscription: dict, data, **options):
        return webpush(
            subscription,
            data,
            vapid_private_key=self.vapid,
            vapid_claims={"sub": "mailto:ops@example.com"},
            timeout=PATIENCE,
            **options,
        )
