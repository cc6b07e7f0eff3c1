package import CarillonCore

package struct SomeBytes: FileBytes {
    package var bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package init(_ text: String) { bytes = Array(text.utf8) }

    package var count: Int { bytes.count }

    package func withBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value {
        try bytes.withUnsafeBytes(body)
    }
}
