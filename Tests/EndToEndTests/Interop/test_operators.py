"""Operators: roles of keys, revoking and rotating, and the effects of a deletion."""

import pytest

from carillon_peer import APP, assert_problem, await_value

OTHER_APP = "com.example.other"


@pytest.fixture(scope="module")
def other_sender_key(server):
    server.admin("POST", "/v1/apps", {"id": OTHER_APP})
    return make_key(server, "sender", OTHER_APP)["secret"]


def make_key(server, role: str, app: str | None = None) -> dict:
    answer = server.admin("POST", "/v1/keys", {"role": role} | ({"app": app} if app else {}))
    assert answer.status_code == 201, answer.text
    return answer.json()


def make_app(server, name: str) -> tuple[str, str]:
    """A new app and a client key of it."""
    assert server.admin("POST", "/v1/apps", {"id": name}).status_code == 201
    return name, make_key(server, "client", name)["secret"]


# Roles


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/apps", None),
        ("POST", "/v1/apps", {"id": "com.example.never"}),
        ("DELETE", "/v1/apps/" + APP, None),
        ("GET", "/v1/keys", None),
        ("POST", "/v1/keys", {"role": "admin"}),
        ("DELETE", "/v1/keys/0011223344556677", None),
        ("POST", "/v1/keys/0011223344556677/rotate", {}),
        ("GET", f"/v1/apps/{APP}/devices", None),
        ("GET", "/v1/devices/x", None),
        ("DELETE", "/v1/devices/x", None),
        ("POST", "/v1/devices/x/suspend", None),
        ("POST", "/v1/devices/x/resume", None),
        ("POST", "/v1/devices/x/channels/0b1c4f4e-31a5-4f0c-9d58-0d5c4b3a2f10/revoke", {}),
    ],
)
def test_operators_doors_want_an_admin_key(server, device, method, path, body):
    assert_problem(server.request(method, path, json=body), 401)
    assert_problem(server.request(method, path, key="car_admin_0011223344556677_" + "0" * 48, json=body), 401)
    assert_problem(server.request(method, path, key=device.credential, json=body), (401, 403))
    for key in (server.sender_key, server.client_key):
        assert_problem(server.request(method, path, key=key, json=body), 403)


def test_only_a_client_key_of_the_app_registers_devices(server, other_sender_key):
    body = {"app": APP}
    assert_problem(server.request("POST", "/v1/devices", json=body), 401)
    for key in (server.sender_key, other_sender_key):
        assert_problem(server.request("POST", "/v1/devices", key=key, json=body), 403)
    foreign = make_key(server, "client", OTHER_APP)["secret"]
    assert_problem(server.request("POST", "/v1/devices", key=foreign, json=body), (403, 404))
    assert_problem(
        server.request("POST", "/v1/devices", key=server.client_key, json={"app": "com.example.nowhere"}),
        (403, 404),
    )


def test_messages_are_shown_to_sender_keys_of_the_app_and_to_admins(server, channel, other_sender_key):
    sent = channel.send(b"x")
    path = "/v1/messages/" + sent.id
    for key in (server.sender_key, server.admin_key):
        answer = server.request("GET", path, key=key)
        assert (answer.status_code, answer.json()) == (200, sent.status() | {"pushes": []})
    assert_problem(server.request("GET", path), 401)
    assert_problem(server.request("GET", path, key=other_sender_key), (403, 404))
    assert_problem(server.request("GET", path, key=server.client_key), 403)
    assert_problem(server.request("GET", "/v1/messages/unknown", key=server.sender_key), 404)


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Basic eDp5", "Bearer a b", "Bearer é", "car_admin_x", "Bearer " + "x" * 5000],
)
def test_malformed_authorization_is_401(server, authorization):
    headers = {"Authorization": authorization.encode("latin-1")}
    assert_problem(server.request("GET", "/v1/apps", headers=headers), 401)


def test_the_scheme_of_authorization_is_compared_without_case(server):
    assert (
        server.request("GET", "/v1/apps", headers={"Authorization": "bearer " + server.admin_key}).status_code
        == 200
    )


# Keys


def test_secrets_are_shown_once(server):
    made = make_key(server, "sender", APP)
    listed = server.admin("GET", "/v1/keys")
    assert made["id"] in [key["id"] for key in listed.json()["keys"]]
    for secret in (made["secret"], made["secret"].rsplit("_", 1)[1], server.admin_key):
        assert secret not in listed.text


