"""The examples of the pages about items, updates and attachments: documents are sent, and answers are compared."""

import base64
import json
import random
import re

from carillon_peer import APP, await_value
from page_blocks import filled
from page_shell import assert_like, example
from test_attachments import Uploader


def operator(server) -> dict:
    return {"CARILLON_SERVER": server.url, "CARILLON_KEY": server.admin_key}


def test_subscriptions(page, shell, make_server):
    subscriptions = page("docs/subscriptions.md")
    server = make_server()
    rules = subscriptions.take('{"items"')
    shell.file("rules.json", rules.code)
    set_rules, publish = subscriptions.take("carillon items rules set").commands
    shell.run(re.sub("--server … --key ADMIN$", f"--server {server.url} --key {server.admin_key}", set_rules))
    assert_like(json.loads(rules.code), server.admin("GET", f"/v1/apps/{APP}/items").json())
    publish = re.sub("--server … --key SENDER$", f"--server {server.url} --key {server.sender_key}", publish)
    shell.run(publish.replace("101.50", "90"))
    device = server.register_device()
    body = {
        "items": ["stock.ACME"], "fields": ["price", "name"], "key": "acme", "policy": "everyCrossing",
        "trigger": "price > 100.0",
        "format": json.loads(subscriptions.take('{"title"').code),
    }  # fmt: skip
    answer = device.request("POST", "/v1/device/subscriptions", body)
    assert answer.status_code == 201, answer.text
    shell.run(publish)
    frames = await_value(
        lambda: device.request("GET", "/v1/inbox?carillon=4").json()["envelopes"], lambda it: len(it) == 1, "a firing")
    shown = example(subscriptions.take('{"messageType"').code)
    assert_like(shown, frames[0])
    fired = frames[0]["fired"]
    assert (frames[0]["messageType"], fired["item"]) == (shown["messageType"], shown["fired"]["item"])
    assert fired["notification"]["title"] == "stock.ACME"
    assert "101.50" in fired["notification"]["body"] and "12.8" in fired["notification"]["body"]
    assert fired["notification"]["custom"] == {"symbol": "ACME"}


def test_updates(page, shell, make_server):
    updates = page("docs/updates.md")
    server = make_server()
    (declare,) = updates.take("carillon apps parameters set").commands
    shell.run(declare, **operator(server))
    device = server.register_device()
    request, answer = updates.take('{"protocol"').code.split("\n\n")
    first = device.request("POST", "/v1/inbox", {"protocol": 1, "max": 0}).json()
    poll = example(request) | {"position": first["position"], "results": [], "wait": 0}
    poll["parameters"]["values"]["level"] = 2
    assert device.request("POST", "/v1/inbox", poll).status_code == 200

    publication = updates.take('{"kind"').code
    made = server.request("POST", "/v1/updates", key=server.sender_key, json=json.loads(publication))
    assert made.status_code == 201, made.text
    poll = example(request) | {"position": first["position"]}
    poll["results"][0]["update"] = "0" * 32
    given = device.request("POST", "/v1/inbox", poll).json()
    shown = example(answer)
    # The server reports it under load only.
    del shown["retryAfter"]
    assert_like(shown, given)
    assert [it["update"] for it in given["ignored"]] == ["0" * 32]
    assert given["parametersRevision"] == shown["parametersRevision"]
    frame = example(updates.take('{"messageType"').code)
    assert_like(frame, given["envelopes"][0])
    assert given["envelopes"][0]["update"]["ttl"] == frame["update"]["ttl"]
    done = example(request) | {"position": given["position"], "wait": 0}
    done["results"][0]["update"] = made.json()["id"]
    ended = device.request("POST", "/v1/inbox", done)
    assert ended.status_code == 200 and "ignored" not in ended.json(), ended.text
    assert server.request("GET", f"/v1/updates/{made.json()['id']}", key=server.sender_key).json()["devices"]["done"] == 1

    one, all_of_app = updates.take("carillon updates resume").commands
    sender = operator(server) | {"CARILLON_KEY": server.sender_key}
    shell.run(filled(one, {"0123456789abcdef0123456789abcdef": made.json()["id"]}), **sender)
    shell.run(all_of_app, **operator(server))
    (audit,) = updates.take("carillon apps audit").commands
    assert made.json()["id"] in shell.run(audit, **operator(server))


def test_attachments(page, shell, server):
    attachments = page("docs/attachments.md")
    uploader = Uploader(server)
    photo = random.Random(8).randbytes(100_000)
    shell.file("photo.jpg", photo)
    put, get = attachments.take("carillon attachments put").commands
    place = {"https://push.example.com": server.url}
    shell.run(
        filled(put, place | {"DEVICE": uploader.reader.id}), CARILLON_KEY=uploader.device.credential)
    manifest = json.loads((shell.directory / "m.json").read_text())
    shown = example(attachments.take('{"id"').code)
    assert_like(shown, manifest)
    assert [len(base64.b64decode(manifest[name])) for name in ("key", "digest")] == [32, 32]
    (shell.directory / "photo.jpg").rename(shell.directory / "sent.jpg")
    shell.run(filled(get, place), CARILLON_KEY=uploader.reader.credential)
    assert (shell.directory / "photo.jpg").read_bytes() == photo

    sealed = random.Random(9).randbytes(3_000_000)
    shell.file("sealed", sealed)
    begin, head, resume = attachments.take("# begin").commands
    variables = {"SERVER": server.url, "CREDENTIAL": uploader.device.credential, "DEVICE": uploader.reader.id}
    answer = shell.run(begin, **variables)
    assert "201 Created" in answer, answer
    variables["LOCATION"] = re.search(r"(?i)^location: (\S+)", answer, re.M)[1]
    assert uploader.patch(variables["LOCATION"], 0, sealed[:1_048_576]).status_code == 204
    told = shell.run(head, **variables)
    assert "204 No Content" in told and re.search(r"(?i)upload-offset: 1048576\b", told), told
    assert json.loads(shell.run(resume, **variables))["length"] == 3_000_000
    assert uploader.get(variables["LOCATION"]).content == sealed
