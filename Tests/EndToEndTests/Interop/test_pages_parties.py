"""The examples of the pages about users, services and backends, with the other party that each of them needs."""

import json
import re
import signal

import pytest
from standardwebhooks import Webhook

from backend_peer import Backend
from carillon_peer import APP, await_value, decode64
from log_secrets import LEDGER
from page_blocks import filled
from page_shell import assert_like, example
from service_peer import KEY_SET, ServiceDevice, user_token
from test_proxy import make_certificate
from test_users import KeySetServer, key_set, say, token

MAIL, FILES = "com.example.mail", "com.example.files"


@pytest.fixture
def certificate(tmp_path):
    return make_certificate(tmp_path)


def at(server, command: str, key: str) -> str:
    """The command with the server's address and a key in place of the page's omissions."""
    return re.sub(r"--server … --key \S+", f"--server {server.url} --key {key}", command)


def test_users(page, shell, make_server, tmp_path):
    (command,) = page("docs/users.md").take("carillon apps users set").commands
    key_sets = KeySetServer(tmp_path)
    server = make_server(CARILLON_OUTWARD_CA=key_sets.certificate, CARILLON_ALLOW_PRIVATE_ADDRESSES="true")
    try:
        shell.run(filled(at(server, command, server.admin_key), {"https://id.example.com/keys": key_sets.url}))
        assert say(server.register_device(), token("ES256")).json()["user"] == "ada"
    finally:
        key_sets.http.shutdown()


def test_approval_hook(page, shell, make_server, certificate):
    hook_page = page("docs/approval-hook.md")
    (command,) = hook_page.take("carillon apps approval-hook set").commands
    server = make_server(CARILLON_OUTWARD_CA=certificate[0], CARILLON_ALLOW_PRIVATE_ADDRESSES="true")
    backend = Backend(*certificate)
    try:
        said = shell.run(filled(at(server, command, server.admin_key), {"https://back.example.com": backend.url}))
        secret = re.search(r"whsec_\S+", said)[0]
        LEDGER.note(secret)
        assert server.admin("PUT", f"/v1/apps/{APP}/users", {"jwks": key_set()}).status_code == 200
        rules = {"items": [{"pattern": "stock.*", "open": True}]}
        assert server.admin("PUT", f"/v1/apps/{APP}/items", rules).status_code == 200
        device = server.register_device()
        assert say(device, token("ES256", sub="anna")).status_code == 200
        subscription = {"items": ["stock.ACME"], "fields": ["price"], "format": {"title": "x"}}
        made = device.request("POST", "/v1/device/subscriptions", subscription)
        assert made.status_code == 201, made.text
        changed = device.request("PATCH", f"/v1/device/subscriptions/{made.json()['id']}", {"tags": ["b"]})
        assert changed.status_code == 200, changed.text
        shown = example(hook_page.take('{"type"').code)
        asked = [call for call in backend.calls if call.json()["type"] == shown["type"]]
        assert len(asked) == 2 and {call.path for call in backend.calls} == {"/carillon"}
        for call in asked:
            call.verify(secret)
        real = asked[-1].json()
        assert_like(shown, real)
        for name in ("app", "user"):
            assert real["data"][name] == shown["data"][name]
        assert real["data"]["definition"]["items"] == shown["data"]["definition"]["items"]
    finally:
        backend.stop()


