import CarillonWire
import HTTPTypes
import Testing

@testable import CarillonServer

/// The headers of requests for attachments.
struct AttachmentHeaderTests {
    private func headers(_ fields: KeyValuePairs<String, String>) throws -> UploadHeaders {
        var http = HTTPFields()
        for (name, value) in fields { http[try #require(HTTPField.Name(name))] = value }
        return try UploadHeaders(http)
    }

    private func code(_ work: () throws -> Void) -> ErrorCode? {
        do {
            try work()
            return nil
        } catch {
            return (error as? Refusal)?.code
        }
    }

    @Test func `each version has its own flag`() throws {
        #expect(try headers(["Upload-Complete": "?1"]).isComplete == true)
        #expect(try headers(["Upload-Complete": "?0", "Upload-Draft-Interop-Version": "8"]).isComplete == false)
        #expect(try headers(["Upload-Incomplete": "?0"]).isComplete == nil)
        let third = try headers(["Upload-Incomplete": "?1", "Upload-Complete": "?1", "Upload-Draft-Interop-Version": "3"])
        #expect(third.draft == .three && third.isComplete == false)
        #expect(third.flag(isComplete: true).value == "?0" && third.flag(isComplete: true).name == .uploadIncomplete)
        #expect(try headers([:]).flag(isComplete: true).value == "?1")
        for unknown in ["2", "4", "9", "08x", ""] {
            #expect(try headers(["Upload-Draft-Interop-Version": unknown]).draft == nil)
        }
    }

    @Test(arguments: ["-1", "+1", "1.0", "", "1 1", "0x1", "1000000000000000", "1, 1", "١"])
    func `a number that is none is refused`(_ text: String) {
        for name in ["Upload-Offset", "Upload-Length", "Content-Length"] {
            #expect(code { _ = try headers([name: text]) } == .uploadHeadersInvalid)
        }
    }

    @Test(arguments: ["1", "0", "?2", "?1;", "?1;=1", "?1; x = 1", "?1;x=\"", "?1;x=", "?1, ?1", "?1 x", "true", ""])
    func `a flag that is none is refused`(_ text: String) {
        #expect(code { _ = try headers(["Upload-Complete": text]) } == .uploadHeadersInvalid)
        #expect(
            code { _ = try headers(["Upload-Incomplete": text, "Upload-Draft-Interop-Version": "3"]) }
                == .uploadHeadersInvalid)
    }

    @Test(arguments: [";x=1", ";x", ";  x=1", ";a=\"b;c\\\"\";d=:AAEC:;e=?0;*f=1.5;g=%\"%c3\"", ";x=1 "])
    func `unknown parameters are ignored`(_ parameters: String) throws {
        let read = try headers([
            "Upload-Complete": "?1" + parameters, "Upload-Offset": "3" + parameters, "Upload-Length": "9" + parameters,
            "Upload-Draft-Interop-Version": "8" + parameters,
        ])
        #expect(read.isComplete == true && read.offset == 3 && read.length == 9 && read.draft == .eight)
        let third = try headers([
            "Upload-Incomplete": "?1" + parameters, "Upload-Draft-Interop-Version": "3" + parameters,
        ])
        #expect(third.isComplete == false && third.draft == .three)
        let digest = "sha-256=:\(String(repeating: "A", count: 43))=:\(parameters), md5=:AA==:"
        for name in [HTTPField.Name.reprDigest, .contentDigest] {
            #expect(try DigestField.sha256([name: digest], name)?.count == 32)
        }
    }

    @Test func `the length of the whole is what all agree on`() throws {
        #expect(try headers(["Content-Length": "5"]).wholeLength() == 5)
        #expect(try headers(["Content-Length": "5", "Upload-Complete": "?1"]).wholeLength() == 5)
        #expect(try headers(["Content-Length": "5", "Upload-Complete": "?0", "Upload-Length": "9"]).wholeLength() == 9)
        #expect(try headers(["Content-Length": "9", "Upload-Complete": "?0", "Upload-Length": "9"]).wholeLength() == 9)
        #expect(try headers(["Upload-Length": "9"]).wholeLength() == 9)
        #expect(
            code { _ = try headers(["Content-Length": "5", "Upload-Complete": "?0"]).wholeLength() } == .uploadLengthMissing)
        #expect(code { _ = try headers([:]).wholeLength() } == .uploadLengthMissing)
        for fields: KeyValuePairs<String, String> in [
            ["Content-Length": "5", "Upload-Length": "6"], ["Content-Length": "5", "Upload-Length": "4"],
            ["Content-Length": "5", "Upload-Complete": "?0", "Upload-Length": "4"],
        ] {
            #expect(code { _ = try headers(fields).wholeLength() } == .uploadLengthInconsistent)
        }
    }

