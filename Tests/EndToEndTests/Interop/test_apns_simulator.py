"""The simulator of Apple's push service, with an independent client and token library."""

import asyncio
import json
import os
import re
import shutil
import socket as sockets
import ssl
import subprocess
import time

import aioapns
import aioapns.connection
import pytest
import requests

from apns_peer import BODY, DEVICE, TOPIC, Simulator
from carillon_peer import PATIENCE

REFUSED_STREAM, NO_ERROR, INTERNAL_ERROR, PROTOCOL_ERROR = 7, 0, 2, 1


@pytest.fixture
def connection(simulator):
    """A connection that has had its first push accepted."""
    connection = simulator.connect()
    assert connection.push().status == 200
    connection.await_that(lambda: connection.limits[-1] == 1000, "the larger limit")
    return connection


# Validation


def test_a_good_push_is_accepted_and_shown(simulator, connection):
    answer = connection.push(body=b'{"aps":{"alert":{"title":"t","body":"b"},"badge":2}}', apns_collapse_id="c")
    assert (answer.status, answer.body) == (200, b"")
    assert len(answer.headers["apns-id"]) == 36 and len(answer.headers["apns-unique-id"]) == 36
    shown = simulator.api("GET", f"devices/{DEVICE}")["shown"][-1]
    assert (shown["title"], shown["body"], shown["badge"], shown["id"]) == ("t", "b", 2, answer.headers["apns-id"])


MISTAKES = [
    (400, "BadCollapseId", {"apns_collapse_id": "c" * 65}),
    (400, "BadDeviceToken", {"token": "abcd"}),
    (400, "BadExpirationDate", {"apns_expiration": "soon"}),
    (400, "BadMessageId", {"apns_id": "1"}),
    (400, "BadPriority", {"apns_priority": "3"}),
    (400, "BadTopic", {"apns_topic": "com.example.app.voip"}),
    (400, "DeviceTokenNotForTopic", {"apns_topic": "com.example.other"}),
    (400, "InvalidPushType", {"apns_push_type": "shout"}),
    (400, "MissingDeviceToken", {"path": "/3/device/"}),
    (400, "MissingTopic", {"apns_topic": None}),
    (400, "PayloadEmpty", {"body": b""}),
    (400, "TopicDisallowed", {"apns_topic": "com.example.foreign"}),
    (403, "InvalidProviderToken", {"authorization": "bearer nonsense"}),
    (403, "MissingProviderToken", {"authorization": None}),
    (404, "BadPath", {"path": "/2/device/" + DEVICE}),
    (405, "MethodNotAllowed", {"method": "PUT"}),
    (413, "PayloadTooLarge", {"body": b"x" * 4097}),
    (413, "PayloadTooLarge", {"body": b"x" * 1_000_000}),
]


@pytest.mark.parametrize("status, reason, mistake", MISTAKES)
def test_an_honest_mistake_has_its_status_and_reason(simulator, connection, status, reason, mistake):
    simulator.api("PUT", "apps/com.example.foreign", {"team": "OTHERTEAM1"})
    answer = connection.push(**mistake)
    assert (answer.status, answer.reason) == (status, reason)
    assert connection.push().status == 200


@pytest.mark.parametrize("state, reason", [("unregistered", "Unregistered"), ("expired", "ExpiredToken")])
def test_a_dead_token_is_reported_in_milliseconds(simulator, connection, state, reason):
    simulator.add_device(state=state, since=1700000000123)
    answer = connection.push()
    assert (answer.status, json.loads(answer.body)) == (410, {"reason": reason, "timestamp": 1700000000123})


def test_a_header_that_comes_twice_is_refused(connection):
    stream = connection.h2.get_next_available_stream_id()
    connection.answers[stream] = type(connection.answers[1])()
    fields = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", f"/3/device/{DEVICE}")]
    fields += [("authorization", connection.authorization), ("apns-topic", TOPIC), ("apns-topic", TOPIC)]
    connection.h2.send_headers(stream, fields)
    connection.h2.send_data(stream, BODY, end_stream=True)
    connection.flush()
    assert connection.answer(stream).reason == "DuplicateHeaders"


