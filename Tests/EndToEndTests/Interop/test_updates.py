"""Updates for an audience: by poll, socket and event stream, across kills and a restored backup, and from the command line."""

import json
import subprocess
import threading
import time

import pytest

from carillon_peer import APP, PATIENCE, Server, assert_problem, await_value
from test_poll_and_events import Events

KINDS = ["content", "definitions", "status", "popup"]
REFRESH = {"kind": "content", "payload": {"action": "refresh", "object": "pump-7"}}


def declare(server: Server):
    answer = server.admin("PUT", f"/v1/apps/{APP}/parameters", {"parameters": {"region": "string", "level": "int"}})
    assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def open_server(executable, tmp_path_factory):
    server = Server(executable, tmp_path_factory.mktemp("updates"))
    server.prepare()
    server.start()
    declare(server)
    yield server
    server.end()


def publish(server: Server, body: dict = REFRESH, expecting=201, headers=None, **rest) -> dict:
    answer = server.request("POST", "/v1/updates", key=server.sender_key, json={**body, **rest}, headers=headers)
    assert answer.status_code == expecting, answer.text
    return answer.json()


class Client:
    """A client that polls, as its own store would have it."""

    def __init__(self, server: Server):
        self.device = server.register_device()
        self.position = None

    def ask(self, expecting=200, **members) -> dict:
        body = {"protocol": 1, "kinds": KINDS, **members}
        if self.position and "position" not in body:
            body["position"] = self.position
        answer = self.device.request("POST", "/v1/inbox", body)
        assert answer.status_code == expecting, answer.text
        if expecting == 200:
            self.position = answer.json()["position"]
        return answer.json()

    def poll(self, **members) -> list[dict]:
        return [frame for frame in self.ask(**members)["envelopes"] if frame["messageType"] == "update"]


def counts(server: Server, update: dict) -> dict:
    return server.request("GET", f"/v1/updates/{update['id']}", key=server.sender_key).json()["devices"]


def done(frame, result="done", **rest) -> dict:
    return {"update": frame["update"]["id"], "entry": frame["entry"], "result": result, **rest}


def test_an_update_reaches_those_that_match_by_a_poll_that_waits(open_server):
    north, south = Client(open_server), Client(open_server)
    for client, region in ((north, "north"), (south, "south")):
        client.ask(parameters={"revision": "1", "values": {"region": region}})
    got = []
    waiting = threading.Thread(target=lambda: got.extend(north.poll(wait=300)))
    waiting.start()
    time.sleep(0.5)
    update = publish(open_server, audience="region == 'north'")
    # The poll has five minutes.
    waiting.join(PATIENCE * 2)
    assert not waiting.is_alive()
    assert [frame["update"]["id"] for frame in got] == [update["id"]]
    assert got[0]["update"]["payload"] == REFRESH["payload"]
    assert south.poll() == []
    assert north.poll(results=[done(got[0])]) == []
    assert counts(open_server, update) == {"done": 1}


def test_an_update_comes_by_socket_and_is_reported_on_there(open_server):
    client = Client(open_server)
    with open_server.connect() as socket:
        socket.hello(carillon=5, device=client.device.id, credential=client.device.credential)
        assert socket.receive() == {"messageType": "caughtUp"}
        word = {"messageType": "request", "id": 1, "method": "POST", "path": "/v1/inbox"}
        socket.send({**word, "body": {"protocol": 1, "kinds": KINDS}})
        assert socket.expect("answer")["status"] == 200
        update = publish(open_server, audience=f"device == '{client.device.id}'")
        frame = socket.expect("update")
        assert (frame["attempt"], frame["entry"], frame["update"]["id"]) == (1, 1, update["id"])
        socket.send({"messageType": "ack", "updates": [{"channelID": "", "version": frame["version"], "code": 100}]})
        socket.before_pong()
        await_value(lambda: counts(open_server, update), lambda it: it == {"stored": 1}, "stored")
        failed = {"protocol": 1, "results": [done(frame, "failed", reason="disk")]}
        socket.send({**word, "id": 2, "body": failed})
        seen = [socket.receive(), socket.receive()]
        again = next(it for it in seen if it["messageType"] == "update")
        assert again["attempt"] == 2
        socket.send({**word, "id": 3, "body": {"protocol": 1, "results": [done(again)]}})
        assert socket.expect("answer")["status"] == 200
        assert counts(open_server, update) == {"done": 1}
        socket.send({**word, "id": 4, "body": {"protocol": 1, "wait": 5}})
        assert socket.expect("answer")["status"] == 400
        socket.send({**word, "id": 5, "method": "GET"})
        assert socket.expect("answer")["status"] == 404


