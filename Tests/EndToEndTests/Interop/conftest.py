"""Fixtures of the interop tests.

The executable under test comes from the environment variable CARILLON_EXECUTABLE. Most tests share one
server; a test that restarts, kills or configures a server makes its own with `make_server`.
"""

import os
import random
import subprocess
from pathlib import Path

import pytest

from apns_peer import Simulator
from carillon_peer import Server
from log_secrets import LEDGER
from page_blocks import Page
from page_shell import Shell
from push_peer import Person


def pytest_addoption(parser):
    seed = int(os.environ.get("CARILLON_SEED") or random.randrange(1 << 30))
    parser.addoption("--seed", type=int, default=seed, help="repeats the random tests of another run")


def pytest_report_header(config):
    return f"seed: {config.getoption('seed')}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """If CI is set, a skipped test has failed: its requirements are installed there."""
    report = (yield).get_result()
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, where nothing may be: {report.longrepr}"


@pytest.fixture(scope="session", autouse=True)
def secrets_stay_out_of_logs():
    """Fails the run when the log of any of its servers shows a secret that a test used."""
    LEDGER.follow_requests()
    yield
    shown = LEDGER.shown()
    assert not shown, "\n".join(shown)


@pytest.fixture
def seed(request) -> int:
    """The seed of random tests; it is shown with a test that fails."""
    seed = request.config.getoption("seed")
    print(f"--seed {seed}")
    return seed


@pytest.fixture
def small_disk(tmp_path, request):
    """A file system of its own, of 12 MB or the size of the parameter; if it may not be mounted, the test reports it."""
    directory = tmp_path / "disk"
    directory.mkdir()
    size = getattr(request, "param", "12m")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield directory
    subprocess.run(["umount", "-l", directory], check=True)


@pytest.fixture
def filler(small_disk):
    """Fills the rest of the disk, and frees it again."""

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


@pytest.fixture(scope="session")
def executable() -> Path:
    path = os.environ.get("CARILLON_EXECUTABLE")
    if not path:
        pytest.fail("Set CARILLON_EXECUTABLE to the path of the carillon executable.")
    return Path(path)


@pytest.fixture(scope="session")
def server(executable, tmp_path_factory):
    """The shared server, with the limits that it has by default."""
    server = Server(executable, tmp_path_factory.mktemp("shared"))
    server.prepare()
    server.start()
    yield server
    server.end()


@pytest.fixture
def make_server(executable, tmp_path):
    """Makes servers of a test's own: `make_server(CARILLON_WINDOW_ENVELOPES=3)`."""
    servers = []

    def make(**settings) -> Server:
        server = Server(executable, tmp_path / f"server{len(servers)}", settings)
        servers.append(server)
        server.prepare()
        server.start()
        return server

    yield make
    for server in servers:
        server.end()


@pytest.fixture
def device(server):
    """A new device of the shared server."""
    return server.register_device()


@pytest.fixture
def channel(device):
    """A new channel of the new device, which is not connected."""
    return device.open_channel()


@pytest.fixture
def make_simulator(executable, tmp_path):
    """Makes APNs simulators of a test's own: `make_simulator("--environment", "both")`."""
    simulators = []

    def make(*options) -> Simulator:
        simulators.append(Simulator(executable, tmp_path / f"simulator{len(simulators)}", *options))
        return simulators[-1]

    yield make
    for simulator in simulators:
        simulator.end()


@pytest.fixture
def simulator(make_simulator):
    """An APNs simulator with one device in its book."""
    simulator = make_simulator()
    simulator.add_device()
    return simulator


@pytest.fixture
def person(executable, simulator, tmp_path):
    """Somebody at a command line, with the simulator's key."""
    return Person(executable, simulator, tmp_path)


@pytest.fixture
def page():
    """Opens a page of the documentation; at the end, each of its blocks was run: `page("docs/users.md")`."""
    opened = []

    def open_page(path: str) -> Page:
        opened.append(Page(path))
        return opened[-1]

    yield open_page
    for one in opened:
        one.finish()


@pytest.fixture
def shell(executable, tmp_path):
    """A shell for the commands of a page."""
    shell = Shell(executable, tmp_path / "shell")
    yield shell
    shell.end()
