"""The examples of the README and of the client library's pages."""

import json
import os
import re
import signal
import subprocess
import sys

from carillon_peer import APP, free_port
from log_secrets import LEDGER
from page_blocks import ROOT, filled
from page_shell import LIMIT
from test_encrypted_channels import Listener


def test_the_readme(page, shell):
    readme = page("README.md")
    make(readme.take("make run"), shell)
    url, key = start(readme.take("carillon apps create"), shell)
    (listen,) = readme.take("carillon listen").commands
    listen = filled(listen, {"http://127.0.0.1:8080": url, "CLIENT_KEY": key})
    listener = shell.start(listen)
    endpoint = listener.line(r"^opened  (\S+)")[1]
    LEDGER.note_path(endpoint)
    wait, encrypted, curl = readme.take("carillon send ENDPOINT").commands
    assert "acknowledged" in shell.run(filled(wait, {"ENDPOINT": endpoint}))
    listener.line("Hello$")
    assert shell.run(filled(curl, {"ENDPOINT": endpoint})).startswith("HTTP/1.1 201 Created")
    listener.line("Hello$")
    assert listener.end(signal.SIGINT) == 130
    secret = filled(listen, {"./app": "./secret", f"{APP}.news": f"{APP}.secret"})
    listener = shell.start(secret + " --encrypted")
    shell.file("SUBSCRIPTION.json", listener.line(r"^opened  (\{.*\})")[1])
    shell.run(encrypted)
    listener.line("Hello$")
    simulate(readme.take("carillon apns simulate"), shell)


def make(block, shell):
    """Runs `make` with the executable under test, as building it again would take minutes."""
    (command,) = block.commands
    build = shell.directory / "build"
    build.mkdir()
    port = free_port()
    shell.file("build/carillon", f'#!/bin/sh\nexec {shell.executable} "$@" --listen 127.0.0.1:{port}\n', 0o700)
    shell.file("bin/swift", "#!/bin/sh\n", 0o700)
    demo = shell.start(f"{command} -C {ROOT} BUILD={build}")
    demo.line("To do the same yourself")
    lines = [demo.line(pattern)[0] for pattern in (r"\S+ listen .*", r"--state.*", r"\S+ send .*")]
    demo_listener = shell.start(f"{lines[0]}\n{lines[1]}")
    demo_listener.line("^opened")
    assert "acknowledged" in shell.run(lines[2])
    demo_listener.line("Hello$")
    assert demo_listener.end(signal.SIGINT) == 130
    # Ctrl-C ends make as well.
    assert demo.end(signal.SIGINT) in (-signal.SIGINT, 2, 130)


def start(block, shell) -> tuple[str, str]:
    """Starts the page's server; returns its address and the client key."""
    url = f"http://127.0.0.1:{free_port()}"
    create, key, serve = block.commands
    data = {"/var/lib/carillon": str(shell.directory / "data")}
    shell.run(filled(create, data))
    secret = re.search(r"car_client_\w+", shell.run(filled(key, data)))[0]
    LEDGER.note(secret)
    shell.serve(filled(serve, data | {"127.0.0.1:8080": url[7:]}), url)
    return url, secret


def simulate(block, shell):
    start_command, send = block.commands
    push, manage, http = free_port(), free_port(), free_port()
    places = f" --listen 127.0.0.1:{push} --manage 127.0.0.1:{manage} --http 127.0.0.1:{http}"
    shell.start(start_command + places).line("^trust sim/authority.pem")
    assert shell.run(filled(send, {"localhost:2197": f"localhost:{push}"})).startswith("accepted")


def test_the_simulator_of_the_apns_library_takes_unknown_devices(page, shell):
    (command,) = page("Sources/CarillonAPNs/CarillonAPNs.docc/GettingStarted.md").take("carillon apns simulate").commands
    shell.start(f"{command} --listen 127.0.0.1:0 --manage 127.0.0.1:0 --http 127.0.0.1:0").line("^trust sim/authority.pem")
    made = {path.name for path in (shell.directory / "sim").iterdir()}
    assert {"AuthKey_SIMULATED1.p8", "authority.pem"} <= made


def test_a_channel_of_the_client_is_sent_to_with_curl(page, shell, channel, device):
    (curl,) = page("Sources/CarillonClient/CarillonClient.docc/GettingStarted.md").take("curl").commands
    shell.run(curl, ENDPOINT=channel.endpoint)
    (message,) = device.inbox()["envelopes"]
    assert message["messageType"] == "notification"


def test_a_python_backend_sends_to_an_encrypted_channel(page, server, tmp_path):
    code = page("Sources/CarillonClient/CarillonClient.docc/EncryptedMessages.md").take("from pywebpush").code
    listener = Listener(server, tmp_path)
    try:
        subscription = listener.next("opened")["subscription"]
        subscription = subscription if isinstance(subscription, str) else json.dumps(subscription)
        before = f"import json\nsubscription = {subscription!r}\n"
        subprocess.run([sys.executable, "-c", before + code], check=True, timeout=LIMIT, env=os.environ)
        assert listener.message() == b"Hello"
    finally:
        listener.stop()


def test_a_condition_is_checked_as_the_page_shows(page, shell):
    block = page("Sources/CarillonExpression/CarillonExpression.docc/WritingConditions.md").take("$ carillon")
    command, *printed = block.code.splitlines()
    assert shell.run(command.removeprefix("$ ")).splitlines() == printed


def test_each_target_of_make_exists(page, shell):
    contributing = page("CONTRIBUTING.md")
    lines = contributing.take("make run").code.splitlines()
    targets = re.findall(r"^make ([\w-]+)  ", "\n".join(lines), re.M)
    assert len(targets) >= 8
    for target in targets:
        # Each builds, and some run all tests, this one among them: make only prints its commands.
        shell.run(f"make -n -C {ROOT} {target}")
    # The test that it names runs with all others; here it is found.
    command = contributing.take("CARILLON_EXECUTABLE=").code.replace("pytest ", "pytest --collect-only -q ")
    python = filled(command, {".venv/bin/python": sys.executable})
    assert "test_random_client.py" in shell.run(f"cd {ROOT}; {python}")
