import CarillonCore
import CarillonWire

/// The client's address as a proxy reports it, in `X-Forwarded-For` and similar fields, or in `Forwarded` (RFC 7239).
enum ForwardedAddress: Equatable {
    case known(NetworkAddress)
    /// The proxy does not disclose the address: `unknown`, or an obfuscated identifier (RFC 7239 sections 6.2 and 6.3).
    case undisclosed
    /// The value has no known form.
    case invalid

    /// Reads the last element of a field, which the nearest proxy wrote; nil if the field is absent. The elements before it are
    /// not trustworthy, because any client can send them.
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
        // There is more than one group: a comma is outside of quotes when read from the start, but inside of quotes when read
        // from the end.
        guard parameters.groups.count == 1, let node = parameters["for"] else {
            self = .invalid
            return
        }
        self.init(node: node[...])
    }

    var address: NetworkAddress? { if case .known(let address) = self { address } else { nil } }

    /// Returns the text after the last comma outside of quotes, without white space around it; nil if the text has an unbalanced
    /// quote.
    ///
    /// The comma is searched from the end, so that an unbalanced quote in an earlier element has no effect.
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

    /// Whether the text ends with a backslash that is not escaped.
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
