package import CarillonBasics

/// What a request or a reply has inside, sealed from device to device (RFC 9180), with what is needed to open it.
package struct SealedContent: Equatable, Sendable {
    package enum Body: Equatable, Sendable {
        case inline([UInt8])
        /// Too long for an envelope: an attachment with these bytes.
        case attachment(AttachmentID)
    }

    /// The one suite there is: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20Poly1305, in Auth mode.
    package static let suite = "Curve25519_SHA256_ChachaPoly"
    /// Of a body that travels in the envelope.
    package static let inlineBytes = 32 << 10
    /// Of a body that is an attachment.
    package static let attachmentBytes = 1 << 20
    package static let mostFiles = 32
    package static let mostFileBytes: Int64 = 4 << 30

    /// The name of the receiver's key.
    package var keyID: String
    /// The sender's key.
    package var sender: KeyBundle
    /// RFC 9180's `enc`, 32 bytes.
    package var encapsulated: [UInt8]
    package var body: Body
    /// How many files there are, and how many bytes they have in all.
    package var files: Int
    package var fileBytes: Int64

    package init(
        keyID: String, sender: KeyBundle, encapsulated: [UInt8], body: Body, files: Int, fileBytes: Int64
    ) {
        self.keyID = keyID
        self.sender = sender
        self.encapsulated = encapsulated
        self.body = body
        self.files = files
        self.fileBytes = fileBytes
    }

    package static let memberNames: Set = [
        "suite", "keyID", "sender", "enc", "body", "bodyAttachment", "files", "fileBytes",
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
        let body: Body
        switch (json["body"], json["bodyAttachment"]) {
        case (.string(let text)?, nil):
            guard let bytes = Base64URL.decode(text) else { throw invalid("body", "base64url") }
            guard bytes.count <= Self.inlineBytes else {
                throw Refusal(.requestTooLarge, "A body of more than \(Self.inlineBytes) bytes is sent as an attachment.")
            }
            body = .inline(bytes)
        case (nil, .string(let text)?):
            guard let id = AttachmentID(text) else { throw invalid("bodyAttachment", "the id of an attachment") }
            body = .attachment(id)
        default: throw Refusal(.fieldMissing, "There must be \"body\" or \"bodyAttachment\", and not both.")
        }
        self.init(
            keyID: keyID, sender: sender, encapsulated: encapsulated, body: body, files: files,
            fileBytes: Int64(fileBytes))
    }

    package var members: [JSONValue.Member] {
        let content: JSONValue.Member =
            switch body {
            case .inline(let bytes): .init(name: "body", value: .string(Base64URL.encode(bytes)))
            case .attachment(let id): .init(name: "bodyAttachment", value: .string(id.description))
            }
        return [
            .init(name: "suite", value: .string(Self.suite)), .init(name: "keyID", value: .string(keyID)),
            .init(name: "sender", value: sender.json), .init(name: "enc", value: .string(Base64URL.encode(encapsulated))),
            content, .init(name: "files", value: .integer(files)),
            .init(name: "fileBytes", value: .integer(Int(fileBytes))),
        ]
    }
}
