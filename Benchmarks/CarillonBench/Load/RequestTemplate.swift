import NIOCore

/// An HTTP request that is made once, and sent with the id of another request of a service each time.
struct RequestTemplate: Sendable {
    private let bytes: ByteBuffer
    private let place: Int

    /// As long as every id, and nowhere else in what is sent.
    private static let gap: StaticString = "00000000000000000000000000000000"

    /// - Parameter make: Makes it with an id.
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
