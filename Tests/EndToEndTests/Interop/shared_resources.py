"""The table of shared resources in docs/guarantees.md, and the common parts of its trials."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import requests

from carillon_peer import APP, PATIENCE, Channel, Device, Server, assert_problem, free_port

PAGE = Path(__file__).parents[3] / "docs" / "guarantees.md"
OTHER_APP = "com.example.other"
COLUMNS = ["resource", "owner", "share", "beyond", "setting", "counter"]


@dataclass
class Row:
    resource: str
    owner: str
    share: str
    beyond: str
    setting: str
    counter: str

    @property
    def refusal(self) -> tuple[int, str]:
        """The status and the code that the row names."""
        status, code = re.match(r"(\d{3}) `(\w+)`", self.beyond).groups()
        return int(status), code


def rows() -> list[Row]:
    section = PAGE.read_text().split("## Shared resources")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [cell.lower().split()[0] for cell in cells[0]] == COLUMNS, cells[0]
    return [Row(*row) for row in cells[2:]]


class World:
    """A server with two apps, and devices and channels of both."""

    def __init__(self, make_server, **settings):
        port = free_port()
        self.server: Server = make_server(CARILLON_METRICS_LISTEN=port, **settings)
        self.metrics = f"http://127.0.0.1:{port}/metrics"
        assert self.server.admin("POST", "/v1/apps", {"id": OTHER_APP}).status_code == 201
        self.other_keys = {
            role: self.server.admin("POST", "/v1/keys", {"role": role, "app": OTHER_APP}).json()["secret"]
            for role in ("client", "sender")
        }

    def device(self, app=APP) -> Device:
        return self.server.register_device(app, self.server.client_key if app == APP else self.other_keys["client"])

    def sender_key(self, app=APP) -> str:
        return self.server.sender_key if app == APP else self.other_keys["sender"]

    def channel(self, app=APP) -> Channel:
        return self.device(app).open_channel()

    def count(self, counter: str) -> float:
        """The sum over all series of a name, or the value of one series with labels."""
        lines = requests.get(self.metrics, timeout=PATIENCE).text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(counter))


@dataclass
class Tried:
    """The results of a trial: the refusal of the owner whose quota is used up, and the answers of others."""

    refused: requests.Response
    others: list[requests.Response] = field(default_factory=list)


TRIALS = {}


def trial(resource: str, **settings):
    """A trial of the row with this name, on a server with these settings."""

    def add(function):
        assert resource not in TRIALS
        TRIALS[resource] = (function, {f"CARILLON_{name.upper()}": value for name, value in settings.items()})
        return function

    return add


def beyond(answers, most: int) -> requests.Response:
    """The first answer that is a refusal, which must come after `most` successes."""
    for number, answer in enumerate(answers):
        if answer.status_code >= 400:
            assert number == most, f"refused after {number} of {most}: {answer.text}"
            return answer
    raise AssertionError("nothing was refused")


def rows_of(module: str) -> list[Row]:
    """The rows that have their trials in a module."""
    return [row for row in rows() if row.resource in TRIALS and TRIALS[row.resource][0].__module__ == module]


def try_row(make_server, row: Row):
    assert row.resource in TRIALS, f"nothing tries {row.resource!r}"
    run, settings = TRIALS[row.resource]
    named = re.findall(r"`([a-z-]+)`", row.setting)
    changed = {name[len("CARILLON_"):].lower().replace("_", "-") for name in settings}
    world = World(make_server, **settings)
    counter = row.counter.strip("`")
    before = world.count(counter)
    tried = run(world)
    if tried is not None:
        status, code = row.refusal
        assert_problem(tried.refused, status, code)
        if status in (429, 503):
            assert int(tried.refused.headers["Retry-After"]) > 0
        for answer in tried.others:
            assert answer.status_code < 300, f"{answer.status_code} {answer.text}"
        assert tried.others, "nobody else was tried"
    assert world.count(counter) > before, f"{counter} did not grow"
    # A quota that can be set is tested with a setting, so that the setting is tested, too.
    assert not named or set(named) & changed, f"{row.setting} was not set"
