"""The search of all logs for the secrets that the tests used (`conftest.py` runs it at the end of each run)."""

import json
import os

import pytest
from carillon_peer import APP, assert_problem, new_channel_id
from log_secrets import LEDGER, SecretLedger

SECRET = "s3cr3t" + "Zx9" * 9


@pytest.mark.parametrize(
    "body",
    [
        {"id": 1, "secret": SECRET}, [{"keys": {"secrets": ["x", SECRET]}}], {"pushEndpoint": f"http://a:1/push/{SECRET}"},
        {"url": f"https://a.example/{SECRET}?x=1"}, {"userToken": f"e30.{SECRET}.x"}, {"p8": f"-----X-----\n{SECRET}\n"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_secret_of_a_body_is_found_in_a_log(tmp_path, body, is_kept):
    ledger, log = SecretLedger(), tmp_path / "log"
    ledger.follow(log)
    log.write_text(f"info a line\nerror it failed reason=[{SECRET}]\ninfo another\n")
    if is_kept:
        ledger.keep(log)
        log.unlink()
    assert ledger.shown() == []
    ledger.note_body(json.dumps(body))
    assert [line.split(": ", 1)[1] for line in ledger.shown()] == [f"error it failed reason=[{SECRET}]"]


def test_secrets_of_fields_paths_and_lines_are_known():
    ledger = SecretLedger()
    ledger.note_field(f"Bearer {SECRET}1")
    ledger.note_field(f"vapid t=e30.{SECRET}2.x, k=y")
    ledger.note_path(f"http://a:1/push/{SECRET}3?up=1")
    ledger.note_body(f'{{"a": 1}}\n{{"secret": "{SECRET}4"}}\n'.encode())
    ledger.note_body(b"\xff\xfe{")
    assert {f"{SECRET}{number}" for number in range(1, 5)} <= ledger.secrets
    assert APP not in ledger.secrets


def test_the_secrets_of_a_server_are_known_and_its_log_shows_none(make_server):
    server = make_server(CARILLON_LOG="debug")
    device = server.register_device()
    channel = device.open_channel()
    body = f"payload {os.urandom(8).hex()}"
    sent = channel.send(body.encode(), encoding="identity")
    socket = server.browser()
    other = socket.register(new_channel_id())
    assert other.post(body.encode(), encoding="identity").status_code == 201
    user_secret = os.urandom(24).hex()
    assert_problem(server.admin("PUT", f"/v1/apps/{APP}/users", {"secrets": [user_secret]}), 409, "key_file_missing")
    assert server.request("GET", "/v1/device", key="wrong" + user_secret).status_code == 401
    assert sent.status()["state"] == "waiting"
    server.restart()
    server.kill()
    tokens = {endpoint.rsplit("/", 1)[1] for endpoint in (channel.endpoint, other.endpoint)}
    used = {server.admin_key, server.sender_key, server.client_key, device.credential, socket.uaid, user_secret, body}
    assert {secret[:100] for secret in used | tokens | {"wrong" + user_secret}} <= LEDGER.secrets
    LEDGER.keep(server.log)
    assert "serving" in LEDGER.logs[server.log]
    assert not [line for line in LEDGER.shown() if line.startswith(str(server.log))]
