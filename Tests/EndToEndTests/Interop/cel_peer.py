"""Random expressions, and their results in the C++ implementation of the language (cel-expr-python)."""

import ctypes
import datetime
import math
import random
import sys

from cel_expr_python import cel

VARIABLES = {
    "i": ({"int": "-3"}, -3),
    "n": ({"int": "9007199254740993"}, 9007199254740993),
    "d": ({"double": 2.5}, 2.5),
    "s": ({"string": "h\u00e9llo"}, "h\u00e9llo"),
    "b": ({"bool": True}, True),
    "l": ({"list": [{"int": "1"}, {"int": "2"}, {"int": "3"}]}, [1, 2, 3]),
    "m": ({"map": [[{"string": "a"}, {"int": "1"}], [{"string": "b"}, {"string": "x"}]]}, {"a": 1, "b": "x"}),
    "z": ({"null": None}, None),
}
# Each null that this library gives takes a reference to None away (0.1.3), and Python ends badly without any. From 3.12 on they are
# not counted.
if sys.version_info < (3, 12):
    ctypes.c_ssize_t.from_address(id(None)).value += 1 << 40
ENVIRONMENT = cel.NewEnv(variables={name: cel.Type.DYN for name in VARIABLES})
DATA = {name: value for name, (_, value) in VARIABLES.items()}


