/// What both sides may count on. A server may be configured to allow more of some, never less.
package enum Limits {
    /// The largest message body, in bytes. RFC 8030 section 7.2 demands at least 4096.
    package static let messageBodyBytes = 8192
    /// The largest body of a Matrix notification, in bytes: an event has up to 65,536, and JSON may write a byte as six.
    package static let matrixBodyBytes = 131_072
    /// The largest message that becomes of a Matrix notification, in bytes.
    package static let matrixMessageBytes = 4096
    /// The largest JSON body of the HTTP API, in bytes.
    package static let apiBodyBytes = 65_536
    /// The largest frame, and the largest message put together from fragments, that a client may send, in bytes.
    package static let clientFrameBytes = 65_536
    /// The longest TTL, in seconds: thirty days, as autopush has it.
    package static let ttlSeconds: Int64 = 2_592_000
    /// RFC 8030 section 5.4.
    package static let topicCharacters = 32
    /// The longest name of a channel, in bytes of UTF-8.
    package static let channelNameBytes = 256
    /// The longest name of a key, in bytes of UTF-8.
    package static let keyNameBytes = 256
    /// The most channels of one device.
    package static let channelsPerDevice = 1000
    /// The most updates in one `ack` frame, and the most results in one request.
    package static let resultsPerRequest = 1000
    /// The longest reason of an update's result, in bytes of UTF-8; a longer one is cut.
    package static let reasonBytes = 256
    /// The longest `wait` of a long poll, in seconds.
    package static let pollWaitSeconds = 300
    /// The most envelopes in one answer to a poll.
    package static let pollEnvelopes = 500
    /// The shortest and the longest interval of pings, in seconds; an operator may allow shorter ones.
    package static let pingIntervalSeconds = 15...86_400
    /// The most watches of one device.
    package static let watchesPerDevice = 100
    /// The most watches of one app.
    package static let watchesPerApp = 1_000_000
    /// The longest address of a watch, in bytes.
    package static let callAddressBytes = 2048
    /// The longest `Idempotency-Key`, in characters.
    package static let idempotencyKeyCharacters = 255
}
