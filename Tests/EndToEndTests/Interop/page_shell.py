"""A person who follows a page: a shell in a directory of its own, with `carillon` in its path."""

import json
import os
import queue
import re
import signal
import subprocess
import threading
from pathlib import Path

import requests

from carillon_peer import ENVIRONMENT, PATIENCE, await_value
from log_secrets import LEDGER

LIMIT = PATIENCE * 3  # seconds that one command may take on a busy machine


class Running:
    """A command that continues to run, such as a server. Its output is read line by line."""

    def __init__(self, command: str, directory: Path, environment: dict):
        # Without `exec` a signal would reach the shell alone.
        self.process = subprocess.Popen(
            ["bash", "-euc", "exec " + command], cwd=directory, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))  # fmt: skip
        self.command = command
        self.printed: list[str] = []
        self.lines: queue.Queue = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.printed.append(line)
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def line(self, pattern: str) -> re.Match:
        """The next line that the pattern is found in; lines before it are passed over."""
        while True:
            try:
                line = self.lines.get(timeout=LIMIT)
            except queue.Empty:
                raise AssertionError(f"{self.command}: no line has {pattern!r}: {''.join(self.printed)}") from None
            assert line is not None, f"{self.command} ended before a line had {pattern!r}: {''.join(self.printed)}"
            found = re.search(pattern, line)
            if found:
                return found

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends the signal to the command and its children, as a terminal does, and returns the exit code."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        try:
            return self.process.wait(PATIENCE * 2)
        finally:
            self.process.kill()
            self.process.wait()


class Shell:
    def __init__(self, executable: Path, directory: Path):
        self.directory = directory
        self.executable = executable
        (directory / "bin").mkdir(parents=True)
        (directory / "bin" / "carillon").symlink_to(executable.resolve())
        # The variables of a `make` that runs the tests would reach the `make` of a page.
        inherited = {name: value for name, value in ENVIRONMENT.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        self.environment = inherited | {"PATH": f"{directory / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        self.running: list[Running] = []

    def file(self, name: str, content: str | bytes, mode: int = 0o600) -> Path:
        path = self.directory / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path

    def run(self, command: str, code: int = 0, **variables: str) -> str:
        """Runs commands to their end, and returns their output."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command], cwd=self.directory, env=self.environment | variables,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)  # fmt: skip
        LEDGER.note_body(done.stdout)
        assert done.returncode == code, f"{command}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout if code == 0 else done.stdout + done.stderr

    def start(self, command: str, **variables: str) -> Running:
        running = Running(command, self.directory, self.environment | variables)
        self.running.append(running)
        return running

    def serve(self, command: str, url: str, **variables: str) -> Running:
        """Starts a server and returns when it is ready."""
        running = self.start(command, **variables)

        def is_ready() -> bool:
            assert running.process.poll() is None, f"{command} ended: {''.join(running.printed)}"
            try:
                return requests.get(url + "/health/ready", timeout=PATIENCE).status_code == 200
            except requests.ConnectionError:
                return False

        await_value(is_ready, bool, f"{command} is ready", LIMIT)
        return running

    def end(self):
        """Ends all processes, also after a failed test; logs of servers are searched for secrets."""
        for number, running in enumerate(self.running):
            running.end()
            if " serve " in running.command:
                LEDGER.keep(self.file(f"log-{number}", "".join(running.printed)))


def example(text: str):
    """The JSON of a page, whose omissions become empty values."""
    text = text.replace("{…}", "{}").replace("[…]", "[]")
    return json.loads(re.sub(r"(?<=[:\[,] )(?:<\w+>|…)(?=[,\]}])", "null", text))


def assert_like(shown, real, place: str = "the example"):
    """A real document has each member of the page's example, with a value of the same kind."""
    if isinstance(shown, dict):
        assert isinstance(real, dict), f"{place}: {real!r}"
        for name, value in shown.items():
            assert name in real, f"{place} has no {name!r}: {real!r}"
            assert_like(value, real[name], f"{place}.{name}")
    elif isinstance(shown, list):
        assert isinstance(real, list), f"{place}: {real!r}"
        for value, found in zip(shown, real):
            assert_like(value, found, place + "[]")
    elif shown is not None:
        numbers = isinstance(shown, (int, float)) and not isinstance(shown, bool)
        kind = (int, float) if numbers else type(shown)
        assert isinstance(real, kind), f"{place}: {real!r}"
