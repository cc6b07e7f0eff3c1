"""The examples of the documentation: the code blocks of each page, and the test of each of them.

A block is run by the test that opens its page (the fixture `page`) or by the test that `ELSEWHERE` names; for any other
block, `NOT_RUN` has the reason. A block is named by its page and its first line.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]

CLIENT = "Sources/CarillonClient/CarillonClient.docc"
EXPRESSION = "Sources/CarillonExpression/CarillonExpression.docc"
APNS = "Sources/CarillonAPNs/CarillonAPNs.docc"
SIMULATOR = "Sources/CarillonAPNsSimulator/CarillonAPNsSimulator.docc"

APNS_TESTS = "Tests/CarillonAPNsTests/DocumentationTests.swift"
EXAMPLE_TESTS = "Tests/CarillonClientTests/Client/QuickStartTests.swift"
CLIENT_TESTS = "Tests/EndToEndTests/ClientPageTests.swift"
EXPRESSION_TESTS = "Tests/CarillonExpressionTests/PageTests.swift"
MANIFEST_TESTS = "Tests/EndToEndTests/GettingStartedTests.swift"
INTEROP = "Tests/EndToEndTests/Interop"

# The file of the test that runs a block of a page. For Swift, the test compiles the same code and compares it with the page.
ELSEWHERE = {
    ("README.md", "let client = try APNsClient("): APNS_TESTS,
    (f"{APNS}/GettingStarted.md", 'dependencies: [.package(path: "../carillon", traits: ["Provider"])],'): MANIFEST_TESTS,
    (f"{APNS}/GettingStarted.md", "import CarillonAPNs"): APNS_TESTS,
    (f"{APNS}/GettingStarted.md", "let client = try APNsClient("): APNS_TESTS,
    (
        f"{APNS}/GettingStarted.md",
        "let group = ServiceGroup(services: [client], gracefulShutdownSignals: [.sigterm], logger: logger)",
    ): APNS_TESTS,
    (f"{APNS}/GettingStarted.md", "switch response.outcome {"): APNS_TESTS,
    (
        f"{APNS}/GettingStarted.md",
        'let response = try await client.send(.alert("Hello"), to: APNsDeviceToken(deviceToken, in: .sandbox))',
    ): APNS_TESTS,
    (f"{APNS}/GettingStarted.md", "var configuration = APNsClient.Configuration("): APNS_TESTS,
    (f"{APNS}/GettingStarted.md", "try await APNsSimulator.withSimulator { simulator in"): APNS_TESTS,
    (
        f"{APNS}/KeysAndCertificates.md",
        'let certificate = try APNsCertificate(p12Path: "push.p12", passphrase: "secret")',
    ): APNS_TESTS,
    (f"{APNS}/LiveActivities.md", "struct MatchState: Encodable { var home: Int; var away: Int }"): APNS_TESTS,
    (f"{APNS}/LiveActivities.md", "let channels = try client.channels()"): APNS_TESTS,
    (f"{APNS}/ManyTokens.md", 'for await result in try client.send(.alert("Hello"), to: deviceTokens) {'): APNS_TESTS,
    (
        f"{APNS}/ManyTokens.md",
        'for try await result in try client.send(.alert("Hello"), to: rows) where result.isAccepted {',
    ): APNS_TESTS,
    (f"{APNS}/ManyTokens.md", "struct Install: APNsRecipient {"): APNS_TESTS,
    (f"{SIMULATOR}/CarillonAPNsSimulator.md", "import CarillonAPNsSimulator"): APNS_TESTS,
    (f"{CLIENT}/GettingStarted.md", "// swift-tools-version: 6.2"): MANIFEST_TESTS,
    (f"{CLIENT}/GettingStarted.md", "import CarillonClient"): CLIENT_TESTS,
    (f"{CLIENT}/GettingStarted.md", "import CarillonClient (2)"): EXAMPLE_TESTS,
    (f"{CLIENT}/Backends.md", "channel.setTokenDelivery { address in"): CLIENT_TESTS,
    (f"{CLIENT}/EncryptedMessages.md", "try await channel.connect(encrypted: true)"): CLIENT_TESTS,
    (
        f"{CLIENT}/Subscriptions.md",
        'var format = NotificationFormat(title: "${item}", body: "now at ${{ price | currency(EUR) }}")',
    ): CLIENT_TESTS,
    (f"{CLIENT}/Subscriptions.md", "try client.device.subscriptions.declare(alerts)"): CLIENT_TESTS,
    (f"{CLIENT}/Subscriptions.md", "for await firing in client.device.firings { show(firing.notification) }"): CLIENT_TESTS,
    (f"{CLIENT}/Updates.md", "client.updates.process(content: content, presenter: presenter) {"): CLIENT_TESTS,
    (f"{EXPRESSION}/CarillonExpression.md", "let environment = ExpressionEnvironment(["): EXPRESSION_TESTS,
    (f"{EXPRESSION}/EmbeddingConditions.md", "let environment = ExpressionEnvironment("): EXPRESSION_TESTS,
    **dict.fromkeys(
        [
            ("docs/apns-simulator.md", key)
            for key in (
                "TOKEN=$(curl -s http://127.0.0.1:2180/api/provider-token) (2)", "import ssl", "import asyncio",
                "import hyper.tls", "const http2 = require('http2'), fs = require('fs'), crypto = require('crypto')",
                "TOKEN=$(curl -s http://127.0.0.1:2180/api/provider-token) (3)",
            )
        ],
        f"{INTEROP}/test_apns_recipes.py",
    ),
    ("docs/connecting.md", "upstream carillon {"): f"{INTEROP}/test_proxy.py",
    ("docs/connecting.md", "push.example.com {"): f"{INTEROP}/test_caddy_and_haproxy.py",
    ("docs/connecting.md", "defaults"): f"{INTEROP}/test_caddy_and_haproxy.py",
}

DRAWING = "It is a drawing."

# Why a block is not run.
SENTENCE = "What commands print; ConnectionFailureCommandTests provokes both."
NOT_RUN = {
    ("CONTRIBUTING.md", "CARILLON_CLIENT_ROUNDS=200 Scripts/tests --filter RandomUpdateTests"): (
        "It tries for minutes; `make test` runs the same test with fewer rounds."),
    ("CONTRIBUTING.md", "CARILLON_KILLS=2000 Scripts/tests --no-parallel --filter StoreKillTests"): (
        "It kills for many minutes; `make test` runs the same test with fewer kills."),
    ("Sources/CarillonNotification/CarillonNotification.docc/CarillonNotification.md", "import CarillonNotification"): (
        "UserNotifications exists on Apple's platforms only, and the system starts the extension on a device."),
    ("Benchmarks/README.md", "make bench BENCH=--quick # to try it: small counts, one run, about two minutes"): (
        "It builds everything with optimization and measures for minutes; `make check` builds the benchmarks."),
    (
        "docs/command-line.md",
        "carillon: http://127.0.0.1:1 cannot be reached: connection refused. Check that the server is running and that the port is right",
    ): SENTENCE,
    (
        "docs/command-line.md",
        "carillon: cannot connect to wss://push.example.com/: name not found; retrying in 2 s. Check the host name, and whether …",
    ): SENTENCE,
    ("docs/services.md", "carillon services identities --app com.example.mail --state ./mail --server $SERVER"): (
        "An identity that changed needs a device whose storage was lost; IdentityChoiceTests has what the commands choose."),
    ("docs/architecture.md", "POST /push/{token} CarillonServer/HTTP PublishHandler, PublishHeaders"): DRAWING,
    (
        "docs/architecture.md",
        "CarillonCommand ─▶ CarillonSQLite, CarillonClient, CarillonAPNs, CarillonAPNsSimulator",
    ): DRAWING,
    ("docs/architecture.md", "POST /v1/items/{item}/updates CarillonServer/HTTP ItemRoutes, UpdateLines"): DRAWING,
    ("docs/architecture.md", "POST /v1/updates CarillonServer/HTTP UpdateRoutes"): DRAWING,
    ("docs/architecture.md", "POST, PATCH /v1/attachments CarillonServer/HTTP AttachmentRoutes, UploadHeaders"): DRAWING,
    ("docs/architecture.md", "POST /v1/services/requests CarillonServer/HTTP ServiceRoutes"): DRAWING,
    (
        "docs/updates.md",
        "POST /v1/updates ─▶ the log ─▶ held against each device's parameters ─▶ its inbox ─▶ the device",
    ): DRAWING,
}


@dataclass
class Block:
    page: str
    key: str
    language: str
    code: str

    @property
    def commands(self) -> list[str]:
        """The commands of a block for a shell, without comments of a whole line."""
        commands, quote, open_command = [], "", ""
        for line in self.code.splitlines(keepends=True):
            if not open_command and (not line.strip() or line.lstrip().startswith("#")):
                continue
            open_command += line
            for mark in re.findall(r"\\.|['\"]", line):
                if mark == quote:
                    quote = ""
                elif mark in "'\"" and not quote:
                    quote = mark
            if not quote and not line.rstrip("\n").endswith(("\\", "|")):
                commands.append(open_command.strip())
                open_command = ""
        assert not open_command, f"the last command is not complete: {open_command}"
        return commands


def pages() -> list[str]:
    """All pages that can have examples."""
    patterns = ["*.md", "docs/*.md", "Sources/*/*.docc/**/*.md", "Benchmarks/*.md", "Examples/**/*.md"]
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(str(path.relative_to(ROOT)) for path in found)


def blocks_of(page: str, text: str) -> list[Block]:
    """The fenced and the indented blocks of a page, in their order."""
    found: list[tuple[str, list[str]]] = []
    fence, indented, gaps, is_text = "", None, 0, False
    for line in text.splitlines():
        mark = re.match(r"\s*(?:[*-] )?(`{3,}|~{3,})\s*(\S*)", line)
        if fence:
            if line.strip() == fence:
                fence = ""
            else:
                found[-1][1].append(line)
        elif mark:
            fence, indented, is_text = mark[1], None, False
            found.append((mark[2], []))
        elif not line.strip():
            gaps, is_text = gaps + 1, False
        elif line.startswith("    ") and not is_text:
            if indented is None:
                indented, gaps = [], 0
                found.append(("", indented))
            indented += [""] * gaps + [line[4:]]
            gaps = 0
        else:
            # An indented line after text belongs to the paragraph.
            indented, gaps, is_text = None, 0, True
    made, counts = [], {}
    for language, code in found:
        first = next((" ".join(line.split()) for line in code if line.strip()), "")
        counts[first] = counts.get(first, 0) + 1
        key = first if counts[first] == 1 else f"{first} ({counts[first]})"
        made.append(Block(page, key, language, "\n".join(code) + "\n"))
    return made


def commands_in(text: str) -> list[str]:
    """The commands in the sentences of a page. Texts with a version, such as `carillon key 1`, are signed, and are no commands."""
    spans = re.findall(r"`(carillon\s[^`]+)`", re.sub(r"^\s*```.*?^\s*```", "", text, flags=re.M | re.S))
    return [" ".join(span.split()) for span in spans if not re.match(r"carillon \w+ 1\b", span)]


class Page:
    """A page whose blocks a test takes one after the other. `finish` fails while a block has no test."""

    def __init__(self, path: str, text: str | None = None):
        self.path = path
        self.blocks = blocks_of(path, (ROOT / path).read_text() if text is None else text)
        self.left = [block for block in self.blocks if (path, block.key) not in ELSEWHERE | NOT_RUN]

    def take(self, beginning: str) -> Block:
        """The next block that begins so. The test that takes a block runs all of it."""
        for block in self.left:
            if block.code.lstrip().startswith(beginning):
                self.left.remove(block)
                return block
        left = [block.key for block in self.left]
        raise AssertionError(f"{self.path} has no block that begins with {beginning!r}: {left}")

    def finish(self):
        assert not self.left, f"blocks of {self.path} that no test runs: {[block.key for block in self.left]}"


def filled(text: str, values: dict) -> str:
    """The text with values in place of the page's own; each of these must be there."""
    for name in values:
        assert name in text, f"{name!r} is not in {text!r}"
    names = sorted(values, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, names)), lambda found: str(values[found[0]]), text)
