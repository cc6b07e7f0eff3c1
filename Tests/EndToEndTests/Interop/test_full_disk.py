"""A full disk under the real executable: a file system of a few megabytes that is filled from outside."""

from carillon_peer import Server, assert_problem, await_value


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
