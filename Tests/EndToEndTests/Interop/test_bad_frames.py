"""Bad WebSocket input, bit by bit: each fault ends its own connection with the right code, and no other."""

import json
import random
import struct
import zlib

import pytest

from carillon_peer import PATIENCE, body_of
from raw_peer import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, RawHTTP, RawWebSocket

MAXIMUM = 65536  # bytes that a client's message may have


@pytest.fixture
def bystander(server):
    """Another client, connected before the fault, that must get a message after it."""
    with server.browser() as socket:
        channel = socket.register()
        yield socket
        assert socket.before_pong() == []
        channel.send(b"still here")
        assert body_of(socket.notification()) == b"still here"


@pytest.fixture(params=["before hello", "after hello"])
def raw(request, server, bystander):
    with RawWebSocket(server) as raw:
        if request.param == "after hello":
            raw.hello()
        yield raw


@pytest.fixture
def greeted(server, bystander):
    with RawWebSocket(server) as raw:
        raw.hello()
        yield raw


# Frames that RFC 6455 forbids: 1002


@pytest.mark.parametrize("opcode", [0x3, 0x4, 0x5, 0x6, 0x7, 0xB, 0xC, 0xD, 0xE, 0xF])
def test_a_reserved_opcode_closes_with_1002(greeted, opcode):
    greeted.send_frame(opcode, b"x")
    assert greeted.close_code() == 1002


@pytest.mark.parametrize("rsv", [0b001, 0b010, 0b100, 0b111])
def test_a_reserved_bit_without_an_extension_closes_with_1002(raw, rsv):
    raw.send_frame(TEXT, b"{}", rsv=rsv)
    assert raw.close_code() == 1002


def test_a_compressed_frame_without_the_extension_closes_with_1002(raw):
    packer = zlib.compressobj(wbits=-15)
    raw.send_frame(
        TEXT, packer.compress(b'{"messageType":"ping"}') + packer.flush(zlib.Z_SYNC_FLUSH)[:-4], rsv=0b100
    )
    assert raw.close_code() == 1002


def test_an_unmasked_frame_closes_with_1002(raw):
    raw.send_frame(TEXT, b'{"messageType":"hello"}', masked=False)
    assert raw.close_code() == 1002


@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
def test_a_fragmented_control_frame_closes_with_1002(raw, opcode):
    raw.send_frame(opcode, b"\x03\xe8", fin=False)
    assert raw.close_code() == 1002


@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
def test_a_control_frame_of_more_than_125_bytes_closes_with_1002(raw, opcode):
    raw.send_frame(opcode, b"\x03\xe8" + b"x" * 124)
    assert raw.close_code() == 1002


def test_a_continuation_of_nothing_closes_with_1002(raw):
    raw.send_frame(CONTINUATION, b"{}")
    assert raw.close_code() == 1002


def test_a_new_message_inside_a_fragmented_one_closes_with_1002(raw):
    raw.send_frame(TEXT, b'{"mess', fin=False)
    raw.send_frame(TEXT, b"{}")
    assert raw.close_code() == 1002


@pytest.mark.parametrize(
    "payload",
    [b"\x03", struct.pack("!H", 999), struct.pack("!H", 1005), struct.pack("!H", 1006), struct.pack("!H", 5000)],
)
def test_a_malformed_close_frame_is_answered_with_1002(greeted, payload):
    greeted.send_frame(CLOSE, payload)
    assert greeted.close_code() == 1002


def test_a_length_with_the_highest_bit_closes(raw):
    raw.send_frame(TEXT, b"", length=2**63)
    assert raw.close_code() in (1002, 1009)


# Kinds and texts


@pytest.mark.parametrize("payload", [b"", b"\0", b'{"messageType":"hello"}'])
def test_binary_closes_with_1003(raw, payload):
    raw.send_frame(BINARY, payload)
    assert raw.close_code() == 1003


@pytest.mark.parametrize(
    "text",
    [b"\xff", b'{"messageType":"\xc3\x28"}', b"\xed\xa0\x80", b"\xc0\xaf", b"{}\xf0\x9f\x92", b"\xf5\x80\x80\x80"],
)
def test_text_that_is_not_utf_8_closes_with_1007(raw, text):
    raw.send_frame(TEXT, text)
    assert raw.close_code() == 1007


def test_a_close_reason_that_is_not_utf_8_closes(greeted):
    greeted.send_frame(CLOSE, b"\x03\xe8\xff\xfe")
    assert greeted.close_code() in (1002, 1007)


