import NIOCore

/// An HTTP request that is made once, and sent each time with the ID of another service request.
struct RequestTemplate: Sendable {
    private let bytes: ByteBuffer
    private let place: Int

    /// A placeholder with the length of an ID. It occurs nowhere else in the request.
    private static let gap: StaticString = "00000000000000000000000000000000"

    /// - Parameter make: Makes the request with an ID.
    init(_ make: (String) -> ByteBuffer) throws {
        let bytes = make("\(Self.gap)")
        guard let place = bytes.offset(of: Self.gap) else { throw NotMeasured("a request has no place for an id") }
        self.bytes = bytes
        self.place = place
    }

    func with(_ id: String) -> ByteBuffer {
        var request = bytes
        request.setString(id, at: request.readerIndex + place)
        return request
    }
}
