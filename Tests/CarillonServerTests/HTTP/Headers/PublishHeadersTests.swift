import CarillonCore
import CarillonWire
import Testing

@testable import CarillonServer

struct PublishHeadersTests {
    private func refusal(_ headers: PublishHeaders, body: [UInt8] = []) -> ErrorCode? {
        do {
            _ = try headers.request(body: body)
            return nil
        } catch {
            return error.code
        }
    }

    @Test(arguments: [("0", 0), ("60", 60), ("00060", 60), ("2147483648", 1 << 31), ("99999999999999999999999", 1 << 31)])
    func `TTL is read as a number, and a value that overflows counts as 2^31`(text: String, seconds: Int64) throws {
        #expect(try PublishHeaders(ttl: text).request(body: []).ttl == seconds)
    }

    @Test(arguments: ["", "-1", "+1", "1.5", "abc", "1h", " 1", "1,2", "٣"])
    func `a TTL that is no number is refused`(text: String) {
        #expect(refusal(PublishHeaders(ttl: text)) == .ttlInvalid)
    }

    @Test func `a missing TTL is refused`() {
        #expect(refusal(PublishHeaders()) == .ttlMissing)
    }

    @Test(arguments: Urgency.allCases)
    func `each urgency is accepted`(urgency: Urgency) throws {
        #expect(try PublishHeaders(ttl: "1", urgency: [urgency.rawValue]).request(body: []).urgency == urgency)
    }

    @Test(arguments: [["low", "high"], ["low,high"], ["urgent"], [""]])
    func `several urgencies, or an unknown one, are refused`(values: [String]) {
        #expect(refusal(PublishHeaders(ttl: "1", urgency: values)) == .urgencyInvalid)
    }

    @Test(arguments: [
        ("abc=", "abc"), ("ab==", "ab"), ("abc", "abc"),
        (String(repeating: "x", count: 30) + "==", String(repeating: "x", count: 30)),
    ])
    func `padding at the end of a topic makes no other topic`(text: String, topic: String) throws {
        #expect(try PublishHeaders(ttl: "1", topic: [text]).request(body: []).topic == topic)
    }

    @Test(arguments: ["a=b", "=", "==", "abc===", "=abc", String(repeating: "x", count: 31) + "=="])
    func `other equal signs in a topic are refused`(text: String) throws {
        #expect(refusal(PublishHeaders(ttl: "1", topic: [text])) == .topicInvalid)
    }

    @Test func `a topic has up to 32 characters of the alphabet`() throws {
        let longest = String(repeating: "aZ9-_", count: 6) + "ab"
        #expect(try PublishHeaders(ttl: "1", topic: [longest]).request(body: []).topic == longest)
        for bad in [longest + "c", "", "a b", "a+b", "é"] {
            #expect(refusal(PublishHeaders(ttl: "1", topic: [bad])) == .topicInvalid)
        }
        #expect(refusal(PublishHeaders(ttl: "1", topic: ["a", "b"])) == .topicInvalid)
    }

    @Test func `a body needs a known encoding, and no body needs none`() {
        #expect(refusal(PublishHeaders(ttl: "1"), body: [1]) == .encodingMissing)
        #expect(refusal(PublishHeaders(ttl: "1")) == nil)
        #expect(refusal(PublishHeaders(ttl: "1", contentEncoding: "gzip"), body: [1]) == .encodingUnsupported)
        for name in ["aes128gcm", "AES128GCM", "identity"] {
            #expect(refusal(PublishHeaders(ttl: "1", contentEncoding: name), body: [1]) == nil)
        }
    }

    @Test func `aesgcm travels without quotes, padding and the sender's VAPID key`() throws {
        let headers = PublishHeaders(
            ttl: "1", contentEncoding: "aesgcm", encryption: "keyid=p256dh;salt=\"AAAA-_==\";rs=4096",
            cryptoKey: "keyid=p256dh;dh=BBBBBB==,p256ecdsa=CCCC")
        let coding = try #require(try headers.request(body: [1]).coding)
        #expect(coding.encryption == "keyid=p256dh;salt=AAAA-w;rs=4096")
        #expect(coding.cryptoKey == "keyid=p256dh;dh=BBBBBA")
    }

