package import CarillonWire

/// An HTTP address that the server calls at the request of others. Parsing is so strict that all programs agree about its host.
package struct CallAddress: Hashable, Sendable {
    package enum Host: Hashable, Sendable {
        case name(String)
        case literal(NetworkAddress)
    }

    /// The address as it was received.
    package let text: String
    package let isSecure: Bool
    package let host: Host
    package let port: Int
    /// The path and the query, as in the first line of the request.
    package let target: String

    /// The reason why an address is not valid.
    package struct Fault: Error, Equatable {
        /// The part and the rule, as they follow "the address": "must not have a fragment".
        package let reason: String

        package init(reason: String) { self.reason = reason }
    }

    /// - Throws: ``Refusal`` with the code of an address that is not valid.
    package init(_ text: String) throws(Refusal) {
        do { try self.init(reading: text) } catch { throw Refusal(.watchAddressInvalid, "The address \(error.reason).") }
    }

    package init(reading text: String) throws(Fault) {
        try Self.checkCharacters(text)
        let start = text.prefix(8).lowercased()
        guard start.hasPrefix("http://") || start == "https://" else {
            throw Self.invalid("must begin with http:// or https://")
        }
        isSecure = start == "https://"
        let rest = text.dropFirst(isSecure ? 8 : 7)
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let target = rest.dropFirst(authority.count)
        guard !target.contains("#") else { throw Self.invalid("must not have a fragment") }
        guard !authority.contains("@") else { throw Self.invalid("must not have a user name or a password") }
        let (host, port) = try Self.split(authority)
        guard !host.isEmpty else { throw Self.invalid("must have a host") }
        self.host = try Self.host(host)
        self.port = try port.map(Self.port) ?? (isSecure ? 443 : 80)
        self.target = target.hasPrefix("/") ? String(target) : "/" + target
        self.text = text
    }

    /// The host and the port. One call at a time is made to a peer.
    package var peer: String { "\(hostText):\(port)" }

    /// The value of the `Host` header.
    package var hostHeader: String { isPortImplied ? hostText : peer }

    /// Whether the port is the default port of the scheme.
    package var isPortImplied: Bool { port == (isSecure ? 443 : 80) }

    /// The host without the port. Calls are counted by host.
    package var hostText: String {
        switch host {
        case .name(let name): name
        case .literal(.v4(let value)): NetworkAddress.v4(value).description
        case .literal(.v6(let value)): "[\(NetworkAddress.v6(value))]"
        }
    }

    private static func checkCharacters(_ text: String) throws(Fault) {
        for byte in text.utf8 {
            switch byte {
            case 0x00...0x1F, 0x7F: throw invalid("must not have control characters, such as a line break")
            case UInt8(ascii: " "): throw invalid("must not have white space")
            case UInt8(ascii: "\\"): throw invalid("must not have a backslash")
            case 0x80...: throw invalid("must be ASCII; write a host in other scripts as xn--…")
            default: continue
            }
        }
        guard text.utf8.count <= Limits.callAddressBytes else {
            throw invalid("must have at most \(Limits.callAddressBytes) characters")
        }
    }

    private static func split(_ authority: Substring) throws(Fault) -> (host: Substring, port: Substring?) {
        if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") {
            let rest = authority[authority.index(after: end)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { throw invalid("has something between its host and its port") }
            return (authority[...end], rest.isEmpty ? nil : rest.dropFirst())
        }
        guard let colon = authority.firstIndex(of: ":") else { return (authority, nil) }
        return (authority[..<colon], authority[authority.index(after: colon)...])
    }

    private static func port(_ text: Substring) throws(Fault) -> Int {
        guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = Int(text), (1...65_535).contains(port)
        else { throw invalid("must have a port from 1 to 65535") }
        return port
    }

    private static func host(_ text: Substring) throws(Fault) -> Host {
        if text.hasPrefix("[") {
            guard let address = NetworkAddress(text.dropFirst().dropLast()), case .v6 = address else {
                throw invalid("must have an IPv6 address between its brackets, without a zone")
            }
            return .literal(address)
        }
        if let address = NetworkAddress(text) {
            // An IPv6 address without brackets was cut at its first colon, and is not read here.
            return .literal(address)
        }
        let name = text.lowercased()
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        guard name.utf8.count <= 253, labels.allSatisfy(isLabel) else {
            throw invalid("must have a host name of letters, digits, hyphens and dots; write other scripts as xn--…")
        }
        // Some programs read 2130706433, 0177.1 and 0x7f.0.0.1 as addresses, others as names.
        guard let last = labels.last, !isNumber(last) else {
            throw invalid("must have an IPv4 address as four decimal numbers without leading zeros")
        }
        return .name(name)
    }

    private static func isLabel(_ label: Substring) -> Bool {
        (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
            && label.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                    UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    private static func isNumber(_ label: Substring) -> Bool {
        if label.hasPrefix("0x") { return label.dropFirst(2).utf8.allSatisfy(\.isHexadecimalDigit) }
        return label.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    private static func invalid(_ reason: String) -> Fault { Fault(reason: reason) }
}
