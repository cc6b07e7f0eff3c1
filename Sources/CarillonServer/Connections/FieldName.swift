extension String {
    /// Whether this text is the name of a header field, without regard to case (RFC 9110 section 5.1). The name must be in lower
    /// case.
    func isField(_ name: StaticString) -> Bool {
        guard utf8.count == name.utf8CodeUnitCount else { return false }
        var expected = name.utf8Start
        for byte in utf8 {
            // A capital letter differs from its small letter by one bit. Other characters that differ by this bit are not
            // letters.
            guard byte == expected.pointee || byte | 0x20 == expected.pointee && byte >= 0x41 && byte <= 0x5A else {
                return false
            }
            expected += 1
        }
        return true
    }
}
