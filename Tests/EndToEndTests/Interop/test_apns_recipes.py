"""The examples of docs/apns-simulator.md as they are printed there, with the recipes for clients of other projects."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from apns_peer import TOPIC, Simulator
from carillon_peer import PATIENCE, free_port
from page_blocks import ELSEWHERE, ROOT, Page, blocks_of, filled

NAME = "docs/apns-simulator.md"
RUNNERS = {"sh": ["bash", "-euc"], "python": [sys.executable, "-c"], "js": ["node", "-e"]}


def recipes() -> list:
    """The fenced blocks, each with the heading above it."""
    made = []
    for part in (ROOT / NAME).read_text().split("\n### ")[1:]:
        heading, text = part.split("\n", 1)
        made += [(heading, block) for block in blocks_of(NAME, text.split("\n## ")[0]) if block.language]
    # hyper, on which it depends, requires a function that later versions do not have.
    return [recipe for recipe in made if "up to 3.11" not in recipe[0] or sys.version_info < (3, 12)]


def test_each_recipe_of_the_table_is_run():
    here = {key for (name, key), file in ELSEWHERE.items() if name == NAME and file.endswith(Path(__file__).name)}
    fenced = {block.key for block in Page(NAME).blocks if block.language}
    assert here == fenced and len(here) >= 6
    assert len(recipes()) >= len(fenced) - 1


@pytest.mark.parametrize("name, block", recipes(), ids=[recipe[0] for recipe in recipes()])
def test_a_recipe_sends_as_it_is_printed(executable, tmp_path, name, block):
    code = block.code
    simulator = Simulator(executable, tmp_path)
    try:
        simulator.add_device("00ff00ff", TOPIC)
        (tmp_path / "sim").symlink_to(simulator.data)
        assert (simulator.key_id, simulator.team) == ("SIMULATED1", "SIMTEAM001")
        for usual, place in [("2197", "push"), ("2180", "control")]:
            code = re.sub(rf"\b{usual}\b", str(simulator.ports[place]), code)
        done = subprocess.run(
            [*RUNNERS[block.language], code], cwd=tmp_path, env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True,
            text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        shown = simulator.api("GET", "devices/00ff00ff")["shown"]
        assert [push["body"] for push in shown] == ["Hello"], (shown, done.stdout, done.stderr)
        assert simulator.api("GET", "status")["accepted"] == 1
    finally:
        simulator.end()


def test_the_other_commands_of_the_page_work_as_they_are_printed(page, shell):
    simulator_page = page("docs/apns-simulator.md")
    push, manage, http = [str(free_port()) for _ in range(3)]
    places = {
        "localhost:2197": f"localhost:{push}", "localhost:2195": f"localhost:{manage}",
        "127.0.0.1:2180": f"127.0.0.1:{http}",
    }  # fmt: skip

    def own(text: str) -> str:
        return filled(text, {usual: place for usual, place in places.items() if usual in text})

    (start,) = simulator_page.take("carillon apns simulate").commands
    listening = f" --listen 127.0.0.1:{push} --manage 127.0.0.1:{manage} --http 127.0.0.1:{http}"
    shell.start(start + listening).line("^trust sim/authority.pem")
    # The last command of the block shows the received messages of the device.
    said = shell.run(own(simulator_page.take("TOKEN=").code))
    device = json.loads(said[said.index("{", said.index("apns-id")) :])
    assert [it["body"] for it in device["shown"]] == ["Hello"]
    assert shell.run(own(simulator_page.take("carillon apns send").code)).startswith("accepted  apns-id ")
    assert shell.run(own(simulator_page.take("carillon apns channels create").code)).startswith("created  ")
    faults = simulator_page.take("curl http://127.0.0.1:2180/api/faults")
    for command in faults.commands:
        shell.run(own(command) + " --fail")
    listed = shell.run(f"curl -s http://127.0.0.1:{http}/api/faults")
    assert "goAway" in listed and "REFUSED_STREAM" in listed
