"""Conditions against the C++ implementation of the language, RE2, and Python's zones."""

import base64
import datetime
import json
import math
import os
import random
import re
import subprocess
import zoneinfo

import pytest
import re2

import cel_peer

EXECUTABLE = os.environ["CARILLON_EXECUTABLE"]
COUNT = int(os.environ.get("CARILLON_EXPRESSIONS", "20000"))
BATCH = 5000


def answers(requests):
    """The executable's results for each of these, in their order."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([EXECUTABLE, "expression", "eval"], input=lines.encode(), capture_output=True, check=True, timeout=300)
    found = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
    assert len(found) == len(requests)
    return found


def microseconds(text):
    """Of RFC 3339 in UTC, with up to nine digits of a fraction."""
    whole, fraction = re.fullmatch(r"(.{19})(\.\d+)?Z", text).groups()
    moment = datetime.datetime.fromisoformat(whole + "+00:00") - cel_peer.EPOCH
    return moment // datetime.timedelta(microseconds=1) + int(((fraction or ".0")[1:] + "000000")[:6])


def span(text):
    sign, whole, fraction = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?s", text).groups()
    nanoseconds = int(whole) * 10**9 + int(((fraction or "") + "000000000")[:9])
    return (-nanoseconds if sign else nanoseconds) // 1000


def ours(answer):
    return "error" if "error" in answer else plain(answer["value"])


def plain(value):
    ((kind, held),) = value.items()
    if kind == "null":
        return ("null",)
    if kind in ("int", "uint"):
        return (kind, int(held))
    if kind == "double":
        return (kind, held if held == "NaN" else {"Infinity": math.inf, "-Infinity": -math.inf, "-0.0": -0.0}.get(held, held) if isinstance(held, str) else float(held))
    if kind == "bytes":
        return (kind, base64.b64decode(held))
    if kind == "list":
        return (kind, [plain(element) for element in held])
    if kind == "map":
        entries = []
        for key, element in held:
            ((tag, name),) = key.items()
            entries.append((("key", int(name) if tag in ("int", "uint") else name), plain(element)))
        return (kind, sorted(entries, key=repr))
    if kind == "timestamp":
        return (kind, microseconds(held))
    if kind == "duration":
        return (kind, span(held))
    return (kind, held)


# The differences, with their reasons: the definition of the language decides, or leaves it open (see Differences.md).
KNOWN = [
    ("a duration has 64 bits of nanoseconds", lambda source, here, there: "timestamp" in source and " - " in source and here == "error"),
    ("int(duration) is there", lambda source, here, there: "int(" in source and ("duration" in source or "timestamp" in source) and there == "error"),
    ("a key that comes twice is an error that can be absorbed", lambda source, here, there: "{" in source and there == "error"),
    ("a key comes twice where it comes as int and as uint", lambda source, here, there: "{" in source and here == "error"),
    ("a key of a type that no map has is in no map, which is no error", lambda source, here, there: " in " in source and there == "error"),
    ("a bool is no number", lambda source, here, there: "int(" in source and here == "error"),
    ("the text of a duration, of infinity and of NaN is open", lambda source, here, there: "string(" in source),
    ("the order of a map's keys is open", lambda source, here, there: ".map(" in source or ".filter(" in source),
]


def test_expressions_have_the_same_values_in_another_implementation(pytestconfig):
    seed = pytestconfig.getoption("seed")
    generator = cel_peer.Generator(seed)
    variables = {name: tagged for name, (tagged, _) in cel_peer.VARIABLES.items()}
    values = 0
    different = []
    for begin in range(0, COUNT, BATCH):
        sources = [generator.expression() for _ in range(min(BATCH, COUNT - begin))]
        found = answers([{"expr": source, "variables": variables} for source in sources])
        for source, answer in zip(sources, found):
            here, there = ours(answer), cel_peer.theirs(source)
            values += here != "error"
            if repr(here) != repr(there) and not any(explains(source, here, there) for _, explains in KNOWN):
                different.append((source, answer, there))
    assert not different, f"seed {seed}, {len(different)}: " + "\n".join(map(str, different[:20]))
    assert values > COUNT // 3


def test_instants_are_shown_as_python_shows_them(pytestconfig):
    chance = random.Random(pytestconfig.getoption("seed"))
    names = sorted(
        name for name in zoneinfo.available_timezones()
        if not name.startswith(("posix", "right", "Etc")) and name not in ("localtime", "Factory", "posixrules"))
    assert len(names) > 440 and {"CET", "EST5EDT", "GMT0", "NZ-CHAT", "Zulu"} <= set(names)
    requests, expected = [], []
    for name in names:
        for _ in range(10):
            # Before 1970, and 2000 for names without a region, the builds of the tz database differ from each other.
            earliest = 0 if "/" in name else 946_684_800
            moment = cel_peer.EPOCH + datetime.timedelta(seconds=chance.randrange(earliest, 4_000_000_000))
            local = moment.astimezone(zoneinfo.ZoneInfo(name))
            requests.append({
                "expr": "[t.getFullYear(z), t.getMonth(z), t.getDate(z), t.getHours(z), t.getMinutes(z), t.getSeconds(z), t.getDayOfWeek(z), t.getDayOfYear(z)]",
                "variables": {"t": {"timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}, "z": {"string": name}},
            })
            expected.append([
                local.year, local.month - 1, local.day, local.hour, local.minute, local.second, local.isoweekday() % 7, local.timetuple().tm_yday - 1])
    found = answers(requests)
    different = [
        (request["variables"], answer, wanted)
        for request, answer, wanted in zip(requests, found, expected)
        if ours(answer) != ("list", [("int", number) for number in wanted])
    ]
    assert not different, f"{len(different)} of {len(requests)}: {different[:10]}"


def patterns(chance, depth):
    """Patterns with everything that RE2 supports, and sometimes with unsupported parts."""
    atoms = ["a", "b", "c", ".", "^", "$", "[ab]", "[^a]", "[a-c]", r"\d", r"\w", r"\W", r"\s", r"\b", r"\B", r"\pL", r"\PN", r"\p{Lu}", "[[:alpha:]]", "[^[:digit:]b]",
             "é", r"\x41", r"\.", r"\Qa.\E", "(?i)", "(?i:k)", "(?s:.)", "(?m:^b$)", "[]a]", "[a-]", "\\1", "(?=a)", r"\Z", "{", "a{2,1}", "[b-a]", "x*+"]
    if depth == 0:
        return chance.choice(atoms[:-9] if chance.random() < 0.97 else atoms)
    inner = lambda: patterns(chance, depth - 1)  # noqa: E731
    return chance.choice([
        lambda: inner() + inner(), lambda: inner() + inner(), lambda: f"({inner()}|{inner()})", lambda: f"(?:{inner()})" + chance.choice(["*", "+", "?", "{2}", "{1,3}", "{0}", "*?", "{2,}"]),
        lambda: f"({inner()})", lambda: inner(),
    ])()


def test_patterns_match_the_same_texts_as_in_re2(pytestconfig):
    seed = pytestconfig.getoption("seed")
    chance = random.Random(seed)
    options = re2.Options()
    options.log_errors = False
    requests, expected = [], []
    for _ in range(COUNT):
        pattern = patterns(chance, chance.randint(0, 4))
        text = "".join(chance.choice("aaabbcAK1 _.\néK") for _ in range(chance.randint(0, 8)))
        try:
            wanted = bool(re2.compile(pattern, options).search(text))
        except re2.error:
            wanted = None
        requests.append({"expr": "t.matches(p)", "variables": {"t": {"string": text}, "p": {"string": pattern}}})
        expected.append(wanted)
    found = answers(requests)
    different = []
    for request, answer, wanted in zip(requests, found, expected):
        here = answer["value"]["bool"] if "value" in answer else None
        # RE2 searches between the bytes of a character as well.
        inside = "\\B" in request["variables"]["p"]["string"] and not request["variables"]["t"]["string"].isascii()
        if here != wanted and not inside:
            different.append((request["variables"]["p"], request["variables"]["t"], answer, wanted))
    assert not different, f"seed {seed}, {len(different)}: " + "\n".join(map(str, different[:20]))
    assert sum(wanted is True for wanted in expected) > COUNT // 10
    assert sum(wanted is False for wanted in expected) > COUNT // 10
    assert sum(wanted is None for wanted in expected) > COUNT // 200


@pytest.mark.parametrize(("line", "code"), [
    ("{", "line"), ("[]", "line"), ("{}", "line"), ('{"expr": 1}', "line"), ('{"expr": "1", "variables": []}', "line"), ('{"expr": "x", "variables": {"x": 1}}', "line"),
    ('{"expr": "x", "variables": {"x": {"int": 4}}}', "line"), ('{"expr": "x", "variables": {"x": {"int": "9223372036854775808"}}}', "line"),
    ('{"expr": "x", "variables": {"x": {"real": "1"}}}', "line"), ('{"expr": "1", "types": {"x": "integer"}}', "line"), ('{"expr": "1", "more": 1}', "line"),
    ('{"expr": "1 +"}', "syntax"), ('{"expr": "x + 1", "types": {"x": "string"}}', "type"), ('{"expr": "siez(x)", "types": {"x": "string"}}', "unknown_name"),
    ('{"expr": "y", "types": {}}', "unknown_name"), ('{"expr": "y"}', "unbound_variable"), ('{"expr": "1/0"}', "division_by_zero"), ('{"expr": "' + "(" * 10000 + '"}', "depth"),
    ('{"expr": "\'' + "a" * 30000 + '\'"}', "size"), ('{"expr": "\'a\'.matches(\'(\')"}', "invalid_pattern"), ('{"expr": "x.all(a, x.all(b, a == b))", "types": {"x": "list(int)"}}', "cost"),
    ("x" * 2_000_000, "line"), ('{"expr": "1", "variables": {"x": ' + '{"list": [' * 300 + "]}" * 300 + "}}", "line"),
])
def test_a_line_that_cannot_be_answered_has_an_error_of_its_own(line, code):
    done = subprocess.run([EXECUTABLE, "expression", "eval"], input=(line + '\n{"expr": "1 + 1"}\n').encode(), capture_output=True, timeout=30)
    first, second = [json.loads(text) for text in done.stdout.decode().splitlines()]
    assert first["code"] == code and first["error"]
    assert ("position" in first) == (code != "line")
    assert second == {"value": {"int": "2"}}


def test_an_answer_comes_before_the_next_line_is_asked():
    with subprocess.Popen([EXECUTABLE, "expression", "eval"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for number in range(3):
            program.stdin.write(b'{"expr": "%d"}\n' % number)
            program.stdin.flush()
            assert json.loads(program.stdout.readline()) == {"value": {"int": str(number)}}
        program.stdin.close()
        assert program.wait(10) == 0


def test_random_bytes_are_refused_and_nothing_more(pytestconfig):
    chance = random.Random(pytestconfig.getoption("seed"))
    generator = cel_peer.Generator(pytestconfig.getoption("seed"))
    sources = []
    for _ in range(COUNT):
        source = list(generator.expression()) if chance.random() < 0.8 else [chr(chance.randrange(1, 0x300)) for _ in range(chance.randint(0, 40))]
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(source) + 1)
            source[place:place + chance.randint(0, 3)] = chance.choice(list("()[]{}.,?:'\"\\+-*/%<>=!&|0aux \u00e9") + ["in", ".map(", "has(", "\\u", "1e", "0x"])
        sources.append("".join(source))
    found = answers([{"expr": source} for source in sources])
    assert sum("error" in answer for answer in found) > COUNT // 2
    for source, answer in zip(sources, found):
        if "error" in answer:
            assert 0 <= answer["position"] <= len(source), (source, answer)


def test_letters_are_equal_without_their_case_as_in_re2():
    related = {}
    for number in range(0x110000):
        letter = chr(number)
        if 0xD800 <= number < 0xE000:
            continue
        for other in {letter.lower(), letter.upper(), letter.title(), letter.casefold(), letter.lower().upper(), letter.upper().lower()}:
            if len(other) == 1 and other != letter:
                related.setdefault(letter, set()).add(other)
                related.setdefault(other, set()).add(letter)
    pairs = [(one, other) for one, others in sorted(related.items()) for near in others for other in {near, *related[near]}]
    assert len(pairs) > 5000
    requests = [{"expr": "text.matches(pattern)", "variables": {"text": {"string": one}, "pattern": {"string": "^(?i:" + other + ")$"}}} for one, other in pairs]
    found = [answer for start in range(0, len(requests), BATCH) for answer in answers(requests[start:start + BATCH])]
    different = [(hex(ord(one)), hex(ord(other))) for (one, other), answer in zip(pairs, found) if answer["value"]["bool"] != bool(re2.match("^(?i:" + other + ")$", one))]
    assert different == []
