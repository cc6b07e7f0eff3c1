"""Fixtures of the independent-party tests.

The executable under test comes from the environment variable CARILLON_EXECUTABLE. Most tests share one
server; a test that restarts, kills or configures a server makes its own with `make_server`.
"""

import os
from pathlib import Path

import pytest

from apns_party import Simulator
from carillon_party import Server
from push_party import Person


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
    """A new channel of the new device, nobody connected."""
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