def test_secrets_and_payloads_are_not_in_the_log_nor_secrets_in_the_data(make_server):
    server = make_server(CARILLON_LOG="trace")
    device = server.register_device()
    channel = device.open_channel()
    with device.connect() as socket:
        socket.caught_up()
        channel.send(b"the very secret payload")
        socket.notification()
    server.request("GET", "/v1/apps", key="car_admin_0011223344556677_" + "5ec2e7" * 8)
    server.stop()
    log = server.log.read_text()
    assert "serving" in log
    token = channel.endpoint.rsplit("/", 1)[1]
    for secret in (
        server.admin_key,
        server.client_key,
        device.credential,
        device.credential.split(".")[1],
        token,
        "5ec2e7" * 8,
        "the very secret payload",
        "dGhlIHZlcnkgc2VjcmV0",
    ):
        assert secret not in log
    stored = b"".join(path.read_bytes() for path in server.data.rglob("*") if path.is_file())
    for secret in (server.admin_key, server.admin_key.rsplit("_", 1)[1], device.credential.split(".")[1], token):
        assert secret.encode() not in stored


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"role": "king"},
        {"role": 7},
        {"role": "sender"},
        {"role": "client"},
        {"role": "sender", "app": "com.example.nowhere"},
        {"role": "sender", "app": 7},
        {"role": "sender", "app": APP, "extra": 1},
        {"role": "admin", "app": APP},
    ],
    ids=str,
)
def test_a_malformed_key_is_refused(server, body):
    assert_problem(server.admin("POST", "/v1/keys", body), (400, 404))


def test_a_revoked_key_is_refused_at_once(server):
    key = make_key(server, "admin")
    assert server.request("GET", "/v1/apps", key=key["secret"]).status_code == 200
    assert server.admin("DELETE", "/v1/keys/" + key["id"]).status_code == 204
    assert_problem(server.request("GET", "/v1/apps", key=key["secret"]), 401)
    assert_problem(server.admin("DELETE", "/v1/keys/" + "0" * 16), 404)


def test_revoking_a_client_key_leaves_its_devices(server):
    key = make_key(server, "client", APP)
    device = server.register_device(key=key["secret"])
    assert server.admin("DELETE", "/v1/keys/" + key["id"]).status_code == 204
    assert_problem(server.request("POST", "/v1/devices", key=key["secret"], json={"app": APP}), 401)
    device.open_channel().send(b"x")
    assert len(device.inbox()["envelopes"]) == 1


def test_a_rotated_key_is_replaced_at_once_without_overlap(server):
    key = make_key(server, "sender", APP)
    answer = server.admin("POST", f"/v1/keys/{key['id']}/rotate", {"overlapSeconds": 0})
    assert answer.status_code in (200, 201), answer.text
    assert answer.json()["secret"] != key["secret"]
    assert_problem(server.request("GET", "/v1/messages/unknown", key=key["secret"]), 401)
    assert_problem(server.request("GET", "/v1/messages/unknown", key=answer.json()["secret"]), 404)


def test_both_secrets_of_a_rotated_key_work_during_the_overlap_and_only_then(server):
    key = make_key(server, "sender", APP)
    made = server.admin("POST", f"/v1/keys/{key['id']}/rotate", {"overlapSeconds": 1}).json()

    def status(secret):
        return server.request("GET", "/v1/messages/unknown", key=secret).status_code

    assert status(key["secret"]) == status(made["secret"]) == 404
    await_value(lambda: status(key["secret"]), lambda code: code == 401, "the end of the overlap")
    assert status(made["secret"]) == 404


@pytest.mark.parametrize(
    "body", [{"overlapSeconds": "x"}, {"overlapSeconds": -1}, {"overlapSeconds": 1e300}, {"extra": 1}, []], ids=str
)
def test_a_malformed_rotation_is_refused_and_the_key_stays(server, body):
    key = make_key(server, "admin")
    assert_problem(server.admin("POST", f"/v1/keys/{key['id']}/rotate", body), 400)
    assert server.request("GET", "/v1/apps", key=key["secret"]).status_code == 200


def test_a_rotated_and_then_revoked_key_is_refused_in_both_its_secrets(server):
    key = make_key(server, "admin")
    made = server.admin("POST", f"/v1/keys/{key['id']}/rotate", {"overlapSeconds": 600}).json()
    assert server.admin("DELETE", "/v1/keys/" + made.get("id", key["id"])).status_code == 204
    assert_problem(server.request("GET", "/v1/apps", key=made["secret"]), 401)
    assert_problem(server.request("GET", "/v1/apps", key=key["secret"]), 401)


