"""Items, and subscriptions on them, over HTTP and across kills."""

import http.client
import json
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from carillon_peer import APP, PATIENCE, Device, Server, assert_problem, await_value
from shared_resources import World

RULES = {"items": [{"pattern": "stock.*", "open": True}, {"pattern": "log", "open": True, "mode": "distinct"}]}


@pytest.fixture(scope="module")
def open_server(executable, tmp_path_factory):
    server = Server(executable, tmp_path_factory.mktemp("items"))
    server.prepare()
    server.start()
    assert server.admin("PUT", f"/v1/apps/{APP}/items", RULES).status_code == 200
    yield server
    server.end()


def update(server: Server, item: str, fields: dict, **rest) -> requests.Response:
    return server.request("POST", f"/v1/items/{item}/updates", key=server.sender_key, json={"fields": fields, **rest})


def subscribe(device: Device, item: str, trigger: str | None, **rest) -> dict:
    body = {"items": [item], "fields": ["price"], "format": {"title": "${item} ${price}"}, **rest}
    if trigger is not None:
        body["trigger"] = trigger
    answer = device.request("POST", "/v1/device/subscriptions", body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def fired(device: Device) -> list[dict]:
    answer = device.request("GET", "/v1/inbox?carillon=4&max=500")
    assert answer.status_code == 200, answer.text
    return [envelope for envelope in answer.json()["envelopes"] if envelope["messageType"] == "fired"]


def test_an_evaluation_that_costs_too_much_is_counted(make_server):
    world = World(make_server)
    assert world.server.admin("PUT", f"/v1/apps/{APP}/items", {**RULES, "conditionCost": 100}).status_code == 200
    device = world.device()
    subscribe(device, "stock.A", "price.contains('b') || price.contains('c')")
    assert update(world.server, "stock.A", {"price": "a" * 2000 + "b"}).status_code == 200
    await_value(lambda: world.count("carillon_conditions_over_cost_total"), lambda it: it == 1, "counted")
    assert fired(device) == []
    assert update(world.server, "stock.A", {"price": "b"}).status_code == 200
    await_value(lambda: fired(device), lambda it: len(it) == 1, "fired")


def test_a_price_crosses_and_reaches_every_kind_of_client(open_server):
    """By poll, by socket of a client that knows it; a client that does not know it leaves it where it is."""
    device = open_server.register_device()
    made = subscribe(device, "stock.A", "price > 100.0", key="alert")
    for version in (1, 2):
        with open_server.connect() as socket:
            socket.hello(carillon=version, device=device.id, credential=device.credential)
            if version == 1:
                assert update(open_server, "stock.A", {"price": 99.5}).json() == {"version": 1, "repeated": False}
                assert update(open_server, "stock.A", {"price": 100.25}).status_code == 200
                await_value(lambda: fired(device), lambda it: len(it) == 1, "fired")
            assert socket.before_pong() in ([], [{"messageType": "caughtUp"}])
    with open_server.connect() as socket:
        socket.hello(carillon=4, device=device.id, credential=device.credential)
        frame = socket.expect("fired")
        assert frame["fired"]["subscription"] == made["id"]
        assert frame["fired"]["key"] == "alert"
        assert frame["fired"]["item"] == "stock.A"
        assert frame["fired"]["notification"] == {"title": "stock.A 100.25"}
        socket.send({"messageType": "ack", "updates": [{"channelID": "", "version": frame["version"], "code": 100}]})
        socket.before_pong()
    await_value(lambda: fired(device), lambda it: it == [], "acknowledged")
    assert device.request("GET", f"/v1/device/subscriptions/{made['id']}").json()["status"] == "triggered"


def test_a_declared_set_is_brought_up_to_date(open_server):
    device = open_server.register_device()
    wanted = {name: subscribe(device, "stock.B", f"price > {name}.0", key=name) for name in "123"}
    loose = subscribe(device, "stock.B", None, policy="every")

    def compare(keys: dict) -> dict:
        answer = device.request("PUT", "/v1/device/subscriptions", {"keys": keys})
        assert answer.status_code == 200, answer.text
        return answer.json()

    hashes = {name: body["hash"] for name, body in wanted.items()}
    assert compare(hashes) == {"wanted": [], "removed": 0}
    assert compare({"1": hashes["1"], "2": "other", "4": "new"}) == {"wanted": ["2", "4"], "removed": 1}
    left = device.request("GET", "/v1/device/subscriptions?limit=2").json()
    assert [body.get("key") for body in left["subscriptions"]] == ["1", "2"]
    rest = device.request("GET", f"/v1/device/subscriptions?limit=2&after={left['next']}").json()
    assert [body["id"] for body in rest["subscriptions"]] == [loose["id"]]
    assert "next" not in rest


def test_a_socket_request_has_the_answer_of_http(open_server):
    device = open_server.register_device()
    path = "/v1/device/subscriptions"
    body = {"items": ["stock.S"], "fields": ["price"], "trigger": "price > 1.0", "format": {"title": "${price}"}, "key": "k"}
    with open_server.connect() as socket:
        greeting = socket.hello(carillon=3, device=device.id, credential=device.credential)
        assert greeting["carillon"] == 3
        socket.expect("caughtUp")
        asked = [
            ("POST", path, body), ("POST", path, body), ("GET", f"{path}?key=k", None), ("GET", f"{path}?key=other", None),
            ("PATCH", f"{path}/nonsense", {}), ("POST", path, {**body, "trigger": "price >"}), ("PUT", path, {"keys": {}}),
            ("GET", "/v1/device", None), ("GET", f"{path}/../../keys", None), ("TRACE", path, None), ("GET", f"{path}/ x", None),
            ("DELETE", path, None),
        ]
        for number, (method, address, json_body) in enumerate(asked):
            extra = {} if json_body is None else {"body": json_body}
            socket.send({"messageType": "request", "id": number, "method": method, "path": address, **extra})
        answers = [socket.expect("answer") for _ in asked]
        assert [answer["id"] for answer in answers] == list(range(len(asked)))
        statuses = [answer["status"] for answer in answers]
        assert statuses == [201, 200, 200, 200, 404, 400, 200, 404, 404, 405, 400, 200], statuses
        assert answers[2]["body"]["subscriptions"][0]["key"] == "k"
        assert answers[3]["body"]["subscriptions"] == []
        assert answers[5]["body"]["code"] == "trigger_invalid"
        assert answers[6]["body"] == {"wanted": [], "removed": 1}
    with open_server.connect() as socket:
        socket.hello(carillon=2, device=device.id, credential=device.credential)
        socket.send({"messageType": "request", "id": 1, "method": "GET", "path": path})
        assert socket.close_code() == 1002


def test_a_crossing_that_is_true_when_it_is_created_waits_until_it_is_false(make_server):
    """Also after a change of the subscription, and in another process."""
    server = make_server()
    assert server.admin("PUT", f"/v1/apps/{APP}/items", RULES).status_code == 200
    device = server.register_device()
    assert update(server, "stock.H", {"price": 5}).status_code == 200
    made = subscribe(device, "stock.H", "price > 2.0", key="held", policy="everyCrossing")
    server.kill()
    server.start()
    assert update(server, "stock.H", {"price": 6}).status_code == 200
    assert device.request("PATCH", f"/v1/device/subscriptions/{made['id']}", {"trigger": "price > 3.0"}).status_code == 200
    assert update(server, "stock.H", {"price": 7}).status_code == 200
    assert fired(device) == []
    assert update(server, "stock.H", {"price": 1}).status_code == 200
    assert update(server, "stock.H", {"price": 8}).status_code == 200
    await_value(lambda: fired(device), lambda it: len(it) == 1, "fired")


def test_items_are_listed_and_deleted(open_server):
    """With names that a path and a query must escape."""
    name, other = "list.a b &\u00e9", "list.c"
    rules = {"items": [{"pattern": "*", "open": True}]}
    assert open_server.admin("PUT", f"/v1/apps/{APP}/items", rules).json()["ends"] == 0
    try:
        quoted = requests.utils.quote(name, safe="")
        assert update(open_server, quoted, {"price": 1}).json()["version"] == 1
        assert update(open_server, other, {"price": 1}).json()["version"] == 1
        page = open_server.request("GET", "/v1/items?prefix=list.&limit=1", key=open_server.sender_key).json()
        assert [it["item"] for it in page["items"]] == [name] and page["next"] == name
        rest = open_server.request("GET", f"/v1/items?prefix=list.&after={quoted}", key=open_server.sender_key).json()
        assert [it["item"] for it in rest["items"]] == [other] and "next" not in rest
        assert open_server.request("DELETE", f"/v1/items/{quoted}", key=open_server.sender_key).status_code == 204
        gone = open_server.request("DELETE", f"/v1/items/{quoted}", key=open_server.sender_key)
        assert_problem(gone, 404, "item_unknown")
        assert update(open_server, quoted, {"price": 2}).json()["version"] == 1
    finally:
        # Other tests use the same server.
        assert open_server.admin("PUT", f"/v1/apps/{APP}/items", RULES).status_code == 200


def test_a_closed_item_has_no_second_spelling(open_server):
    """Two texts that Unicode takes for one are two names, in rules as in the engine and the store."""
    composed, decomposed = "stock.caf\u00e9", "stock.cafe\u0301"
    assert update(open_server, composed, {"price": 1}).json()["version"] == 1
    assert update(open_server, decomposed, {"price": 2}).json()["version"] == 1
    assert update(open_server, composed, {"price": 3}).json()["version"] == 2


def test_no_placeholder_ends_the_server(open_server):
    device = open_server.register_device()
    for text in ("$[-9223372036854775808]", "$[0]", "$[9223372036854775807]", "${{ 1 / 0 }}", "${{ -9223372036854775808 / -1 }}"):
        answer = device.request(
            "POST", "/v1/device/subscriptions", {"items": ["stock.Z"], "fields": ["a"], "format": {"body": text}}
        )
        assert answer.status_code in (201, 400), answer.text
    assert open_server.request("GET", "/health/ready").status_code == 200


def test_many_lines_in_chunks(open_server):
    """`requests` sends a generator in chunks; the answer comes when all of them were taken."""

    def lines():
        for number in range(5000):
            yield json.dumps({"item": f"stock.many{number % 7}", "fields": {"n": number}}).encode() + b"\n"
        yield b'{"item": "stock.many0"}\n'

    answer = open_server.request("POST", "/v1/items/updates", key=open_server.sender_key, data=lines(), timeout=60)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["accepted"], body["repeated"], body["refused"]) == (5000, 0, 1)
    assert body["refusals"][0]["line"] == 5001
    item = open_server.request("GET", "/v1/items/stock.many3", key=open_server.sender_key).json()
    assert item["fields"] == {"n": 4994} and item["previous"] == {"n": 4987}
    assert item["version"] == len(range(3, 5000, 7))


