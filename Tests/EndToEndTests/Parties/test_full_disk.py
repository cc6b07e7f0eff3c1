"""A full disk under the real executable: a file system of a few megabytes that is filled from outside."""

import os
import subprocess

import pytest
from carillon_party import Server, assert_problem, await_value


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own; where it may not be mounted, the test says so."""
    directory = tmp_path / "disk"
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", directory], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield directory
    subprocess.run(["umount", "-l", directory], check=True)


@pytest.fixture
def filler(small_disk):
    """Takes what is left of the disk, and gives it back."""

    class Filler:
        path = small_disk / "filler"

        def fill(self):
            with self.path.open("wb") as file:
                try:
                    while True:
                        os.write(file.fileno(), bytes(4096))
                except OSError:
                    pass

        def empty(self):
            self.path.unlink()

    return Filler()


def test_a_full_disk_accepts_nothing_loses_nothing_and_recovers_by_itself(executable, small_disk, filler):
    server = Server(executable, small_disk)
    server.prepare()
    server.start()
    try:
        device = server.register_device()
        channel = device.open_channel()
        accepted = [channel.send(b"before").id]
        filler.fill()
        refused = 0
        for _ in range(2000):
            answer = channel.post(b"x" * 4000)
            if answer.status_code == 201:
                accepted.append(answer.headers["Location"].rsplit("/", 1)[1])
                continue
            problem = assert_problem(answer, 503)
            assert problem["code"] in ("storage_full", "storage_unavailable")
            assert int(answer.headers["Retry-After"]) > 0
            refused += 1
            if refused == 5:
                break
        assert refused == 5, "the disk was not full"
        with device.connect() as socket:
            assert [socket.notification()["version"] for _ in accepted] == accepted
        filler.empty()
        after = await_value(lambda: channel.post(b"after"), lambda it: it.status_code == 201, "accepting again")
        accepted.append(after.headers["Location"].rsplit("/", 1)[1])
        server.restart()
        with device.connect() as socket:
            assert [socket.notification()["version"] for _ in accepted] == accepted
    finally:
        server.end()