def test_a_token_grows_old_and_may_not_change_too_often(simulator, connection):
    connection.authorization = "bearer " + simulator.token(age=4000)
    assert connection.push().reason == "ExpiredProviderToken"
    connection.authorization = "bearer " + simulator.token(age=1)
    assert connection.push().reason == "TooManyProviderTokenUpdates"
    simulator.api("POST", "clock", {"advanceSeconds": 1201})
    connection.authorization = "bearer " + simulator.token()
    assert connection.push().status == 200


def test_a_time_in_a_string_is_no_time(simulator, connection):
    connection.authorization = "bearer " + simulator.token(iat=str(int(time.time())))
    assert connection.push().reason == "InvalidProviderToken"


def test_keys_have_an_environment_a_team_and_topics(simulator):
    for name, more, reason in [
        ("OTHERENVMT", {"environments": ["production"]}, "BadEnvironmentKeyIdInToken"),
        ("OTHERTOPIC", {"topics": ["com.example.other"]}, "TopicDisallowed"),
    ]:
        simulator.api("PUT", f"keys/{name}", {"team": "SIMTEAM001", "privateKey": simulator.key, **more})
        simulator.key_id = name
        connection = simulator.connect()
        assert connection.push().reason == reason


def test_a_connection_is_bound_to_the_key_of_its_first_push(simulator, connection):
    simulator.api("PUT", "keys/STRANGER01", {"team": "OTHERTEAM1", "privateKey": simulator.key})
    simulator.key_id, simulator.team = "STRANGER01", "OTHERTEAM1"
    connection.authorization = "bearer " + simulator.token()
    assert connection.push().reason == "UnrelatedKeyIdInToken"


def certificate(simulator, tmp_path, name="client.pem", **options):
    made = simulator.api("POST", "certificates", {"topics": [TOPIC], **options})
    file = tmp_path / name
    file.write_text(made["certificate"] + made["privateKey"])
    return file


def test_certificates_are_judged_by_the_answer(simulator, make_simulator, tmp_path):
    def answer(file, **options):
        return simulator.connect(certificate=file).push(authorization=None, **options)

    good = certificate(simulator, tmp_path)
    assert answer(good, apns_topic=None).status == 200
    assert answer(good, apns_topic="com.example.other").reason == "TopicDisallowed"
    location = {"apns_push_type": "location", "apns_topic": TOPIC + ".location-query"}
    assert answer(good, **location).reason == "Forbidden"
    assert answer(certificate(simulator, tmp_path, days=-1)).reason == "BadCertificate"
    production = certificate(simulator, tmp_path, environments=["production"])
    assert answer(production).reason == "BadCertificateEnvironment"
    assert answer(certificate(make_simulator(), tmp_path)).reason == "BadCertificate"
    assert simulator.connect(certificate=good).limits == [1000]


def test_too_many_requests_and_shutdown(simulator, connection):
    simulator.api("PATCH", "rules", {"requestsPerDeviceAndMinute": 2})
    assert [connection.push().reason for _ in range(3)] == [None, None, "TooManyRequests"]
    simulator.api("PATCH", "rules", {"shuttingDown": True})
    answer = connection.push()
    assert (answer.status, answer.reason) == (503, "Shutdown")


def test_channels_live_at_their_own_port(simulator, connection):
    manage = simulator.connect("management")
    place = f"/1/apps/{TOPIC}/channels"
    plain = {"apns_topic": None, "apns_push_type": None}
    body = b'{"message-storage-policy":0,"push-type":"LiveActivity"}'
    made = manage.push(path=place, body=body, **plain)
    assert made.status == 201 and made.headers["apns-request-id"]
    channel = made.headers["apns-channel-id"]
    read = manage.push(path=place, body=b"", method="GET", apns_channel_id=channel, **plain)
    assert json.loads(read.body) == {"message-storage-policy": 0, "push-type": "LiveActivity"}
    listed = manage.push(path=f"/1/apps/{TOPIC}/all-channels", body=b"", method="GET", **plain)
    assert json.loads(listed.body) == {"channels": [channel]}
    send = {"path": f"/4/broadcasts/apps/{TOPIC}", "apns_topic": None, "apns_push_type": "liveactivity"}
    update = b'{"aps":{"timestamp":1,"event":"update","content-state":{}}}'
    sent = connection.push(body=update, apns_channel_id=channel, apns_expiration="0", **send)
    assert sent.status == 200 and "apns-id" not in sent.headers
    stored = connection.push(body=update, apns_channel_id=channel, apns_expiration="1900000000", **send)
    assert stored.reason == "BadExpirationDate"
    assert manage.push(path=place, body=b"", method="DELETE", apns_channel_id=channel, **plain).status == 204
    gone = connection.push(body=update, apns_channel_id=channel, apns_expiration="0", **send)
    assert gone.reason == "ChannelNotRegistered"
    assert connection.push(path=place, body=body, **plain).reason == "BadPath"


