"""A full disk under the real executable: a file system of a few megabytes that is filled from outside."""

import time

from carillon_peer import APP, Server, assert_problem, await_value


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


def test_a_full_disk_loses_no_push_and_repeats_none_without_need(executable, small_disk, filler, make_simulator):
    simulator = make_simulator()
    server = Server(
        executable,
        small_disk,
        {
            "CARILLON_KEY_FILE": small_disk.parent / "key-file",
            "CARILLON_APNS_SANDBOX": f"localhost:{simulator.ports['push']}",
            "CARILLON_APNS_CA": simulator.data / "authority.pem",
        },
    )
    server.prepare()
    server.start()
    try:
        credentials = {"p8": simulator.key, "keyID": simulator.key_id, "teamID": simulator.team}
        answer = server.admin("PUT", f"/v1/apps/{APP}/credentials/sandbox", credentials)
        assert answer.status_code == 200, answer.text
        channels = []
        for number in range(40):
            token = f"{number:032x}"
            simulator.add_device(token)
            device = server.register_device()
            told = device.request(
                "PUT", "/v1/device", {"platform": "apple", "pushToken": token, "environment": "sandbox"}
            )
            assert told.status_code == 200, told.text
            channels.append((token, device.open_channel()))
        filler.fill()
        accepted = {}
        for token, channel in channels:
            answer = channel.post(b"x" * 4000)
            if answer.status_code == 201:
                accepted[token] = answer.headers["Location"]
            else:
                assert_problem(answer, 503)
        assert len(accepted) < len(channels), "the disk was not full"
        time.sleep(1)
        filler.empty()
        for token, channel in channels:
            if token not in accepted:
                after = await_value(lambda: channel.post(b"after"), lambda it: it.status_code == 201, "accepting again")
                accepted[token] = after.headers["Location"]
        for token, location in accepted.items():
            pushes = await_value(
                lambda: server.request(
                    "GET", "/v1/messages/" + location.rsplit("/", 1)[1], key=server.sender_key
                ).json()["pushes"],
                lambda it: it and it[0]["state"] == "handed",
                f"the push of {token}",
            )
            shown = simulator.api("GET", f"devices/{token}")["shown"]
            # An operation whose result could not be written may exist once more.
            assert 1 <= len(shown) <= 2 and {push["id"] for push in shown} == {pushes[0]["apnsID"]}, shown
    finally:
        server.end()
