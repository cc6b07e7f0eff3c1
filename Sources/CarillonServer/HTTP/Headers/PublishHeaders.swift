import CarillonBasics
import CarillonCore
import CarillonWire
import NIOHTTP1

/// The headers of a sender's request (RFC 8030 section 5).
struct PublishHeaders: Sendable {
    var ttl: String?
    var urgency: [String]
    var topic: [String]
    var contentEncoding: String?
    var encryption: String?
    var cryptoKey: String?
    var authorization: String?
    var idempotencyKey: String?

    init(
        ttl: String? = nil, urgency: [String] = [], topic: [String] = [], contentEncoding: String? = nil,
        encryption: String? = nil, cryptoKey: String? = nil, authorization: String? = nil, idempotencyKey: String? = nil
    ) {
        self.ttl = ttl
        self.urgency = urgency
        self.topic = topic
        self.contentEncoding = contentEncoding
        self.encryption = encryption
        self.cryptoKey = cryptoKey
        self.authorization = authorization
        self.idempotencyKey = idempotencyKey
    }

    /// Returns the request that consists of these headers and a body.
    func request(body: [UInt8]) throws(Refusal) -> PublishRequest {
        PublishRequest(
            body: body,
            coding: try coding(bodyIsEmpty: body.isEmpty),
            ttl: try ttlSeconds(),
            urgency: try urgencyValue(),
            topic: try topicValue(),
            vapid: try VapidCredentials(authorization: authorization, cryptoKey: cryptoKey),
            idempotencyKey: try idempotencyKeyValue())
    }

