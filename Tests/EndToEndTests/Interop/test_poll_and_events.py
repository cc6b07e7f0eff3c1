"""The same envelopes in the same order by socket, long poll and server-sent events; results of all kinds."""

import json
import threading
import time
from contextlib import contextmanager

import pytest

from carillon_peer import PATIENCE, assert_problem, await_value, body_of, in_parallel


class Events:
    """A reader of a text/event-stream, an event at a time."""

    def __init__(self, answer):
        assert answer.status_code == 200, answer.text
        assert answer.headers["Content-Type"].split(";")[0] == "text/event-stream"
        self.lines = answer.iter_lines(decode_unicode=True, chunk_size=1)

    def next(self) -> tuple[str, dict]:
        kind, data = "message", []
        for line in self.lines:
            if line.startswith("event:"):
                kind = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].strip())
            elif line == "" and data:
                return kind, json.loads("\n".join(data))
        raise EOFError("the stream has ended")

    def until_caught_up(self) -> list[dict]:
        frames = []
        while (event := self.next())[0] != "caughtUp":
            frames.append(event[1])
        return frames


@contextmanager
def events_of(device):
    answer = device.server.request(
        "GET", "/v1/inbox", key=device.credential, headers={"Accept": "text/event-stream"}, stream=True
    )
    try:
        yield Events(answer)
    finally:
        answer.close()


def result(frame, kind="acknowledged", **fields) -> dict:
    return {"version": frame["version"], "result": kind, **fields}


def fill(device) -> list[str]:
    """A mixed inbox: two channels, an empty body, both encodings, a replaced topic, a revoked channel."""
    first, second, revoked = device.open_channel(), device.open_channel(), device.open_channel()
    first.send(b"1", headers={"Topic": "t"})
    sent = [second.send(b"2"), first.send(b""), second.send(bytes(4096), encoding="identity")]
    salt_and_key = {"Encryption": "salt=" + "A" * 22, "Crypto-Key": "dh=" + "B" + "A" * 86}
    sent.append(first.send(b"old", encoding="aesgcm", headers=salt_and_key))
    sent.append(first.send(b"newest", headers={"Topic": "t"}))
    path = f"/v1/devices/{device.id}/channels/{revoked.id}/revoke"
    assert device.server.admin("POST", path, {}).status_code in (200, 202, 204)
    sent.append(second.send(b"after the event"))
    return [s.id for s in sent]


def test_socket_poll_and_events_deliver_the_same_envelopes_in_the_same_order(device):
    sent = fill(device)
    polled = device.inbox()
    with events_of(device) as events:
        streamed = events.until_caught_up()
    with device.connect() as socket:
        pushed = socket.caught_up()
    assert polled["more"] is False
    assert polled["envelopes"] == streamed == pushed
    assert [frame["version"] for frame in pushed if frame["messageType"] == "notification"] == sent
    assert [frame["messageType"] for frame in pushed].index("channel") == len(sent) - 1


def test_the_name_of_an_event_is_the_type_of_its_frame_and_its_data_the_frame(device):
    fill(device)
    with events_of(device) as events:
        while (event := events.next())[0] != "caughtUp":
            assert event[0] == event[1]["messageType"]
        assert event[1] == {"messageType": "caughtUp"}


def test_a_poll_leaves_the_inbox_as_it_was(device, channel):
    channel.send(b"x")
    assert device.inbox() == device.inbox()
    assert len(device.inbox()["envelopes"]) == 1


def test_max_limits_a_poll_and_more_shows_that_there_is_more(device, channel):
    sent = [channel.send(f"{n}".encode()).id for n in range(5)]
    page = device.inbox(max=2)
    assert ([frame["version"] for frame in page["envelopes"]], page["more"]) == (sent[:2], True)
    taken = []
    while True:
        page = device.inbox(max=2)
        taken += [frame["version"] for frame in page["envelopes"]]
        assert device.results(*[result(frame) for frame in page["envelopes"]]).status_code == 204
        if not page["more"]:
            break
    assert taken == sent
    assert device.inbox() == {"envelopes": [], "more": False}


def test_more_is_false_when_exactly_max_were_waiting(device, channel):
    channel.send(b"1"), channel.send(b"2")
    assert device.inbox(max=2)["more"] is False


def test_a_long_poll_ends_when_a_message_arrives(device, channel):
    with_message = {}

    def poll():
        with_message.update(device.inbox(wait=60))

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    sent = channel.send(b"x")
    thread.join(PATIENCE)
    assert not thread.is_alive(), "the poll did not end"
    assert [frame["version"] for frame in with_message["envelopes"]] == [sent.id]


def test_a_long_poll_without_messages_ends_empty_after_its_wait(device):
    started = time.monotonic()
    assert device.inbox(wait=1) == {"envelopes": [], "more": False}
    assert time.monotonic() - started >= 0.9


def test_wait_0_answers_at_once(device):
    assert device.inbox(wait=0) == {"envelopes": [], "more": False}


def test_two_long_polls_of_one_device_both_end(device, channel):
    answers = in_parallel(
        [lambda: device.inbox(wait=20), lambda: device.inbox(wait=20), lambda: channel.send(b"x").id]
    )
    assert all(answer is not None for answer in answers)


@pytest.mark.parametrize(
    "query", ["wait=x", "wait=-1", "wait=1.5", "wait=999999999999999999999", "max=0", "max=-1", "max=x", "wait="]
)
def test_a_malformed_poll_is_refused(device, query):
    assert_problem(device.request("GET", "/v1/inbox?" + query), 400)


