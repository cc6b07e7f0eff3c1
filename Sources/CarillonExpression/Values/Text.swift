extension String {
    /// Whether both texts have the same bytes. Swift's `==` treats two spellings of a letter as equal; the language does not.
    func hasSameBytes(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        return compareBytes(to: other) == 0
    }

    /// Returns a negative number, zero or a positive number: the order by code points, which is the order of the bytes in
    /// UTF-8.
    func compareBytes(to other: String) -> Int {
        let compared = utf8.withContiguousStorageIfAvailable { one in
            other.utf8.withContiguousStorageIfAvailable { order(one, $0) }
        }
        if let compared = compared ?? nil { return compared }
        return order(Array(utf8), Array(other.utf8))
    }

    func contains(bytesOf other: String) -> Bool {
        let compared = utf8.withContiguousStorageIfAvailable { text in
            other.utf8.withContiguousStorageIfAvailable { contains(text, $0) }
        }
        return (compared ?? nil) ?? contains(Array(utf8), Array(other.utf8))
    }

    private func contains(_ text: some RandomAccessCollection<UInt8>, _ part: some RandomAccessCollection<UInt8>) -> Bool {
        guard let first = part.first else { return true }
        var rest = text[...]
        while rest.count >= part.count, let place = rest.dropLast(part.count - 1).firstIndex(of: first) {
            if rest[place...].starts(with: part) { return true }
            rest = rest[rest.index(after: place)...]
        }
        return false
    }
}

/// Returns a negative number, zero or a positive number: the order of the bytes.
func order(_ one: some RandomAccessCollection<UInt8>, _ other: some RandomAccessCollection<UInt8>) -> Int {
    for (one, other) in zip(one, other) where one != other { return one < other ? -1 : 1 }
    return one.count - other.count
}
