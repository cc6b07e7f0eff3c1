/// The limits that both sides rely on. A server's configuration can raise some of them, but never lower them.
package enum Limits {
    /// The largest message body, in bytes. RFC 8030 section 7.2 requires at least 4096.
    package static let messageBodyBytes = 8192
    /// The largest body of a Matrix notification, in bytes. An event has up to 65,536 bytes, and JSON can write one byte as six.
    package static let matrixBodyBytes = 131_072
    /// The largest message that is created from a Matrix notification, in bytes.
    package static let matrixMessageBytes = 4096
    /// The largest JSON body of the HTTP API, in bytes.
    package static let apiBodyBytes = 65_536
    /// The largest frame that a client can send, and the largest message of several fragments, in bytes.
    package static let clientFrameBytes = 65_536
    /// The longest TTL, in seconds: 30 days, as in autopush.
    package static let ttlSeconds: Int64 = 2_592_000
    /// The longest `Topic`, in characters (RFC 8030 section 5.4).
    package static let topicCharacters = 32
    /// The longest name of a channel, in bytes of UTF-8.
    package static let channelNameBytes = 256
    /// The longest name of an API key, in bytes of UTF-8.
    package static let keyNameBytes = 256
    /// The largest number of channels of one device.
    package static let channelsPerDevice = 1000
    /// The largest number of updates in one `ack` frame, and of results in one request.
    package static let resultsPerRequest = 1000
    /// The longest reason in the result of an audience update, in bytes of UTF-8. A longer reason is truncated.
    package static let reasonBytes = 256
    /// The longest `wait` of a long poll, in seconds.
    package static let pollWaitSeconds = 300
    /// The largest number of envelopes in one answer to a poll.
    package static let pollEnvelopes = 500
    /// The same number for a poll without a `max`.
    package static let defaultPollEnvelopes = 100
    /// The shortest and the longest interval of pings, in seconds. An operator can allow shorter intervals.
    package static let pingIntervalSeconds = 15...86_400
    /// The largest number of watches of one device.
    package static let watchesPerDevice = 100
    /// The largest number of watches of one app.
    package static let watchesPerApp = 1_000_000
    /// The longest address of a watch, in bytes.
    package static let callAddressBytes = 2048
    /// The longest `Idempotency-Key`, in characters.
    package static let idempotencyKeyCharacters = 255
}
