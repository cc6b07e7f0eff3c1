package import CarillonWire

/// One entry of an inbox.
package struct Envelope: Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        case message(Content)
        case channelClosed
        case channelError(code: Int)
        case pingFailed(PingFailure)
        case recovered
    }

    package struct Content: Equatable, Sendable {
        package var body: [UInt8]
        package var coding: ContentCoding?

        package init(body: [UInt8], coding: ContentCoding?) {
            self.body = body
            self.coding = coding
        }
    }

    package var id: MessageID
    package var device: DeviceSerial
    package var app: AppSerial
    package var channel: ChannelSerial
    package var channelID: ChannelID
    package var kind: Kind
    package var acceptedAt: Timestamp
    package var expiresAt: Timestamp

    package init(
        id: MessageID, device: DeviceSerial, app: AppSerial, channel: ChannelSerial, channelID: ChannelID, kind: Kind,
        acceptedAt: Timestamp, expiresAt: Timestamp
    ) {
        self.id = id
        self.device = device
        self.app = app
        self.channel = channel
        self.channelID = channelID
        self.kind = kind
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
    }

    package var position: Int64 { id.position }

    /// What the envelope counts for in windows and in the limit of an inbox.
    package var byteCount: Int {
        switch kind {
        case .message(let content): Self.overhead + content.body.count
        case .channelClosed, .channelError, .pingFailed, .recovered: Self.overhead
        }
    }

    package static let overhead = 128

    /// Whether the end of the channel is the end of the envelope too. What tells of the end stays.
    package var endsWithChannel: Bool {
        switch kind {
        case .message, .pingFailed, .recovered: true
        case .channelClosed, .channelError: false
        }
    }

    /// TTL 0: given to a connection or lost, never kept.
    package var isVolatile: Bool { expiresAt == acceptedAt }

    /// A TTL-0 message that the device does not answer for is given up this long after it was given.
    package static let volatileGraceSeconds: Int64 = 60

    package func isExpired(at now: Timestamp) -> Bool { expiresAt <= now }
}
