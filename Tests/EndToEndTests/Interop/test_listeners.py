"""Listeners that the system closes, and a disk that does not answer: strace injects the faults into system calls of the server."""

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest
import requests

from carillon_peer import PATIENCE, assert_problem, await_value, free_port

# A network that is gone is an error of the connection that was to be accepted (accept(2)). It comes once in each thread.
UNREACHABLE = "accept,accept4:error=EHOSTUNREACH:when=1"


def is_traced(pid: int) -> bool:
    """Whether strace has every thread. A thread can end meanwhile."""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/status") as status:
                if "\nTracerPid:\t0\n" in status.read():
                    return False
    except OSError:
        return False
    return True


@contextmanager
def injected(server, *faults):
    """Injects faults, each `calls:kind`, until the block ends."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    pid = server.process.pid
    calls = ",".join(fault.split(":")[0] for fault in faults)
    options = [word for fault in faults for word in ("-e", f"inject={fault}")]
    strace = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid), "-e", f"trace={calls}", *options],
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while not is_traced(pid):
            if strace.poll() is not None:
                pytest.skip(f"strace cannot attach here: {strace.stderr.read(500)}")
            if time.monotonic() > deadline:
                raise AssertionError(f"strace has not attached to every thread within {PATIENCE} seconds")
            time.sleep(0.01)
        yield
    finally:
        strace.send_signal(signal.SIGTERM)
        try:
            strace.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            strace.kill()
            strace.wait()


def answers(url: str) -> bool:
    try:
        return requests.get(url + "/health/live", timeout=PATIENCE).status_code == 200
    except (requests.ConnectionError, requests.Timeout):
        return False


@pytest.mark.parametrize("which", ["requests", "metrics"])
def test_an_error_of_accept_does_not_end_a_listener(make_server, which):
    port = free_port()
    server = make_server(CARILLON_METRICS_LISTEN=port)
    url = server.url if which == "requests" else f"http://127.0.0.1:{port}"
    with injected(server, UNREACHABLE):
        answers(url)
        await_value(lambda: "listener closed" in server.log.read_text(), bool, "the listener has closed")
        await_value(lambda: answers(url), bool, "the listener is open again")
        await_value(server.is_ready, bool, "ready")
    assert answers(url)
    metrics = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).text
    assert int(re.search(r"^carillon_listeners_closed_total (\d+)$", metrics, re.MULTILINE)[1]) >= 1


@pytest.mark.parametrize("which", ["requests", "metrics"])
@pytest.mark.parametrize("error", ["EMFILE", "ECONNABORTED"])
def test_a_connection_that_cannot_be_accepted_does_not_close_a_listener(make_server, which, error):
    port = free_port()
    server = make_server(CARILLON_METRICS_LISTEN=port)
    url = server.url if which == "requests" else f"http://127.0.0.1:{port}"
    with injected(server, f"accept,accept4:error={error}:when=1"):
        assert answers(url)
    assert "listener closed" not in server.log.read_text()


def test_a_listener_that_cannot_be_opened_again_ends_the_server_with_1(make_server):
    server = make_server()
    with injected(server, UNREACHABLE, "bind:error=EADDRNOTAVAIL"):
        answers(server.url)
        began = time.monotonic()
        assert server.process.wait(PATIENCE * 3) == 1
        assert time.monotonic() - began > 9
    log = server.log.read_text()
    assert "cannot be opened again for 10 seconds" in log, log
    # The written data is complete.
    server.start()


def test_a_disk_that_does_not_answer_ends_readiness(make_server):
    server = make_server()
    with requests.Session() as session:
        assert session.get(server.url + "/health/ready").status_code == 200
        with injected(server, "fdatasync,fsync:delay_enter=15000000:when=1"):
            began = time.monotonic()
            with pytest.raises(requests.Timeout):
                server.request("POST", "/v1/apps", key=server.admin_key, json={"id": "com.example.late"}, timeout=0.5)
            early = session.get(server.url + "/health/ready").status_code
            # On a busy machine the answer can come after the five seconds.
            assert early == 200 or time.monotonic() - began > 5
            answer = await_value(
                lambda: session.get(server.url + "/health/ready"), lambda it: it.status_code == 503, "not ready"
            )
            assert_problem(answer, 503, "storage_unavailable")
            assert time.monotonic() - began > 4
            assert session.get(server.url + "/health/live").status_code == 200
        await_value(server.is_ready, bool, "ready again", PATIENCE * 3)
