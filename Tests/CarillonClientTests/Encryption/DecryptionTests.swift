import CarillonBasics
import CarillonMessages
import CarillonWire
import Foundation
import TestSupport
import Testing

@testable import CarillonClient

struct DecryptionTests {
    private static let names: [ContentCoding.Name] = [.aes128gcm, .aesgcm]

    private let keys = SubscriptionKeys()

    private func subscription(_ keys: SubscriptionKeys) throws -> PushSubscription {
        PushSubscription(keys, endpoint: try #require(ChannelEndpoint("https://h/push/token")))
    }

    private func encrypt(_ text: [UInt8], _ name: ContentCoding.Name) throws -> EncryptedMessage {
        try subscription(keys).encrypt(text, with: name)
    }

    private func fault(_ body: [UInt8], _ coding: ContentCoding, _ keys: SubscriptionKeys? = nil) -> DecryptionFault? {
        do {
            _ = try (keys ?? self.keys).decrypt(body, coding)
            return nil
        } catch {
            return error
        }
    }

    @Test func `the example of RFC 8291 section 5 is read`() throws {
        let privateKey = try #require(Base64URL.decode("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"))
        let authSecret = try #require(Base64URL.decode("BTBZMqHH6r4Tts7J_aSIgg"))
        let receiver = try #require(SubscriptionKeys(privateKey: privateKey, authSecret: authSecret))
        let body = try #require(
            Base64URL.decode(
                "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8w"
                    + "EqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"))
        let text = try receiver.decrypt(body, ContentCoding(.aes128gcm))
        #expect(String(decoding: text, as: UTF8.self) == "When I grow up, I want to be a watermelon")
    }

    @Test(arguments: names, [0, 1, 15, 16, 17, 3993, 4077, 4078, 4079, 4080, 8000])
    func `a message that is encrypted for the keys is read`(name: ContentCoding.Name, length: Int) throws {
        let text = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        let message = try encrypt(text, name)
        #expect(try keys.decrypt(message.body, message.coding) == text)
    }

    @Test(arguments: names)
    func `a message that is cut anywhere is a fault`(name: ContentCoding.Name) throws {
        let message = try encrypt(Array("something".utf8), name)
        for length in 0..<message.body.count {
            #expect(fault(Array(message.body.prefix(length)), message.coding) != nil)
        }
        #expect(fault(Array(message.body.prefix(10)), message.coding) == .cut)
    }

    @Test(arguments: names)
    func `a message that is changed anywhere is a fault`(name: ContentCoding.Name) throws {
        let message = try encrypt(Array("something".utf8), name)
        for index in message.body.indices {
            // A larger record size changes nothing about a single record.
            if name == .aes128gcm, (16..<20).contains(index) { continue }
            var body = message.body
            body[index] ^= 0x10
            #expect(fault(body, message.coding) != nil)
        }
    }

