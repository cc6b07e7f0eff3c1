"""`carillon apns check` and `channels`, where something is right and where something is wrong."""

import re

import pytest

from apns_peer import TOPIC
from carillon_peer import free_port
from push_peer import Person, make_certificate


@pytest.fixture
def simulator(make_simulator):
    return make_simulator()


def findings(ended) -> list[tuple]:
    return [(event["what"], event["verdict"]) for event in ended.events if event["event"] == "finding"]


def test_good_credentials_and_a_good_network(person, simulator):
    ended = person.check(*person.manage)
    assert (ended.status, ended.err) == (0, "")
    verdicts = [line.split()[:2] for line in ended.out.splitlines()[:-1]]
    assert verdicts == [["ok", "key"], ["ok", "connection"], ["ok", "connection"], ["ok", "credentials"]]
    assert "400 BadDeviceToken, as it should be" in ended.out and ended.out.endswith("You can send.\n")
    requests = simulator.api("GET", "requests")
    assert [request["path"] for request in requests] == ["/3/device/" + b"carillon apns check is no device".hex()], "one push"


@pytest.mark.parametrize("unknown", ["register", "accept"])
def test_a_push_to_an_unknown_token_creates_no_device(make_simulator, executable, tmp_path, unknown):
    simulator = make_simulator("--unknown-devices", unknown)
    ended = Person(executable, simulator, tmp_path).check()
    assert ended.status == 0, ended.out
    assert simulator.api("GET", "devices") == []


def test_each_thing_is_a_line_of_json(person):
    ended = person.check(*person.manage, "--json")
    assert findings(ended) == [("key", "ok"), ("connection", "ok"), ("connection", "ok"), ("credentials", "ok")]
    assert ended.summary == {"event": "summary", "verdict": "ok", "wrong": 0, "warnings": 0}


@pytest.mark.parametrize(
    "reason, status", [("TopicDisallowed", 77), ("ExpiredProviderToken", 77), ("ServiceUnavailable", 75)]
)
def test_a_refusal_of_the_service_is_reported_with_advice(person, simulator, reason, status):
    simulator.fault("reject", reason=reason)
    ended = person.check()
    assert ended.status == status and re.search(rf"wrong +credentials +.*: \d+ {reason}. \S", ended.out), ended.out


def test_a_key_that_the_service_does_not_know(person, simulator):
    key = f"--key={simulator.data}/AuthKey_{simulator.key_id}.p8"
    ended = person.run("check", key, "--key-id=NOBODYKNOW", person.key[1], *person.topic, *person.endpoint, "--json")
    assert ended.status == 77
    assert findings(ended) == [("key", "ok"), ("connection", "ok"), ("credentials", "wrong")]


def test_a_key_that_is_none_does_not_hide_the_network(person, simulator):
    certificate = person.directory / "certificate.pem"
    certificate.touch(mode=0o600)
    certificate.write_bytes((simulator.data / "authority.pem").read_bytes())
    for key, status in [(certificate, 77), ("/nowhere.p8", 66)]:
        ended = person.run(
            "check", "--key", key, "--key-id=SIMULATED1", "--team-id=SIMTEAM001", *person.topic, *person.endpoint, "--json"
        )
        assert ended.status == status
        assert findings(ended) == [("key", "wrong"), ("connection", "ok")]
    assert simulator.api("GET", "requests") == []


@pytest.mark.parametrize(
    "first, last, verdict, words",
    [
        (-10, 300, "ok", "300 days left"),
        (-10, 29, "warning", "29 days left"),
        (-10, 0, "warning", "0 days left"),
        (-400, -35, "wrong", "expired on"),
        (3, 300, "wrong", "not valid before"),
    ],
)
def test_a_certificate_s_time(person, first, last, verdict, words):
    key, cert = person.directory / "key.pem", person.directory / "cert.pem"
    make_certificate(key, cert, first, last)
    ended = person.run("check", "--cert", cert, "--cert-key", key, *person.topic, *person.endpoint, "--json")
    finding = ended.events[0]
    assert (finding["what"], finding["verdict"]) == ("certificate", verdict) and words in finding["message"]
    # No authority signed it, which the service reports for one that TLS accepts.
    assert ended.status == 77
    assert ("BadCertificate" in ended.out) == (verdict != "wrong")


def test_a_push_certificate_needs_no_topic(person, simulator):
    made = simulator.api("POST", "certificates", {"topics": [TOPIC], "days": 365})
    both = person.file("both.pem", made["certificate"] + made["privateKey"])
    ended = person.run("check", "--cert", both, *person.endpoint)
    assert ended.status == 0, ended.out
    assert "days left" in ended.out


def test_a_network_that_leads_nowhere(person, simulator):
    nowhere = f"--endpoint=https://127.0.0.1:{free_port()}"
    ended = person.run("check", *person.key, *person.topic, nowhere)
    assert ended.status == 69 and re.search("wrong +connection +.*refuses connections", ended.out), ended.out
    ended = person.run("check", *person.key, *person.topic, person.endpoint[0])
    assert ended.status == 69 and "not trusted" in ended.out and "credentials" not in ended.out
    simulator.conditions(certificate="expired")
    assert "not valid now" in person.check().out
    simulator.conditions(certificate="wrongHost")
    assert "another name" in person.check().out
    ended = person.check(f"--manage=https://127.0.0.1:{free_port()}")
    assert re.search("warning +connection +.*only needed for broadcast channels", ended.out), ended.out


def test_a_service_that_disconnects_or_does_not_answer(person, simulator):
    simulator.conditions(welcome="closed")
    assert person.check("--timeout", "2").status == 69
    simulator.conditions(welcome="silent")
    ended = person.check("--timeout", "2")
    assert ended.status == 69 and "wrong" in ended.out, ended.out


def test_help_mentions_that_a_push_is_sent(person):
    ended = person.run("check", "--help")
    assert ended.status == 0 and "SENDS ONE PUSH" in ended.out


def test_channels_that_the_service_refuses(person, simulator):
    ended = person.channels("create", "--storage", "newest")
    assert ended.status == 64
    simulator.api("PUT", f"apps/{TOPIC}", {"team": simulator.team, "broadcast": False})
    ended = person.channels("list")
    assert ended.status == 77 and "FeatureNotEnabled" in ended.err and "developer portal" in ended.err, ended.err
    ended = person.run("channels", "list", *person.access())
    assert ended.status == 65 and "--manage" in ended.err, "the port for pushes knows no channels"
    nowhere = f"--manage=https://127.0.0.1:{free_port()}"
    ended = person.run("channels", "list", *person.access(), nowhere)
    assert ended.status == 69 and "refuses connections" in ended.err
    assert person.run("channels", "list", *person.topic, *person.endpoint).status == 64