@pytest.mark.parametrize("pieces", [[b"\xf0\x9f", b"\xf0\x9f"], [b"\xff", b"{}"], [b"{", b"\x80}"], [b"\xe2\x82", b""]])
def test_fragments_that_are_not_utf_8_together_close_with_1007(raw, pieces):
    raw.send_frame(TEXT, pieces[0], fin=False)
    raw.send_frame(CONTINUATION, pieces[1])
    assert raw.close_code() == 1007


def test_a_close_reason_is_cut_between_characters(device):
    """It repeats the client's text; `close_code` reads the reason as UTF-8."""
    with RawWebSocket(device.server) as raw:
        raw.send_text(json.dumps({"messageType": "hello", "carillon": 1, "credential": device.credential}))
        assert json.loads(raw.read_frame()[1])["messageType"] == "hello"
        raw.send_text(json.dumps({"messageType": "x" + "\U0001f514" * 39}))
        assert raw.close_code() == 1002


def test_a_character_split_between_two_fragments_is_whole(greeted):
    text = json.dumps({"messageType": "ping", "note": "é"}, ensure_ascii=False).encode()
    cut = text.index("é".encode()) + 1
    greeted.send_frame(TEXT, text[:cut], fin=False)
    greeted.send_frame(CONTINUATION, text[cut:])
    assert greeted.read_frame()[0] == TEXT


# Sizes


@pytest.mark.parametrize("size", [MAXIMUM + 1, 10 * MAXIMUM])
def test_an_oversized_frame_closes_with_1009(raw, size):
    raw.send_frame(TEXT, b"{" + b" " * (size - 2) + b"}")
    assert raw.close_code() == 1009


@pytest.mark.parametrize("size", [MAXIMUM + 1, 2**31, 2**32 + 7, 2**63 - 1])
def test_a_frame_that_only_claims_to_be_oversized_closes_with_1009_at_once(greeted, size):
    """The head alone is enough; the server does not wait for bytes that would be discarded."""
    greeted.send_frame(TEXT, b"", length=size)
    assert greeted.close_code() == 1009


def test_a_message_of_exactly_the_limit_is_read(greeted):
    greeted.send_frame(TEXT, b"{" + b" " * (MAXIMUM - 2) + b"}")
    assert greeted.read_frame() == (TEXT, b"{}")


def test_fragments_that_add_up_to_too_much_close_with_1009(raw):
    raw.send_frame(TEXT, b" " * 30000, fin=False)
    raw.send_frame(CONTINUATION, b" " * 30000, fin=False)
    raw.send_frame(CONTINUATION, b" " * 30000, fin=False)
    assert raw.close_code() == 1009


@pytest.mark.parametrize("piece", [b"", b" "], ids=["empty", "one byte"])
def test_fragments_without_end_close_the_connection(greeted, piece):
    """Empty fragments never reach a size limit, so their number or their time has to be limited."""
    greeted.http.socket.settimeout(PATIENCE)
    greeted.send_frame(TEXT, b"{", fin=False)
    try:
        for _ in range(200_000):
            greeted.send_frame(CONTINUATION, piece, fin=False)
    except (BrokenPipeError, ConnectionResetError):
        return
    assert greeted.close_code() in (1002, 1008, 1009)


def test_control_frames_between_fragments_are_served(greeted):
    greeted.send_frame(TEXT, b"{", fin=False)
    greeted.send_frame(PING, b"between")
    assert greeted.read_frame() == (PONG, b"between")
    greeted.send_frame(CONTINUATION, b"", fin=False)
    greeted.send_frame(PONG, b"unasked")
    greeted.send_frame(CONTINUATION, b"}")
    assert greeted.read_frame() == (TEXT, b"{}")


# Compression


def inflated_bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(b'{"a":"' + b" " * 40_000_000 + b'"}') + packer.flush(zlib.Z_SYNC_FLUSH)
    return packed[:-4]


def test_a_compression_bomb_closes_and_is_not_inflated(server, bystander):
    bomb = inflated_bomb()
    assert len(bomb) < MAXIMUM
    with RawWebSocket(server, extensions="permessage-deflate") as raw:
        agreed = "permessage-deflate" in raw.handshake.get("sec-websocket-extensions", "")
        raw.hello()
        raw.send_frame(TEXT, bomb, rsv=0b100)
        assert raw.close_code() == (1009 if agreed else 1002)


@pytest.mark.parametrize(
    "offer", ["permessage-deflate; client_max_window_bits", "x-unknown", "permessage-deflate; nonsense=7", ",,;;="]
)
def test_any_offer_of_extensions_leaves_a_working_socket(server, offer):
    with RawWebSocket(server, extensions=offer) as raw:
        assert raw.hello()["status"] == 200