    private func aesgcm(_ encryption: String, _ cryptoKey: String = "dh=BBBB") throws -> ContentCoding? {
        try PublishHeaders(ttl: "1", contentEncoding: "aesgcm", encryption: encryption, cryptoKey: cryptoKey)
            .request(body: [1]).coding
    }

    @Test(
        arguments: [
            (#"keyid="http://example.org/bob/keys/123";salt="AAAA""#, "keyid=http://example.org/bob/keys/123;salt=AAAA"),
            (#"keyid="http://example.org/bob/keys/123;salt="AAAA""#, "keyid=http://example.org/bob/keys/123;salt=AAAA"),
            (#"keyid=a+b/c.d:e~f;salt=AAAA"#, "keyid=a+b/c.d:e~f;salt=AAAA"),
            (#"keyid="a;b,c d=\"e\\";salt=AAAA"#, #"keyid="a;b,c d=\"e\\";salt=AAAA"#),
            (#"keyid="";salt=AAAA"#, #"keyid="";salt=AAAA"#),
            (#"salt=AAAA ; keyid = x"#, "keyid=x;salt=AAAA"),
        ])
    func `a keyid is any text`(encryption: String, passedOn: String) throws {
        #expect(try aesgcm(encryption)?.encryption == passedOn)
    }

    @Test func `a keyid stays with the key that it names`() throws {
        #expect(
            try aesgcm(
                "keyid=p256dh;salt=AAAA", #"keyid="p256ecdsa";p256ecdsa=CCCC, keyid=p256dh;dh=BBBB,keyid="o";dh=AAAA"#)?
                .cryptoKey == "keyid=p256dh;dh=BBBB,keyid=o;dh=AAAA")
    }

    @Test(arguments: [
        "salt=*", "salt=", "salt=AAAA;rs=x", "salt=AAAA;rs=", "salt=AAAA;rs=11111111111", "keyid=\u{1};salt=AAAA",
        "keyid=\u{e9};salt=AAAA", "keyid=\(String(repeating: "a", count: 257));salt=AAAA",
        "salt=\(String(repeating: "A", count: 260))",
    ])
    func `other parameters in the headers of aesgcm must have their form`(encryption: String) {
        #expect(throws: Refusal.self) { try aesgcm(encryption) }
    }

    @Test(arguments: [
        ("60, 60", "aes128gcm, aes128gcm"), ("60,60,60", "AES128GCM,aes128gcm"), ("60 ,\t60", "aes128gcm"),
    ])
    func `a repeated value counts once`(ttl: String, encoding: String) throws {
        let request = try PublishHeaders(ttl: ttl, contentEncoding: encoding).request(body: [1])
        #expect(request.ttl == 60)
        #expect(request.coding?.name == .aes128gcm)
    }

    @Test func `two different values are refused`() {
        for ttl in ["60, 61", "60,", ",60", ",", "60, 060"] {
            #expect(refusal(PublishHeaders(ttl: ttl)) == .ttlInvalid)
        }
        for encoding in ["aes128gcm, aesgcm", "aes128gcm,", "aes128gcm, gzip", ","] {
            #expect(refusal(PublishHeaders(ttl: "1", contentEncoding: encoding), body: [1]) == .encodingUnsupported)
        }
    }

    @Test func `aesgcm without its headers, and aes128gcm with them, are refused`() {
        #expect(refusal(PublishHeaders(ttl: "1", contentEncoding: "aesgcm"), body: [1]) == .encryptionHeadersInvalid)
        #expect(
            refusal(PublishHeaders(ttl: "1", contentEncoding: "aesgcm", encryption: "salt=AAAA"), body: [1])
                == .encryptionHeadersInvalid)
        #expect(
            refusal(PublishHeaders(ttl: "1", contentEncoding: "aes128gcm", encryption: "salt=AAAA"), body: [1])
                == .encryptionHeadersInvalid)
        #expect(
            refusal(PublishHeaders(ttl: "1", contentEncoding: "aes128gcm", cryptoKey: "dh=AAAA"), body: [1])
                == .encryptionHeadersInvalid)
    }

    @Test(arguments: ["", String(repeating: "a", count: 256), "a\u{7}b", "é"])
    func `an idempotency key is short and printable`(key: String) {
        #expect(refusal(PublishHeaders(ttl: "1", idempotencyKey: key)) == .idempotencyKeyInvalid)
    }
}
