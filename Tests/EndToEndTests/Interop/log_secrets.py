"""The secrets that a run of these tests used, and the search of all logs of its servers for them."""

import json
import re
from pathlib import Path

import requests

# Members of JSON whose values are secrets. Of an address, all behind the host is one.
NAMES = {
    "secret", "secrets", "credential", "token", "endpoint", "pushEndpoint", "uaid", "userToken", "registration", "p8", "p12",
    "privateKey", "passphrase", "url", "jwksURL", "pingAddress", "disconnectAddress",
}  # fmt: skip
SHORTEST = 16  # shorter texts occur in a log by chance
LONGEST = 100  # the part of a long secret that is searched
LARGEST_BODY = 1 << 20


class SecretLedger:
    """Knows secrets and logs, and finds the ones in the others."""

    def __init__(self):
        self.secrets: set[str] = set()
        self.logs: dict[Path, str | None] = {}

    # Secrets

    def note(self, secret: str):
        """A text of several lines counts line by line, a token also by its parts."""
        if "://" in secret:
            secret = secret.split("://", 1)[1].partition("/")[2]
        for line in secret.splitlines():
            if not line.startswith("-----"):
                parts = [line, *re.split(r"[./?=&]", line)]
                self.secrets.update(part[:LONGEST] for part in parts if len(part) >= SHORTEST)

    def note_field(self, value: str):
        """The tokens of an Authorization field."""
        for part in re.split(r"[ ,;=]", value):
            self.note(part)

    def note_path(self, path: str):
        """The token of a channel in a path or an address."""
        if "/push/" in path:
            self.note(re.split(r"[/?]", path.split("/push/", 1)[1])[0])

    def note_body(self, body: str | bytes | None):
        """All secrets of a body, or of lines, of JSON."""
        if not isinstance(body, (str, bytes)) or not 2 <= len(body) <= LARGEST_BODY:
            return
        try:
            text = body if isinstance(body, str) else body.decode()
        except UnicodeDecodeError:
            return
        for document in [text, *text.splitlines()]:
            try:
                self._note_members(json.loads(document))
            except (ValueError, RecursionError):
                continue
            if document is text:
                return

    def _note_members(self, value):
        if isinstance(value, dict):
            for name, member in value.items():
                if name in NAMES:
                    for text in member if isinstance(member, list) else [member]:
                        if isinstance(text, str):
                            self.note(text)
                else:
                    self._note_members(member)
        elif isinstance(value, list):
            for member in value:
                self._note_members(member)

    def note_request(self, request: requests.PreparedRequest):
        value = request.headers.get("Authorization")
        if value is not None:
            self.note_field(value if isinstance(value, str) else value.decode("latin-1"))
        self.note_path(request.url or "")
        if isinstance(request.body, (str, bytes)) and "/push/" in (request.url or ""):
            text = request.body if isinstance(request.body, str) else request.body.decode("latin-1")
            if text.isprintable() and len(set(text)) > 3:
                self.note(text)
        self.note_body(request.body)

    def follow_requests(self):
        """Notes the secrets of all that `requests` sends and receives from now on."""
        send = requests.Session.send

        def sending(session, request, **options):
            self.note_request(request)
            answer = send(session, request, **options)
            if not options.get("stream"):
                self.note_body(answer.content)
            return answer

        requests.Session.send = sending

    # Logs

    def follow(self, log: Path):
        """A log that is read when it is kept, or at the end."""
        self.logs.setdefault(log, None)

    def keep(self, log: Path):
        """Reads a log that may soon be gone."""
        if log.exists():
            self.logs[log] = log.read_text(errors="replace")

    def shown(self) -> list[str]:
        """The lines that show a secret."""
        found = []
        for log, text in self.logs.items():
            if text is None and log.exists():
                text = log.read_text(errors="replace")
            for secret in self.secrets if text else ():
                place = text.find(secret)
                if place >= 0:
                    line = text[text.rfind("\n", 0, place) + 1 :].split("\n", 1)[0]
                    found.append(f"{log} shows the secret {secret!r}: {line}")
        return sorted(found)


LEDGER = SecretLedger()