def test_one_push_waits_for_a_device_that_is_offline(simulator, connection):
    simulator.add_device(online=False)
    for text in (b'{"aps":{"alert":"one"}}', b'{"aps":{"alert":"two"}}'):
        assert connection.push(body=text).status == 200
    assert simulator.api("GET", f"devices/{DEVICE}")["replaced"] == 1
    simulator.add_device(online=True)
    assert [it["body"] for it in simulator.api("GET", f"devices/{DEVICE}")["shown"][-1:]] == ["two"]


# Connections


def test_one_stream_until_an_answer_shows_that_the_credentials_are_good(simulator):
    connection = simulator.connect()
    assert connection.limits == [1]
    assert connection.push(token="abcd").reason == "BadDeviceToken"
    connection.await_that(lambda: connection.limits == [1, 1000], "the larger limit")
    streams = [connection.begin() for _ in range(200)]
    assert {connection.answer(stream).status for stream in streams} == {200}


def test_prior_knowledge_needs_no_tls(make_simulator):
    simulator = make_simulator("--plain", "--unknown-devices", "register")
    assert simulator.connect().push(token="abcd").status == 200


def test_a_ping_is_answered(simulator, connection):
    connection.settle()
    assert connection.pongs == 1


@pytest.mark.parametrize("name", ["wrongHost", "expired", "notYetValid", "untrusted"])
def test_certificate_trouble_is_seen_by_the_client(simulator, name):
    simulator.conditions(certificate=name)
    with pytest.raises(ssl.SSLCertVerificationError):
        simulator.connect()
    simulator.conditions(certificate="good")
    assert simulator.connect().push().status == 200


def test_a_closed_connection_and_one_without_an_answer(simulator):
    simulator.conditions(welcome="closed")
    with pytest.raises(OSError):
        simulator.connect()
    simulator.conditions(welcome="silent")
    with sockets.create_connection(("127.0.0.1", simulator.ports["push"])) as silent:
        silent.sendall(b"\x16\x03\x01")
        silent.settimeout(0.3)
        with pytest.raises(TimeoutError):
            silent.recv(1)


def test_tiny_windows_are_enlarged_again(simulator):
    simulator.conditions(streamWindow=16)
    connection = simulator.connect()
    assert connection.h2.remote_settings.initial_window_size == 16
    assert connection.push(body=b'{"aps":{"alert":"' + b"x" * 2000 + b'"}}').status == 200


def test_a_closed_window_stalls(simulator):
    simulator.conditions(connectionWindow=0, firstStreams=1000)
    connection = simulator.connect()
    while connection.h2.outbound_flow_control_window >= 4000:
        assert connection.push(body=BODY + b" " * 3900).status == 200
    with pytest.raises(AssertionError, match="room in the window"):
        connection.await_that = lambda accept, what, patience=0.5, wait=connection.await_that: wait(accept, what, 0.5)
        connection.begin(body=BODY + b" " * 4000)


def test_everything_takes_a_round_trip(simulator):
    simulator.conditions(roundTripMilliseconds=1000)
    connection = simulator.connect()
    assert connection.push().status == 200
    began = time.monotonic()
    streams = [connection.begin() for _ in range(100)]
    assert all(connection.answer(stream).status == 200 for stream in streams)
    assert 1 <= time.monotonic() - began < 60, "one after the other would take 100 seconds"


