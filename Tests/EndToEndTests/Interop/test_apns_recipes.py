"""The recipes of docs/apns-simulator.md for clients that nobody here wrote, as they are printed there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from apns_peer import TOPIC, Simulator
from carillon_peer import PATIENCE

PAGE = (Path(__file__).parents[3] / "docs" / "apns-simulator.md").read_text()
RUNNERS = {"sh": ["bash", "-euc"], "python": [sys.executable, "-c"], "js": ["node", "-e"]}


def recipes() -> list:
    """A code block, its language, and the heading above it."""
    section = PAGE.split("## Point a client at it")[1].split("\n## ")[0]
    found = re.findall(r"^### (.*?)\n.*?^```(\w+)\n(.*?)^```$", section, re.M | re.S)
    made = [(name, language, code) for name, language, code in found]
    first = PAGE.split("## Try it")[1].split("\n## ")[0]
    made.append(("curl", "sh", re.search(r"(?:^    TOKEN.*\n(?:    .*\n)+)", first, re.M)[0].replace("\n    ", "\n").strip()))
    # hyper, which it stands on, asks for a function that later versions have not.
    return [recipe for recipe in made if "up to 3.11" not in recipe[0] or sys.version_info < (3, 12)]


def test_the_page_has_recipes():
    names = [name for name, _, _ in recipes()]
    for wanted in ["nghttp", "httpx", "aioapns", "Node.js", "host is fixed", "curl"]:
        assert any(wanted in name for name in names), names


@pytest.mark.parametrize("name, language, code", recipes(), ids=[recipe[0] for recipe in recipes()])
def test_a_recipe_sends_as_it_is_printed(executable, tmp_path, name, language, code):
    simulator = Simulator(executable, tmp_path)
    try:
        simulator.add_device("00ff00ff", TOPIC)
        (tmp_path / "sim").symlink_to(simulator.data)
        assert (simulator.key_id, simulator.team) == ("SIMULATED1", "SIMTEAM001")
        for usual, place in [("2197", "push"), ("2180", "control")]:
            code = re.sub(rf"\b{usual}\b", str(simulator.ports[place]), code)
        done = subprocess.run(
            [*RUNNERS[language], code], cwd=tmp_path, env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True,
            text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        shown = simulator.api("GET", "devices/00ff00ff")["shown"]
        assert [push["body"] for push in shown] == ["Hello"], (shown, done.stdout, done.stderr)
        assert simulator.api("GET", "status")["accepted"] == 1
    finally:
        simulator.end()
