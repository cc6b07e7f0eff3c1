"""The contents of `/metrics`: read by Prometheus' own tools, and compared with the requests."""

import subprocess

import pytest
import requests

from carillon_peer import ENVIRONMENT, PATIENCE, await_value, free_port


@pytest.fixture
def measured(make_server):
    port = free_port()
    server = make_server(CARILLON_METRICS_LISTEN=port)
    server.metrics = f"http://127.0.0.1:{port}/metrics"
    return server


def read(server) -> dict:
    answer = requests.get(server.metrics, timeout=PATIENCE)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_promtool_reports_no_faults(measured):
    device = measured.register_device()
    device.open_channel().send(b"x")
    measured.request("GET", "/nowhere")
    text = requests.get(measured.metrics, timeout=PATIENCE).text
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_head_is_answered_wherever_get_is(measured):
    base = measured.metrics.removesuffix("/metrics")
    with requests.Session() as session:
        for path in ("/metrics", "/health/live", "/health/ready"):
            got = session.get(base + path, timeout=PATIENCE)
            answer = session.head(base + path, timeout=PATIENCE)
            assert (answer.status_code, answer.content) == (200, b""), path
            assert answer.headers["Content-Type"] == got.headers["Content-Type"]


def test_a_client_address_that_cannot_be_read_is_counted_and_logged_once(make_server):
    port = free_port()
    server = make_server(CARILLON_METRICS_LISTEN=port, CARILLON_CLIENT_ADDRESS_HEADER="Forwarded")
    server.metrics = f"http://127.0.0.1:{port}/metrics"
    name = "carillon_client_address_invalid_total"
    for value in ("for=192.0.2.60;proto=http", 'for="[2001:db8::7]:4711"', "for=unknown", "for=_hidden"):
        assert server.request("GET", "/v1/server", headers={"Forwarded": value}).status_code == 200
    assert server.request("GET", "/v1/server").status_code == 200
    assert read(server).get(name, 0) == 0
    for value in ("192.0.2.60:x", "proto=http", "for=x"):
        assert server.request("GET", "/v1/server", headers={"Forwarded": value}).status_code == 200
    assert read(server)[name] == 3
    assert server.log.read_text().count("cannot read the client address") == 1


def test_each_message_is_counted_from_its_acceptance_to_its_outcome(measured):
    device = measured.register_device()
    channel = device.open_channel()
    before = read(measured)
    kept = [channel.send(body) for body in (b"1", b"22", b"333")]
    channel.send(b"nobody is there", ttl=0)
    waiting = read(measured)

    def grown(values, name):
        return values.get(name, 0) - before.get(name, 0)

    assert grown(waiting, 'carillon_messages_total{result="accepted"}') == 3
    assert grown(waiting, 'carillon_messages_total{result="dropped"}') == 1
    assert grown(waiting, "carillon_inbox_envelopes") == 3
    assert grown(waiting, "carillon_inbox_bytes") == 3 * 128 + 6
    assert waiting["carillon_sockets"] == 0
    with device.connect() as socket:
        frames = socket.caught_up()
        assert read(measured)["carillon_sockets"] == read(measured)["carillon_sessions"] == 1
        socket.ack(frames[0])
        kept[0].final()
    assert measured.request("DELETE", kept[1].location).status_code == 204
    ended = await_value(
        lambda: read(measured), lambda values: values["carillon_sockets"] == 0, "the socket is counted out")
    assert grown(ended, 'carillon_envelopes_ended_total{kind="message",outcome="acknowledged"}') == 1
    assert grown(ended, 'carillon_envelopes_ended_total{kind="message",outcome="cancelled"}') == 1
    assert grown(ended, "carillon_acknowledgement_delay_seconds_count") == 1
    assert grown(ended, "carillon_inbox_envelopes") == 1
    assert ended["carillon_sessions_started_total"] == 1
    assert ended["carillon_commit_duration_seconds_count"] > 0


def test_waiting_messages_are_counted_after_a_kill_and_removed_with_their_device(measured):
    device, other = measured.register_device(), measured.register_device()
    for owner in (device, other):
        channel = owner.open_channel()
        for _ in range(5):
            channel.send(b"12345678")
    measured.kill()
    measured.start()
    assert read(measured)["carillon_inbox_envelopes"] == 10
    assert device.request("DELETE", "/v1/device").status_code == 204
    left = await_value(lambda: read(measured), lambda values: values["carillon_inbox_envelopes"] == 5, "five are left")
    assert left["carillon_inbox_bytes"] == 5 * (128 + 8)


def test_refusals_are_counted_by_their_code(measured):
    before = read(measured)
    measured.request("POST", "/push/nonsense", data=b"x", headers={"TTL": "1"})
    name = 'carillon_refusals_total{code="token_unknown"}'
    assert read(measured)[name] == before.get(name, 0) + 1


def test_metrics_are_nowhere_else(measured, make_server):
    assert measured.request("GET", "/metrics").status_code == 404
    quiet = make_server()
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{free_port()}/metrics", timeout=PATIENCE)
    assert quiet.request("GET", "/metrics").status_code == 404


def test_a_taken_address_is_named(make_server, tmp_path):
    server = make_server()
    done = subprocess.run(
        [server.executable, "serve", "--data", tmp_path / "other", "--listen", f"127.0.0.1:{free_port()}",
         "--metrics-listen", str(server.port)],
        capture_output=True, text=True, timeout=PATIENCE, env=ENVIRONMENT, check=False)
    assert done.returncode == 69
    assert f"cannot listen on 127.0.0.1:{server.port}" in done.stderr
