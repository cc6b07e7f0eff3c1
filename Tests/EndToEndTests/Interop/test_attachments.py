"""Attachments over HTTP: resumable uploads, ranges, quotas, and files that a kill or a full disk leaves."""

import base64
import hashlib
import os
import random
import sqlite3
import subprocess
import threading
import time

import pytest
import requests

from carillon_peer import PATIENCE, assert_problem, await_value, in_parallel
from raw_peer import RawHTTP

PART = {"Content-Type": "application/partial-upload"}


def digest(data: bytes) -> str:
    return "sha-256=:" + base64.b64encode(hashlib.sha256(data).digest()).decode() + ":"


class Uploader:
    """A device that uploads, and one that may fetch."""

    def __init__(self, server):
        self.server = server
        self.device = server.register_device()
        self.reader = server.register_device()

    def create(self, data=b"", length=None, complete=None, readers=None, query="", **headers):
        fields = {name.replace("_", "-"): str(value) for name, value in headers.items()}
        if complete is not None:
            fields["Upload-Complete"] = complete
        if length is not None:
            fields["Upload-Length"] = str(length)
        path = f"/v1/attachments?readers={readers or self.reader.id}{query}"
        return self.server.request("POST", path, key=self.device.credential, data=data, headers=fields)

    def begin(self, length: int, **options) -> str:
        answer = self.create(length=length, complete="?0", **options)
        assert answer.status_code == 201, answer.text
        assert answer.headers["Upload-Complete"] == "?0" and "max-age" in answer.headers["Upload-Limit"]
        return answer.headers["Location"]

    def patch(self, location, offset, data=b"", complete="?0", device=None, **headers):
        fields = PART | {"Upload-Offset": str(offset), "Upload-Complete": complete}
        fields |= {name.replace("_", "-"): str(value) for name, value in headers.items()}
        fields = {name: value for name, value in fields.items() if value != "None"}
        key = (device or self.device).credential
        return self.server.request("PATCH", location, key=key, data=data, headers=fields)

    def head(self, location, device=None, **headers):
        key = (device or self.device).credential
        return self.server.request("HEAD", location, key=key, headers=headers)

    def offset(self, location) -> int:
        answer = self.head(location)
        assert answer.status_code == 204 and answer.headers["Cache-Control"] == "no-store"
        return int(answer.headers["Upload-Offset"])

    def get(self, location, device=None, **headers):
        key = (device or self.reader).credential
        return self.server.request("GET", location, key=key, headers=headers)

    def delete(self, location, device=None):
        return self.server.request("DELETE", location, key=(device or self.device).credential)

    def head_of(self, method: str, path: str, **fields) -> str:
        lines = [f"{method} {path} HTTP/1.1", "Host: a", f"Authorization: Bearer {self.device.credential}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        return "\r\n".join(lines) + "\r\n\r\n"


def files(server) -> list[str]:
    folder = server.data / "attachments"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def kept_bytes(server, location: str) -> int:
    """How much of an upload that goes on is in its file; to ask the server would end the transfer."""
    name = location.rsplit("/", 1)[1] + ".part"
    return sum(path.stat().st_size for path in (server.data / "attachments").rglob(name))


@pytest.fixture
def uploader(server):
    return Uploader(server)


@pytest.fixture
def own(make_server):
    """An uploader at a server of its own."""

    def make(**settings):
        return Uploader(make_server(**settings))

    return make


DATA = random.Random(7).randbytes(300_000)


# Uploading


def test_104_is_sent_only_for_a_known_version_and_names_the_version(uploader):
    for version in ("3", "5", "6", "7", "8", "4", "9", "x", None):
        fields = {"Content_Length": "4"}
        if version == "3":
            fields["Upload_Incomplete"] = "?0"
        else:
            fields["Upload_Complete"] = "?1"
        if version:
            fields["Upload_Draft_Interop_Version"] = version
        with RawHTTP(uploader.server) as raw:
            raw.send(uploader.head_of("POST", f"/v1/attachments?readers={uploader.reader.id}", **fields) + "data")
            status, told, _ = raw.read_answer()
            if version in ("3", "5", "6", "7", "8"):
                assert status == 104 and told["upload-draft-interop-version"] == version
                assert told["location"].startswith(uploader.server.url + "/v1/attachments/")
                assert ("upload-limit" in told) == (version not in ("3", "5"))
                status, answer, _ = raw.read_answer()
                assert answer["location"] == told["location"]
            else:
                answer = told
            # An upload with an unknown version, or without one, is a plain upload.
            assert status == 201, (version, answer)
            assert answer.get("upload-incomplete") == ("?0" if version == "3" else None)
            assert answer.get("upload-complete") == (None if version == "3" else "?1")
            assert answer["upload-offset"] == "4"


def test_104_is_not_sent_when_it_is_off_nor_in_http_1_0(own, uploader):
    off = own(CARILLON_UPLOAD_RESUMPTION="off")
    fields = {"Content_Length": "0", "Upload_Complete": "?1", "Upload_Draft_Interop_Version": "8"}
    for who, version in ((off, "HTTP/1.1"), (uploader, "HTTP/1.0")):
        with RawHTTP(who.server) as raw:
            head = who.head_of("POST", f"/v1/attachments?readers={who.reader.id}", **fields)
            raw.send(head.replace("HTTP/1.1", version))
            assert raw.read_answer()[0] == 201


def test_expect_gets_100_and_104_but_only_with_a_valid_credential(uploader):
    fields = {"Content_Length": "4", "Upload_Complete": "?1", "Upload_Draft_Interop_Version": "8", "Expect": "100-continue"}
    path = f"/v1/attachments?readers={uploader.reader.id}"
    with RawHTTP(uploader.server) as raw:
        raw.send(uploader.head_of("POST", path, **fields))
        assert sorted((raw.read_answer()[0], raw.read_answer()[0])) == [100, 104]
        raw.send("data")
        assert raw.read_answer()[0] == 201
    with RawHTTP(uploader.server) as raw:
        raw.send(uploader.head_of("POST", path, **fields).replace("Bearer ", "Bearer x"))
        assert raw.read_answer()[0] == 401


def test_an_upload_in_parts_reports_its_offset_and_is_complete_only_after_the_last_part(uploader):
    location = uploader.begin(len(DATA))
    head = uploader.head(location, **{"Upload-Draft-Interop-Version": "8"})
    assert head.status_code == 204 and head.headers["Upload-Complete"] == "?0"
    assert (head.headers["Upload-Offset"], head.headers["Upload-Length"]) == ("0", str(len(DATA)))
    assert "max-size" in head.headers["Upload-Limit"]
    offset = 0
    while offset < len(DATA):
        assert uploader.offset(location) == offset
        answer = uploader.patch(location, offset, DATA[offset : offset + 70_000])
        assert answer.status_code == 204 and answer.headers["Upload-Complete"] == "?0"
        offset += 70_000
    assert uploader.get(location).status_code == 404, "not said to be whole"
    answer = uploader.patch(location, len(DATA), complete="?1")
    assert answer.status_code == 200 and answer.headers["Upload-Complete"] == "?1"
    assert answer.json()["length"] == len(DATA)
    # The client repeats the last request if its answer was lost.
    again = uploader.patch(location, len(DATA), complete="?1")
    assert again.status_code == 200 and again.headers["Upload-Complete"] == "?1" and again.json() == answer.json()
    late = uploader.patch(location, 3, b"x", complete="?1")
    assert_problem(late, 409, "upload_completed")
    assert late.headers["Upload-Complete"] == "?1"
    assert uploader.head(location).headers["Upload-Complete"] == "?1"
    assert uploader.get(location).content == DATA


def test_an_interrupted_creation_continues_at_its_stored_offset(uploader):
    fields = {"Content_Length": len(DATA), "Upload_Complete": "?1", "Upload_Draft_Interop_Version": "8"}
    with RawHTTP(uploader.server) as raw:
        raw.send(uploader.head_of("POST", f"/v1/attachments?readers={uploader.reader.id}", **fields))
        status, told, _ = raw.read_answer()
        assert status == 104
        raw.send(DATA[:100_000])
    location = told["location"]
    await_value(lambda: uploader.offset(location), lambda it: it == 100_000, "the part that came is kept")
    answer = uploader.patch(location, 100_000, DATA[100_000:], complete="?1")
    assert answer.status_code == 200
    assert uploader.get(location).content == DATA


def test_a_plain_upload_that_is_cut_leaves_nothing(own):
    uploader = own()
    fields = {"Content_Length": len(DATA)}
    with RawHTTP(uploader.server) as raw:
        raw.send(uploader.head_of("POST", f"/v1/attachments?readers={uploader.reader.id}", **fields))
        raw.send(DATA[:100_000])
        await_value(lambda: files(uploader.server), lambda it: len(it) == 1, "it is begun")
    await_value(lambda: files(uploader.server), lambda it: it == [], "nobody could go on")


def test_a_wrong_offset_is_409_and_changes_nothing(uploader):
    location = uploader.begin(10)
    assert uploader.patch(location, 0, b"abcde").status_code == 204
    for wrong in (0, 4, 6, 10, 999_999_999_999_999):
        answer = uploader.patch(location, wrong, b"x")
        assert answer.status_code == 409 and answer.headers["Upload-Offset"] == "5"
        assert answer.headers["Upload-Complete"] == "?0"
        problem = answer.json()
        assert problem["type"].endswith("#mismatching-upload-offset")
        assert (problem["expected-offset"], problem["provided-offset"]) == (5, wrong)
    assert uploader.patch(location, 5, b"fghij", complete="?1").status_code == 200
    assert uploader.get(location).content == b"abcdefghij"


@pytest.mark.parametrize("name, value", [
    ("Upload-Offset", "None"), ("Upload-Offset", "-1"), ("Upload-Offset", "1.5"), ("Upload-Offset", "x"),
    ("Upload-Offset", "9" * 16), ("Upload-Offset", "0, 0"), ("Upload-Complete", "None"), ("Upload-Complete", "1"),
    ("Upload-Complete", "?2"), ("Upload-Complete", "true"), ("Upload-Length", "-1"), ("Upload-Length", "x"),
    ("Content-Digest", "sha-256"), ("Content-Digest", "sha-256=:AA==:"), ("Content-Digest", "sha-256=?"),
])
def test_a_part_with_an_invalid_header_is_refused_and_not_stored(uploader, name, value):
    location = uploader.begin(4)
    answer = uploader.patch(location, 0, b"data", **{name.replace("-", "_"): value})
    assert_problem(answer, 400, "upload_headers_invalid")
    assert uploader.offset(location) == 0
    assert_problem(uploader.patch(location, 0, b"data", Content_Type="text/plain"), 415, "upload_type_invalid")
    assert uploader.offset(location) == 0


@pytest.mark.parametrize("headers, status, code", [
    ({"Upload_Length": "-1"}, 400, "upload_headers_invalid"),
    ({"Upload_Length": "1e9"}, 400, "upload_headers_invalid"),
    ({"Upload_Length": "9" * 15, "Upload_Complete": "?0"}, 413, "attachment_too_large"),
    ({"Upload_Length": "9" * 30}, 400, "upload_headers_invalid"),
    ({"Upload_Length": "3"}, 400, "upload_length_inconsistent"),
    ({"Upload_Length": "5", "Upload_Complete": "?1"}, 400, "upload_length_inconsistent"),
    ({"Upload_Complete": "?0"}, 411, "upload_length_missing"),
    ({"Upload_Complete": "yes", "Upload_Length": "4"}, 400, "upload_headers_invalid"),
    ({"Upload_Offset": "4"}, 400, "upload_headers_invalid"),
    ({"Repr_Digest": "sha-256=x"}, 400, "upload_headers_invalid"),
    ({"Idempotency_Key": "a" * 256}, 400, "idempotency_key_invalid"),
])
def test_a_creation_with_a_wrong_header_leaves_nothing(own, headers, status, code):
    uploader = own()
    assert_problem(uploader.create(b"data", **headers), status, code)
    assert files(uploader.server) == []
    if code == "attachment_too_large":
        assert uploader.create(b"data", **headers).headers["Upload-Limit"] == f"max-size={2 << 30}"


def test_readers_and_lifetime_are_checked(uploader):
    for query in ("", "readers=", "readers=x", f"readers={uploader.reader.id},", "readers=" + "0" * 32):
        answer = uploader.server.request(
            "POST", "/v1/attachments?" + query, key=uploader.device.credential, data=b"x")
        assert answer.status_code in (400, 404) or query.endswith(","), (query, answer.text)
    many = ",".join([uploader.reader.id] * 33)
    assert_problem(uploader.create(b"x", readers=many), 400, "parameter_invalid")
    for ttl in ("0", "59", "x", str(29 * 86_400)):
        assert_problem(uploader.create(b"x", query=f"&ttl={ttl}"), 400, "parameter_invalid")


def test_the_newest_of_two_requests_for_an_upload_wins_and_their_bytes_do_not_mix(uploader):
    location = uploader.begin(len(DATA))
    fields = {
        "Upload_Offset": "0", "Upload_Complete": "?1", "Content_Type": "application/partial-upload",
        "Content_Length": str(len(DATA)),
    }
    with RawHTTP(uploader.server) as stalled:
        stalled.send(uploader.head_of("PATCH", location, **fields))
        stalled.send(b"x" * 50_000)
        await_value(lambda: kept_bytes(uploader.server, location), lambda it: it == 50_000, "the part is in its file")
        # HEAD ends the transfer that is under way, and its answer can be relied on.
        offset = uploader.offset(location)
        assert offset == 50_000
        status, problem = stalled.read_problem()
        assert (status, problem["code"]) == (409, "upload_taken_over")
    with RawHTTP(uploader.server) as second:
        second.send(uploader.head_of("PATCH", location, **fields | {
            "Upload_Offset": str(offset), "Content_Length": str(len(DATA) - offset)}))
        second.send(b"y" * 1000)
        await_value(lambda: kept_bytes(uploader.server, location), lambda it: it == 51_000, "the part is in its file")
        assert uploader.patch(location, 50_000, b"z").status_code == 409, "the older kept 1,000 more"
        assert second.read_problem()[0] == 409
    rest = uploader.patch(location, 51_000, b"z" * (len(DATA) - 51_000), complete="?1")
    assert rest.status_code == 200
    assert uploader.get(location).content == b"x" * 50_000 + b"y" * 1000 + b"z" * (len(DATA) - 51_000)


def test_many_resumers_at_once_leave_one_whole_file(uploader, seed):
    location = uploader.begin(len(DATA))
    stop = threading.Event()
    faults = []

    def resume(number):
        choice = random.Random(seed + number)
        while not stop.is_set():
            offset = int(uploader.head(location).headers["Upload-Offset"])
            end = min(len(DATA), offset + choice.randrange(1, 40_000))
            answer = uploader.patch(location, offset, DATA[offset:end], complete="?1" if end == len(DATA) else "?0")
            if answer.status_code not in (200, 204, 409):
                faults.append((answer.status_code, answer.text))
            if answer.status_code == 200 or answer.headers.get("Upload-Complete") == "?1":
                stop.set()

    threads = [threading.Thread(target=resume, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not faults and uploader.get(location).content == DATA


def test_a_length_that_contradicts_the_upload_is_refused(own):
    uploader = own()
    location = uploader.begin(10)
    assert_problem(uploader.patch(location, 0, b"x" * 11), 400, "upload_length_inconsistent")
    assert_problem(uploader.patch(location, 0, b"x" * 9, complete="?1"), 400, "upload_length_inconsistent")
    assert_problem(uploader.patch(location, 0, b"x", Upload_Length=11), 400, "upload_length_inconsistent")
    assert uploader.offset(location) == 0, "what was said is refused before anything is read"
    # In chunks no length is sent before.
    assert_problem(uploader.patch(location, 0, iter([b"xx"]), complete="?1"), 400, "upload_length_inconsistent")
    assert uploader.offset(location) == 2
    answer = uploader.patch(location, 2, iter([b"x" * 4, b"x" * 5]))
    assert_problem(answer, 400, "upload_length_inconsistent")
    assert uploader.head(location).status_code == 404, "bytes past the length end the upload"
    await_value(lambda: files(uploader.server), lambda it: it == [], "nothing is left behind")


def test_deleting_an_upload_removes_its_file(own):
    uploader = own()
    location = uploader.begin(len(DATA))
    uploader.patch(location, 0, DATA[:1000])
    assert len(files(uploader.server)) == 1
    assert uploader.delete(location).status_code == 204
    assert files(uploader.server) == []
    for answer in (uploader.head(location), uploader.patch(location, 1000, b"x"), uploader.delete(location), uploader.get(location)):
        assert answer.status_code == 404


def test_only_the_owner_may_change_an_attachment_and_only_readers_may_fetch_it(uploader):
    stranger = uploader.server.register_device()
    growing, whole = uploader.begin(4), uploader.create(b"data").headers["Location"]
    for location in (growing, whole, "/v1/attachments/" + "0" * 36):
        for answer in (
            uploader.head(location, device=stranger), uploader.patch(location, 0, b"data", device=stranger),
            uploader.delete(location, device=stranger), uploader.get(location, device=stranger),
        ):
            assert answer.status_code == 404
    # A reader may fetch a complete attachment, and change nothing.
    assert uploader.head(growing, device=uploader.reader).status_code == 404
    assert uploader.patch(growing, 0, b"data", device=uploader.reader).status_code == 404
    assert uploader.delete(growing, device=uploader.reader).status_code == 404
    assert uploader.patch(whole, 4, b"", complete="?1", device=uploader.reader).status_code == 404
    assert uploader.head(whole, device=uploader.reader).headers["Upload-Length"] == "4"
    # The uploader's keys of another app have no access, too.
    assert uploader.server.request("GET", whole, key=uploader.server.sender_key).status_code == 404
    assert uploader.server.request("GET", whole, key=uploader.server.client_key).status_code in (401, 403)
    assert uploader.server.request("GET", whole).status_code == 401


@pytest.mark.parametrize("name", ["..", "%2e%2e%2f%2e%2e%2fcarillon.sqlite", "a", "..%2Fkey", "0" * 35, "g" * 36, "%00" * 36])
def test_ids_that_are_paths_are_nothing(uploader, name):
    for method in ("GET", "HEAD", "DELETE"):
        answer = requests.Request(method, uploader.server.url + "/v1/attachments/x").prepare()
        answer.url = uploader.server.url + "/v1/attachments/" + name
        answer.headers["Authorization"] = "Bearer " + uploader.device.credential
        assert requests.Session().send(answer, timeout=PATIENCE).status_code in (400, 404, 405)


def test_deleting_the_owner_ends_its_upload(own):
    uploader = own()
    location = uploader.begin(10)
    assert uploader.patch(location, 0, b"abc").status_code == 204
    assert uploader.device.request("DELETE", "/v1/device").status_code == 204
    assert uploader.patch(location, 3, b"x").status_code == 401
    await_value(lambda: files(uploader.server), lambda it: it == [], "its files go, too")


def test_content_with_another_digest_is_refused(own):
    uploader = own()
    location = uploader.begin(8)
    assert uploader.patch(location, 0, b"abcd", Content_Digest=digest(b"abcd")).status_code == 204
    assert_problem(uploader.patch(location, 4, b"efgx", Content_Digest=digest(b"efgh")), 400, "digest_mismatch")
    assert uploader.offset(location) == 4
    assert uploader.patch(location, 4, b"efgh", complete="?1", Content_Digest="sha-512=:AA==:").status_code == 200
    assert uploader.get(location).content == b"abcdefgh"
    uploader.delete(location)
    assert_problem(uploader.create(b"data", Repr_Digest=digest(b"date")), 400, "digest_mismatch")
    assert files(uploader.server) == []
    assert uploader.create(b"data", Repr_Digest=digest(b"data")).status_code == 201
    location = uploader.begin(4, Repr_Digest=digest(b"data"))
    assert uploader.patch(location, 0, b"da").status_code == 204
    assert_problem(uploader.patch(location, 2, b"te", complete="?1"), 400, "digest_mismatch")
    assert uploader.head(location).status_code == 404


def test_sizes_quotas_and_the_number_of_uploads_are_limited(own):
    uploader = own(
        CARILLON_ATTACHMENT_BYTES=200_000, CARILLON_ATTACHMENT_BYTES_PER_USER=500_000,
        CARILLON_ATTACHMENT_BYTES_PER_APP=700_000, CARILLON_UNFINISHED_UPLOAD_SECONDS=2)
    assert_problem(uploader.create(length=200_001, complete="?0"), 413, "attachment_too_large")
    locations = [uploader.begin(100_000) for _ in range(4)]
    assert_problem(uploader.create(length=1, complete="?0"), 429, "uploads_too_many")
    # Reserved bytes count, received or not.
    assert uploader.patch(locations[0], 0, b"x" * 100_000, complete="?1").status_code == 200
    assert_problem(uploader.create(length=100_001, complete="?0"), 409, "quota_exceeded")
    another = Uploader(uploader.server)
    assert another.create(b"x" * 200_000).status_code == 201
    assert_problem(another.create(b"x" * 200_000), 409, "quota_exceeded")
    # In the first hour of a run nothing expires by its time alone; an attachment that its owner deletes returns its reserved space.
    time.sleep(3)
    for location in locations[1:]:
        assert uploader.head(location).status_code == 204
        assert uploader.delete(location).status_code == 204
    await_value(lambda: len(files(uploader.server)), lambda it: it == 2, "their files go")
    assert uploader.create(b"x" * 200_000).status_code == 201
    assert uploader.get(locations[0]).status_code == 200


def test_parts_with_content_range_are_refused(uploader, tmp_path):
    location = uploader.begin(len(DATA))
    (tmp_path / "file").write_bytes(DATA)
    for options in (["-C", "500"], ["-C", "-"], []):
        done = subprocess.run(
            ["curl", "-s", "-o", tmp_path / "answer", "-w", "%{http_code}", "-T", tmp_path / "file", *options,
             "-H", f"Authorization: Bearer {uploader.device.credential}", location],
            capture_output=True, text=True, timeout=PATIENCE)
        assert done.stdout == "400", (options, done)
    assert uploader.offset(location) == 0


def test_many_empty_attachments_use_up_a_quota_too(own):
    uploader = own(CARILLON_ATTACHMENT_BYTES_PER_USER=5 * 65_536)
    for _ in range(5):
        assert uploader.create(b"").status_code == 201
    assert_problem(uploader.create(b""), 409, "quota_exceeded")


def test_the_same_creation_again_begins_nothing(own):
    uploader = own()
    first = uploader.begin(10, Idempotency_Key="k")
    assert uploader.patch(first, 0, b"abc").status_code == 204
    again = uploader.create(length=10, complete="?0", Idempotency_Key="k")
    assert again.headers["Location"] == first and again.headers["Upload-Offset"] == "3"
    assert_problem(uploader.create(length=11, complete="?0", Idempotency_Key="k"), 422, "idempotency_key_reused")
    assert len(files(uploader.server)) == 1


def test_a_trickle_is_ended_and_its_data_is_kept(own):
    uploader = own(CARILLON_BODY_SECONDS=10)
    location = uploader.begin(1_000_000)
    with RawHTTP(uploader.server) as raw:
        raw.send(uploader.head_of(
            "PATCH", location, Upload_Offset="0", Upload_Complete="?1", Content_Type="application/partial-upload",
            Content_Length="1000000"))
        begun, sent = time.monotonic(), 0
        try:
            while sent < 1000:
                raw.send(b"x")
                sent += 1
                time.sleep(0.1)
        except OSError:
            pass
        assert time.monotonic() - begun > 9
        assert sent < 1000, "a byte now and then is no upload"
        assert raw.read_problem()[1]["code"] == "request_timeout"
    assert 0 < uploader.offset(location) <= sent


# Fetching


@pytest.mark.parametrize("asked, status, part", [
    ("bytes=0-0", 206, (0, 1)), ("bytes=10-19", 206, (10, 20)), ("bytes=299990-", 206, (299_990, 300_000)),
    ("bytes=-5", 206, (299_995, 300_000)), ("bytes=-999999999999999999999", 206, (0, 300_000)),
    ("bytes=5-999999999999999999999999", 206, (5, 300_000)), ("bytes=300000-", 416, None), ("bytes=-0", 416, None),
    ("bytes=9999999999999999999999-", 416, None), ("bytes=5-4", 200, None), ("bytes=a-b", 200, None),
    ("bytes=0-1,5-6", 200, None), ("bytes=", 200, None), ("bytes=-", 200, None), ("lines=0-1", 200, None),
])
def test_a_range_is_returned_or_refused_or_ignored(uploader, asked, status, part):
    location = uploader.create(DATA).headers["Location"]
    answer = uploader.get(location, Range=asked)
    assert answer.status_code == status
    if status == 206:
        assert answer.headers["Content-Range"] == f"bytes {part[0]}-{part[1] - 1}/300000"
        assert answer.content == DATA[part[0] : part[1]]
        assert answer.headers["ETag"] == uploader.head(location).headers["ETag"]
    elif status == 416:
        assert answer.headers["Content-Range"] == "bytes */300000"
    else:
        assert answer.content == DATA


def test_conditional_and_partial_requests_return_the_same_content(uploader):
    location = uploader.create(DATA).headers["Location"]
    whole = uploader.get(location, **{"Accept-Encoding": "gzip, deflate"})
    assert "Content-Encoding" not in whole.headers and whole.headers["X-Content-Type-Options"] == "nosniff"
    assert whole.headers["Content-Type"] == "application/octet-stream" and "no-transform" in whole.headers["Cache-Control"]
    assert whole.headers["Accept-Ranges"] == "bytes" and whole.headers["Content-Length"] == "300000"
    tag = whole.headers["ETag"]
    for condition, status in ((tag, 206), ("W/" + tag, 200), ('"x"', 200), ("Tue, 24 Nov 2026 00:00:00 GMT", 200)):
        assert uploader.get(location, Range="bytes=0-9", **{"If-Range": condition}).status_code == status
    assert uploader.get(location, **{"If-None-Match": tag}).status_code == 304
    assert uploader.get(location, **{"If-None-Match": f'"x", W/{tag}'}).status_code == 304
    assert uploader.get(location, **{"If-None-Match": '"x"'}).status_code == 200
    parts = [uploader.get(location, Range=f"bytes={at}-{at + 99_999}").content for at in range(0, 300_000, 100_000)]
    assert b"".join(parts) == whole.content == DATA


def test_it_goes_with_its_last_reader_and_with_the_senders(own):
    uploader = own()
    second = uploader.server.register_device()
    location = uploader.create(DATA, readers=f"{uploader.reader.id},{second.id},senders").headers["Location"]
    key = uploader.server.sender_key
    assert uploader.server.request("GET", location, key=key).content == DATA
    assert uploader.delete(location, device=uploader.reader).status_code == 204
    assert uploader.get(location).status_code == 404, "who has said that he has it"
    assert uploader.get(location, device=second).content == DATA
    assert uploader.delete(location, device=second).status_code == 204
    assert len(files(uploader.server)) == 1
    assert uploader.server.request("DELETE", location, key=key).status_code == 204
    assert files(uploader.server) == []
    # From a sender to a device.
    sent = uploader.server.request(
        "POST", f"/v1/attachments?readers={uploader.reader.id}", key=key, data=DATA).headers["Location"]
    assert uploader.get(sent).content == DATA
    assert uploader.get(sent, device=second).status_code == 404
    # With its readers it goes, and with its app.
    assert uploader.reader.request("DELETE", "/v1/device").status_code == 204
    await_value(lambda: files(uploader.server), lambda it: it == [], "nobody is left to fetch it")
    uploader.create(DATA, readers=second.id)
    assert uploader.server.admin("DELETE", "/v1/apps/com.example.app").status_code == 204
    await_value(lambda: files(uploader.server), lambda it: it == [], "the app is gone")


def test_senders_name_devices_of_their_app_only_and_devices_those_of_the_realm(own):
    uploader = own()
    server = uploader.server
    assert server.admin("POST", "/v1/apps", {"id": "com.example.other"}).status_code == 201
    key = server.admin("POST", "/v1/keys", {"role": "client", "app": "com.example.other"}).json()["secret"]
    other = server.register_device(app="com.example.other", key=key)
    path = f"/v1/attachments?readers={other.id}"
    assert_problem(server.request("POST", path, key=server.sender_key, data=b"x"), 404, "device_unknown")
    assert files(server) == []
    assert_problem(uploader.create(b"x", readers=other.id), 404, "device_unknown")
    for app in ("com.example.app", "com.example.other"):
        assert server.admin("PUT", f"/v1/apps/{app}/realm", {"realm": "house"}).status_code == 200
    location = uploader.create(b"x", readers=other.id).headers["Location"]
    assert uploader.get(location, device=other).content == b"x"


def test_uploads_are_begun_at_a_rate(own):
    uploader = own(CARILLON_UPLOAD_RATE="1:3")
    # At once: one after the other they may take longer than the rate asks for.
    answers = in_parallel([lambda: uploader.create(b"x")] * 12)
    assert [answer.status_code for answer in answers].count(201) >= 3
    refused = [answer for answer in answers if answer.status_code != 201]
    assert refused
    for answer in refused:
        assert_problem(answer, 429, "rate_limited")
    assert Uploader(uploader.server).create(b"x").status_code == 201, "another has a rate of his own"


def test_a_lifetime_ends(own):
    uploader = own()
    location = uploader.create(b"data", query="&ttl=60").headers["Location"]
    assert 20 < int(uploader.head(location, **{"Upload-Draft-Interop-Version": "8"}).headers["Upload-Limit"].split("=")[-1]) <= 60


def test_a_reader_that_stops_reading_is_let_go(own):
    uploader = own(CARILLON_STALL_SECONDS=2)
    # More than a socket of this system ever takes in unread.
    location = uploader.create(bytes(100_000_000)).headers["Location"]
    with RawHTTP(uploader.server) as raw:
        raw.send(uploader.head_of("GET", location).replace(uploader.device.credential, uploader.reader.credential))
        await_value(uploader.server.http_connections, lambda count: count == 0, "the connection is closed")
        assert len(raw.read_to_end()) < 100_000_000


def test_transfers_of_a_device_are_bounded(own):
    uploader = own()
    location = uploader.create(bytes(100_000_000)).headers["Location"]
    raws = []
    try:
        for _ in range(8):
            raws.append(RawHTTP(uploader.server))
            raws[-1].send(uploader.head_of("GET", location))
        # Each has its place before another request, which would take it.
        assert all(raw.socket.recv(12) == b"HTTP/1.1 200" for raw in raws)
        assert_problem(uploader.get(location, device=uploader.device, Range="bytes=0-1"), 429, "rate_limited")
        assert uploader.get(location, Range="bytes=0-1").status_code == 206, "another has places of its own"
    finally:
        for raw in raws:
            raw.socket.close()
    await_value(
        lambda: uploader.get(location, device=uploader.device, Range="bytes=0-1").status_code, lambda it: it == 206, "given back")


# State after a kill


def test_a_full_disk_is_507_and_nothing_else_suffers(executable, small_disk, filler):
    from carillon_peer import Server

    server = Server(executable, small_disk / "server", {"CARILLON_ATTACHMENT_FREE_BYTES": "1000000"})
    server.prepare()
    server.start()
    try:
        uploader = Uploader(server)
        channel = uploader.device.open_channel()
        assert_problem(uploader.create(length=20_000_000, complete="?0"), 507, "attachment_storage_full")
        location = uploader.begin(4_000_000)
        assert uploader.patch(location, 0, DATA).status_code == 204
        filler_size = os.statvfs(small_disk).f_bavail * 4096 - 1_500_000
        filler.path.write_bytes(bytes(filler_size))
        answer = uploader.patch(location, len(DATA), b"x" * 1_000_000)
        assert_problem(answer, 507, "attachment_storage_full")
        assert channel.post(b"x").status_code == 201, "messages go on"
        filler.empty()
        offset = uploader.offset(location)
        assert uploader.patch(location, offset, b"x" * (4_000_000 - offset), complete="?1").status_code == 200
    finally:
        server.end()


@pytest.mark.timeout(3600)
def test_sigkill_during_transfers_loses_no_answered_bytes_and_leaves_no_files_without_an_attachment(own, seed):
    """SIGKILL while files are uploaded and fetched: the answered bytes stay, and each file belongs to an attachment."""
    uploader = own()
    server = uploader.server
    choice = random.Random(seed)
    kills = int(os.environ.get("CARILLON_ATTACHMENT_KILLS", "6"))
    whole: dict[str, bytes] = {}
    # By their idempotency keys: their contents, and the announced length.
    growing: dict[str, tuple[bytes, int]] = {}
    lock = threading.Lock()
    faults = []

    def upload_one(own_choice):
        key, data = str(own_choice.random()), own_choice.randbytes(own_choice.choice([0, 10, 70_000, 900_000]))
        with lock:
            growing[key] = (data, 0)
        location = uploader.begin(len(data), Idempotency_Key=key)
        offset = 0
        while True:
            end = min(len(data), offset + 300_000)
            answer = uploader.patch(location, offset, data[offset:end], complete="?1" if end == len(data) else "?0")
            assert answer.status_code in (200, 204), answer.text
            with lock:
                growing[key] = (data, end)
                if answer.status_code == 200:
                    del growing[key]
                    whole[location] = data
                    return
            offset = end

    def fetch_one(own_choice):
        with lock:
            known = list(whole.items())
        if not known:
            return
        location, wanted = own_choice.choice(known)
        if own_choice.random() < 0.3:
            with lock:
                # Each poll shows whether it is done.
                deleted.add(location)
            uploader.delete(location)
        else:
            got = uploader.get(location)
            assert got.content == wanted or got.status_code == 404 and location in deleted, got.text

    def work(number, seed):
        own_choice = random.Random(seed)
        while not stop.is_set():
            try:
                upload_one(own_choice)
                fetch_one(own_choice)
            except requests.RequestException:
                return
            except AssertionError as fault:
                return faults.append(fault)

    for _ in range(kills):
        stop = threading.Event()
        deleted = set()
        workers = [threading.Thread(target=work, args=(number, choice.random())) for number in range(3)]
        for worker in workers:
            worker.start()
        time.sleep(choice.uniform(0.2, 1.2))
        stop.set()
        server.kill()
        for worker in workers:
            worker.join(PATIENCE)
        assert not faults
        server.start()
        for key, (data, known) in growing.items():
            begun = uploader.create(length=len(data), complete="?0", Idempotency_Key=key)
            assert begun.status_code == 201
            location, offset = begun.headers["Location"], int(begun.headers["Upload-Offset"])
            assert offset >= known, "an offset went back"
            if begun.headers["Upload-Complete"] == "?0":
                assert uploader.patch(location, offset, data[offset:], complete="?1").status_code == 200
            whole[location] = data
        growing.clear()
        for location, data in list(whole.items()):
            if location not in deleted and choice.random() > 10 / len(whole):
                continue
            got = uploader.get(location)
            if got.status_code == 404 and location in deleted:
                del whole[location]
            else:
                assert got.content == data
    for location, data in whole.items():
        assert uploader.get(location).content == data
        assert uploader.delete(location).status_code == 204
    # A file that a kill left between a row and its file is found at the next start, and uses no quota.
    server.restart()
    await_value(lambda: len(files(server)), lambda it: it == len(rows(server, "attachment")), "orphans go")
    used = rows(server, "counter WHERE name = 'attachment_bytes:'")
    assert sum(total[3] for total in used) == sum(row[6] for row in rows(server, "attachment"))


def rows(server, what: str) -> list:
    with sqlite3.connect(f"file:{server.data}/carillon.sqlite?mode=ro", uri=True) as database:
        return database.execute(f"SELECT * FROM {what}").fetchall()
