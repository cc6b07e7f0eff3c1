/// The keys and certificates of one file or text. Reads every form that ``PEMReader`` reads, and files in DER.
package struct KeyMaterial: Sendable {
    /// A block and its recognized content.
    package struct Item: Equatable, Sendable {
        package var block: PEMBlock
        package var content: KeyContent

        init(_ block: PEMBlock) {
            self.block = block
            if block.headers.contains(where: { $0.hasSuffix("ENCRYPTED") }) {
                content = .encryptedKey
            } else if block.label.hasSuffix("PARAMETERS") {
                content = .parameters
            } else {
                content = block.damage == nil ? KeyContent(der: block.bytes) : .unknown
            }
        }

        /// The item in strict PEM, with the label of its content.
        package var text: String {
            var block = block
            if block.headers.isEmpty, let label = content.label { block.label = label }
            return block.text
        }

        private var isOfUnknownKind: Bool { block.damage == .labelUnreadable }
        /// Whether the item is a private key, or would be one if it were not damaged.
        var isPrivateKey: Bool {
            switch content {
            case .privateKey, .encryptedKey: true
            case .unknown: isOfUnknownKind || block.label.hasSuffix("PRIVATE KEY")
            default: false
            }
        }

        /// A value that is equal for all forms of one key.
        fileprivate var secret: [UInt8] {
            if case .privateKey(_, let secret, _) = content { secret } else { block.bytes }
        }

        var isCertificate: Bool {
            switch content {
            case .certificate: true
            case .unknown:
                isOfUnknownKind || block.label.isEmpty && block.damage != .labelUnknown
                    || block.label.hasSuffix("CERTIFICATE")
            default: false
            }
        }

        var isPublicKey: Bool {
            switch content {
            case .publicKey: true
            case .unknown: isOfUnknownKind || block.label.hasSuffix("PUBLIC KEY")
            default: false
            }
        }

        /// Whether the item can be ignored when another item of the same kind exists. Such an item is a text that names a block,
        /// or a block whose label cannot be read.
        var isIgnorable: Bool { !isUsable && (block.isInText || isOfUnknownKind || block.damage == .labelUnknown) }

        var isUsable: Bool { block.damage == nil && content != .unknown }

        /// - Throws: if the item is damaged, or its content does not match its label.
        func check() throws(KeyFault) {
            if let damage = block.damage { throw .damaged(label: block.label, damage) }
            if content == .unknown { throw .undecodable(label: block.label) }
        }
    }

    package let items: [Item]
    /// The original text; nil for DER.
    package let text: String?
    private let isEmpty: Bool

    package init(_ text: String) {
        items = PEMReader.blocks(in: text).map { Item($0) }
        self.text = text
        isEmpty = text.allSatisfy { $0.isWhitespace || $0 == "\u{FEFF}" }
    }

    /// - Parameter bytes: The content of a file: PEM in UTF-8, PEM in UTF-16 with a byte-order mark, or one certificate or key in
    ///   DER.
    package init(bytes: [UInt8]) {
        let material = KeyMaterial(Self.text(of: bytes))
        self = material.items.isEmpty ? Self.der(bytes) ?? material : material
    }

    private static func der(_ bytes: [UInt8]) -> KeyMaterial? {
        // Bytes after the element, such as a line break that a tool added, are not part of the element.
        let own = DERElement(bytes[...]).map { Array($0.whole) } ?? bytes
        let item = Item(PEMBlock(label: "", bytes: own, damage: DERElement.cut(bytes)))
        // A text can begin with the same byte, because that byte is the digit zero.
        let isCutOff = item.block.damage != nil && bytes.contains { $0 >= 0x80 }
        guard item.content != .unknown || isCutOff else { return nil }
        return KeyMaterial(items: [item], text: nil, isEmpty: false)
    }

    private init(items: [Item], text: String?, isEmpty: Bool) {
        self.items = items
        self.text = text
        self.isEmpty = isEmpty
    }

    /// The text; for DER, the same content in PEM.
    package var pem: String { text ?? items.map(\.text).joined() }

    /// Whether the material contains a private key, even an unusable one.
    package var hasPrivateKey: Bool { items.contains(where: \.isPrivateKey) }
    /// Whether the material contains a certificate, even an unusable one.
    package var hasCertificate: Bool { items.contains(where: \.isCertificate) }
    /// Whether the material is one certificate in DER.
    package var isCertificateFile: Bool { text == nil && items.map(\.content) == [.certificate] }

    /// Returns the only private key. The key can be of any kind, and encrypted.
    package func privateKey() throws(KeyFault) -> Item {
        let keys = self.items(where: \.isPrivateKey)
        guard let first = keys.first else { throw lack() }
        for key in keys { try key.check() }
        let count = Set(keys.map(\.secret)).count
        guard count == 1 else { throw .keysDiffer(count) }
        return first
    }

    /// Returns the different private keys that are not damaged; at least one. Encrypted keys are last.
    package func privateKeys() throws(KeyFault) -> [Item] {
        let keys = self.items(where: \.isPrivateKey)
        guard let first = keys.first else { throw lack() }
        let usable = keys.filter(\.isUsable)
        if usable.isEmpty { try first.check() }
        let plain = usable.filter { $0.content != .encryptedKey }
        let encrypted = usable.filter { $0.content == .encryptedKey }
        var secrets: Set<[UInt8]> = []
        return (plain + encrypted).filter { secrets.insert($0.secret).inserted }
    }

    /// Returns the 32 bytes of the only private key. The key must be on the curve P-256 and not encrypted.
    package func p256PrivateKey() throws(KeyFault) -> [UInt8] {
        let isEncrypted = self.items(where: \.isPrivateKey).contains {
            $0.content == .encryptedKey || $0.block.label == "ENCRYPTED PRIVATE KEY"
        }
        guard !isEncrypted else { throw .encrypted }
        let key = try privateKey()
        guard case .privateKey(.p256, let secret, _) = key.content, secret.count <= 32 else {
            throw .found(key.content.phrase ?? "another kind of key")
        }
        return [UInt8](repeating: 0, count: 32 - secret.count) + secret
    }

    /// Returns the DER of the only public key. The key must be on the curve P-256.
    package func p256PublicKey() throws(KeyFault) -> [UInt8] {
        let keys = self.items(where: \.isPublicKey)
        guard let first = keys.first else { throw lack() }
        for key in keys { try key.check() }
        let different = Set(keys.map(\.block.bytes)).count
        guard different == 1 else { throw .keysDiffer(different) }
        guard first.content == .publicKey(.p256) else { throw .found(first.content.phrase ?? "another kind of key") }
        return first.block.bytes
    }

    /// Returns the DER of all certificates in their order; at least one.
    package func certificates() throws(KeyFault) -> [[UInt8]] {
        let found = self.items(where: \.isCertificate)
        guard !found.isEmpty else { throw lack() }
        for item in found { try item.check() }
        return found.map { item in DERElement(item.block.bytes[...]).map { Array($0.whole) } ?? item.block.bytes }
    }

    /// Returns the items of a kind, without the items that can be ignored beside others.
    private func items(where isOfKind: (Item) -> Bool) -> [Item] {
        let found = items.filter(isOfKind)
        let certain = found.filter { !$0.isIgnorable }
        return certain.isEmpty ? found : certain
    }

    /// Returns the fault that is reported if no block of the needed kind exists.
    private func lack() -> KeyFault {
        if isEmpty { return .empty }
        let others = items.filter { $0.content != .parameters }
        guard let item = others.first(where: { !$0.isIgnorable }) ?? others.first ?? items.first else { return .noBlock }
        if let damage = item.block.damage { return .damaged(label: item.block.label, damage) }
        return .found(item.content.phrase ?? "a block \"\(item.block.label)\"")
    }

    private static func text(of bytes: [UInt8]) -> String {
        let isLittle = bytes.starts(with: [0xFF, 0xFE])
        guard isLittle || bytes.starts(with: [0xFE, 0xFF]) else { return String(decoding: bytes, as: UTF8.self) }
        let units = stride(from: 2, to: bytes.count - 1, by: 2).map { place -> UInt16 in
            isLittle
                ? UInt16(bytes[place + 1]) << 8 | UInt16(bytes[place])
                : UInt16(bytes[place]) << 8 | UInt16(bytes[place + 1])
        }
        return String(decoding: units, as: UTF16.self)
    }
}