def test_an_update_comes_by_event_stream_and_stays_for_a_client_that_does_not_know_it(open_server):
    client = Client(open_server)
    client.ask()
    update = publish(open_server, audience=f"device == '{client.device.id}'")
    await_value(lambda: counts(open_server, update), lambda it: it == {"waiting": 1}, "waiting")
    for version, expected in ((1, []), (5, [update["id"]])):
        answer = open_server.request(
            "GET", f"/v1/inbox?carillon={version}", key=client.device.credential,
            headers={"Accept": "text/event-stream"}, stream=True,
        )
        frames = Events(answer).until_caught_up()
        answer.close()
        assert [frame["update"]["id"] for frame in frames] == expected
    assert counts(open_server, update) == {"waiting": 1}


def test_bad_updates_and_polls_are_refused_and_nothing_else_is_harmed(open_server):
    bad = [
        ({"kind": "nonsense"}, 400, "field_invalid"),
        ({**REFRESH, "audience": "region == 7"}, 400, "audience_invalid"),
        ({**REFRESH, "audience": "weather == 'rain'"}, 400, "audience_invalid"),
        ({**REFRESH, "audience": "region =="}, 400, "audience_invalid"),
        ({"kind": "content", "payload": {"action": "eat"}}, 400, "field_invalid"),
        ({**REFRESH, "mode": "twice"}, 400, "field_invalid"),
        ({**REFRESH, "ttl": 59}, 400, "field_invalid"),
        ({**REFRESH, "supersedes": "0" * 32}, 404, "update_unknown"),
        ({**REFRESH, "wake": "everyone"}, 400, "field_invalid"),
        ({**REFRESH, "wake": True}, 400, "field_invalid"),
        ({**REFRESH, "colour": "red"}, 400, "field_unknown"),
    ]
    for body, status, code in bad:
        assert_problem(open_server.request("POST", "/v1/updates", key=open_server.sender_key, json=body), status, code)
    client, other = Client(open_server), Client(open_server)
    assert_problem(client.device.request("POST", "/v1/inbox", {"protocol": 2}), 400, "protocol_unsupported")
    other.ask()
    assert client.ask(position=other.position, expecting=400)["code"] == "position_invalid"
    assert client.ask(position="AAAA", expecting=400)["code"] == "position_invalid"
    assert client.ask(parameters={"revision": "1", "values": {"weather": "rain"}}, expecting=400)["code"] == "field_unknown"
    assert client.ask(results=[{"update": "x", "entry": 1, "result": "done"}], expecting=400)["code"] == "field_invalid"
    ignored = client.ask(results=[{"update": "0" * 32, "entry": 1, "result": "done"}])["ignored"]
    assert ignored == [{"update": "0" * 32, "entry": 1, "why": "unknown"}]
    for path in ("/v1/updates", f"/v1/updates/{'0' * 32}"):
        assert_problem(open_server.request("GET", path, key=open_server.client_key), 403, "role_forbidden")
    assert_problem(open_server.request("GET", f"/v1/updates/{'0' * 32}", key=open_server.sender_key), 404, "update_unknown")


def test_a_request_that_comes_again_makes_no_second_update(open_server):
    body = {**REFRESH, "audience": "level == 12345"}
    made = publish(open_server, body, headers={"Idempotency-Key": "once"})
    assert publish(open_server, body, expecting=200, headers={"Idempotency-Key": "once"})["id"] == made["id"]
    other = publish(open_server, {**body, "ttl": 61}, expecting=422, headers={"Idempotency-Key": "once"})
    assert other["code"] == "idempotency_key_reused"
    assert publish(open_server, body, expecting=400, headers={"Idempotency-Key": "k" * 256})["code"] == "idempotency_key_invalid"