def test_pings_can_stay_unanswered(simulator):
    simulator.conditions(answersPings=False)
    connection = simulator.connect()
    connection.h2.ping(b"12345678")
    assert connection.push().status == 200
    assert connection.pongs == 0


def test_an_idle_connection_ends_with_its_reason(simulator):
    simulator.conditions(idleSeconds=1)
    connection = simulator.connect()
    connection.await_end()
    assert json.loads(connection.goaway.additional_data) == {"reason": "IdleTimeout"}


def test_a_limit_falls_with_a_rejection_and_rises_again(simulator):
    simulator.conditions(rejection="lowersLimit")
    connection = simulator.connect()
    assert connection.push().status == 200
    assert connection.push(apns_priority="3").status == 400
    assert connection.push().status == 200
    connection.await_that(lambda: connection.limits == [1, 1000, 1, 1000], "the restored limit")


def test_a_rejection_can_refuse_pending_pushes(simulator):
    simulator.conditions(rejection="lowersLimitAndRefuses")
    connection = simulator.connect()
    assert connection.push().status == 200
    waiting = connection.begin(ends=False)
    assert connection.push(apns_priority="3").status == 400
    assert connection.answer(waiting).reset == REFUSED_STREAM
    assert connection.push().status == 200


def test_token_trouble_can_stay_on_its_connection(simulator, connection):
    simulator.api("PATCH", "rules", {"tokenTroubleStays": True})
    connection.authorization = "bearer " + simulator.token(age=4000)
    assert connection.push().reason == "ExpiredProviderToken"
    connection.authorization = "bearer " + simulator.token()
    assert connection.push().reason == "ExpiredProviderToken"
    assert simulator.connect().push().status == 200


def test_a_client_that_sends_invalid_data_gets_an_error_and_others_continue(simulator, connection):
    for nonsense in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", os.urandom(4096), b"\x00" * 100):
        with sockets.create_connection(("127.0.0.1", simulator.ports["push"])) as plain:
            with simulator.trust().wrap_socket(plain, server_hostname="localhost") as stranger:
                stranger.settimeout(PATIENCE)
                stranger.sendall(nonsense)
                heard = b""
                while part := stranger.recv(4096):
                    heard += part
                assert heard[3] == 4 and b"\x07" in heard  # SETTINGS, then GOAWAY
    assert connection.push().status == 200


def test_too_many_bad_tokens_end_the_connection(simulator):
    simulator.conditions(badDeviceTokens=2)
    connection = simulator.connect()
    assert connection.push(token="abcd").status == 400
    assert connection.push(token="abcd").status == 400
    connection.await_end()
    assert json.loads(connection.goaway.additional_data) == {"reason": "BadDeviceToken"}


@pytest.mark.parametrize("excess", ["goAway", "refuse"])
def test_a_stream_too_many(simulator, excess):
    simulator.conditions(excess=excess)
    connection = simulator.connect()
    connection.settle()
    connection.h2.remote_settings._settings[3].append(1000)
    connection.h2.remote_settings.acknowledge()
    streams = [connection.begin(ends=False), connection.begin()]
    if excess == "refuse":
        assert connection.answer(streams[1]).reset == REFUSED_STREAM
        return
    connection.await_that(lambda: connection.goaway, "the GOAWAY")
    assert connection.goaway.additional_data == b"Maximum active streams violated"
    assert connection.goaway.last_stream_id == streams[0]


# Faults


def received(simulator) -> int:
    return simulator.api("GET", "status")["requests"]


SERVER_REASONS = [(500, "InternalServerError"), (503, "ServiceUnavailable"), (429, "TooManyRequests"), (400, "IdleTimeout")]


@pytest.mark.parametrize("status, reason", SERVER_REASONS)
def test_any_reason_can_be_scripted(simulator, connection, status, reason):
    simulator.fault("reject", reason=reason, times=1)
    answer = connection.push()
    assert (answer.status, answer.reason) == (status, reason)
    assert connection.push().status == 200


