"""A server that a service manager starts."""

import os
import signal
import socket as sockets
import subprocess
import sys

import requests

from carillon_peer import ENVIRONMENT, PATIENCE, free_port

# Passes a socket as systemd does (sd_listen_fds(3)): as descriptor 3, with the number of the process that gets it.
PASS = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
"""

PUBLIC = ["--public-url", "http://push.example.com"]


def start(executable, tmp_path, descriptor: int, *options: str) -> subprocess.Popen:
    serve = [
        str(executable), "serve", "--data", str(tmp_path / "data"), "--listen", f"127.0.0.1:{free_port()}", *options,
    ]
    with (tmp_path / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", PASS, str(descriptor), *serve],
            pass_fds=[descriptor], env=ENVIRONMENT, stdout=log, stderr=log,
        )


def end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


def test_a_socket_that_was_passed_is_served_and_outlives_the_server(executable, tmp_path):
    with sockets.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/health/ready"
        for _ in range(2):
            process = start(executable, tmp_path, listener.fileno(), *PUBLIC)
            try:
                # The system keeps the connection until the server accepts it.
                assert requests.get(url, timeout=3 * PATIENCE).status_code == 200
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    assert process.wait(3 * PATIENCE) == 0, (tmp_path / "log").read_text()
                finally:
                    end(process)


def test_a_socket_that_was_passed_needs_a_public_url(executable, tmp_path):
    with sockets.create_server(("127.0.0.1", 0)) as listener:
        process = start(executable, tmp_path, listener.fileno())
        try:
            assert process.wait(3 * PATIENCE) == 64
            assert '"public-url"' in (tmp_path / "log").read_text()
        finally:
            end(process)


def test_a_descriptor_that_does_not_listen_ends_the_start(executable, tmp_path):
    reading, writing = os.pipe()
    process = start(executable, tmp_path, reading, *PUBLIC)
    try:
        assert process.wait(3 * PATIENCE) == 64
        assert "file descriptor 3" in (tmp_path / "log").read_text()
    finally:
        end(process)
        os.close(reading)
        os.close(writing)
