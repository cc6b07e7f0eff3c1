/// Sixteen bytes that are stored inline, so that identifiers need no allocation.
package struct Bytes16: Hashable, Sendable {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Returns nil unless there are exactly sixteen bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        let inPlace = bytes.withContiguousStorageIfAvailable { storage in
            let raw = UnsafeRawBufferPointer(storage)
            return (raw.loadUnaligned(as: UInt64.self), raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        if let inPlace {
            (high, low) = (UInt64(bigEndian: inPlace.0), UInt64(bigEndian: inPlace.1))
        } else {
            high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
            low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    package static func random(using generator: inout some RandomNumberGenerator) -> Bytes16 {
        Bytes16(high: generator.next(), low: generator.next())
    }

    package var bytes: [UInt8] {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0) }
    }
}

extension FixedWidthInteger {
    package var bigEndianBytes: [UInt8] {
        withUnsafeBytes(of: bigEndian) { Array($0) }
    }
}