@pytest.mark.parametrize("moment", ["published", "held", "given", "received", "reported"])
def test_a_kill_loses_no_update_and_delivers_none_as_a_new_entry(make_server, moment):
    server = make_server()
    declare(server)
    client = Client(server)
    client.ask(parameters={"revision": "1", "values": {"region": "north"}})
    update = publish(server, audience="region == 'north'")
    if moment == "held":
        client.ask(max=0)
    frames = client.poll() if moment in ("given", "received", "reported") else []
    if moment in ("received", "reported"):
        client.ask(results=[done(frames[0])] if moment == "reported" else [])
    server.kill()
    server.start()
    if moment == "reported":
        assert client.poll() == [] and counts(server, update) == {"done": 1}
    elif moment in ("given", "received"):
        # The position confirms its receipt: it is not delivered again.
        assert client.poll() == [] and counts(server, update) == {"stored": 1}
    else:
        assert [frame["update"]["id"] for frame in client.poll()] == [update["id"]]
    # A client that lost its data sends no position.
    client.position = None
    again = client.poll()
    assert [frame["entry"] for frame in again] == ([] if moment == "reported" else [1])


def test_a_client_of_a_restored_server_receives_updates_again_and_fetches_everything(make_server, executable, tmp_path):
    server = make_server()
    declare(server)
    client = Client(server)
    client.ask()
    popup = publish(server, {"kind": "popup", "payload": {"style": "failure", "title": "t"}})
    backup = tmp_path / "backup"
    subprocess.run([executable, "backup", backup, "--data", server.data], check=True, capture_output=True)
    assert len(client.poll()) == 1
    client.ask()
    server.kill()
    restored = tmp_path / "restored"
    subprocess.run([executable, "restore", backup, "--data", restored], check=True, capture_output=True)
    server.data = restored
    server.start()
    # An update that it received after the backup is delivered once more, under the same name; updates published then are unknown.
    frames = client.poll()
    assert [frame["update"]["payload"] for frame in frames if frame["update"]["kind"] == "content"] == [{"action": "resync"}]
    assert [frame["update"]["id"] for frame in frames if frame["update"]["kind"] == "popup"] == [popup["id"]]
    assert client.poll(results=[done(frame) for frame in frames]) == []


def test_the_command_line_publishes_shows_withdraws_and_requeues(open_server, executable):
    def run(*arguments, expecting=0) -> list[dict]:
        ended = subprocess.run(
            [executable, *arguments, "--json", "--server", open_server.url], capture_output=True, text=True,
            env={"CARILLON_KEY": open_server.sender_key},
        )
        assert ended.returncode == expecting, ended.stdout + ended.stderr
        return [json.loads(line) for line in ended.stdout.splitlines()]

    client = Client(open_server)
    client.ask(parameters={"revision": "1", "values": {"region": "cli"}})
    options = ["--audience", "region == 'cli'"]
    popup = json.dumps({"style": "important", "title": "Lunch"})
    assert run("updates", "publish", "popup", popup, "--validate", *options) == [
        {"event": "validated", "count": 1, "exact": True}
    ]
    update = run("updates", "publish", "popup", popup, *options)[0]["update"]
    assert update in [line["id"] for line in run("updates", "list")]
    frames = client.poll()
    client.ask(results=[done(frames[0], "failed", permanent=True, reason="no screen")])
    devices = run("updates", "show", update, "--state", "parked")
    assert [(line["device"], line["reason"]) for line in devices] == [(client.device.id, "no screen")]
    assert run("updates", "requeue", update)[0]["count"] == 1
    assert [frame["attempt"] for frame in client.poll()] == [2]
    assert run("updates", "withdraw", update)[0]["event"] == "withdrawn"
    await_value(lambda: client.poll(), lambda it: [frame["attempt"] for frame in it] == [0], "taken back")
    assert run("updates", "show", update)[0]["status"] == "withdrawn"
    run("updates", "withdraw", update, expecting=65)
    ended = subprocess.run(
        [executable, "apps", "audit", APP, "--limit", "3", "--json", "--server", open_server.url], capture_output=True,
        text=True, env={"CARILLON_KEY": open_server.admin_key}, check=True,
    )
    entries = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(entry["action"], entry["update"]) for entry in entries] == [
        ("withdrawn", update), ("requeued", update), ("published", update),
    ]
    run("updates", "publish", "popup", "{", expecting=64)
