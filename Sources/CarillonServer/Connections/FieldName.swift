extension String {
    /// Whether this is the name of a field, which is given in small letters (RFC 9110 section 5.1).
    func isField(_ name: StaticString) -> Bool {
        guard utf8.count == name.utf8CodeUnitCount else { return false }
        var expected = name.utf8Start
        for byte in utf8 {
            // Letters differ from small ones by a bit; what else does is no letter and in no name.
            guard byte == expected.pointee || byte | 0x20 == expected.pointee && byte >= 0x41 && byte <= 0x5A else {
                return false
            }
            expected += 1
        }
        return true
    }
}