    /// Reads the TTL (RFC 8030 section 5.2): digits only. A number that overflows counts as 2^31.
    private func ttlSeconds() throws(Refusal) -> Int64 {
        guard let ttl = ttl.map(Self.once) else {
            throw Refusal(
                .ttlMissing, "Say in \"TTL\" how many seconds the message may wait for the device; 0 is now or never.")
        }
        guard !ttl.isEmpty, ttl.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw Refusal(.ttlInvalid, "TTL \"\(ttl.prefix(20))\" is not a number of seconds; digits only, such as 3600.")
        }
        return min(Int64(ttl) ?? 1 << 31, 1 << 31)
    }

    private func urgencyValue() throws(Refusal) -> Urgency {
        guard let text = urgency.first else { return .normal }
        guard urgency.count == 1, let value = Urgency(rawValue: text.lowercased()) else {
            let known = Urgency.allCases.map(\.rawValue).joined(separator: ", ")
            throw Refusal(.urgencyInvalid, "Urgency must be one of \(known), and given once.")
        }
        return value
    }

    /// Returns the topic without padding, because some libraries add padding to base64url and others do not.
    private func topicValue() throws(Refusal) -> String? {
        guard let text = topic.first else { return nil }
        let padding = text.utf8.reversed().prefix(2).prefix { $0 == UInt8(ascii: "=") }.count
        let unpadded = text.dropLast(padding)
        guard topic.count == 1, text.utf8.count <= Limits.topicCharacters, !unpadded.isEmpty,
            unpadded.utf8.allSatisfy(Self.isURLSafeBase64)
        else {
            throw Refusal(
                .topicInvalid,
                "\"Topic\" must be 1–\(Limits.topicCharacters) letters, digits, \"-\" or \"_\", and up to two \"=\" at the end."
            )
        }
        return String(unpadded)
    }

    private func idempotencyKeyValue() throws(Refusal) -> String? {
        guard let idempotencyKey else { return nil }
        return try Self.checked(idempotencyKey: idempotencyKey)
    }

    static func checked(idempotencyKey: String) throws(Refusal) -> String {
        guard (1...Limits.idempotencyKeyCharacters).contains(idempotencyKey.utf8.count),
            idempotencyKey.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else {
            throw Refusal(
                .idempotencyKeyInvalid,
                "Idempotency-Key must be 1–\(Limits.idempotencyKeyCharacters) printable ASCII characters.")
        }
        return idempotencyKey
    }

    private func coding(bodyIsEmpty: Bool) throws(Refusal) -> ContentCoding? {
        guard let contentEncoding = contentEncoding.map(Self.once)?.lowercased() else {
            if bodyIsEmpty { return nil }
            throw Refusal(
                .encodingMissing,
                "Label the body with \"Content-Encoding\": aes128gcm or aesgcm when encrypted, identity when not.")
        }
        guard let name = ContentCoding.Name(rawValue: contentEncoding) else {
            let known = ContentCoding.Name.allCases.map(\.rawValue).joined(separator: ", ")
            throw Refusal(.encodingUnsupported, "Content-Encoding must be one of \(known).")
        }
        switch name {
        case .identity:
            return ContentCoding(.identity)
        case .aes128gcm:
            if let encryption, HeaderParameters(encryption)["salt"] != nil {
                throw Refusal(
                    .encryptionHeadersInvalid, "With aes128gcm the salt is in the body; \"Encryption\" belongs to aesgcm.")
            }
            if let cryptoKey, HeaderParameters(cryptoKey)["dh"] != nil {
                throw Refusal(
                    .encryptionHeadersInvalid, "With aes128gcm the sender's key is in the body; \"dh\" belongs to aesgcm.")
            }
            return ContentCoding(.aes128gcm)
        case .aesgcm:
            if bodyIsEmpty { return nil }
            return ContentCoding(
                .aesgcm,
                encryption: try normalized(encryption, header: "Encryption", required: "salt", number: "rs"),
                cryptoKey: try normalized(cryptoKey, header: "Crypto-Key", required: "dh", number: nil))
        }
    }

    /// Some gateways send a header twice. Equal values count as one.
    private static func once(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: ",")) else { return text }
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
            .map { $0.trimmingSpace.lowercased() }
        guard let first = parts.first, parts.allSatisfy({ $0 == first }) else { return text }
        return first
    }

    /// Returns the groups with the required parameter, without quotes, padding and other parameters. Firefox does not decrypt
    /// with padded values, and the VAPID key must not be sent to the device.
    private func normalized(
        _ text: String?, header: String, required: String, number: String?
    ) throws(Refusal) -> String {
        var groups: [String] = []
        for group in HeaderParameters(text ?? "").groups {
            guard let value = group[parameter: required] else { continue }
            var parts: [String] = []
            if let keyID = group[parameter: "keyid"] { parts.append("keyid=\(try opaque(keyID, header: header))") }
            guard let bytes = Base64URL.decodeLeniently(value), !bytes.isEmpty, bytes.count <= Self.longestParameterBytes
            else {
                throw Refusal(.encryptionHeadersInvalid, "The value of \(required) in \"\(header)\" is not base64url.")
            }
            parts.append("\(required)=\(Base64URL.encode(bytes))")
            if let number, let text = group[parameter: number] {
                guard (1...10).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                    throw Refusal(.encryptionHeadersInvalid, "The value of \(number) in \"\(header)\" is not a number.")
                }
                parts.append("\(number)=\(text)")
            }
            groups.append(parts.joined(separator: ";"))
        }
        guard !groups.isEmpty else {
            throw Refusal(.encryptionHeadersInvalid, "aesgcm needs \"\(header): \(required)=<base64url>\".")
        }
        return groups.joined(separator: ",")
    }

    private static let longestParameterBytes = 192

    /// Returns the `keyid`, which can be any text. It keeps its quotes if it would be misread without them.
    private func opaque(_ text: String, header: String) throws(Refusal) -> String {
        guard text.utf8.count <= 256, text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw Refusal(
                .encryptionHeadersInvalid, "The keyid in \"\(header)\" must be at most 256 printable ASCII characters.")
        }
        if !text.isEmpty, !text.utf8.contains(where: { ";,\"\\ =".utf8.contains($0) }) { return text }
        var quoted = "\""
        for character in text {
            if character == "\"" || character == "\\" { quoted.append("\\") }
            quoted.append(character)
        }
        return quoted + "\""
    }

    private static func isURLSafeBase64(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default:
            false
        }
    }
}

extension PublishHeaders {
    /// Reads all fields in one pass, which is faster than a search for each name.
    init(_ headers: HTTPHeaders) {
        self.init()
        for (name, value) in headers {
            switch name.utf8.count {
            case 3 where name.isField("ttl"): ttl.join(value)
            case 5 where name.isField("topic"): topic.append(value)
            case 7 where name.isField("urgency"): urgency.append(value)
            case 10 where name.isField("encryption"): encryption.join(value)
            case 10 where name.isField("crypto-key"): cryptoKey.join(value)
            case 13 where name.isField("authorization"): authorization.join(value)
            case 15 where name.isField("idempotency-key"): idempotencyKey.join(value)
            case 16 where name.isField("content-encoding"): contentEncoding.join(value)
            default: break
            }
        }
    }
}

extension String? {
    /// Joins repeated fields to one value (RFC 9110 section 5.3).
    fileprivate mutating func join(_ value: String) { self = map { "\($0), \(value)" } ?? value }
}

extension Substring {
    fileprivate var trimmingSpace: Substring {
        var rest = self
        while rest.first == " " || rest.first == "\t" { rest.removeFirst() }
        while rest.last == " " || rest.last == "\t" { rest.removeLast() }
        return rest
    }
}
