"""SIGTERM: goodbye, 1012, exit 0 within the deadline, and nothing lost that was accepted or acknowledged."""

import signal
import threading
import time

import pytest
import requests
from websockets.exceptions import ConnectionClosed

from carillon_peer import PATIENCE, in_parallel
from raw_peer import CLOSE, RawHTTP, RawWebSocket

DEADLINE = 30  # seconds
AT_ONCE = 10  # seconds; far less than a stop may take


def versions(frames):
    return [frame["version"] for frame in frames]


def begin_to_stop(server, number=signal.SIGTERM):
    server.process.send_signal(number)


def exit_code(server) -> int:
    return server.process.wait(DEADLINE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda it: it.name)
def test_an_idle_server_exits_with_0(make_server, number):
    server = make_server()
    begin_to_stop(server, number)
    assert exit_code(server) == 0


def test_carillon_clients_get_a_goodbye_and_all_clients_1012(make_server):
    server = make_server()
    device = server.register_device()
    with device.connect() as socket, server.browser() as browser:
        socket.caught_up()
        begin_to_stop(server)
        goodbye = socket.expect("goodbye")
        assert [value for name, value in goodbye.items() if name != "messageType"], (
            "a goodbye says when to come back"
        )
        assert socket.close_code() == 1012
        with pytest.raises(ConnectionClosed) as closed:
            browser.receive()
        assert closed.value.rcvd.code == 1012, "an autopush client is sent no frame of Carillon's own"
    assert exit_code(server) == 0


def test_many_sockets_are_all_closed_with_1012(make_server):
    server = make_server()
    sockets = [server.browser() for _ in range(150)]
    begin_to_stop(server)
    assert {socket.close_code() for socket in sockets} == {1012}
    assert exit_code(server) == 0


def test_readiness_ends_and_new_connections_are_refused(make_server):
    server = make_server()
    sockets = [RawWebSocket(server) for _ in range(20)]
    begin_to_stop(server)
    assert sockets[0].read_frame()[0] == CLOSE
    try:
        assert server.request("GET", "/health/ready").status_code == 503
    except requests.ConnectionError:
        pass
    for raw in sockets:
        raw.http.socket.close()
    assert exit_code(server) == 0
    with pytest.raises(requests.ConnectionError):
        server.request("GET", "/health/live")


