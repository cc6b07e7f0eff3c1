/// A whole request for a home, from the process that accepted it.
package struct HomeRequest: Sendable {
    package var method: String
    /// The path with the query.
    package var path: String
    /// The header fields in their order. Names are in lower case.
    package var fields: [(name: String, value: String)]
    package var body: HomeBody
    /// The address of the client; nil if it is not known.
    package var address: NetworkAddress?
    /// Whether only the head of the response is requested. The method is GET then.
    package var isHead: Bool
    /// The device of the socket through which the request arrived.
    package var session: DeviceSerial?
    /// The shard whose move must wait for the request. Nil for a request that can take long, and that changes nothing of a shard
    /// while it waits.
    package var shard: Shard?

    package init(
        method: String, path: String, fields: [(name: String, value: String)], body: HomeBody,
        address: NetworkAddress? = nil, isHead: Bool = false, session: DeviceSerial? = nil, shard: Shard? = nil
    ) {
        self.method = method
        self.path = path
        self.fields = fields
        self.body = body
        self.address = address
        self.isHead = isHead
        self.session = session
        self.shard = shard
    }
}

/// The response of a home to a ``HomeRequest``.
package struct HomeResponse: Sendable {
    package var status: Int
    /// The header fields in their order.
    package var fields: [(name: String, value: String)]
    package var body: HomeBody

    package init(status: Int, fields: [(name: String, value: String)], body: HomeBody) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}

/// The body of a request or of a response.
package enum HomeBody: Sendable {
    case whole([UInt8])
    /// Parts that arrive one after the other. They can be read once.
    case parts(any AsyncSequence<[UInt8], any Error> & Sendable)
    /// The body exceeds its limit, and was not read.
    case tooLarge(limit: Int)
    /// The body of a response of which only the head was requested.
    case none(length: Int?)
}
