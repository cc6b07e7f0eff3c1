/// An element of the Distinguished Encoding Rules (X.690). Reads only the parts that distinguish keys from certificates.
struct DERElement {
    static let integer: UInt8 = 0x02
    static let bitString: UInt8 = 0x03
    static let octetString: UInt8 = 0x04
    static let objectIdentifier: UInt8 = 0x06
    static let sequence: UInt8 = 0x30
    /// The context-specific tag 0, constructed.
    static let context0: UInt8 = 0xA0

    let tag: UInt8
    /// The element with its tag and its length.
    let whole: ArraySlice<UInt8>
    let content: ArraySlice<UInt8>

    /// Reads the first element. Returns nil if the element is incomplete or its form is not valid in DER.
    init?(_ bytes: ArraySlice<UInt8>) {
        guard let tag = bytes.first, let size = Self.size(of: bytes), size.total <= bytes.count else { return nil }
        self.tag = tag
        whole = bytes.prefix(size.total)
        content = whole.dropFirst(size.header)
    }

    /// The elements of the content; nil if the content is not a list of elements.
    var children: [DERElement]? {
        var elements: [DERElement] = []
        var rest = content
        while !rest.isEmpty {
            guard let element = DERElement(rest) else { return nil }
            elements.append(element)
            rest = rest.dropFirst(element.whole.count)
        }
        return elements
    }

    /// Returns the damage of a sequence that has fewer bytes than its length states; nil for other bytes.
    static func cut(_ bytes: [UInt8]) -> PEMBlock.Damage? {
        guard bytes.first == sequence, let size = size(of: bytes[...]), size.total > bytes.count else { return nil }
        return .cutOff(bytes: bytes.count, declared: size.total)
    }

    /// The number of bytes of tag and length, and of the whole element.
    private static func size(of bytes: ArraySlice<UInt8>) -> (header: Int, total: Int)? {
        guard let first = bytes.dropFirst().first else { return nil }
        if first < 0x80 { return (2, 2 + Int(first)) }
        let count = Int(first & 0x7F)
        let digits = bytes.dropFirst(2).prefix(count)
        guard (1...4).contains(count), digits.count == count else { return nil }
        return (2 + count, 2 + count + digits.reduce(0) { $0 << 8 | Int($1) })
    }
}