def test_a_scripted_reason_has_the_identifiers_of_an_honest_one(simulator, connection):
    simulator.fault("reject", reason="Unregistered", times=3)
    own = "11111111-2222-3333-4444-555555555555"
    for given in (own, None):
        answer = connection.push(apns_id=given)
        assert answer.status == 410 and len(answer.headers["apns-id"]) == 36 and len(answer.headers["apns-unique-id"]) == 36
        assert given is None or answer.headers["apns-id"] == given
    answer = connection.push(path=f"/4/broadcasts/apps/{TOPIC}", apns_topic=None)
    assert len(answer.headers["apns-request-id"]) == 36 and "apns-id" not in answer.headers


@pytest.mark.parametrize("said, is_good", [(str(len(BODY)), True), (str(len(BODY) - 1), False), (str(len(BODY) + 1), False)])
def test_a_body_must_have_the_length_of_its_header(simulator, connection, said, is_good):
    # h2 checks the length of its own user, too.
    connection.h2.config.validate_outbound_headers = False
    connection.h2.config.normalize_outbound_headers = False
    answer = connection.push(content_length=said)
    assert answer.status == 200 if is_good else answer.reset == PROTOCOL_ERROR
    assert connection.push().status == 200


def test_more_headers_than_were_offered_are_refused(simulator, connection):
    assert connection.h2.remote_settings.max_header_list_size == 8000
    assert connection.push(more="m" * 7000).status == 200
    assert connection.push(more="m" * 8000).status == 431
    assert connection.push().status == 200


@pytest.mark.parametrize("body, expected", [("empty", b""), ("html", b"<html>"), ("huge", b"x" * 300_000)])
def test_strange_bodies(simulator, connection, body, expected):
    simulator.fault("answer", status=502, body=body, bytes=300_000, times=1)
    answer = connection.push()
    assert answer.status == 502 and answer.body.startswith(expected) and bool(answer.body) == bool(expected)
    assert connection.push().status == 200


def test_an_early_answer_comes_before_the_body(simulator, connection):
    simulator.fault("reject", reason="ServiceUnavailable", at="headers", times=1)
    stream = connection.begin(body=BODY, ends=False)
    assert connection.answer(stream).reason == "ServiceUnavailable"
    connection.h2.send_data(stream, b" ", end_stream=True)
    connection.flush()
    assert connection.push().status == 200


def test_an_early_answer_can_stop_the_body(simulator, connection):
    simulator.fault("reject", reason="ServiceUnavailable", at="headers", stopsBody=True, times=1)
    stream = connection.begin(body=BODY, ends=False)
    assert connection.answer(stream).reason == "ServiceUnavailable"
    connection.await_that(lambda: connection.resets == [(stream, NO_ERROR)], "the reset")
    assert connection.push().status == 200


def test_a_slow_answer_is_overtaken(simulator, connection):
    simulator.fault("delay", milliseconds=3000, times=1)
    began = time.monotonic()
    slow = connection.begin()
    assert connection.push().status == 200
    assert not connection.answers[slow].ended
    assert connection.answer(slow).status == 200
    assert time.monotonic() - began >= 3


def test_a_missing_answer_concerns_one_request(simulator, connection):
    simulator.fault("silence", times=1)
    silent = connection.begin()
    assert connection.push().status == 200
    assert not connection.answers[silent].headers


@pytest.mark.parametrize("moment, processed", [("headers", 0), ("request", 0), ("processed", 1)])
def test_a_reset_comes_before_or_after_processing(simulator, connection, moment, processed):
    before = received(simulator)
    simulator.fault("reset", code="REFUSED_STREAM", at=moment, times=1)
    assert connection.push().reset == REFUSED_STREAM
    assert received(simulator) == before + processed
    assert connection.push().status == 200


def test_a_reset_can_come_twice(simulator, connection):
    simulator.fault("reset", code="INTERNAL_ERROR", repeated=True, times=1)
    assert connection.push().reset == INTERNAL_ERROR
    assert connection.push().status == 200


def test_others_can_be_refused(simulator, connection):
    waiting = connection.begin(ends=False)
    connection.settle()
    simulator.fault("refuseOthers", times=1)
    assert connection.push().status == 200
    assert connection.answer(waiting).reset == REFUSED_STREAM


