/// Finds the positions of values in a JSON text, so that parts of the text can be copied unchanged. Values can be nested to any
/// depth.
package enum JSONPlaces {
    /// Returns the members of the object in a slice of the text; nil if the slice is not an object.
    package static func members(in text: ArraySlice<UInt8>) -> [(name: String, value: ArraySlice<UInt8>)]? {
        read(text) { $0.readMembers() }?.map { ($0.name, text[$0.place]) }
    }

    /// Returns the elements of the array in a slice of the text; nil if the slice is not an array.
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
