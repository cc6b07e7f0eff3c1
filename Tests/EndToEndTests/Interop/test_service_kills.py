"""SIGKILL of each participant of a request, at any moment: each request has one result, and no state remains."""

import json
import os
import random
import sqlite3
import subprocess
import time

from carillon_peer import APP, PATIENCE, Server, await_value
from test_services import FILES, METHOD, Command, prepare

KILLS = int(os.environ.get("CARILLON_SERVICE_KILLS", "12"))


def test_after_a_kill_of_any_participant_a_request_has_one_result_and_no_state_remains(executable, tmp_path, seed):
    chance = random.Random(seed)
    server = Server(executable, tmp_path / "server")
    server.prepare()
    server.start()
    provider = provide = None
    try:
        prepare(server)
        provide = Command(executable, server, FILES, "ada", tmp_path / "provider")
        consumer = Command(executable, server, APP, "ada", tmp_path / "consumer")
        provider = provide.start("provide", "--method", METHOD, "--echo")
        await_value(lambda: consumer.run("list").stdout, lambda it: FILES in it, "a provider")
        file = tmp_path / "file.bin"
        file.write_bytes(os.urandom(300_000))
        killed = {"consumer": 0, "provider": 0, "server": 0}
        for number in range(KILLS):
            whom = chance.choice(list(killed))
            killed[whom] += 1
            call = consumer.start("call", METHOD, "--of", FILES, "--attach", file, "--parameters", str(number))
            time.sleep(chance.uniform(0, 0.5))
            results = []
            if whom == "consumer":
                call.kill()
            elif whom == "provider":
                provider.kill()
                provider.wait()
                provider = provide.start("provide", "--method", METHOD, "--echo")
            else:
                server.kill()
                server.start()
            out, err = call.communicate(timeout=PATIENCE * 6)
            results += [line for line in map(json.loads, out.splitlines()) if line["event"] != "connectionFailed"]
            if whom == "consumer":
                late = consumer.run("results", "--wait", "10").stdout.splitlines()
                results += [line for line in map(json.loads, late) if line["event"] != "connectionFailed"]
                assert len(results) <= 1, (number, results)
            else:
                assert call.returncode == 0, (number, whom, err)
                assert len(results) == 1
            for result in results:
                assert result.get("value") == str(number), (number, whom, result)
                (path,) = result["attachments"]
                assert open(path, "rb").read() == file.read_bytes()
        assert consumer.run("results", "--wait", "1").stdout == "", "no result comes twice"
        await_value(lambda: left(server), lambda it: it == 0, "files at the server", PATIENCE * 3)
        for state in (consumer.state, provide.state):
            assert [it.name for it in (state / "services").iterdir()] == ["lock"], list((state / "services").iterdir())
            gathering = state / "Inbox" / ".gathering"
            assert not gathering.exists() or list(gathering.iterdir()) == []
    finally:
        if provider is not None:
            provider.kill()
            provider.wait()
        server.end()
    with sqlite3.connect(server.data / "carillon.sqlite") as database:
        open_requests = database.execute("SELECT count(*) FROM service_request WHERE state < 2").fetchone()
        assert open_requests == (0,)
        assert database.execute("SELECT coalesce(sum(value), 0) FROM counter WHERE name LIKE 'attachment%'").fetchone() == (0,)


def left(server) -> int:
    return sum(1 for it in (server.data / "attachments").rglob("*") if it.is_file())