@pytest.mark.parametrize(
    "last, is_served, reason, data",
    [
        ("this", True, None, b""),
        ("before", False, "Shutdown", b'{"reason":"Shutdown"}'),
        ("none", False, "BadDeviceToken", b'{"reason":"BadDeviceToken"}'),
        ("all", True, "any text", b"any text"),
    ],
)
def test_goaway_names_the_last_processed_stream(simulator, connection, last, is_served, reason, data):
    before = received(simulator)
    simulator.fault("goAway", last=last, times=1, **({"reason": reason} if reason else {}))
    stream = connection.begin()
    connection.await_that(lambda: connection.goaway, "the GOAWAY")
    expected = {"this": stream, "before": stream - 2, "none": 0, "all": 2**31 - 1}[last]
    assert connection.goaway.last_stream_id == expected
    assert (connection.goaway.additional_data or b"") == data
    if last != "all":
        connection.await_end()
    if is_served and not connection.is_over:
        connection.await_that(lambda: connection.answers[stream].ended or connection.is_over, "the answer")
    assert received(simulator) == before + is_served


def test_a_sudden_close_sends_nothing(simulator, connection):
    simulator.fault("close", times=1)
    stream = connection.begin()
    connection.await_end()
    assert connection.goaway is None and not connection.answers[stream].headers
    assert simulator.connect().push().status == 200


def test_a_wedged_connection_sends_nothing_more(simulator, connection):
    simulator.fault("wedge", times=1)
    connection.begin()
    connection.h2.ping(b"12345678")
    connection.flush()
    with pytest.raises(AssertionError):
        connection.await_that(lambda: connection.pongs, "an answer", 0.5)
    assert simulator.connect().push().status == 200


def test_the_stream_limit_moves(simulator, connection):
    simulator.fault("streamLimit", streams=1, times=1)
    assert connection.push().status == 200
    connection.await_that(lambda: connection.limits == [1, 1000, 1], "the lower limit")
    simulator.fault("streamLimit", streams=500, times=1)
    assert connection.push().status == 200
    connection.await_that(lambda: connection.limits[-1] == 500, "the higher limit")


def test_the_stream_window_moves(simulator, connection):
    simulator.fault("streamWindow", bytes=20, times=1)
    assert connection.push().status == 200
    connection.await_that(lambda: connection.h2.remote_settings.initial_window_size == 20, "the window")
    assert connection.push(body=BODY + b" " * 1000).status == 200


def test_chance_can_be_played_again(make_simulator):
    def fates():
        simulator = make_simulator("--seed", "42", "--unknown-devices", "accept")
        connection = simulator.connect()
        simulator.fault("reject", reason="InternalServerError", rate=0.3)
        return [connection.push().status for _ in range(40)]

    first = fates()
    assert first == fates()
    assert {200, 500} == set(first)


def test_connections_can_be_cut(simulator, connection):
    simulator.api("DELETE", "connections")
    connection.await_end()
    assert simulator.api("GET", "connections")[0]["requests"] == 1


# The page, the data directory, and curl


def test_the_page_and_the_files(simulator, connection):
    page = requests.get(simulator.url, timeout=PATIENCE)
    assert page.status_code == 200 and DEVICE in page.text
    assert requests.get(simulator.url + "/authority.pem", timeout=PATIENCE).text == (simulator.data / "authority.pem").read_text()
    alien = requests.get(simulator.url, headers={"Origin": "http://example.org"}, timeout=PATIENCE)
    assert alien.status_code == 403
    assert (simulator.data / "authority-key.pem").stat().st_mode & 0o777 == 0o600


def test_authority_and_key_are_kept(executable, tmp_path):
    first = Simulator(executable, tmp_path)
    trusted = (first.data / "authority.pem").read_text()
    first.end()
    second = Simulator(executable, tmp_path)
    assert (second.data / "authority.pem").read_text() == trusted and second.key == first.key
    second.end()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")
