"""Services between apps: the command line's providers and consumers against a peer that seals with pyhpke, and hostile peers."""

import copy
import json
import os
import signal
import subprocess

import pytest
from carillon_peer import APP, ENVIRONMENT, PATIENCE, assert_problem, await_value, decode64, encode64
from service_peer import KEY_SET, ServiceDevice, request_info, user_token

FILES = "com.example.files"
ECHO = ("com.example.echo", "1.0", "echo")
METHOD = "/".join(ECHO)


@pytest.fixture(scope="module")
def house(server):
    prepare(server)
    return server


def prepare(server):
    """Makes two apps with the same users."""
    answer = server.admin("POST", "/v1/apps", {"id": FILES})
    assert answer.status_code == 201, answer.text
    key = server.admin("POST", "/v1/keys", {"role": "client", "app": FILES}).json()["secret"]
    for app in (APP, FILES):
        rules = server.admin("PUT", f"/v1/apps/{app}/users", {"jwks": KEY_SET})
        assert rules.status_code == 200, rules.text
        assert server.admin("PUT", f"/v1/apps/{app}/realm", {"realm": "house"}).status_code == 200
    server.files_key = key


@pytest.fixture
def person():
    """A user that no other test has."""
    return "user-" + os.urandom(6).hex()


def peer(house, app: str, user: str | None) -> ServiceDevice:
    device = house.register_device(app, house.files_key if app == FILES else house.client_key)
    made = ServiceDevice(device, app)
    if user:
        made.sign_in(user)
    return made