    @Test(arguments: names)
    func `a message for other keys, or another secret, is not authentic`(name: ContentCoding.Name) throws {
        let message = try encrypt([1], name)
        #expect(fault(message.body, message.coding, SubscriptionKeys()) == .notAuthentic)
        let other = try #require(
            SubscriptionKeys(privateKey: keys.privateKey, authSecret: SubscriptionKeys().authSecret))
        #expect(fault(message.body, message.coding, other) == .notAuthentic)
    }

    @Test func `plain bytes are not taken for a message`() {
        #expect(fault([1, 2, 3], ContentCoding(.identity)) == .notEncrypted)
    }

    // MARK: Padding and records

    /// Seals records as a sender would that pads or cuts as it likes.
    private func sealed(_ records: [[UInt8]], recordSize: UInt32) throws -> [UInt8] {
        let pair = SubscriptionKeys()
        let salt = [UInt8](repeating: 7, count: 16)
        let key = try #require(keys.contentKey(.aes128gcm, sender: pair.publicKey, salt: salt))
        var body = salt + recordSize.bigEndianBytes + [65] + pair.publicKey
        for (number, record) in records.enumerated() { body += try key.seal(record, number: UInt64(number)) }
        return body
    }

    @Test func `padding is taken off, and must be as RFC 8188 has it`() throws {
        let coding = ContentCoding(.aes128gcm)
        #expect(try keys.decrypt(try sealed([[5, 2, 0, 0, 0]], recordSize: 4096), coding) == [5])
        #expect(fault(try sealed([[5, 3]], recordSize: 4096), coding) == .paddingInvalid)
        #expect(fault(try sealed([[0, 0, 0]], recordSize: 4096), coding) == .paddingInvalid)
        #expect(fault(try sealed([[5, 1]], recordSize: 4096), coding) == .cut)
    }

    @Test func `several records are one message, and none of them may be missing`() throws {
        let coding = ContentCoding(.aes128gcm)
        let size: UInt32 = 18 + 1
        let records: [[UInt8]] = [[1, 2, 1], [3, 4, 1], [5, 2]]
        #expect(try keys.decrypt(try sealed(records, recordSize: size), coding) == [1, 2, 3, 4, 5])
        #expect(fault(try sealed([[1, 2, 1], [3, 4, 1]], recordSize: size), coding) == .cut)
        #expect(fault(try sealed([[1, 2, 2], [5, 2]], recordSize: size), coding) == .paddingInvalid)
    }

    @Test(arguments: [0, 1, 17] as [UInt32])
    func `a record size in which nothing fits is a fault`(size: UInt32) throws {
        #expect(fault(try sealed([[5, 2]], recordSize: size), ContentCoding(.aes128gcm)) == .parametersInvalid)
    }

    @Test(
        arguments: [
            ("", ""), ("salt=AAAA", "dh=AAAA"), ("salt=AAAAAAAAAAAAAAAAAAAAAA", "dh=AAAA"),
            ("salt=AAAAAAAAAAAAAAAAAAAAAA;rs=x", ""), ("salt=!", "dh=!"),
        ])
    func `aesgcm without good parameters is a fault`(encryption: String, cryptoKey: String) {
        let coding = ContentCoding(.aesgcm, encryption: encryption, cryptoKey: cryptoKey)
        #expect(fault([UInt8](repeating: 1, count: 40), coding) == .parametersInvalid)
    }

    @Test func `random bytes are a fault and never a crash`() {
        let seed = ProcessInfo.processInfo.environment["CARILLON_SEED"].flatMap(UInt64.init) ?? .random(in: .min ... .max)
        print("CARILLON_SEED=\(seed) repeats these bytes")
        var random = SeededRandom(seed: seed)
        for _ in 0..<2000 {
            let body = (0..<Int.random(in: 0...200, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(fault(body, ContentCoding(.aes128gcm)) != nil)
        }
    }

    // MARK: Subscriptions

    @Test func `a subscription is written as browsers write it`() throws {
        let subscription = try subscription(keys)
        let object = try #require(JSONValue(parsing: Array(subscription.json.utf8)))
        #expect(object["endpoint"] == .string("https://h/push/token"))
        #expect(object["keys"]?["p256dh"] == .string(Base64URL.encode(keys.publicKey)))
        #expect(object["keys"]?["auth"] == .string(Base64URL.encode(keys.authSecret)))
        #expect(keys.publicKey.count == 65)
    }

    @Test(arguments: [("AAAA", "AAAAAAAAAAAAAAAAAAAAAA"), ("", ""), (nil, "AAAA")])
    func `keys that are none encrypt nothing`(p256dh: String?, auth: String) {
        let point = p256dh ?? Base64URL.encode(keys.publicKey)
        let subscription = PushSubscription(endpoint: "https://h/", keys: .init(p256dh: point, auth: auth))
        #expect(throws: PushSubscription.KeysInvalid.self) { try subscription.encrypt([1], with: .aes128gcm) }
    }
}