def test_a_message_is_streamed_while_the_stream_is_open(device, channel):
    with events_of(device) as events:
        assert events.until_caught_up() == []
        for n in range(3):
            sent = channel.send(f"{n}".encode())
            kind, frame = events.next()
            assert (kind, frame["version"], body_of(frame)) == ("notification", sent.id, f"{n}".encode())
            assert device.results(result(frame)).status_code == 204
            assert sent.final()["outcome"] == "acknowledged"


def test_a_streamed_message_without_result_comes_again(device, channel):
    with events_of(device) as events:
        events.until_caught_up()
        sent = channel.send(b"x")
        assert events.next()[1]["version"] == sent.id
    with events_of(device) as events:
        assert [frame["version"] for frame in events.until_caught_up()] == [sent.id]


def test_a_ttl_0_message_reaches_an_open_stream(device, channel):
    with events_of(device) as events:
        events.until_caught_up()
        answer = channel.post(b"now", ttl=0)
        assert answer.headers["Carillon-Outcome"] == "offered"
        assert body_of(events.next()[1]) == b"now"


def test_a_newer_stream_or_socket_ends_the_older_stream(device, channel):
    """One live connection per device, the newest wins."""
    with events_of(device) as older:
        older.until_caught_up()
        with events_of(device) as newer:
            newer.until_caught_up()
            with pytest.raises(EOFError):
                while older.next():
                    pass
            with device.connect() as socket:
                socket.caught_up()
                with pytest.raises(EOFError):
                    while newer.next():
                        pass
                channel.send(b"x")
                assert body_of(socket.notification()) == b"x"


@pytest.mark.parametrize(
    ("given", "outcome", "code"),
    [
        ({"result": "acknowledged"}, "acknowledged", None),
        ({"result": "failed"}, "failed", None),
        ({"result": "failed", "code": 302}, "failed", 302),
        ({"result": "unsupported"}, "unsupported", None),
    ],
    ids=str,
)
def test_a_result_becomes_the_outcome(device, channel, given, outcome, code):
    sent = channel.send(b"x")
    assert device.results({"version": sent.id, **given}).status_code == 204
    final = sent.final()
    assert final["outcome"] == outcome
    assert code is None or final["code"] == code
    assert device.inbox()["envelopes"] == []


def test_a_deferred_message_is_delivered_again_and_blocks_no_other(device, channel):
    deferred, other = channel.send(b"later"), channel.send(b"now")
    first, second = device.inbox()["envelopes"]
    assert device.results(result(first, "deferred"), result(second)).status_code == 204
    assert other.final()["outcome"] == "acknowledged"
    assert deferred.status()["state"] == "waiting"
    frames = await_value(lambda: device.inbox(wait=1)["envelopes"], bool, "the deferred message")
    assert frames == [first]
    with device.connect() as socket:
        assert [frame["version"] for frame in socket.caught_up()] == [deferred.id]
        socket.ack(first)
        assert deferred.final()["outcome"] == "acknowledged"


def test_a_second_result_changes_nothing(device, channel):
    sent = channel.send(b"x")
    frame = {"version": sent.id}
    device.results(result(frame, "failed", code=302))
    told = sent.final()
    assert device.results(result(frame, "acknowledged")).status_code == 204
    assert device.results(result(frame, "deferred")).status_code == 204
    assert sent.status() == told
    assert device.inbox()["envelopes"] == []


def test_results_of_another_device_change_nothing(server, device, channel):
    sent = channel.send(b"x")
    stranger = server.register_device()
    assert stranger.results({"version": sent.id, "result": "acknowledged"}).status_code == 204
    assert sent.status()["state"] == "waiting"


def test_results_for_offers_to_the_socket_count(device, channel):
    with device.connect() as socket:
        socket.caught_up()
        sent = channel.send(b"x")
        frame = socket.notification()
        assert device.results(result(frame)).status_code == 204
        assert sent.final()["outcome"] == "acknowledged"
        assert socket.before_pong() == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"results": {}},
        {"results": [7]},
        {"results": [{}]},
        {"results": [{"version": "x"}]},
        {"results": [{"result": "acknowledged"}]},
        {"results": [{"version": 7, "result": "acknowledged"}]},
        {"results": [{"version": "x", "result": "maybe"}]},
        {"results": [{"version": "x", "result": "failed", "code": "1"}]},
        {"results": [{"version": "x", "result": "failed", "extra": 1}]},
        {"results": [], "extra": 1},
    ],
    ids=json.dumps,
)
def test_malformed_results_are_refused(device, body):
    assert_problem(device.request("POST", "/v1/inbox/results", body), 400)


def test_one_malformed_result_keeps_the_others_of_its_request_from_counting(device, channel):
    """A refused request has changed nothing."""
    sent = channel.send(b"x")
    answer = device.results({"version": sent.id, "result": "acknowledged"}, {"version": "y", "result": "maybe"})
    assert_problem(answer, 400)
    assert sent.status()["state"] == "waiting"


@pytest.mark.parametrize("credential", [None, "x", "a.b"])
def test_the_inbox_wants_the_credential(server, credential):
    assert_problem(server.request("GET", "/v1/inbox?wait=0", key=credential), 401)
    assert_problem(server.request("POST", "/v1/inbox/results", key=credential, json={"results": []}), 401)
    assert_problem(server.request("GET", "/v1/inbox", key=credential, headers={"Accept": "text/event-stream"}), 401)
