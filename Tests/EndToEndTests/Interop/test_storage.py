"""A store that cannot be used: at the start, and from some moment on."""

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest

from carillon_peer import APP, ENVIRONMENT, PATIENCE, assert_problem

UNUSABLE = 73


def overwrite(database, name: str):
    """Damages the first page of a table or an index, as disks do."""
    connection = sqlite3.connect(database)
    page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    with open(database, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)


def run(executable, *arguments, **options):
    return subprocess.run(
        [executable, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=ENVIRONMENT, **options
    )


USES = {
    "access_key_of_app": lambda server, channel: server.admin("GET", "/v1/keys"),
    "device_of_app": lambda server, channel: server.admin("GET", f"/v1/apps/{APP}/devices"),
    "channel": lambda server, channel: channel.post(b"x"),
    "envelope_topic": lambda server, channel: channel.post(b"x", headers={"Topic": "a"}),
}


@pytest.mark.parametrize("page", USES)
def test_damage_wherever_it_is_met_ends_readiness_and_shows_in_the_exit_code(make_server, page):
    server = make_server()
    channel = server.register_device().open_channel()
    channel.send(b"before")
    assert server.stop() == 0
    overwrite(server.data / "carillon.sqlite", page)
    server.start()
    assert_problem(USES[page](server, channel), 503, "storage_unavailable")
    problem = assert_problem(server.request("GET", "/health/ready"), 503, "storage_unavailable")
    assert "damaged" in problem["detail"]
    assert server.request("GET", "/health/live").status_code == 200
    assert server.stop() == UNUSABLE
    assert "damaged" in server.log.read_text().splitlines()[-1]


def test_damage_that_is_found_at_the_start_is_reported_with_the_documented_code(make_server, executable):
    server = make_server()
    assert server.stop() == 0
    overwrite(server.data / "carillon.sqlite", "token_key")
    for command in (["serve", "--listen", f"127.0.0.1:{server.port}"], ["apps", "list"], ["backup", server.data / "b"]):
        done = run(executable, *command, "--data", server.data)
        assert done.returncode == UNUSABLE, done
        assert "damaged" in done.stderr, done


def test_a_data_directory_that_is_removed_takes_nothing_more(make_server):
    server = make_server()
    channel = server.register_device().open_channel()
    shutil.rmtree(server.data)
    problem = assert_problem(server.request("GET", "/health/ready"), 503, "storage_unavailable")
    assert "removed" in problem["detail"]
    assert_problem(channel.post(b"x"), 503, "storage_unavailable")
    assert server.stop() == UNUSABLE
    assert not server.data.exists()


def test_a_clean_stop_leaves_everything_in_one_file(make_server):
    server = make_server()
    device = server.register_device()
    sent = device.open_channel().send(b"kept")
    assert server.stop() == 0
    for file in server.data.iterdir():
        if file.name != "carillon.sqlite":
            file.unlink()
    server.start()
    with device.connect() as socket:
        assert socket.notification()["version"] == sent.id


def test_a_full_disk_is_not_a_missing_permission(executable, small_disk, filler):
    filler.fill()
    done = run(executable, "apps", "create", "a", "--data", small_disk / "data", "--init")
    assert done.returncode == UNUSABLE
    assert "is full" in done.stderr and "No space left" in done.stderr, done.stderr
    filler.empty()
    done = run(executable, "apps", "create", "a", "--data", small_disk / "data", "--init")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def common_path():
    """A directory that every user may read. Another pytest that begins takes that right from the folders of this one."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture
def somebody() -> dict:
    """How a program is run as a user with few permissions."""
    if os.getuid() != 0:
        return {}
    return {"user": pwd.getpwnam("nobody").pw_uid, "group": 65534, "extra_groups": []}


@pytest.mark.parametrize("command", [["apps", "create", "a", "--init"], ["serve", "--listen", "127.0.0.1:9"]])
def test_a_missing_permission_is_not_a_full_disk(executable, common_path, somebody, command):
    data = common_path / "data"
    data.mkdir(0o555)
    done = run(executable, *command, "--data", data, **somebody)
    assert done.returncode == UNUSABLE, done
    assert "Permission denied" in done.stderr and "Allow this user" in done.stderr, done.stderr
    assert list(data.iterdir()) == []


def test_a_directory_that_cannot_store_a_log_is_reported_with_the_missing_permission(executable, common_path, somebody):
    """SQLite reports only that it cannot open a file."""
    data = common_path / "data"
    assert run(executable, "apps", "create", "a", "--data", data, "--init").returncode == 0
    for file in data.iterdir():
        if file.name.endswith(("-wal", "-shm")):
            file.unlink()
        elif somebody:
            os.chown(file, somebody["user"], somebody["group"])
    data.chmod(0o555)
    done = run(executable, "apps", "list", "--data", data, **somebody)
    data.chmod(0o755)
    assert done.returncode == UNUSABLE, done
    assert "Permission denied" in done.stderr and "Allow this user" in done.stderr, done.stderr