def test_watches(page, shell, make_server):
    watch = page("docs/watch.md")
    server = make_server(CARILLON_ALLOW_PRIVATE_ADDRESSES="true", CARILLON_SHORTEST_PING_SECONDS=1)
    backend = Backend()
    try:
        device = server.register_device()
        channel = device.open_channel()
        # The first ping would take up to a minute.
        command = filled(watch.take("curl -X PUT").code, {
            "ENDPOINT": channel.endpoint, "https://backend.example.com": backend.url,
            '"pingIntervalSeconds": 60': '"pingIntervalSeconds": 1'})  # fmt: skip
        secret = json.loads(shell.run(command))["secret"]
        examples = [example(line) for line in watch.take('{"type"').code.splitlines()]
        backend.await_calls(1)
        assert device.request("DELETE", f"/v1/device/channels/{channel.id}").status_code == 204
        for shown in examples:
            calls = await_value(
                lambda: [call for call in backend.calls if call.json()["type"] == shown["type"]], bool, shown["type"])
            real = Webhook(secret).verify(calls[0].body, calls[0].headers)
            assert_like(shown, real)
            assert real["data"].get("reason") == shown["data"].get("reason")
            assert channel.endpoint.endswith(real["data"]["token"])
    finally:
        backend.stop()


def test_services(page, shell, make_server):
    services = page("docs/services.md")
    server = make_server()
    keys = {}
    for app in (MAIL, FILES):
        assert server.admin("POST", "/v1/apps", {"id": app}).status_code == 201
        keys[app] = server.admin("POST", "/v1/keys", {"role": "client", "app": app}).json()["secret"]
        # One token is for both apps.
        rules = server.admin("PUT", f"/v1/apps/{app}/users", {"jwks": KEY_SET, "audience": "house"})
        assert rules.status_code == 200, rules.text
    *realms, provide, call = services.take("carillon apps realm set").commands
    for command in realms:
        shell.run(command, CARILLON_SERVER=server.url, CARILLON_KEY=server.admin_key)
    variables = {
        "SERVER": server.url, "FILES_CLIENT_KEY": keys[FILES], "MAIL_CLIENT_KEY": keys[MAIL],
        "TOKEN": user_token("ada", "house"),
    }  # fmt: skip
    provider = shell.start(provide, **variables)
    provider.line("fingerprint")
    shell.file("report.pdf", b"%PDF-1.7")
    said = shell.run(call, **variables)
    assert "ada" in said and "report.pdf" in said, said
    provider.end(signal.SIGINT)

    shell.file("print.json", services.take('{\n  "service-id"').code)
    shell.run("carillon services check print.json")
    shown = example(services.take('{"identity"').code)
    peer = ServiceDevice(server.register_device(FILES, keys[FILES]), FILES)
    answer = peer.device.request("PATCH", "/v1/device", {"userToken": variables["TOKEN"]})
    assert answer.status_code == 200, answer.text
    peer.offer(("com.example.echo", "1.0"))
    sealed_bodies(services.take('{"value"').code, shown, shell, call, variables, peer)


def sealed_bodies(code: str, bundle: dict, shell, call: str, variables: dict, peer: ServiceDevice):
    """The sealed data of the library has the form of the page, and the library opens this form."""
    value, error, attached = [example(line) for line in code.splitlines()]
    of_peer = filled(call, {"--of com.example.files": f"--of com.example.files/{peer.device.id}"})
    caller = shell.start(of_peer, **variables)
    event = peer.next("request")
    assert_like(bundle, event["sender"])
    assert {name: len(decode64(event["sender"][name])) for name in ("identity", "key", "signature")} == {
        "identity": 32, "key": 32, "signature": 64}  # fmt: skip
    assert re.fullmatch("[0-9a-f]{16}", event["sender"]["id"])
    opened = peer.open_request(event)
    assert_like(value, opened)
    assert opened["files"][0]["path"].endswith("report.pdf")
    error["error"] |= {"domain": "com.example.echo", "code": "custom", "text": "no room"}
    assert peer.post_reply(event, peer.reply(event, error)).status_code == 204
    caller.line("com.example.echo 7: no room")
    assert caller.process.wait(30) == 65
    long = of_peer.replace("ada", "a" * 60_000)
    caller = shell.start(long, **variables)
    event = peer.next("request")
    opened = peer.open_request(event)
    assert_like(attached, opened)
    assert opened.keys() == attached.keys() and event["files"] == 1
    assert peer.post_reply(event, peer.reply(event, {"value": None})).status_code == 204
    assert caller.process.wait(30) == 0