class Generator:
    """Expressions that mostly fit together, and now and then do not."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = []

    def expression(self):
        self.names = []
        return self.of(self.random.choice(KINDS), self.random.randint(1, 4))

    def of(self, kind, depth):
        if self.random.random() < 0.06:
            kind = self.random.choice(KINDS)
        if depth <= 0 or self.random.random() < 0.12:
            return self.leaf(kind)
        return getattr(self, kind)(depth - 1)

    def pick(self, *choices):
        return self.random.choice(choices)

    def leaf(self, kind):
        if self.names and self.random.random() < 0.3:
            return self.random.choice(self.names)
        pick = self.pick
        return {
            "int": lambda: pick("0", "1", "2", "-1", "7", "i", "n", "9223372036854775807", "-9223372036854775808", "0x1F", "m.a", "l[1]"),
            "uint": lambda: pick("0u", "1u", "7u", "18446744073709551615u", "9223372036854775808u"),
            "double": lambda: pick("0.0", "1.5", "-2.0", "d", "1e300", "9007199254740992.0", "(0.0/0.0)", "(1.0/0.0)", "3.0", "-0.0", "1e-7"),
            "bool": lambda: pick("true", "false", "b"),
            "string": lambda: pick("''", "'a'", "'b'", "s", "'\u00e9'", "'e\\u0301'", "'Z'", "'12'", "'\\U0001F600'", "m.b", "'true'", "'1.5'"),
            "bytes": lambda: pick("b''", "b'a'", "b'\\xff'", "b'\u00e9'"),
            "list": lambda: pick("[]", "l", "[1, 2]", "[1u, 2.0, 'a']", "[[1], [2]]", "[true]"),
            "map": lambda: pick("{}", "m", "{'a': 1}", "{1: 'x', 2u: 'y'}", "{true: null}", "{2: [1]}"),
            "null": lambda: pick("null", "z"),
            "duration": lambda: "duration('%s')" % pick("0", "1s", "-90s", "1h30m", "1.5s", "250ms"),
            "timestamp": lambda: "timestamp('%s')" % pick(
                "2024-02-29T12:00:00Z", "1969-12-31T23:59:59.5Z", "2024-01-01T00:00:00+02:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
            "type": lambda: pick("int", "uint", "double", "string", "bool", "bytes", "list", "map", "null_type", "type"),
        }[kind]()

    def choice(self, kind, depth):
        return "(%s ? %s : %s)" % (self.of("bool", depth), self.of(kind, depth), self.of(kind, depth))

    def number(self, kind, depth, operators):
        return "(%s %s %s)" % (self.of(kind, depth), self.pick(*operators), self.of(kind, depth))

    def int(self, depth):
        return self.pick(
            lambda: self.number("int", depth, "+-*/%"),
            lambda: "-(%s)" % self.of("int", depth),
            lambda: "size(%s)" % self.of(self.pick("string", "bytes", "list", "map"), depth),
            lambda: "int(%s)" % self.of(self.pick("int", "uint", "double", "string", "timestamp"), depth),
            lambda: "%s.%s()" % (
                self.of("timestamp", depth),
                self.pick("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds")),
            lambda: "%s.getHours('%s')" % (self.of("timestamp", depth), self.pick("UTC", "-03:30", "+05:45", "America/New_York", "Asia/Kolkata", "Europe/Berlin")),
            lambda: "%s.%s()" % (self.of("duration", depth), self.pick("getHours", "getMinutes", "getSeconds", "getMilliseconds")),
            lambda: "%s[%s]" % (self.of("list", depth), self.of("int", depth)),
            lambda: self.choice("int", depth),
        )()

    def uint(self, depth):
        return self.pick(
            lambda: self.number("uint", depth, "+-*/%"), lambda: "uint(%s)" % self.of(self.pick("int", "double", "string"), depth),
            lambda: self.choice("uint", depth))()

    def double(self, depth):
        return self.pick(
            lambda: self.number("double", depth, "+-*/"), lambda: "-(%s)" % self.of("double", depth),
            lambda: "double(%s)" % self.of(self.pick("int", "uint", "string"), depth), lambda: self.choice("double", depth))()

    def bool(self, depth):
        any_kind = self.pick(*KINDS)
        same = self.pick("int", "uint", "double", "string", "bytes", "bool", "duration", "timestamp")
        numbers = self.pick("int", "uint", "double"), self.pick("int", "uint", "double")
        return self.pick(
            lambda: "(%s && %s)" % (self.of("bool", depth), self.of("bool", depth)),
            lambda: "(%s || %s)" % (self.of("bool", depth), self.of("bool", depth)),
            lambda: "!%s" % self.parenthesised("bool", depth),
            lambda: "(%s %s %s)" % (self.of(any_kind, depth), self.pick("==", "!="), self.of(self.pick(any_kind, *KINDS), depth)),
            lambda: "(%s %s %s)" % (self.of(same, depth), self.pick("<", "<=", ">", ">="), self.of(same, depth)),
            lambda: "(%s %s %s)" % (self.of(numbers[0], depth), self.pick("<", "<=", ">", ">=", "==", "!="), self.of(numbers[1], depth)),
            lambda: "(%s in %s)" % (self.of(any_kind, depth), self.of(self.pick("list", "map"), depth)),
            lambda: "%s.%s(%s)" % (self.of("string", depth), self.pick("contains", "startsWith", "endsWith"), self.of("string", depth)),
            lambda: "%s.matches('%s')" % (self.of("string", depth), self.pick("a", "^.$", "[a-z]+", "\\\\d", "(a|b)*", "h.llo$")),
            lambda: self.macro(self.pick("all", "exists", "exists_one"), "bool", depth),
            lambda: "has(%s.%s)" % (self.of("map", depth), self.pick("a", "c")),
            lambda: "bool(%s)" % self.of(self.pick("bool", "string"), depth),
            lambda: self.choice("bool", depth),
        )()

    def parenthesised(self, kind, depth):
        return "(%s)" % self.of(kind, depth)

    def macro(self, name, kind, depth, extra=None):
        variable = "v%d" % len(self.names)
        range_ = self.of(self.pick("list", "list", "map"), depth)
        self.names.append(variable)
        body = self.of(kind, depth)
        if extra:
            body = "%s, %s" % (self.of("bool", depth), body)
        self.names.pop()
        return "%s.%s(%s, %s)" % (range_, name, variable, body)

    def string(self, depth):
        return self.pick(
            lambda: "(%s + %s)" % (self.of("string", depth), self.of("string", depth)),
            lambda: "string(%s)" % self.of(self.pick("bool", "int", "uint", "double", "bytes", "duration", "string"), depth),
            lambda: self.choice("string", depth))()

    def bytes(self, depth):
        return self.pick(
            lambda: "(%s + %s)" % (self.of("bytes", depth), self.of("bytes", depth)), lambda: "bytes(%s)" % self.of("string", depth))()

    def list(self, depth):
        return self.pick(
            lambda: "[%s]" % ", ".join(self.of(self.pick(*KINDS), depth) for _ in range(self.random.randint(0, 3))),
            lambda: "(%s + %s)" % (self.of("list", depth), self.of("list", depth)),
            lambda: self.macro("map", self.pick(*KINDS), depth, extra=self.random.random() < 0.3),
            lambda: self.macro("filter", "bool", depth))()

    def map(self, depth):
        # Python takes True for 1.
        kind = self.pick("string", "int", "uint")
        keys = [self.leaf(kind) for _ in range(self.random.randint(0, 3)) if not self.names]
        entries = ["%s: %s" % (key, self.of(self.pick(*KINDS), depth)) for key in keys]
        return "{%s}" % ", ".join(entries)

    def null(self, depth):
        return self.leaf("null")

    def duration(self, depth):
        return self.pick(
            lambda: "(%s %s %s)" % (self.of("duration", depth), self.pick("+", "-"), self.of("duration", depth)),
            lambda: "(%s - %s)" % (self.of("timestamp", depth), self.of("timestamp", depth)))()

    def timestamp(self, depth):
        return self.pick(
            lambda: "(%s %s %s)" % (self.of("timestamp", depth), self.pick("+", "-"), self.of("duration", depth)),
            lambda: "timestamp(%s)" % self.of(self.pick("timestamp", "string", "int"), depth))()

    def type(self, depth):
        return "type(%s)" % self.of(self.pick(*KINDS), depth)


KINDS = ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null", "duration", "timestamp", "type"]
TYPE_NAMES = {
    "INT": "int", "UINT": "uint", "DOUBLE": "double", "STRING": "string", "BOOL": "bool", "BYTES": "bytes", "LIST": "list", "MAP": "map", "NULL": "null_type",
    "DURATION": "google.protobuf.Duration", "TIMESTAMP": "google.protobuf.Timestamp", "TYPE": "type",
}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def theirs(source):
    """The value as the other side of the comparison has it, or "error"."""
    try:
        value = ENVIRONMENT.compile(source, disable_check=True).eval(data=DATA)
    except Exception:
        return "error"
    return plain(value)


def plain(value):
    kind = value.type().name().split("<")[0]
    held = value.value()
    if kind == "ERROR":
        return "error"
    if kind == "NULL":
        return ("null",)
    if kind == "LIST":
        inner = [plain(element) for element in held]
        return ("list", inner)
    if kind == "MAP":
        return ("map", sorted(((("key", key if isinstance(key, (bool, str)) else int(key)), plain(element)) for key, element in held.items()), key=repr))
    if kind == "DOUBLE":
        return ("double", "NaN" if math.isnan(held) else float(held))
    if kind == "BYTES":
        return ("bytes", bytes(held))
    if kind == "DURATION":
        return ("duration", held // datetime.timedelta(microseconds=1))
    if kind == "TIMESTAMP":
        return ("timestamp", (held - EPOCH) // datetime.timedelta(microseconds=1))
    if kind == "TYPE":
        return ("type", TYPE_NAMES.get(held.name().split("<")[0], held.name()))
    return (kind.lower(), held)
