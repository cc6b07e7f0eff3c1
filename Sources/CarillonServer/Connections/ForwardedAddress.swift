import CarillonCore
import CarillonWire

/// The client's address as a proxy writes it: in `X-Forwarded-For` and fields like it, or in `Forwarded` (RFC 7239).
enum ForwardedAddress: Equatable {
    case known(NetworkAddress)
    /// The proxy does not disclose the address: `unknown`, or an obfuscated identifier (RFC 7239 sections 6.2 and 6.3).
    case undisclosed
    /// The value has none of the known forms.
    case invalid

    /// Reads the last element of a field, which the nearest proxy wrote; nil if the field is absent. Anybody can have
    /// written the elements before it.
    init?(lastOf values: [String]) {
        guard let field = values.last else { return nil }
        guard let element = Self.lastElement(of: field) else {
            self = .invalid
            return
        }
        guard element.contains("=") else {
            self.init(node: element)
            return
        }
        let parameters = HeaderParameters(element)
        // More than one group: a comma that is outside of quotes, read from the start, is inside of them, read from the end.
        guard parameters.groups.count == 1, let node = parameters["for"] else {
            self = .invalid
            return
        }
        self.init(node: node[...])
    }

    var address: NetworkAddress? { if case .known(let address) = self { address } else { nil } }

    /// Returns the text after the last comma outside quotes, without white space around it; nil if a quote is missing in it.
    ///
    /// It is looked for from the end: a quote that is missing in an earlier element changes nothing.
    private static func lastElement(of text: String) -> Substring? {
        let bytes = text.utf8
        var start = bytes.endIndex
        var isQuoted = false
        while start > bytes.startIndex {
            let index = bytes.index(before: start)
            if bytes[index] == UInt8(ascii: ","), !isQuoted { break }
            if bytes[index] == UInt8(ascii: "\""), !isEscaped(bytes[..<index]) { isQuoted.toggle() }
            start = index
        }
        if isQuoted { return nil }
        var element = text[start...]
        while element.first == " " || element.first == "\t" { element.removeFirst() }
        while element.last == " " || element.last == "\t" { element.removeLast() }
        return element
    }

    /// Whether a backslash that is not escaped itself ends a text.
    private static func isEscaped(_ before: Substring.UTF8View) -> Bool {
        before.reversed().prefix { $0 == UInt8(ascii: "\\") }.count % 2 == 1
    }

    // MARK: One node (RFC 7239 section 6)

    private init(node: Substring) {
        if let address = NetworkAddress(node) {
            self = .known(address)
        } else if node.first == "[" {
            self.init(bracketed: node)
        } else {
            let parts = node.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first, parts.count == 1 || Self.isPort(parts[1]) else {
                self = .invalid
                return
            }
            if let address = NetworkAddress(name) {
                self = .known(address)
            } else {
                self = name.lowercased() == "unknown" || Self.isObfuscated(name) ? .undisclosed : .invalid
            }
        }
    }

    private init(bracketed node: Substring) {
        let parts = node.dropFirst().split(separator: "]", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let address = NetworkAddress(parts[0]),
            parts[1].isEmpty || parts[1].first == ":" && Self.isPort(parts[1].dropFirst())
        else {
            self = .invalid
            return
        }
        self = .known(address)
    }

    private static func isPort(_ text: Substring) -> Bool {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return isObfuscated(text) }
        return UInt16(text) != nil
    }

    private static func isObfuscated(_ text: Substring) -> Bool {
        text.first == "_" && text.utf8.count > 1
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "._-".utf8.contains(byte)
                }
            }
    }
}
