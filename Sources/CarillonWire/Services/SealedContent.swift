package import CarillonBasics

/// The content of a request or a reply, sealed from device to device (RFC 9180), with the data that is needed to open it.
package struct SealedContent: Equatable, Sendable {
    /// The only supported suite: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20Poly1305, in Auth mode.
    package static let suite = "Curve25519_SHA256_ChachaPoly"
    /// The largest body, in bytes. A longer content is an attachment, which the body refers to.
    package static let bodyBytes = 32 << 10
    package static let mostFiles = 32
    package static let mostFileBytes: Int64 = 4 << 30

    /// The identifier of the receiver's key.
    package var keyID: String
    /// The sender's key.
    package var sender: KeyBundle
    /// RFC 9180's `enc`, 32 bytes.
    package var encapsulated: [UInt8]
    package var body: [UInt8]
    /// The number of files, and the sum of their sizes in bytes.
    package var files: Int
    package var fileBytes: Int64

    package init(
        keyID: String, sender: KeyBundle, encapsulated: [UInt8], body: [UInt8], files: Int, fileBytes: Int64
    ) {
        self.keyID = keyID
        self.sender = sender
        self.encapsulated = encapsulated
        self.body = body
        self.files = files
        self.fileBytes = fileBytes
    }

    package static let memberNames: Set = [
        "suite", "keyID", "sender", "enc", "body", "files", "fileBytes",
    ]

    package init(_ json: JSONValue) throws(Refusal) {
        func invalid(_ name: String, _ what: String) -> Refusal {
            Refusal(.fieldInvalid, "The field \"\(name)\" must be \(what).")
        }
        guard json["suite"] == .string(Self.suite) else { throw invalid("suite", "\"\(Self.suite)\"") }
        guard case .string(let keyID)? = json["keyID"], KeyBundle.isName(keyID) else {
            throw invalid("keyID", "the name of a key, 16 hexadecimal digits")
        }
        guard let sender = json["sender"].flatMap(KeyBundle.init) else { throw invalid("sender", "a signed key") }
        guard let encapsulated = json.bytes("enc", 32) else { throw invalid("enc", "32 bytes in base64url") }
        guard case .integer(let files)? = json["files"] ?? .integer(0), (0...Self.mostFiles).contains(files) else {
            throw Refusal(.requestTooLarge, "A request has up to \(Self.mostFiles) files.")
        }
        guard case .integer(let fileBytes)? = json["fileBytes"] ?? .integer(0),
            (0...Self.mostFileBytes).contains(Int64(fileBytes))
        else { throw Refusal(.requestTooLarge, "The files of a request have up to \(Self.mostFileBytes) bytes in all.") }
        guard case .string(let text)? = json["body"], let body = Base64URL.decodeLeniently(text) else {
            throw invalid("body", "base64url")
        }
        guard body.count <= Self.bodyBytes else {
            throw Refusal(.requestTooLarge, "A body has up to \(Self.bodyBytes) bytes.")
        }
        self.init(
            keyID: keyID, sender: sender, encapsulated: encapsulated, body: body, files: files,
            fileBytes: Int64(fileBytes))
    }

    package var members: [JSONValue.Member] {
        [
            .init(name: "suite", value: .string(Self.suite)), .init(name: "keyID", value: .string(keyID)),
            .init(name: "sender", value: sender.json), .init(name: "enc", value: .string(Base64URL.encode(encapsulated))),
            .init(name: "body", value: .string(Base64URL.encode(body))), .init(name: "files", value: .integer(files)),
            .init(name: "fileBytes", value: .integer(Int(fileBytes))),
        ]
    }
}