# Apps


def test_an_app_is_made_once(server):
    make_app(server, "com.example.once")
    assert_problem(server.admin("POST", "/v1/apps", {"id": "com.example.once"}), 409)


@pytest.mark.parametrize("app", ["", " ", "a b", "../x", "é", "x" * 5000, 7, None, ["x"], "a/b", "a\nb"])
def test_a_malformed_app_is_refused(server, app):
    assert_problem(server.admin("POST", "/v1/apps", {"id": app}), 400)


def test_unknown_apps_devices_and_channels_are_404(server, device):
    for method, path in [
        ("DELETE", "/v1/apps/com.example.nowhere"),
        ("GET", "/v1/apps/com.example.nowhere/devices"),
        ("GET", "/v1/devices/" + "0" * 32),
        ("DELETE", "/v1/devices/" + "0" * 32),
        ("GET", "/v1/devices/x"),
        ("POST", f"/v1/devices/{device.id}/channels/0b1c4f4e-31a5-4f0c-9d58-0d5c4b3a2f10/revoke"),
    ]:
        assert_problem(server.admin(method, path, {} if method == "POST" else None), 404)


def test_deleting_an_app_closes_its_connections(server):
    app, client_key = make_app(server, "com.example.short-lived")
    device = server.register_device(app, client_key)
    channel = device.open_channel()
    waiting = channel.send(b"x")
    bystander = server.register_device()
    with device.connect() as socket, bystander.connect() as other:
        other.caught_up()
        assert server.admin("DELETE", "/v1/apps/" + app).status_code == 204
        assert socket.close_code() == 4410
        assert other.before_pong() == []
    assert_problem(channel.post(b"x"), (404, 410))
    assert_problem(device.request("GET", "/v1/device"), 401)
    assert_problem(server.request("POST", "/v1/devices", key=client_key, json={"app": app}), 401)
    assert app not in server.admin("GET", "/v1/apps").text
    answer = server.request("GET", waiting.location)
    assert answer.status_code == 404 or answer.json()["state"] == "final"


# Devices


@pytest.mark.parametrize("by", ["operator", "itself"])
def test_deleting_a_device_closes_its_socket_with_4410_and_kills_its_endpoints(server, by):
    device = server.register_device()
    channel = device.open_channel()
    sent = channel.send(b"x")
    with device.connect() as socket:
        socket.caught_up()
        if by == "operator":
            assert server.admin("DELETE", "/v1/devices/" + device.id).status_code == 204
        else:
            assert device.request("DELETE", "/v1/device").status_code == 204
        assert socket.close_code() == 4410
    assert_problem(channel.post(b"x"), (404, 410))
    assert_problem(device.request("GET", "/v1/device"), 401)
    assert_problem(server.admin("GET", "/v1/devices/" + device.id), 404)
    with server.connect() as again:
        again.send({"messageType": "hello", "carillon": 1, "device": device.id, "credential": device.credential})
        assert again.close_code() in (4401, 4410)
    assert sent.final()["outcome"] not in ("acknowledged", "waiting")


def test_deleting_a_device_ends_its_poll_and_its_stream(server):
    polling, streaming = server.register_device(), server.register_device()
    headers = {"Accept": "text/event-stream"}
    with server.request("GET", "/v1/inbox", key=streaming.credential, headers=headers, stream=True) as stream:
        lines = stream.iter_lines(decode_unicode=True, chunk_size=1)
        assert next(lines) == "event: caughtUp"
        assert server.admin("DELETE", "/v1/devices/" + streaming.id).status_code == 204
        list(lines)
    assert server.admin("DELETE", "/v1/devices/" + polling.id).status_code == 204
    assert_problem(polling.request("GET", "/v1/inbox?wait=60"), 401)


def test_a_device_is_shown_with_its_channels_and_without_secrets(server, device):
    channel = device.open_channel(name="news")
    answer = server.admin("GET", "/v1/devices/" + device.id)
    assert [it["channelID"] for it in answer.json()["channels"]] == [channel.id]
    assert device.credential.split(".")[1] not in answer.text
    assert channel.endpoint.rsplit("/", 1)[1] not in answer.text
    assert device.id in server.devices_of(APP)