def test_peers_that_never_answer_do_not_delay_the_end(make_server):
    server = make_server()
    silent = [RawWebSocket(server) for _ in range(5)]
    for raw in silent:
        raw.hello()
    stalled = [RawHTTP(server) for _ in range(5)]
    for raw in stalled:
        raw.send("POST /v1/devices HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    idle = [RawHTTP(server) for _ in range(5)]
    begin_to_stop(server)
    assert exit_code(server) == 0
    for raw in silent + stalled + idle:
        (raw.http if isinstance(raw, RawWebSocket) else raw).socket.close()


def test_a_long_poll_and_a_stream_are_ended(make_server):
    server = make_server()
    polling, streaming = server.register_device(), server.register_device()
    headers = {"Accept": "text/event-stream"}
    with server.request("GET", "/v1/inbox", key=streaming.credential, headers=headers, stream=True) as stream:
        lines = stream.iter_lines(decode_unicode=True, chunk_size=1)
        assert next(lines) == "event: caughtUp"

        def poll():
            try:
                return polling.request("GET", "/v1/inbox?wait=60", timeout=DEADLINE).status_code
            except requests.ConnectionError:
                return None

        def read_and_stop():
            begin_to_stop(server)
            try:
                for _ in lines:
                    pass
            except requests.exceptions.ChunkedEncodingError:
                return "broken off"
            return "ended"

        polled, streamed = in_parallel([poll, read_and_stop])
    assert polled in (200, 503, None)
    assert streamed == "ended", "the last chunk tells a whole stream from a broken one"
    assert exit_code(server) == 0


def test_unacknowledged_messages_come_again_and_acknowledged_ones_do_not(make_server):
    server = make_server()
    device = server.register_device()
    channel = device.open_channel()
    with device.connect() as socket:
        socket.caught_up()
        sent = [channel.send(f"{n}".encode()).id for n in range(6)]
        frames = socket.notifications(6)
        socket.ack(frames[1], frames[4])
        assert socket.before_pong() == []
        begin_to_stop(server)
        assert socket.close_code() == 1012
    assert exit_code(server) == 0
    server.start()
    with device.connect() as socket:
        assert versions(socket.caught_up()) == [sent[n] for n in (0, 2, 3, 5)]


def test_nothing_accepted_under_load_is_lost_and_nothing_acknowledged_comes_again(make_server):
    server = make_server()
    device = server.register_device()
    channels = [device.open_channel() for _ in range(4)]
    accepted, acknowledged, unanswered = [], [], []
    enough = threading.Event()

    def post(channel):
        try:
            while (answer := channel.post(b"load", timeout=AT_ONCE)).status_code == 201:
                accepted.append(answer.headers["Location"].rsplit("/", 1)[1])
                if len(accepted) >= 200 and acknowledged:
                    enough.set()
        except requests.Timeout:
            unanswered.append(channel.id)
        except requests.ConnectionError:
            return

    def acknowledge():
        """Takes every second message, and counts an ack that a later pong proves to have been read."""
        pending = []
        with device.connect() as socket:
            try:
                while True:
                    frame = socket.receive()
                    if frame.get("messageType") == "notification":
                        if len(pending) % 2 == 0:
                            socket.ack(frame)
                            socket.send("{}")
                        pending.append(frame["version"])
                    elif frame == {}:
                        acknowledged[:] = pending[: 2 * len(acknowledged) + 1 : 2]
            except (ConnectionClosed, TimeoutError):
                return

    threads = [threading.Thread(target=post, args=(channel,), daemon=True) for channel in channels]
    threads.append(threading.Thread(target=acknowledge, daemon=True))
    for thread in threads:
        thread.start()
    assert enough.wait(PATIENCE * 3)
    begin_to_stop(server)
    assert exit_code(server) == 0
    for thread in threads:
        thread.join(PATIENCE)
    server.start()
    left = []
    with device.connect() as socket:
        while (frame := socket.receive())["messageType"] != "caughtUp":
            left.append(frame["version"])
            socket.ack(frame)
    assert acknowledged, "the test has to have acknowledged something"
    assert not set(left) & set(acknowledged)
    finals = [version for version in accepted if version not in left]
    for version in finals:
        assert server.outcome("/message/" + version)["outcome"] == "acknowledged"
    assert not unanswered, "a sender was neither answered nor let go"


def test_senders_are_answered_or_let_go_at_once(make_server):
    """A push on its way must not wait for the deadline. It is a race, hence several rounds at uneven moments."""
    server = make_server()
    device = server.register_device()
    channels = [device.open_channel() for _ in range(4)]
    for round in range(6):
        answered, unanswered, enough = [], [], threading.Event()

        def post(channel, answered=answered, unanswered=unanswered, enough=enough):
            try:
                while channel.post(b"x", timeout=AT_ONCE).status_code == 201:
                    answered.append(channel.id)
                    if len(answered) >= 200:
                        enough.set()
            except requests.Timeout:
                unanswered.append(channel.id)
            except requests.ConnectionError:
                return

        senders = [threading.Thread(target=post, args=(channel,), daemon=True) for channel in channels]
        for sender in senders:
            sender.start()
        assert enough.wait(PATIENCE * 3)
        time.sleep(round * 0.0017)
        begin_to_stop(server)
        assert exit_code(server) == 0
        for sender in senders:
            sender.join(PATIENCE * 2)
        assert unanswered == []
        server.start()


def test_a_server_can_be_stopped_and_started_again_and_again(make_server):
    server = make_server()
    device = server.register_device()
    channel = device.open_channel()
    sent = []
    for n in range(4):
        sent.append(channel.send(f"{n}".encode()).id)
        server.restart()
    with device.connect() as socket:
        assert versions(socket.caught_up()) == sent


def test_a_second_server_on_the_same_data_is_refused_with_a_clear_sentence(make_server):
    server = make_server()
    with pytest.raises(AssertionError) as refused:
        server.command("apps", "list")
    assert "data" in str(refused.value).lower()
    server.register_device()
