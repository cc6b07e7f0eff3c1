/// The name of a service: a reverse domain, such as `com.example.transfer-file`.
package struct ServiceID: Hashable, Sendable {
    package let text: String

    package static let longestBytes = 128

    /// Accepts two or more labels with dots between (RFC 1035 section 2.3.1, lower case). Each label begins with a letter, ends
    /// with a letter or a digit, and has at most 63 letters, digits and hyphens.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count <= Self.longestBytes else { return nil }
        let labels = Array(text.utf8).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard labels.count >= 2, labels.allSatisfy(Self.isLabel) else { return nil }
        self.text = String(text)
    }

    private static func isLabel(_ label: ArraySlice<UInt8>) -> Bool {
        guard (1...63).contains(label.count), let first = label.first, let last = label.last else { return false }
        return isLetter(first) && (isLetter(last) || isDigit(last))
            && label.allSatisfy { isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

extension ServiceID: CustomStringConvertible {
    package var description: String { text }
}

/// The version of a service: one to four numbers with dots between, such as `1.0.0.0`.
package struct ServiceVersion: Hashable, Sendable {
    package let text: String

    /// Accepts numbers of one to nine digits, without leading zeros.
    package init?(_ text: some StringProtocol) {
        let numbers = Array(text.utf8).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...4).contains(numbers.count), numbers.allSatisfy(Self.isNumber) else { return nil }
        self.text = String(text)
    }

    private static func isNumber(_ digits: ArraySlice<UInt8>) -> Bool {
        (1...9).contains(digits.count) && digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            && (digits.count == 1 || digits.first != UInt8(ascii: "0"))
    }
}

extension ServiceVersion: CustomStringConvertible {
    package var description: String { text }
}

/// The name of a method: a letter, and up to 63 letters, digits and underscores.
package struct MethodName: Hashable, Sendable {
    package let text: String

    package init?(_ text: some StringProtocol) {
        func isLetter(_ byte: UInt8) -> Bool {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
        }
        guard (1...64).contains(text.utf8.count), let first = text.utf8.first, isLetter(first),
            text.utf8.allSatisfy({
                isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "_")
            })
        else { return nil }
        self.text = String(text)
    }
}

extension MethodName: CustomStringConvertible {
    package var description: String { text }
}