def test_curl_pushes(simulator):
    token = requests.get(simulator.url + "/api/provider-token", timeout=PATIENCE).text
    done = subprocess.run(
        ["curl", "--silent", "--http2", "--cacert", simulator.data / "authority.pem", "--write-out", "%{http_version} %{http_code}"]
        + ["--header", f"authorization: bearer {token}", "--header", f"apns-topic: {TOPIC}", "--data", BODY.decode()]
        + [f"https://localhost:{simulator.ports['push']}/3/device/{DEVICE}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout == "2 200"


def test_an_independent_provider_library_sends(simulator, monkeypatch):
    """aioapns, according to docs/apns-simulator.md."""
    simulator.api("PATCH", "rules", {"unknownDevices": "register"})
    monkeypatch.setattr(aioapns.connection.APNsDevelopmentClientProtocol, "APNS_SERVER", "localhost")
    monkeypatch.setattr(aioapns.connection.APNsTLSClientProtocol, "APNS_PORT", simulator.ports["push"])

    async def send() -> list:
        provider = aioapns.APNs(
            key=simulator.key,
            key_id=simulator.key_id,
            team_id=simulator.team,
            topic=TOPIC,
            use_sandbox=True,
            ssl_context=ssl.create_default_context(cafile=str(simulator.data / "authority.pem")),
        )
        payload = {"aps": {"alert": "hello"}}
        pushes = [aioapns.NotificationRequest(device_token=f"{number:064x}", message=payload) for number in range(300)]
        return await asyncio.gather(*[provider.send_notification(push) for push in pushes])

    answers = asyncio.run(asyncio.wait_for(send(), PATIENCE))
    assert len(answers) == 300 and all(answer.is_successful for answer in answers)
    assert simulator.api("GET", "status")["accepted"] == 300


def test_both_environments_are_served_by_one_command(executable, tmp_path):
    devices = ["--device", f"{DEVICE}:{TOPIC}", "--device", f"{DEVICE}:{TOPIC}:production"]
    simulator = Simulator(executable, tmp_path, "--environment", "both", *devices)
    try:
        places = ["push", "management", "production push", "production management"]
        assert all(place in simulator.ports for place in places), simulator.ports
        for place, environment in [("push", "sandbox"), ("production push", "production")]:
            done = subprocess.run(
                [executable, "apns", "send", "--key", simulator.data / f"AuthKey_{simulator.key_id}.p8"]
                + ["--team-id", simulator.team, "--topic", TOPIC, "--ca", simulator.data / "authority.pem"]
                + ["--endpoint", f"https://localhost:{simulator.ports[place]}", "--token", DEVICE, "--title", environment],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            assert done.returncode == 0, done.stderr
            shown = simulator.api("GET", f"devices/{DEVICE}?environment={environment}")["shown"]
            assert len(shown) == 1, shown
    finally:
        simulator.end()


@pytest.mark.parametrize(
    "options, code",
    [
        (["--listen", "nonsense"], 64),
        (["--environment", "moon"], 64),
        (["--device", "xyz:com.example.app"], 64),
        (["--data", "/dev/null/x"], 73),
        (["--listen", "192.0.2.1:1"], 69),
        (["--listen", "nobody.invalid:1"], 69),
    ],
)
def test_wrong_options_have_a_sentence_and_a_code(executable, options, code):
    places = ["--manage", "none", "--http", "none"] + ([] if "--listen" in options else ["--listen", "127.0.0.1:0"])
    done = subprocess.run(
        [executable, "apns", "simulate", *places, *options], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == code and done.stderr.startswith("carillon: "), done.stderr
    assert not re.search(r"errno|bind\(|Error\(|NIO|\.swift", done.stderr), done.stderr


def test_a_port_in_use_and_a_file_of_another_program_are_reported(executable, simulator, tmp_path):
    places = ["--manage", "none", "--http", "none", "--listen"]
    taken = f"127.0.0.1:{simulator.ports['push']}"
    done = subprocess.run(
        [executable, "apns", "simulate", *places, taken], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 69 and done.stderr.startswith(f"carillon: {taken} cannot be listened on: another process listens")
    (tmp_path / "authority.pem").write_text("mine")
    done = subprocess.run(
        [executable, "apns", "simulate", *places, "127.0.0.1:0", "--data", tmp_path],
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 73 and "overwrites no file" in done.stderr, done.stderr
    assert (tmp_path / "authority.pem").read_text() == "mine"