def test_refusals_are_problem_documents(open_server):
    device = open_server.register_device()
    assert_problem(update(open_server, "stock.A", {"price": [1]}), 400, "field_invalid")
    closed = {"items": ["secret"], "fields": ["x"], "format": {"title": "x"}}
    assert_problem(device.request("POST", "/v1/device/subscriptions", closed), 403, "item_closed")
    broken = {"items": ["stock.A"], "fields": ["price"], "format": {"title": "x"}, "trigger": "price >"}
    problem = assert_problem(device.request("POST", "/v1/device/subscriptions", broken), 400, "trigger_invalid")
    assert "1:8" in problem["detail"]
    assert_problem(open_server.request("GET", "/v1/items/updates", key=open_server.sender_key), 405)


def test_each_fires_once_whenever_the_server_is_killed(make_server, seed):
    """`once` fires once, `everyCrossing` at each crossing that was accepted, over kills at any moment."""
    chance = random.Random(seed)
    server = make_server(CARILLON_REGISTRATION_RATE="off", CARILLON_ADDRESS_RATE="off")
    assert server.admin("PUT", f"/v1/apps/{APP}/items", RULES).status_code == 200
    devices = [server.register_device() for _ in range(3)]
    thresholds = {}
    for number in range(600):
        device = devices[number % 3]
        threshold = chance.randrange(1, 2000)
        thresholds[subscribe(device, "stock.K", f"price > {threshold}.0")["id"]] = threshold
    seen: dict[str, set[str]] = {}
    stopped = threading.Event()

    def receive(device):
        while not stopped.is_set():
            try:
                envelopes = fired(device)
                for envelope in envelopes:
                    seen.setdefault(envelope["fired"]["subscription"], set()).add(envelope["version"])
                if envelopes:
                    device.results(*({"version": it["version"], "result": "acknowledged"} for it in envelopes))
            except (requests.ConnectionError, requests.Timeout, AssertionError):
                pass
            time.sleep(0.02)

    receivers = [threading.Thread(target=receive, args=(device,), daemon=True) for device in devices]
    for receiver in receivers:
        receiver.start()
    sequence, price, kills = 0, 0, 0
    next_kill = 5
    while price < 1500:
        sequence += 1
        price += chance.randrange(1, 12)
        if sequence == next_kill and kills < 8:
            kills += 1
            next_kill += chance.randrange(4, 20)
            killer = threading.Timer(chance.random() * 0.03, server.kill)
            killer.start()
        while True:
            try:
                answer = update(server, "stock.K", {"price": price}, source="feed", sequence=sequence)
                if answer.status_code == 429:
                    # After a kill an item is busy until the firings before it are delivered.
                    time.sleep(int(answer.headers["Retry-After"]))
                    continue
                assert answer.status_code == 200, answer.text
                break
            except requests.ConnectionError:
                killer.join()
                server.start()
        if server.process.poll() is not None:
            server.start()
    assert kills == 8
    expected = {id for id, threshold in thresholds.items() if threshold < price}
    await_value(lambda: set(seen), lambda it: it == expected, "each is told", PATIENCE * 3)
    time.sleep(0.5)
    stopped.set()
    for receiver in receivers:
        receiver.join(PATIENCE)
    assert set(seen) == expected
    assert [id for id, versions in seen.items() if len(versions) != 1] == []
    for device in devices:
        page = device.request("GET", "/v1/device/subscriptions?limit=1000").json()["subscriptions"]
        for body in page:
            assert body["status"] == ("triggered" if body["id"] in expected else "subscribed"), body