# Ends


def test_a_normal_close_is_answered_with_its_code(greeted):
    greeted.send_frame(CLOSE, struct.pack("!H", 1000) + b"bye")
    assert greeted.close_code() == 1000


@pytest.mark.parametrize("payload", [b"", struct.pack("!H", 3000), struct.pack("!H", 4999)])
def test_other_sound_closes_are_answered_and_ended(greeted, payload):
    greeted.send_frame(CLOSE, payload)
    opcode, _ = greeted.read_frame()
    assert opcode == CLOSE
    assert greeted.http.read_to_end() == b""


def test_frames_after_a_close_are_ignored(server, bystander):
    with RawWebSocket(server) as raw:
        raw.hello()
        channel_id = "0b1c4f4e-31a5-4f0c-9d58-0d5c4b3a2f10"
        raw.send_frame(CLOSE, struct.pack("!H", 1000))
        raw.send_frame(TEXT, json.dumps({"messageType": "register", "channelID": channel_id}).encode())
        assert raw.read_frame()[0] == CLOSE
        assert b"pushEndpoint" not in raw.http.read_to_end()


def test_a_peer_that_never_answers_a_close_is_dropped(greeted):
    greeted.send_frame(TEXT, b"nonsense")
    assert greeted.read_frame()[0] == CLOSE
    assert greeted.http.read_to_end() == b""


def test_a_connection_that_breaks_off_inside_a_frame_is_forgotten(server, bystander):
    for cut in (1, 2, 5, 9):
        with RawWebSocket(server) as raw:
            raw.http.send((b"\x81\xfe\x10\x00abcd" + b"x" * 100)[:cut])


def test_random_bytes_end_their_own_connection_only(server, bystander, seed):
    source = random.Random(seed)
    for _ in range(40):
        with RawWebSocket(server) as raw:
            if source.random() < 0.5:
                raw.hello()
            try:
                raw.http.send(source.randbytes(source.randrange(1, 3000)))
            except (BrokenPipeError, ConnectionResetError):
                pass


def test_a_message_in_single_byte_writes_is_read(greeted):
    key = b"\1\2\3\4"
    frame = b"\x81\x82" + key + bytes(b ^ k for b, k in zip(b"{}", key))
    for byte in frame:
        greeted.http.send(bytes([byte]))
    assert greeted.read_frame() == (TEXT, b"{}")


def test_a_reader_that_reads_nothing_does_not_affect_others(server, bystander):
    """Ten thousand answers wait for a peer that takes none; the others go on."""
    with RawWebSocket(server) as raw:
        raw.hello()
        raw.http.socket.settimeout(1)
        try:
            for _ in range(20_000):
                raw.send_frame(TEXT, b'{"messageType":"ping"}')
        except (TimeoutError, BrokenPipeError, ConnectionResetError):
            pass


# Handshakes


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"Sec-WebSocket-Version": "12"}, 426),
        ({"Sec-WebSocket-Version": None}, 426),
        ({"Sec-WebSocket-Key": None}, 400),
        ({"Sec-WebSocket-Key": "short"}, 400),
        ({"Sec-WebSocket-Key": "*" * 24}, 400),
        ({"Sec-WebSocket-Key": "A" * 24}, 400),
        ({"Connection": "close"}, 426),
        ({"Upgrade": "x-other"}, 426),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
    ids=str,
)
def test_a_malformed_handshake_is_refused(server, bystander, change, refusal):
    fields = {
        "Host": "localhost",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Version": "13",
    } | change
    with RawHTTP(server) as http:
        lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
        http.send("GET / HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n")
        assert http.read_answer()[0] == refusal


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/nowhere"), ("GET", "/push/x"), ("GET", "/health/live"), ("POST", "/")]
)
def test_a_handshake_elsewhere_than_with_get_at_the_root_is_answered_as_plain_http(server, method, path):
    with RawHTTP(server) as http:
        http.send(
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        status, _, _ = http.read_answer()
        assert status != 101


def test_frames_sent_with_the_handshake_in_one_write_are_read(server):
    key = b"\0\0\0\0"
    text = b'{"messageType":"hello"}'
    with RawHTTP(server) as http:
        http.send(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            + bytes([0x81, 0x80 | len(text)])
            + key
            + text
        )
        status, _, _ = http.read_answer()
        assert status == 101
        while b'"use_webpush":true' not in http.buffer:
            http._fill()