def test_the_devices_of_an_app_are_listed_page_by_page_each_once(make_server):
    server = make_server()
    registered = [server.register_device().id for _ in range(230)]
    listed = server.devices_of(APP)
    assert len(listed) == len(set(listed)) == 230
    assert set(listed) == set(registered)


# Revoked channels


def revoke(device, channel, body=None):
    path = f"/v1/devices/{device.id}/channels/{channel.id}/revoke"
    answer = device.server.admin("POST", path, {} if body is None else body)
    assert answer.status_code in (200, 202, 204), answer.text


@pytest.mark.parametrize(
    ("body", "event"), [(None, "closed"), ({"code": 500}, "error"), ({"code": 599}, "error")], ids=str
)
@pytest.mark.parametrize("connected", [True, False], ids=["live", "at the next connection"])
def test_the_app_hears_of_a_revoked_channel_until_it_has_acknowledged(device, body, event, connected):
    kept, revoked = device.open_channel(), device.open_channel()
    if connected:
        socket = device.connect()
        socket.caught_up()
        revoke(device, revoked, body)
        frame = socket.expect("channel")
    else:
        revoke(device, revoked, body)
        socket = device.connect()
        (frame,) = socket.caught_up()
    assert (frame["messageType"], frame["event"], frame["channelID"]) == ("channel", event, revoked.id)
    assert body is None or frame["code"] == body["code"]
    assert_problem(revoked.post(b"x"), (404, 410))
    socket.close()
    with device.connect() as socket:
        assert socket.caught_up() == [frame]
        socket.ack(frame)
        kept.send(b"x")
        socket.ack(socket.notification())
        await_value(lambda: device.inbox()["envelopes"], lambda envelopes: envelopes == [], "an empty inbox")
    with device.connect() as socket:
        assert socket.caught_up() == []


def test_messages_of_a_revoked_channel_are_not_delivered_and_final(device):
    channel = device.open_channel()
    sent = channel.send(b"x")
    revoke(device, channel)
    with device.connect() as socket:
        assert [frame["messageType"] for frame in socket.caught_up()] == ["channel"]
    assert sent.final()["outcome"] not in ("acknowledged", "waiting")


def test_a_revoked_channel_can_be_opened_anew_with_a_new_endpoint(device):
    channel = device.open_channel()
    revoke(device, channel)
    again = device.open_channel(channel.id)
    assert again.endpoint != channel.endpoint
    assert_problem(channel.post(b"x"), (404, 410))
    again.send(b"x")


@pytest.mark.parametrize("code", ["x", 1.5, -1, 10**30, {}], ids=str)
def test_a_malformed_revocation_is_refused_and_the_channel_lives(server, device, channel, code):
    path = f"/v1/devices/{device.id}/channels/{channel.id}/revoke"
    assert_problem(server.admin("POST", path, {"code": code}), 400)
    channel.send(b"x")


def test_revoking_again_is_404(server, device, channel):
    revoke(device, channel)
    assert_problem(server.admin("POST", f"/v1/devices/{device.id}/channels/{channel.id}/revoke", {}), 404)


def test_revoking_a_client_key_keeps_its_devices_or_ends_them_as_requested(server):
    app, key = make_app(server, "com.example.revoked")
    other = make_key(server, "client", app)["secret"]
    id = key.split("_")[2]
    devices = [server.register_device(app, key) for _ in range(3)]
    kept = server.register_device(app, other)
    sockets = [device.connect() for device in devices]
    for socket in sockets:
        socket.caught_up()
    assert_problem(server.admin("DELETE", f"/v1/keys/{id}?devices=x"), 400, "parameter_invalid")
    assert server.admin("DELETE", f"/v1/keys/{id}").status_code == 204
    assert_problem(server.request("POST", "/v1/devices", key=key, json={"app": app}), 401)
    for socket in sockets:
        assert socket.before_pong() == []
    assert_problem(server.admin("DELETE", f"/v1/keys/{id}"), 404)

    assert server.admin("DELETE", f"/v1/keys/{id}?devices=delete").status_code == 204
    for socket, device in zip(sockets, devices):
        assert socket.close_code() > 1000
        assert_problem(device.request("GET", "/v1/device"), 401)
    assert kept.request("GET", "/v1/device").status_code == 200
    assert_problem(server.admin("DELETE", "/v1/keys/0011223344556677?devices=delete"), 404)
