package import CarillonBasics

/// A device's key for sealed requests, and the identity that signed the key. The server passes the bundle on and checks only its
/// form.
package struct KeyBundle: Equatable, Sendable {
    /// The Ed25519 public key, 32 bytes.
    package var identity: [UInt8]
    /// The name of the key: 16 hexadecimal digits.
    package var id: String
    /// The X25519 public key, 32 bytes.
    package var key: [UInt8]
    /// The time until which other devices seal with the key, in milliseconds since 1970.
    package var until: Int64
    /// The Ed25519 signature of ``signed(device:)``, 64 bytes.
    package var signature: [UInt8]

    package init(identity: [UInt8], id: String, key: [UInt8], until: Int64, signature: [UInt8]) {
        self.identity = identity
        self.id = id
        self.key = key
        self.until = until
        self.signature = signature
    }

    /// Returns nil for a value that is not a valid bundle.
    package init?(_ json: JSONValue) {
        guard json.names == ["identity", "id", "key", "until", "signature"],
            case .string(let id)? = json["id"], Self.isName(id), case .integer(let until)? = json["until"], until > 0,
            let identity = json.bytes("identity", 32), Ed25519Encoding.isAcceptable(identity),
            let key = json.bytes("key", 32),
            let signature = json.bytes("signature", 64)
        else { return nil }
        self.init(identity: identity, id: id, key: key, until: Int64(until), signature: signature)
    }

    package static func isName(_ id: String) -> Bool {
        id.utf8.count == 16 && id.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    package var json: JSONValue {
        .object([
            .init(name: "identity", value: .string(Base64URL.encode(identity))), .init(name: "id", value: .string(id)),
            .init(name: "key", value: .string(Base64URL.encode(key))), .init(name: "until", value: .integer(Int(until))),
            .init(name: "signature", value: .string(Base64URL.encode(signature))),
        ])
    }

    /// Returns the bytes that the identity signs: the statement that a device has this key.
    package func signed(device: String) -> [UInt8] {
        Array("carillon key 1\n\(device)\n\(id)\n\(until)\n".utf8) + key
    }
}

extension JSONValue {
    /// Returns the bytes of a base64url member with the given length; nil for any other value.
    package func bytes(_ name: String, _ count: Int) -> [UInt8]? {
        guard case .string(let text)? = self[name], let bytes = Base64URL.decode(text), bytes.count == count else {
            return nil
        }
        return bytes
    }
}