def test_thousands_of_concurrent_firings_are_each_delivered_once_over_kills(make_server, seed):
    """One update fires equal conditions; the server is killed during their delivery. CARILLON_FIRINGS=1000000 sets the number."""
    chance = random.Random(seed)
    wanted = int(os.environ.get("CARILLON_FIRINGS", "3000"))
    # As many as are delivered while it runs.
    longest, kills_wanted = (0.15, 3) if wanted < 100_000 else (wanted / 100_000, 20)
    server = make_server(CARILLON_REGISTRATION_RATE="off", CARILLON_ADDRESS_RATE="off")
    assert server.admin("PUT", f"/v1/apps/{APP}/items", RULES).status_code == 200
    devices = [server.register_device() for _ in range(wanted // 1000)]

    def subscribe_all(device):
        # One connection for all: a million take long enough.
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=PATIENCE)
        body = json.dumps({"items": ["stock.M"], "trigger": "price > 10.0", "format": {"title": "${price}"}, "fields": ["price"]})
        ids = []
        for _ in range(1000):
            connection.request(
                "POST", "/v1/device/subscriptions", body, {"Authorization": f"Bearer {device.credential}"})
            answer = connection.getresponse()
            ids.append(json.loads(answer.read())["id"])
        connection.close()
        return ids

    with ThreadPoolExecutor(8) as pool:
        expected = {id for ids in pool.map(subscribe_all, devices) for id in ids}
    assert len(expected) == wanted
    killer = threading.Timer(chance.random() * 0.05, server.kill)
    killer.start()
    kills = 0
    while True:
        try:
            answer = update(server, "stock.M", {"price": 11}, source="feed", sequence=1)
            # It was accepted before the kill, and is still being delivered: a publisher repeats its request.
            if answer.status_code == 429:
                time.sleep(0.2)
                continue
            assert answer.status_code == 200
            break
        except requests.ConnectionError:
            killer.join()
            server.start()
    for _ in range(kills_wanted):
        time.sleep(chance.random() * longest)
        server.kill()
        kills += 1
        server.start()
    seen: dict[str, set[str]] = {}

    def receive_of(device):
        envelopes = fired(device)
        for envelope in envelopes:
            seen.setdefault(envelope["fired"]["subscription"], set()).add(envelope["version"])
        for start in range(0, len(envelopes), 100):
            device.results(*({"version": it["version"], "result": "acknowledged"} for it in envelopes[start:start + 100]))

    def receive():
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(receive_of, devices))
        return set(seen)

    await_value(receive, lambda it: it == expected, "each is told", PATIENCE * 3 + wanted / 1000)
    receive()
    assert kills == kills_wanted and set(seen) == expected
    assert [id for id, versions in seen.items() if len(versions) != 1] == []
