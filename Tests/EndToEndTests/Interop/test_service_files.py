"""A request with a large file, there and back, over connections that are cut all the time."""

import json
import os
import random
from pathlib import Path

from carillon_peer import APP, PATIENCE, Server, await_value
from cutting_proxy import CuttingProxy
from test_service_kills import left
from test_services import FILES, METHOD, Command, prepare

# CARILLON_SERVICE_MIB=1024 tries it with a gibibyte.
MIB = int(os.environ.get("CARILLON_SERVICE_MIB", "24"))
CUTS = 10


def test_a_request_crosses_ten_cuts_on_each_side(executable, tmp_path, seed):
    chance = random.Random(seed)
    length = MIB << 20
    file = tmp_path / "file.bin"
    with file.open("wb") as output:
        for _ in range(MIB):
            output.write(os.urandom(1 << 20))
    server = Server(executable, tmp_path / "server")
    server.prepare()
    server.start()
    # The file goes through each of them twice. No two cuts are so near each other, or so near the end, that one of them is missed.
    places = range(0, 2 * length - (1 << 20), 1 << 18)
    proxies = [CuttingProxy(server.port, chance.sample(places, CUTS)) for _ in range(2)]
    provider = None
    try:
        prepare(server)
        provide = Command(executable, server, FILES, "ada", tmp_path / "provider")
        consumer = Command(executable, server, APP, "ada", tmp_path / "consumer")
        for command, proxy in zip((provide, consumer), proxies, strict=True):
            command.environment["CARILLON_SERVER"] = proxy.url
        provider = provide.start("provide", "--method", METHOD, "--echo")
        await_value(lambda: consumer.run("list").stdout, lambda it: FILES in it, "a provider")
        call = consumer.start("call", METHOD, "--of", FILES, "--attach", file, "--parameters", "7")
        out, err = call.communicate(timeout=PATIENCE * 6 + MIB)
        assert call.returncode == 0, err
        # The cuts are reported as well.
        (result,) = [line for line in map(json.loads, out.splitlines()) if line["event"] != "connectionFailed"]
        assert result["value"] == "7" and [proxy.cut for proxy in proxies] == [CUTS, CUTS]
        (path,) = result["attachments"]
        with file.open("rb") as one, Path(path).open("rb") as other:
            while piece := one.read(1 << 20):
                assert other.read(1 << 20) == piece
            assert not other.read(1)
        # The data in flight when it was cut: the buffers of two connections on this machine.
        again = sum(proxy.moved for proxy in proxies) - 4 * length
        assert again < 2 * CUTS * (8 << 20), again
        await_value(lambda: left(server), lambda it: it == 0, "files at the server", PATIENCE * 3)
        print(f"{MIB} MiB there and back, {2 * CUTS} cuts: {again:,} bytes more went")
    finally:
        if provider is not None:
            provider.kill()
            provider.wait()
        for proxy in proxies:
            proxy.close()
        server.end()
