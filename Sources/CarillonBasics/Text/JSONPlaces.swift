/// Finds the places of values in a JSON text, so that parts of it can be copied unchanged. Values can be nested to any depth.
package enum JSONPlaces {
    /// The members of the object at a place of the text; nil when no object is there.
    package static func members(in text: ArraySlice<UInt8>) -> [(name: String, value: ArraySlice<UInt8>)]? {
        read(text) { $0.readMembers() }?.map { ($0.name, text[$0.place]) }
    }

    /// The elements of the array at a place of the text; nil when no array is there.
    package static func elements(in text: ArraySlice<UInt8>) -> [ArraySlice<UInt8>]? {
        read(text) { $0.readElements() }?.map { text[$0] }
    }

    private static func read<Value>(_ text: ArraySlice<UInt8>, _ body: (inout JSONReader) -> Value?) -> Value? {
        text.withUnsafeBufferPointer { bytes in
            var reader = JSONReader(text: bytes, offset: text.startIndex)
            return reader.readWhole(body)
        }
    }
}