class Command:
    """`carillon services …` as a device of its own."""

    def __init__(self, executable, house, app, user, state):
        self.executable, self.state = executable, state
        self.environment = ENVIRONMENT | {
            "CARILLON_SERVER": house.url,
            "CARILLON_KEY": house.files_key if app == FILES else house.client_key,
            "CARILLON_USER_TOKEN": user_token(user, app),
        }
        self.app = app

    def run(self, *arguments, check=True):
        done = subprocess.run(
            [self.executable, "services", *arguments, "--app", self.app, "--state", self.state, "--json"],
            capture_output=True, text=True, timeout=PATIENCE * 3, env=self.environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if check:
            assert done.returncode == 0, done.stderr
        return done

    def start(self, *arguments):
        process = subprocess.Popen(
            [self.executable, "services", *arguments, "--app", self.app, "--state", self.state, "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment,
        )  # fmt: skip
        return process


@pytest.fixture
def command(executable, house, person, tmp_path):
    running = []

    def make(app=APP, user=None) -> Command:
        made = Command(executable, house, app, user or person, tmp_path / f"state-{len(running)}")
        start = made.start

        def starting(*arguments):
            process = start(*arguments)
            running.append(process)
            return process

        made.start = starting
        running.append(None)
        return made

    yield make
    for process in running:
        if process is not None and process.poll() is None:
            process.terminate()
            process.wait(PATIENCE)


def found(consumer: ServiceDevice) -> dict:
    return await_value(lambda: consumer.providers(), lambda it: len(it) == 1, "a provider")[0]


VALUES = [
    None, True, 7, -(2**63), {"number": "1.5"}, "text é", {"bytes": "AP8"}, [1, "two", None],
    {"object": {"to": ["ada"], "count": 3, "data": {"bytes": ""}}},
]  # fmt: skip


def test_a_peer_calls_a_provider_and_each_opens_the_content_of_the_other(house, person, command):
    command(FILES).start("provide", "--method", METHOD, "--echo")
    consumer = peer(house, APP, person)
    provider = found(consumer)
    for value in VALUES:
        request = consumer.request(provider, ECHO, value)
        assert consumer.ask(request).status_code == 201
        reply = consumer.open_reply(request, consumer.next("reply"))
        assert reply == {"value": value, "files": []}


def test_a_provider_that_is_a_peer_answers_the_command_line(house, person, command):
    provider = peer(house, FILES, person)
    provider.offer(ECHO[:2])
    call = command().start("call", METHOD, "--of", FILES, "--parameters", '{"to":["ada"],"raw":{"$bytes":"AP8"}}')
    event = provider.next("request")
    assert (event["service"], event["version"], event["method"], event["foreground"]) == (*ECHO, "none")
    opened = provider.open_request(event)
    assert opened == {"value": {"object": {"to": ["ada"], "raw": {"bytes": "AP8"}}}, "files": []}
    assert len(decode64(event["body"])) % 256 == 16, "padded, and a tag"
    assert provider.post_reply(event, provider.reply(event, {"value": ["done"]})).status_code == 204
    out, err = call.communicate(timeout=PATIENCE)
    assert call.returncode == 0, err
    assert json.loads(out)["value"] == '["done"]'

    call = command().start("call", METHOD, "--of", f"{FILES}/{provider.device.id}")
    event = provider.next("request")
    error = {"domain": ECHO[0], "code": "custom", "number": 7, "text": "no room"}
    assert provider.post_reply(event, provider.reply(event, {"error": error})).status_code == 204
    _, err = call.communicate(timeout=PATIENCE)
    assert call.returncode == 65 and "com.example.echo 7: no room" in err


def test_files_cross_between_commands_and_a_program_answers(house, person, command, tmp_path):
    program = tmp_path / "answer.sh"
    program.write_text(
        '#!/bin/sh\nread -r request\ncase "$request" in *fail*) echo "not today" >&2; exit 9;; esac\n'
        f'printf "copied" > {tmp_path}/copy.txt\n'
        f'printf \'{{"value": {{"ok": true}}, "attachments": ["{tmp_path}/copy.txt"]}}\'\n'
    )
    program.chmod(0o755)
    command(FILES).start("provide", "--method", METHOD, "--run", program)
    consumer = command()
    await_value(lambda: consumer.run("list").stdout, lambda it: FILES in it, "a provider")
    sent = tmp_path / "report.txt"
    sent.write_bytes(b"x" * 100_000)
    reply = json.loads(consumer.run("call", METHOD, "--of", FILES, "--attach", sent).stdout)
    assert json.loads(reply["value"]) == {"ok": True}
    (path,) = reply["attachments"]
    assert open(path, "rb").read() == b"copied" and f"/Inbox/{FILES}/" in path
    failed = consumer.run("call", METHOD, "--of", FILES, "--parameters", '"fail"', check=False)
    assert failed.returncode == 65 and "9: not today" in failed.stderr


# Content that does not open


def flipped(data: str) -> str:
    raw = bytearray(decode64(data))
    raw[len(raw) // 2] ^= 1
    return encode64(bytes(raw))


@pytest.mark.parametrize(
    "name", ["id", "method", "deadline", "foreground", "enc", "body", "sender", "version", "files", "fileBytes"]
)
def test_a_request_with_any_change_does_not_open(house, person, command, name):
    command(FILES).start("provide", "--method", METHOD, "--method", "com.example.echo/1.0/shout", "--method",
                         "com.example.echo/1.1/echo", "--echo")  # fmt: skip
    consumer = peer(house, APP, person)
    provider = found(consumer)
    request = consumer.request(provider, ECHO, "secret")
    changes = {
        "id": os.urandom(16).hex(), "method": "shout", "deadline": 61, "foreground": "preferMe", "version": "1.1",
        "enc": encode64(bytes(reversed(decode64(request["enc"])))), "body": flipped(request["body"]),
        "sender": request["sender"], "files": 1, "fileBytes": 1,
    }  # fmt: skip
    changed = request | {name: changes[name]}
    if name == "sender":
        # Signed by another identity: the first key's name, another's key.
        other = peer(house, APP, person)
        other.key_id = consumer.key_id
        other.device = consumer.device
        changed["sender"] = other.bundle
    assert consumer.ask(changed).status_code == 201
    event = consumer.next("reply")
    if name == "sender":
        consumer.key = other.key
    opened = consumer.open_reply(changed, event)
    assert opened["error"]["code"] == "seal_invalid", opened


def sealed(consumer, provider, request, payload: dict, **content) -> dict:
    """A request whose body is sealed correctly, with any content."""
    context = request_info(
        "request", request, consumer.peer, (provider["app"], provider["device"]), consumer.key_id,
        provider["keys"]["id"], content,
    )  # fmt: skip
    enc, body = consumer.seal(json.dumps(payload).encode(), decode64(provider["keys"]["key"]), context)
    return request | {"enc": encode64(enc), "body": encode64(body)} | content


def test_the_content_is_the_announced_one(house, person, command):
    command(FILES).start("provide", "--method", METHOD, "--echo")
    consumer = peer(house, APP, person)
    provider = found(consumer)
    for payload, code in [
        ({"value": 1, "files": []}, "seal_invalid"), ({"files": []}, "service_parameters_invalid"),
        ({"error": {"domain": "", "code": "x", "text": ""}, "files": []}, "seal_invalid"), ([], "service_parameters_invalid"),
    ]:  # fmt: skip
        request = sealed(consumer, provider, consumer.request(provider, ECHO, 1), payload, files=1, fileBytes=0)
        assert consumer.ask(request).status_code == 201
        opened = consumer.open_reply(request, consumer.next("reply"))
        assert opened["error"]["code"] == code, (payload, opened)


def test_a_key_that_its_identity_did_not_sign_is_nobodys(house, person, command):
    provide = command(FILES).start("provide", "--method", METHOD, "--echo")
    consumer = peer(house, APP, person)
    provider = found(consumer)
    request = consumer.request(provider, ECHO, 1, deadline=2)
    request["sender"] = request["sender"] | {"signature": flipped(request["sender"]["signature"])}
    assert consumer.ask(request).status_code == 201
    failed = await_value(lambda: consumer.events(wait=1), bool, "an end")
    assert [(it["event"], it.get("code")) for it in failed] == [("failed", "deadline_exceeded")]
    provide.terminate()
    out, _ = provide.communicate(timeout=PATIENCE)
    assert '"event":"request"' not in out


def test_a_request_is_handled_once_with_any_repetition(house, person, command):
    provide = command(FILES).start("provide", "--method", METHOD, "--echo")
    consumer = peer(house, APP, person)
    provider = found(consumer)
    request = consumer.request(provider, ECHO, 1)
    for _ in range(3):
        assert consumer.ask(request).status_code == 201
    first = consumer.next("reply")
    assert consumer.open_reply(request, first)["value"] == 1
    assert consumer.ask(request).status_code == 201
    assert consumer.events(wait=1) == []
    provide.send_signal(signal.SIGINT)
    out, _ = provide.communicate(timeout=PATIENCE)
    assert out.count('"event":"request"') == 1


def test_a_reply_belongs_to_its_provider_and_its_request(house, person, command):
    provider = peer(house, FILES, person)
    provider.offer(ECHO[:2])
    stranger = peer(house, FILES, person)
    call = command().start("call", METHOD, "--of", FILES, "--deadline", "60")
    event = provider.next("request")
    reply = provider.reply(event, {"value": "good"})
    assert_problem(stranger.post_reply(event, reply), 404, "request_unknown")
    # A request that comes back as its own reply does not open.
    reflected = {name: event[name] for name in ("suite", "keyID", "sender", "enc", "body", "files", "fileBytes")}
    assert provider.post_reply(event, reflected).status_code == 204
    assert_problem(provider.post_reply(event, reply), 409, "request_finished")
    _, err = call.communicate(timeout=PATIENCE)
    assert call.returncode == 65 and "seal_invalid" in err


def test_a_key_that_changed_is_sealed_to_once_again(house, person, command):
    provider = peer(house, FILES, person)
    provider.offer(ECHO[:2])
    consumer = peer(house, APP, person)
    stale = consumer.request(found(consumer), ECHO, 1)
    provider.new_key()
    provider.offer(ECHO[:2])
    assert_problem(consumer.ask(stale), 409, "provider_key_changed")


def test_an_identity_that_changed_is_not_sent_to(house, person, command):
    provider = peer(house, FILES, person)
    provider.offer(ECHO[:2])
    caller = command()
    call = caller.start("call", METHOD, "--of", FILES)
    event = provider.next("request")
    assert provider.post_reply(event, provider.reply(event, {"value": 1})).status_code == 204
    call.communicate(timeout=PATIENCE)
    assert call.returncode == 0
    other = ServiceDevice(provider.device, FILES)
    other.offer(ECHO[:2])
    refused = caller.run("call", METHOD, "--of", FILES, check=False)
    assert refused.returncode == 77 and "identity_changed" in refused.stderr
    assert other.events(wait=1) == [], "nothing was sent"

    # Its fingerprint is shown, and must be an option if there is no terminal.
    install = f"{FILES}/{provider.device.id}"
    (known,) = [json.loads(line) for line in caller.run("identities").stdout.splitlines()]
    assert (known["app"], known["device"], known["user"]) == (FILES, provider.device.id, "")
    assert known["offered"] not in ("", known["fingerprint"])
    silent = caller.run("accept", install, check=False)
    assert silent.returncode == 64 and known["offered"] in silent.stderr
    wrong = caller.run("accept", install, "--fingerprint", known["fingerprint"], check=False)
    assert wrong.returncode == 65 and known["offered"] in wrong.stderr
    assert caller.run("accept", f"{FILES}/{'0' * 32}", "--fingerprint", "x", check=False).returncode == 65
    assert caller.run("accept", FILES, check=False).returncode == 64
    assert json.loads(caller.run("accept", install, "--fingerprint", known["offered"].upper()).stdout)["event"] == "accepted"
    (known,) = [json.loads(line) for line in caller.run("identities").stdout.splitlines()]
    assert known["offered"] == ""

    # The request that was refused is made again.
    call = caller.start("call", METHOD, "--of", FILES)
    event = other.next("request")
    assert other.post_reply(event, other.reply(event, {"value": 2})).status_code == 204
    out, err = call.communicate(timeout=PATIENCE)
    assert call.returncode == 0, err


@pytest.mark.parametrize(
    "path", ["../up", "/etc/passwd", "a/../../b", "a\\b", "a\0b", "CON", "nul.txt", "a/", "", ".ssh/keys", "x\u202ey"]
)
def test_names_of_files_that_lead_elsewhere_are_refused(house, person, command, tmp_path, path):
    provide = command(FILES)
    provide.start("provide", "--method", METHOD, "--echo")
    consumer = peer(house, APP, person)
    provider = found(consumer)
    request = consumer.request(provider, ECHO, 1)
    manifest = {
        "id": "0" * 36, "key": encode64(bytes(32)) + "=", "length": 0, "digest": encode64(bytes(32)) + "=",
        "expiresAt": 0,
    }  # fmt: skip
    payload = {"value": 1, "files": [{"path": path, "manifest": manifest}]}
    request = sealed(consumer, provider, request, payload, files=1, fileBytes=0)
    assert consumer.ask(request).status_code == 201
    opened = consumer.open_reply(request, consumer.next("reply"))
    assert opened["error"]["code"] == "path_invalid", opened
    inbox = provide.state / "Inbox"
    assert not inbox.exists() or not any(inbox.rglob("*.*"))


def test_an_independent_search_finds_no_content_of_requests(house, person, command, tmp_path):
    mark = os.urandom(12).hex()
    command(FILES).start("provide", "--method", METHOD, "--echo")
    consumer = command()
    await_value(lambda: consumer.run("list").stdout, lambda it: FILES in it, "a provider")
    sent = tmp_path / f"{mark}.txt"
    sent.write_text(mark * 1000)
    reply = json.loads(consumer.run("call", METHOD, "--of", FILES, "--attach", sent, "--parameters", f'"{mark}"').stdout)
    assert mark in reply["value"] and mark in reply["attachments"][0]
    searched = 0
    for file in house.data.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            searched += len(data)
            assert mark.encode() not in data and bytes.fromhex(mark) not in data, file
    assert searched > 10_000 and mark not in house.log.read_text()


# Definitions


def test_definitions_are_checked_with_their_places(executable, tmp_path):
    good = {
        "service-id": "com.example.print", "version": "1.0.0.0", "title": "Print", "methods": {
            "print": {
                "parameters": {"type": "object", "members": {
                    "copies": {"type": "integer"}, "tray": {"type": "array", "items": {"type": "string"}, "optional": True},
                }},
                "reply": {"type": "boolean"}, "attachments": {"minimum": 1, "maximum": 4}, "errors": {"1": "No paper"},
            },
        },
    }  # fmt: skip

    def check(document) -> tuple[int, dict]:
        file = tmp_path / "definition.json"
        file.write_text(document if isinstance(document, str) else json.dumps(document))
        done = subprocess.run(
            [executable, "services", "check", file, "--json"], capture_output=True, text=True, timeout=PATIENCE
        )
        return done.returncode, json.loads(done.stdout)

    assert check(good) == (0, {"service": "com.example.print", "version": "1.0.0.0", "methods": ["print"]})

    def broken(place, value):
        document = copy.deepcopy(good)
        *path, last = place.strip("/").split("/")
        at = document
        for part in path:
            at = at[part]
        if value is None:
            del at[last]
        else:
            at[last] = value
        return document

    faults = {
        "/service-id": ["Com.Example", "single", None], "/version": ["1.x", "1.0.0.0.0", None], "/title": [3, None],
        "/methods/print/parameters/type": ["text", None], "/methods/print/parameters/members/copies/type": ["object", "int"],
        "/methods/print/parameters/members/tray/items/type": ["array"], "/methods/print/attachments/maximum": [33, 0],
        "/methods/print/attachments/minimum": [-1], "/methods/print/errors/x": ["No"], "/methods/print/colour": ["red"],
        "/methods/print/parameters/members/tray/optional": ["yes"],
    }  # fmt: skip
    for place, values in faults.items():
        for value in values:
            code, said = check(broken(place, value))
            assert code == 65, (place, value)
            assert place in [it["place"] for it in said["faults"]], (place, value, said)
    assert check("[]")[0] == 65 and check("{")[0] == 65
    assert check(broken("/methods", {}))[1]["faults"][0]["place"] == "/methods"


def test_content_that_does_not_fit_its_definition_is_refused_on_both_sides(house, person, command, tmp_path):
    definition = tmp_path / "echo.json"
    definition.write_text(
        json.dumps({
            "service-id": ECHO[0], "version": ECHO[1], "title": "Echo",
            "methods": {"echo": {"parameters": {"type": "integer"}, "reply": {"type": "integer"}}},
        })  # fmt: skip
    )
    command(FILES).start("provide", "--definition", definition, "--echo")
    consumer = peer(house, APP, person)
    provider = found(consumer)
    for value, code in [(3, None), ("three", "service_parameters_invalid")]:
        request = consumer.request(provider, ECHO, value)
        assert consumer.ask(request).status_code == 201
        reply = consumer.open_reply(request, consumer.next("reply"))
        assert reply.get("error", {}).get("code") == code
    caller = command()
    refused = caller.run("call", METHOD, "--of", FILES, "--parameters", '"x"', "--definition", definition, check=False)
    assert refused.returncode == 65 and "service_parameters_invalid" in refused.stderr
    assert consumer.events(wait=0) == []
