"""`carillon apns send` against the simulator, as a person at a command line uses it."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from apns_peer import DEVICE, TOPIC
from carillon_peer import PATIENCE, free_port
from push_peer import LIMIT, Person, make_certificate

GONE = "dead" * 16
LATE = "1a7e" * 16
UNKNOWN = "0123" * 16


def last_request(simulator) -> dict:
    return simulator.api("GET", "requests")[-1]


# One token


def test_one_token_is_answered_with_a_sentence(person, simulator):
    ended = person.send("--token", DEVICE, "--title", "Kettle", "--body", "The water boils.", "--badge", "3")
    assert (ended.status, ended.err) == (0, "")
    assert re.fullmatch(r"accepted  apns-id [0-9A-F-]{36}  apns-unique-id [0-9a-f-]{36}\n", ended.out)
    shown = simulator.api("GET", f"devices/{DEVICE}")["shown"][-1]
    assert (shown["title"], shown["body"], shown["badge"]) == ("Kettle", "The water boils.", 3)


def test_a_refusal_contains_advice(person, simulator):
    ended = person.send("--token", UNKNOWN, "--title", "x")
    assert ended.status == 65
    assert ended.out.startswith("refused  400 BadDeviceToken. ") and "sandbox" in ended.out
    simulator.add_device(GONE, state="unregistered", since=1700000000123)
    ended = person.send("--token", GONE, "--title", "x")
    assert (ended.status, "410 Unregistered, since 2023-11-14T22:13:20Z" in ended.out) == (65, True)


def test_json_has_a_line_for_the_token_and_a_summary(person, simulator):
    simulator.add_device(GONE, state="unregistered", since=1700000000123)
    ended = person.send("--token", DEVICE, GONE, "--title", "x", "--json")
    assert ended.status == 65
    accepted, rejected = sorted(ended.results, key=lambda result: result["status"])
    assert (accepted["token"], accepted["outcome"], accepted["status"]) == (DEVICE, "accepted", 200)
    assert len(accepted["id"]) == 36 and len(accepted["uniqueID"]) == 36
    expected = {"token": GONE, "outcome": "rejected", "status": 410, "reason": "Unregistered", "kind": "deadToken"}
    assert expected.items() <= rejected.items() and rejected["invalidSince"] == 1700000000123
    assert {"accepted": 1, "rejected": 1, "failed": 0, "end": "done"}.items() <= ended.summary.items()


REASONS = [
    ("BadDeviceToken", 65),
    ("DeviceTokenNotForTopic", 65),
    ("Unregistered", 65),
    ("ExpiredToken", 65),
    ("BadTopic", 65),
    ("PayloadTooLarge", 65),
    ("InvalidProviderToken", 77),
    ("ExpiredProviderToken", 77),
    ("TopicDisallowed", 77),
    ("BadEnvironmentKeyIdInToken", 77),
    ("BadCertificateEnvironment", 77),
    ("Forbidden", 77),
    ("TooManyProviderTokenUpdates", 75),
    ("InternalServerError", 75),
    ("ServiceUnavailable", 75),
    ("Shutdown", 75),
]


@pytest.mark.parametrize("reason, status", REASONS)
def test_every_kind_of_refusal_has_advice_and_a_code(person, simulator, reason, status):
    simulator.fault("reject", reason=reason)
    ended = person.send("--token", DEVICE, "--title", "x")
    assert ended.status == status
    assert re.fullmatch(rf"refused  \d\d\d {reason}[^.]*\. \S.{{10,}}[.?]\n", ended.out), ended.out


def test_an_answer_that_is_not_the_service_s_is_shown(person, simulator):
    simulator.fault("answer", status=502, body="html")
    ended = person.send("--token", DEVICE, "--title", "x")
    assert ended.status == 75 and "502 without a reason: <html>" in ended.out


def test_a_foreign_answer_cannot_control_the_terminal(person, simulator):
    simulator.fault("answer", status=502, body="text", text="one\r\n\x1b[31mtwo\x07")
    ended = person.send("--token", DEVICE, "--title", "x")
    assert r"one\r\n\u001b[31mtwo\u0007." in ended.out and "\x1b" not in ended.out, repr(ended.out)
    assert ended.out.count("\n") == 1


def test_a_foreign_reason_cannot_control_the_terminal_in_the_summary(person, simulator):
    simulator.fault("answer", status=400, body="text", text=json.dumps({"reason": "\x1b]0;owned\x07Bad"}))
    ended = person.send("--tokens-file", "-", "--title", "x", stdin=f"{DEVICE}\n" * 3)
    assert ended.status == 65 and "owned" in ended.out and "\x1b" not in ended.out + ended.err


def test_a_service_in_trouble_is_left_alone(person, simulator):
    simulator.fault("reject", reason="ServiceUnavailable")
    ended = person.send("--tokens-file", "-", "--title", "x", "--json", stdin=f"{DEVICE}\n" * 500)
    assert ended.status == 75 and ended.summary["end"] == "noService" and ended.summary["rejected"] == 1


# Many tokens


def many(count: int = 20_000) -> tuple[str, dict]:
    """A file of mixed tokens, and how many of which kind are in it."""
    lines, counts = ["# the installs of today", ""], {"good": 0, "gone": 0, "late": 0, "unknown": 0, "malformed": 0}
    for number in range(count):
        kind = {1: "gone", 2: "unknown", 3: "malformed", 4: "late"}.get(number % 50, "good")
        counts[kind] += 1
        token = {"good": DEVICE, "gone": GONE, "late": LATE, "unknown": f"{number:064x}", "malformed": f"{number}z"}[kind]
        lines.append(f"  {token}\r" if number % 7 == 0 else token)
    return "\n".join(lines), counts


@pytest.fixture
def mixed(simulator):
    simulator.add_device(GONE, state="unregistered", since=1700000000123)
    simulator.add_device(LATE, state="expired", since=1700000000123)
    return many()


def test_twenty_thousand_tokens_of_every_kind_are_summed_up(person, mixed):
    text, counts = mixed
    ended = person.send("--tokens-file", "-", "--title", "x", stdin=text)
    assert (ended.status, ended.err) == (65, ""), ended
    lines = ended.out.splitlines()
    assert re.fullmatch(rf"accepted +{counts['good']:,}", lines[0]), ended.out
    assert re.fullmatch(rf"refused +{counts['gone'] + counts['late'] + counts['unknown']:,}", lines[1]), ended.out
    for reason, kind in [("Unregistered", "gone"), ("ExpiredToken", "late"), ("BadDeviceToken", "unknown")]:
        assert any(re.match(rf" +{counts[kind]:,}  {reason}: \S", line) for line in lines), ended.out
    assert any(re.match(rf" +{counts['malformed']:,}  tokenInvalid: .*\(lines 6, 56, 106 and others\)", line) for line in lines), (
        ended.out
    )
    assert re.fullmatch(r"in [\d.,]+ m?s, [\d,]+ a second", lines[-1]), ended.out


def test_each_of_many_tokens_has_its_line_of_json(person, mixed):
    text, counts = mixed
    ended = person.send("--tokens-file", person.file("tokens", text), "--title", "x", "--json")
    assert ended.status == 65 and ended.err == "", (ended.summary, ended.err)
    by_line = {result["line"]: result for result in ended.results}
    expected = {
        number: line.strip() for number, line in enumerate(text.split("\n"), 1) if line.strip() and line[0] != "#"
    }
    assert {line: result["token"] for line, result in by_line.items()} == expected
    malformed = [result for result in by_line.values() if result["outcome"] == "failed"]
    assert len(malformed) == counts["malformed"]
    assert {(result["error"], result["mayHaveBeenProcessed"]) for result in malformed} == {("tokenInvalid", False)}
    assert ended.summary["reasons"] == {
        "BadDeviceToken": counts["unknown"],
        "ExpiredToken": counts["late"],
        "Unregistered": counts["gone"],
    }
    assert ended.summary["accepted"] == counts["good"]


def test_a_token_that_occurs_twice_receives_two_pushes_or_one(person, simulator):
    tokens = person.file("tokens", f"{DEVICE}\n{DEVICE.upper()}\n# again\n{DEVICE}\n")
    assert person.send("--tokens-file", tokens, "--title", "x", "--json").summary["accepted"] == 3
    ended = person.send("--tokens-file", tokens, "--title", "x", "--json", "--once")
    assert (ended.status, ended.summary["accepted"], ended.summary["repeated"]) == (0, 1, 2)
    assert len(simulator.api("GET", "requests")) == 4
    ended = person.send("--tokens-file", tokens, "--title", "x", "--once")
    assert re.search(r"accepted +1\nrepeated +2, each with one push\n", ended.out), ended.out
    ended = person.send("--token", DEVICE, DEVICE, "--title", "x", "--once")
    assert (ended.status, ended.out.count("accepted")) == (0, 1), ended.out


@pytest.mark.parametrize("content", ["", "\n\n# nobody\n"])
def test_an_empty_file_sends_nothing_and_is_reported(person, content):
    ended = person.send("--tokens-file", person.file("tokens", content), "--title", "x")
    assert (ended.status, ended.out) == (0, "the input has no device token; nothing was sent\n")
    assert person.send("--tokens-file", "-", "--title", "x", "--json").summary["accepted"] == 0


def test_a_file_of_another_kind_is_reported(person):
    ended = person.send("--tokens-file", person.file("tokens", b"\0" * 100_000), "--title", "x")
    assert ended.status == 65 and "not a device token" in ended.out and "(line 1)" in ended.out


def test_a_line_without_end_harms_no_other(person, simulator):
    tokens = f"{DEVICE}\n" * 3000 + "a" * 70_000 + f"\n{DEVICE}\n"
    ended = person.send("--tokens-file", "-", "--title", "x", "--json", stdin=tokens)
    assert ended.status == 65 and ended.summary["accepted"] == 3001 and ended.summary["errors"] == {"tokenInvalid": 1}


@pytest.mark.parametrize("timestamp", ["1e19", "1e300", '"nan"', "-5"])
def test_a_time_that_is_none_is_left_out(person, simulator, timestamp):
    simulator.fault("answer", status=410, body="text", text=f'{{"reason":"Unregistered","timestamp":{timestamp}}}')
    ended = person.send("--token", DEVICE, "--title", "x", "--json")
    assert ended.status == 65 and "invalidSince" not in ended.results[0]


def test_an_output_that_cannot_be_written_is_reported(person, simulator):
    with open("/dev/full", "w") as full:
        said = [*person.key, *person.topic, *person.endpoint, "--token", DEVICE, "--title", "x"]
        done = subprocess.run([person.executable, "apns", "send", *said], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 74 and "cannot write the output" in done.stderr


def test_a_fault_of_all_pushes_is_reported_once(person, simulator):
    simulator.fault("reject", reason="InvalidProviderToken")
    ended = person.send("--tokens-file", "-", "--title", "x", stdin=f"zz\n{DEVICE}\n" * 1000)
    assert ended.status == 77
    assert re.search(r"refused +1\n +1  InvalidProviderToken: ", ended.out) and "nothing more was sent" in ended.out
    assert simulator.api("GET", "status")["requests"] <= 1


def test_tokens_are_sent_while_they_still_come(person, simulator):
    process = person.begin(
        "send", *person.access(), "--tokens-file", "-", "--title", "x", "--json", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    for _ in range(3):
        process.stdin.write(f"{DEVICE}\n".encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["outcome"] == "accepted"
    process.stdin.close()
    assert json.loads(process.stdout.readline())["accepted"] == 3
    assert process.wait(PATIENCE) == 0


def memory(person, tokens) -> tuple[str, int]:
    """Sends to the tokens of a file; returns the output, and the maximum of used KB."""
    process = person.begin("send", *person.access(), "--tokens-file", tokens, "--title", "x", stdout=subprocess.PIPE)
    out = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 65
    return out, usage.ru_maxrss


def test_a_long_file_needs_no_more_memory_than_a_short_one(person):
    """Nearly all is malformed, so that the reading is measured and not the simulator."""
    _, least = memory(person, person.file("short", f"{DEVICE}\n" + ("x" * 64 + "\n") * 5000))
    out, most = memory(person, person.file("long", f"{DEVICE}\n" + ("x" * 64 + "\n") * 300_000))
    assert re.search(r"accepted +1\nfailed +300,000\n", out), out
    assert most < least + 20_000, f"{least} KB, and {most} KB"


# Before anything is opened


def test_a_dry_run_shows_each_byte_of_the_request(person, simulator):
    what = ["--title", "Grüße", "--body", 'a "quoted" line', "--badge", "1", "--sound", "default", "--category", "c"]
    what += ["--thread-id", "t", "--collapse-id", "k", "--priority", "5", "--expires", "0", "--content-available"]
    what += ["--mutable-content", "--interruption-level", "passive", "--custom", "kettle=7", 'name="Anna"']
    dry = person.send("--token", DEVICE, *what, "--dry-run", "--json").events[0]
    assert simulator.api("GET", "status")["requests"] == 0
    assert person.send("--token", DEVICE, *what).status == 0
    request = last_request(simulator)
    assert request["payload"] == dry["payload"] and dry["bytes"] == len(dry["payload"].encode())
    sent = {name: value for name, value in request["headers"].items() if name.startswith("apns-")}
    assert sent == {name: value for name, value in dry["headers"].items() if name.startswith("apns-")}
    assert dry["url"] == f"https://localhost:{simulator.ports['push']}/3/device/{DEVICE}"


def test_a_dry_run_needs_neither_key_nor_token(person):
    ended = person.run("send", "--topic", TOPIC, "--background", "--dry-run")
    assert ended.status == 0
    assert ended.out.startswith("POST https://api.push.apple.com/3/device/TOKEN\n")
    assert "apns-push-type: background\napns-priority: 5\n" in ended.out
    assert ended.out.endswith('\n\n{"aps":{"content-available":1}}\n')


@pytest.mark.parametrize(
    "topic, more, expected",
    [
        (TOPIC, ["--push-type=voip", "--custom=call=7"], f"{TOPIC}.voip"),
        (f"{TOPIC}.voip", ["--push-type=voip", "--custom=call=7"], f"{TOPIC}.voip"),
        (TOPIC, ["--live-activity=end"], f"{TOPIC}.push-type.liveactivity"),
        (TOPIC, ["--push-type=widgets"], f"{TOPIC}.push-type.widgets"),
        (TOPIC, ["--push-type=tomorrow", "--badge=1"], TOPIC),
    ],
)
def test_the_topic_is_the_bundle_id_with_the_suffix_of_the_push_type(person, topic, more, expected):
    dry = person.run("send", "--topic", topic, *more, "--dry-run", "--json").events[0]
    assert dry["headers"]["apns-topic"] == expected


USAGE = [
    (["--title", "x"], "recipients"),
    (["--token", "00ff"], "nothing to send"),
    (["--token", "00f", "--title", "x"], "hexadecimal"),
    (["--token", "00ff", "--tokens-file", "-", "--title", "x"], "one of --token"),
    (["--token", "00ff", "--title", "x", "--background"], "shows nothing"),
    (["--token", "00ff", "--background", "--badge", "3"], "shows nothing"),
    (["--token", "00ff", "--title", "x", "--priority", "3"], "1, 5 or 10"),
    (["--token", "00ff", "--title", "x", "--payload", "f"], "complete content"),
    (["--token", "00ff", "--title", "x", "--sandbox"], "--endpoint"),
    (["--token", "00ff", "--custom", "name=Anna"], """'name="Anna"'"""),
    (["--token", "00ff", "--custom", "aps={}"], "belongs to Apple"),
    (["--token", "00ff", "--live-activity", "update"], "--content-state"),
    (["--token", "00ff", "--live-activity", "start", "--content-state", "{}"], "--attributes"),
    (["--channel", "c", "--title", "x"], "broadcast"),
    (["--tokens-file", "-", "--payload", "-"], "Only one option"),
    (["--tokens-file", "-", "--payload", "x", "--passphrase-file", "-"], "--cert"),
]


@pytest.mark.parametrize("arguments, words", USAGE)
def test_wrong_usage_is_reported_before_a_connection_opens(person, simulator, arguments, words):
    ended = person.send(*arguments)
    assert ended.status == 64 and words.lower() in ended.err.lower(), ended.err
    assert simulator.api("GET", "connections") == []


def test_a_push_that_the_service_would_refuse_is_reported_before_a_connection_opens(person, simulator):
    ended = person.send("--token", DEVICE, "--body", "x" * 5000)
    assert ended.status == 65 and "a push of type alert must have at most 4096" in ended.err
    ended = person.send("--token", DEVICE, "--title", "x", "--collapse-id", "c" * 65)
    assert ended.status == 65 and "collapse ID has 65 bytes" in ended.err
    payload = person.file("payload", '{"aps":{"event":"update","timestamp":1}}')
    ended = person.send("--token", DEVICE, "--push-type", "liveactivity", "--payload", payload)
    assert ended.status == 65 and '"aps.content-state"' in ended.err
    assert simulator.api("GET", "connections") == []


# Payloads, Live Activities, broadcasts


def pipe(content: bytes) -> int:
    """The reading end of a pipe that is written to a little at a time."""
    reading, writing = os.pipe()

    def write():
        with os.fdopen(writing, "wb") as end:
            for start in range(0, len(content), 40):
                end.write(content[start : start + 40])
                end.flush()

    threading.Thread(target=write, daemon=True).start()
    return reading


def test_files_may_be_pipes(person, simulator):
    made = certificate(person, simulator)
    key, locked = person.file("key.pem", made["privateKey"]), person.directory / "locked.pem"
    openssl("pkcs8", "-topk8", "-in", key, "-out", locked, "-passout", "pass:sesame")
    pipes = {
        "p8": pipe(simulator.key.encode()),
        "ca": pipe((simulator.data / "authority.pem").read_bytes()),
        "payload": pipe(b'{"aps":{"alert":"Hello"}}' + b" " * 3000),
        "cert": pipe(made["certificate"].encode()),
        "key": pipe(locked.read_bytes()),
        "word": pipe(b"sesame\n"),
    }
    file = {name: f"/dev/fd/{number}" for name, number in pipes.items()}
    push = [*person.topic, person.endpoint[0], "--token", DEVICE]
    for arguments in [
        ["--key", file["p8"], "--key-id", simulator.key_id, "--team-id", simulator.team, "--ca", file["ca"]]
        + ["--payload", file["payload"]],
        ["--cert", file["cert"], "--cert-key", file["key"], "--passphrase-file", file["word"], person.endpoint[1]]
        + ["--title", "x"],
    ]:
        process = subprocess.run(
            [person.executable, "apns", "send", *arguments, *push], capture_output=True, pass_fds=pipes.values(), timeout=LIMIT
        )
        assert process.returncode == 0, process.stderr
    for number in pipes.values():
        os.close(number)
    ended = person.run("send", *person.key, *push, "--title", "x", "--ca", "/dev/zero")
    assert ended.status == 66 and "larger than 16 MiB" in ended.err, ended.err


def test_a_payload_file_is_sent_as_it_is(person, simulator):
    body = '{ "aps" : {"alert":"Hello",  "x":1.50} }'
    assert person.send("--token", DEVICE, "--payload", person.file("payload", body)).status == 0
    assert last_request(simulator)["payload"] == body
    assert person.send("--token", DEVICE, "--payload", "-", stdin=body).status == 0
    ended = person.send("--token", DEVICE, "--payload", person.file("payload", "Hello"))
    assert ended.status == 65 and "JSON object" in ended.err
    assert person.send("--token", DEVICE, "--payload", "/nowhere").status == 66


def test_a_live_activity_is_started_updated_and_ended(person, simulator):
    simulator.add_device("aaaa", topic=f"{TOPIC}.push-type.liveactivity")
    state = person.file("state.json", '{"home":1,"away":0,"at":1.5}')
    start = ["--live-activity", "start", "--attributes-type", "Match", "--attributes", '{"team":"Home"}', "--title", "Go"]
    ended = person.send("--token", "aaaa", *start, "--content-state", state, "--input-push-token", "--stale-at", "+60")
    assert ended.status == 0, ended.out + ended.err
    request = last_request(simulator)
    aps = json.loads(request["payload"])["aps"]
    assert request["headers"]["apns-topic"] == f"{TOPIC}.push-type.liveactivity"
    assert (aps["event"], aps["content-state"]) == ("start", {"home": 1, "away": 0, "at": 1.5})
    assert (aps["attributes-type"], aps["attributes"], aps["input-push-token"]) == ("Match", {"team": "Home"}, 1)
    assert aps["alert"] == {"title": "Go"} and aps["stale-date"] == aps["timestamp"] + 60
    assert person.send("--token", "aaaa", "--live-activity", "update", "--content-state", '{"home":2}').status == 0
    ended = person.send("--token", "aaaa", "--live-activity", "end", "--dismiss-at", "2030-01-31T12:00:00Z")
    assert ended.status == 0
    assert json.loads(last_request(simulator)["payload"])["aps"]["dismissal-date"] == 1896091200


def test_a_broadcast_reaches_a_channel_that_was_created(person, simulator):
    made = person.channels("create", "--storage", "latest", "--json")
    assert made.status == 0, made.err
    event = made.events[0]
    channel = event["channel"]
    assert event == {"event": "created", "channel": channel, "storage": "latest"}
    assert person.channels("list").out == f"{channel}\n"
    assert person.channels("read", channel).out == f"{channel}  stores the latest\n"
    what = ["--channel", channel, "--live-activity", "update", "--content-state", '{"home":1}', "--expires", "600"]
    ended = person.send(*what)
    assert ended.status == 0 and re.fullmatch(r"accepted  apns-request-id [0-9a-fA-F-]{36}\n", ended.out), ended.out
    assert person.send(*what, "--json").events[0]["channel"] == channel
    assert len(simulator.api("GET", "channels")[0]["sent"]) == 2
    assert person.channels("delete", channel).out == f"deleted channel {channel}\n"
    ended = person.send(*what)
    assert ended.status == 65 and "ChannelNotRegistered" in ended.out and "create it" in ended.out
    ended = person.channels("read", channel)
    assert ended.status == 65 and "ChannelNotRegistered" in ended.err
    quiet = person.channels("create", "--storage", "none")
    assert re.fullmatch(r"created  \S+  stores nothing\n", quiet.out)


# Credentials


def certificate(person, simulator, **wanted) -> dict:
    return simulator.api("POST", "certificates", {"topics": [TOPIC], "days": 365, **wanted})


def openssl(*arguments, **options):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, **options)


def test_certificates_of_every_form_send(person, simulator):
    made = certificate(person, simulator)
    cert, key = person.file("cert.pem", made["certificate"]), person.file("key.pem", made["privateKey"])
    both = person.file("both.pem", made["certificate"] + made["privateKey"])
    locked, p12, word = person.directory / "locked.pem", person.directory / "push.p12", person.file("word", "sesame\n")
    der = person.directory / "c.cer"
    openssl("x509", "-in", cert, "-outform", "DER", "-out", der)
    openssl("pkcs8", "-topk8", "-in", key, "-out", locked, "-passout", "pass:sesame")
    openssl("pkcs12", "-export", "-in", cert, "-inkey", key, "-out", p12, "-passout", "pass:sesame")
    push = [*person.topic, *person.endpoint, "--token", DEVICE, "--title", "x"]
    for access in [
        ["--cert", both],
        ["--cert", cert, "--cert-key", key],
        ["--cert", der, "--cert-key", key],
        ["--cert", cert, "--cert-key", locked, "--passphrase-file", word],
        ["--cert", p12, "--passphrase-file", word],
    ]:
        ended = person.run("send", *access, *push)
        assert ended.status == 0, f"{access}: {ended.out}{ended.err}"
    ended = person.run("send", "--cert", p12, *push, environment={"CARILLON_APNS_PASSPHRASE": "sesame"})
    assert ended.status == 0, ended.err
    for access, words in [
        (["--cert", p12], "passphrase"),
        (["--cert", cert, "--cert-key", locked], "encrypted"),
        (["--cert", cert], "--cert-key"),
        (["--cert", der], "c.cer is a certificate without a private key; export the certificate and its key together"),
    ]:
        ended = person.run("send", *access, *push)
        assert ended.status == 77 and words in ended.err, ended.err


def test_a_certificate_with_an_rsa_key_sends(person, simulator):
    made = certificate(person, simulator, keyType="rsa")
    cert, key, p12 = person.file("rsa.pem", made["certificate"]), person.file("rsa.key", made["privateKey"]), "rsa.p12"
    openssl("pkcs12", "-export", "-in", cert, "-inkey", key, "-out", person.directory / p12, "-passout", "pass:sesame")
    word = person.file("word", "sesame\n")
    push = [*person.topic, *person.endpoint, "--token", DEVICE, "--title", "x"]
    for access in [["--cert", cert, "--cert-key", key], ["--cert", person.directory / p12, "--passphrase-file", word]]:
        ended = person.run("send", *access, *push)
        assert ended.status == 0, ended.out + ended.err
    shown = subprocess.run(["openssl", "x509", "-noout", "-text", "-in", cert], capture_output=True, text=True, check=True)
    assert "rsaEncryption" in shown.stdout and "2048 bit" in shown.stdout


def test_an_expired_certificate_is_reported_before_a_connection_opens(person, simulator):
    key, cert = person.directory / "old.key", person.directory / "old.pem"
    make_certificate(key, cert, -400, -35)
    ended = person.run(
        "send", "--cert", cert, "--cert-key", key, *person.topic, *person.endpoint, "--token", DEVICE, "--title", "x"
    )
    assert ended.status == 77 and "expired" in ended.err, ended.err
    assert simulator.api("GET", "connections") == []


def test_a_wrong_key_is_refused_once_with_advice(person, simulator):
    simulator.api("PUT", "keys/STRANGER01", {"team": "OTHERTEAM1", "privateKey": simulator.key})
    file = f"--key={simulator.data}/AuthKey_{simulator.key_id}.p8"
    ended = person.run(
        "send", file, "--key-id=NOBODYKNOW", f"--team-id={simulator.team}", *person.topic, *person.endpoint,
        "--token", DEVICE, UNKNOWN, "--title", "x",
    )  # fmt: skip
    assert ended.status == 77 and ended.out.count("InvalidProviderToken") == 2 and "key ID" in ended.out
    assert "nothing more was sent" in ended.out


def test_an_unusable_key_is_reported_without_a_connection(person, simulator):
    locked = person.directory / "locked.p8"
    openssl("pkcs8", "-topk8", "-in", simulator.data / f"AuthKey_{simulator.key_id}.p8", "-out", locked,
            "-passout", "pass:x")  # fmt: skip
    certificate = person.directory / "certificate.pem"
    certificate.touch(mode=0o600)
    certificate.write_bytes((simulator.data / "authority.pem").read_bytes())
    ids = ["--key-id=SIMULATED1", "--team-id=SIMTEAM001", "--topic=a", "--token=00", "--title=x"]
    for key, status, words in [
        (locked, 77, "encrypted"),
        (certificate, 77, "P-256 private key"),
        (simulator.data / "authority.pem", 66, "permissions for all users"),
        ("/nowhere.p8", 66, "cannot be read"),
    ]:
        ended = person.run("send", "--key", key, *ids)
        assert ended.status == status and words in ended.err, ended.err
        assert "BEGIN" not in ended.err


# The way there


def test_an_unreachable_host_is_reported_at_once(person):
    for endpoint, words in [
        (f"https://127.0.0.1:{free_port()}", "refuses connections"),
        ("https://nobody.invalid", "no address was found for nobody.invalid"),
    ]:
        # The time of a push is longer than the command may take here.
        ended = person.run(
            "send", *person.key, *person.topic, "--endpoint", endpoint, "--tokens-file", "-", "--title=x",
            "--timeout=3600", stdin=f"{DEVICE}\n" * 1000,
        )  # fmt: skip
        assert ended.status == 69 and ended.out == "" and len(ended.err.splitlines()) == 1, ended.err
        assert words in ended.err


def test_an_authority_that_is_not_trusted_and_a_wrong_name(person, simulator):
    push = ["--token", DEVICE, "--title", "x"]
    strange = person.run("send", *person.key, *person.topic, person.endpoint[0], *push)
    assert strange.status == 69 and "not trusted" in strange.err and "--ca FILE" in strange.err
    simulator.conditions(certificate="wrongHost")
    wrong = person.send(*push)
    assert wrong.status == 69 and "another name" in wrong.err, wrong.err
    ended = person.run("send", *person.key, *person.topic, person.endpoint[0], "--ca", "/nowhere", *push)
    assert ended.status == 66
    ended = person.run("send", *person.key, *person.topic, person.endpoint[0], "--ca", person.file("ca", "x"), *push)
    assert ended.status == 66 and "must be certificates in PEM form" in ended.err
    damaged = person.file("ca", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    ended = person.run("send", *person.key, *person.topic, person.endpoint[0], "--ca", damaged, *push)
    words = 'of --ca is damaged: the block "CERTIFICATE" is complete, but cannot be decoded'
    assert ended.status == 66 and words in ended.err, ended.err


def test_tls_alerts_and_proxies_that_require_a_password_are_reported_with_sentences(person, simulator):
    def answering(answer: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            with listener:
                while True:
                    client, _ = listener.accept()
                    client.recv(65536)
                    client.sendall(answer)
                    client.close()

        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1]

    push = [*person.key, *person.topic, "--token", DEVICE, "--title", "x"]
    alert = answering(b"\x15\x03\x03\x00\x02\x02\x28")
    proxy = answering(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    socks = answering(b"\x05\xff")
    for way, words in [
        ([f"--endpoint=https://localhost:{alert}"], 'refused TLS with the alert "handshake failure"'),
        ([*person.endpoint, f"--proxy=localhost:{proxy}"], "it requires authorization"),
        ([*person.endpoint, f"--proxy=socks://localhost:{socks}"], "requires a name and a password"),
    ]:
        ended = person.run("send", *push, *way, "--timeout", "10")
        assert ended.status == 69 and words in ended.err, ended.err
        assert not re.search(r"NIO|SSL|Error\(|errno|\.swift|_", ended.err), ended.err


def test_another_kind_of_service_is_reported(person, simulator):
    page, push = simulator.ports["control"], simulator.ports["push"]
    for endpoint, words in [
        (f"https://localhost:{page}", "does not support TLS"),
        (f"http://localhost:{page}", "does not support HTTP/2"),
        (f"http://localhost:{push}", f"use https://localhost:{push}"),
    ]:
        ended = person.run(
            "send", *person.key, *person.topic, "--endpoint", endpoint, person.endpoint[1], "--token=00", "--title=x"
        )
        assert ended.status == 69 and words in ended.err, ended.err


def test_a_service_without_tls(executable, make_simulator, tmp_path):
    simulator = make_simulator("--plain")
    simulator.add_device()
    person = Person(executable, simulator, tmp_path)
    endpoint = f"http://127.0.0.1:{simulator.ports['push']}"
    ended = person.run("send", *person.key, *person.topic, "--endpoint", endpoint, "--token", DEVICE, "--title", "x")
    assert ended.status == 0, ended.err


def test_a_service_that_does_not_answer_is_abandoned(person, simulator):
    simulator.fault("silence")
    ended = person.send("--tokens-file", "-", "--title", "x", "--timeout", "10", stdin=f"{DEVICE}\n" * 1000)
    assert ended.status == 69 and "does not answer" in ended.out and "1 may have arrived" in ended.out, ended.out


def test_a_service_that_stops_answering_is_abandoned(person, simulator):
    simulator.fault("silence", skip=100)
    tokens = f"{DEVICE}\n" * 20_000
    ended = person.send("--tokens-file", "-", "--title", "x", "--timeout", "10", "--json", stdin=tokens)
    assert ended.status == 69 and ended.summary["end"] == "noService"
    assert ended.summary["accepted"] == 100 and 4000 <= sum(ended.summary["errors"].values()) <= 8000


def test_a_first_push_that_breaks_its_connection_stops_nothing(person, simulator):
    simulator.fault("close", times=2)
    ended = person.send("--tokens-file", "-", "--title", "x", "--json", stdin=f"{DEVICE}\n" * 300)
    assert (ended.summary["end"], ended.summary["accepted"], ended.summary["failed"]) == ("done", 298, 2), ended.summary


def test_a_service_that_breaks_each_connection_is_left(person, simulator):
    simulator.fault("close")
    ended = person.send("--tokens-file", "-", "--title", "x", "--json", stdin=f"{DEVICE}\n" * 300)
    assert (ended.status, ended.summary["end"], ended.summary["failed"]) == (69, "noService", 3), ended.summary


def test_a_window_that_is_shut_after_each_first_acceptance_ends_the_run(person, simulator):
    simulator.fault("streamWindow", bytes=0)
    tokens = f"{DEVICE}\n" * 60_000
    ended = person.send("--tokens-file", "-", "--title", "x", "--timeout", "10", "--json", stdin=tokens)
    assert ended.status == 69 and ended.summary["end"] == "noService", ended.summary
    assert 1 <= ended.summary["accepted"] < 100 and sum(ended.summary["errors"].values()) <= 10_000, ended.summary


def test_every_token_has_one_result_through_a_service_that_misbehaves(person, simulator):
    simulator.fault("reset", code="REFUSED_STREAM", rate=0.02)
    simulator.fault("goAway", last="before", skip=400, times=3)
    simulator.fault("close", skip=900, times=2)
    ended = person.send("--tokens-file", "-", "--title", "x", "--json", stdin=f"{DEVICE}\n" * 5000)
    lines = [result["line"] for result in ended.results]
    assert sorted(lines) == list(range(1, 5001))
    failed = [result for result in ended.results if result["outcome"] == "failed"]
    assert all(result["error"] == "connectionLost" and result["mayHaveBeenProcessed"] for result in failed)
    assert ended.summary["accepted"] == 5000 - len(failed) and ended.summary["end"] == "done"
    assert ended.status == (69 if failed else 0)


def test_a_proxy_is_gone_through(person, simulator):
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(PATIENCE)
    asked = []

    def pump(source, target):
        while part := source.recv(65536):
            target.sendall(part)

    def serve():
        client, _ = listener.accept()
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += client.recv(4096)
        asked.append(request.decode().split()[:2])
        service = socket.create_connection(("127.0.0.1", simulator.ports["push"]))
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=pump, args=(client, service), daemon=True).start()
        threading.Thread(target=pump, args=(service, client), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    ended = person.send("--token", DEVICE, "--title", "x", f"--proxy=localhost:{listener.getsockname()[1]}")
    thread.join(PATIENCE)
    listener.close()
    assert ended.status == 0, ended.err
    assert asked == [["CONNECT", f"localhost:{simulator.ports['push']}"]]
    nobody = free_port()
    ended = person.send("--token", DEVICE, "--title", "x", f"--proxy=127.0.0.1:{nobody}")
    assert ended.status == 69 and f"the proxy 127.0.0.1:{nobody} refuses connections" in ended.err, ended.err


# The terminal


def watch(person, *arguments, columns: int = 80) -> tuple[str, str, int]:
    """Runs a command whose standard error is a terminal; returns both outputs."""
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "cols", str(columns)], stdin=theirs, check=True)
    process = person.begin("send", *person.access(), *arguments, stdout=subprocess.PIPE, stderr=theirs,
                           env={**os.environ, "TERM": "xterm"})  # fmt: skip
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return seen.decode(), process.stdout.read().decode(), process.wait(PATIENCE)


def test_a_terminal_shows_how_far_it_is_and_is_left_clean(person, simulator):
    tokens = person.file("tokens", f"{DEVICE}\n" * 5000)
    simulator.conditions(roundTripMilliseconds=50, streams=200)
    began = time.monotonic()
    seen, out, status = watch(person, "--tokens-file", tokens, "--title", "x", "--connections", "1")
    took = time.monotonic() - began
    assert status == 0, out
    drawn = seen.split("\r")[1:]
    assert all(len(line.replace("\x1b[K", "")) < 80 for line in drawn)
    bars = [line for line in drawn if re.match(r"\[#*-*\] +\d+ %  [\d,]+/s  accepted [\d,]+\x1b\[K", line)]
    assert bars and len(bars) <= took * 11 + 1
    assert drawn[-1] == "\x1b[K", "the last thing is an empty line"
    assert out.startswith("accepted ")


def test_a_narrow_terminal_has_no_broken_line(person):
    seen, _, status = watch(person, "--tokens-file", person.file("t", f"{DEVICE}\n" * 500), "--title", "x", columns=20)
    assert status == 0
    assert all(len(line.replace("\x1b[K", "")) < 20 for line in seen.split("\r"))


@pytest.mark.parametrize("more", [["--json", "--tokens-file"], ["--token"]])
def test_no_bar_without_a_terminal(person, more):
    what = person.file("tokens", f"{DEVICE}\n" * 50) if more[-1] == "--tokens-file" else DEVICE
    seen, _, status = watch(person, *more, what, "--title", "x")
    assert (seen, status) == ("", 0)


# Stopping

UPDATE = ["--live-activity", "update", "--content-state", "{}"]


def stopped(person, simulator, signals: int):
    process = person.begin(
        "send", *person.access(), "--tokens-file", "-", "--title", "x", "--json",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdin.write(f"{DEVICE}\n".encode() * 300)
    process.stdin.flush()
    lines = [json.loads(process.stdout.readline()) for _ in range(100)]
    for number in range(signals):
        process.send_signal(signal.SIGINT)
        if number == 0:
            assert b"stopping" in process.stderr.readline()
    # Standard input is still open: it ends although there may be more tokens.
    lines += [json.loads(line) for line in process.stdout]
    return process.wait(PATIENCE), lines


def test_ctrl_c_begins_nothing_new_and_sums_up(person, simulator):
    status, events = stopped(person, simulator, 1)
    assert status == 130
    summary = events[-1]
    assert (summary["event"], summary["end"]) == ("summary", "interrupted")
    assert summary["accepted"] == len([event for event in events if event["event"] == "result"]) <= 300


def test_a_second_ctrl_c_abandons_the_pending_pushes(person, simulator):
    simulator.fault("silence", skip=200)
    status, events = stopped(person, simulator, 2)
    assert status == 130
    summary = events[-1]
    assert summary["end"] == "interrupted" and summary["errors"].get("cancelled", 0) > 0
    assert summary["accepted"] + summary["failed"] == len(events) - 1


@pytest.mark.parametrize("more", [["--token", DEVICE, "--title", "x"], ["--channel", "AAAAAAAAAAAAAAAAAAAAAA=="] + UPDATE])
def test_ctrl_c_while_it_connects_ends_it_with_a_sentence(person, simulator, more):
    simulator.conditions(welcome="silent")
    process = person.begin("send", *person.access(), *more, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not simulator.api("GET", "connections"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, b""), err
    assert err == b"carillon: stopped before the connection was open; nothing was sent\n"


def test_ctrl_c_while_a_broadcast_is_awaited_reports_its_state(person, simulator):
    simulator.fault("silence")
    process = person.begin("send", *person.access(), "--channel", "AAAAAAAAAAAAAAAAAAAAAA==", *UPDATE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    while not any(connection["requests"] for connection in simulator.api("GET", "connections")):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and b"may have been sent" in err, err


def test_a_closed_output_ends_the_command_without_a_message(person):
    process = person.begin(
        "send", *person.access(), "--tokens-file", person.file("tokens", f"{DEVICE}\n" * 5000), "--title=x", "--json",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE) == -signal.SIGPIPE
    assert process.stderr.read() == b""