    @Test func `a part must fit into the whole, and the last must end it`() throws {
        let part = try headers(["Content-Length": "5"])
        try part.check(part: 0, isLast: false, of: 5)
        try part.check(part: 0, isLast: false, of: 6)
        try part.check(part: 1, isLast: true, of: 6)
        try headers([:]).check(part: 1, isLast: true, of: 100)
        try headers(["Upload-Length": "6"]).check(part: 1, isLast: true, of: 6)
        #expect(code { try part.check(part: 2, isLast: false, of: 6) } == .uploadLengthInconsistent)
        #expect(code { try part.check(part: 0, isLast: true, of: 6) } == .uploadLengthInconsistent)
        #expect(
            code { try headers(["Upload-Length": "7"]).check(part: 1, isLast: true, of: 6) } == .uploadLengthInconsistent)
    }

    @Test func `digests are read as far as they are by SHA-256`() throws {
        func digest(_ text: String) throws -> [UInt8]? { try DigestField.sha256([.reprDigest: text], .reprDigest) }
        let text = "/+7x3Qk0bN6m2y0m8n6yPqQ8u1sJ1o9y3mM0o7wG3rE="
        let bytes = try #require(try digest("sha-256=:\(text):"))
        #expect(bytes.count == 32 && bytes[0] == 0xFF && bytes[1] == 0xEE)
        #expect(try digest("sha-512=:AAAA:, sha-256=:\(text):") == bytes)
        #expect(try digest("md5=:AAAA:") == nil)
        #expect(try DigestField.sha256([:], .reprDigest) == nil)
        for bad in ["sha-256", "sha-256=\(text)", "sha-256=:\(text)", "sha-256=:AAAA:", "sha-256=::", "sha-256=:!:"] {
            #expect(code { _ = try digest(bad) } == .uploadHeadersInvalid, "\(bad)")
        }
    }

    @Test func `ranges`() {
        for (text, range) in [
            (nil, RangeHeader.whole), ("bytes=0-0", .part(0..<1)), ("bytes=0-", .part(0..<10)), ("BYTES=9-9", .part(9..<10)),
            ("bytes=3-99", .part(3..<10)), ("bytes=-3", .part(7..<10)), ("bytes=-99", .part(0..<10)),
            ("bytes=10-", .unsatisfiable), ("bytes=10-11", .unsatisfiable), ("bytes=-0", .unsatisfiable),
            ("bytes=99999999999999999999-", .unsatisfiable), ("bytes=0-99999999999999999999", .part(0..<10)),
            ("bytes=5-4", .whole), ("bytes=1-2,3-4", .whole), ("bytes=a-1", .whole), ("bytes=1-a", .whole),
            ("bytes=-", .whole), ("bytes=", .whole), ("bytes=1", .whole), ("chunks=0-1", .whole), ("bytes = 0-1", .whole),
        ] as [(String?, RangeHeader)] {
            #expect(RangeHeader(text, length: 10) == range, "\(text ?? "-")")
        }
        #expect(RangeHeader("bytes=0-", length: 0) == .unsatisfiable)
        #expect(RangeHeader("bytes=-1", length: 0) == .unsatisfiable)
    }

    @Test func `an identifier is 36 digits, and nothing else`() throws {
        let id = AttachmentID(prefix: 0x0102, Bytes16(high: 3, low: 4))
        #expect("\(id)" == "010200000000000000030000000000000004")
        #expect(AttachmentID("\(id)") == id && AttachmentID(id.bytes) == id)
        for bad in ["", "0102", "\(id)0", String("\(id)".dropLast()), "../" + "\(id)".dropFirst(3)] {
            #expect(AttachmentID(bad) == nil)
        }
    }
}
