import CarillonBasics

/// A message on its way to a device.
package struct NotificationFrame: Equatable, Sendable {
    package var channelID: String
    /// The message's identifier; Mozilla's protocol calls it version.
    package var version: String
    package var body: [UInt8]
    /// Nil exactly when the body is empty.
    package var coding: ContentCoding?

    package init(channelID: String, version: String, body: [UInt8], coding: ContentCoding?) {
        self.channelID = channelID
        self.version = version
        self.body = body
        self.coding = coding
    }

    func write(to json: inout JSONWriter) {
        json.member("messageType", "notification")
        json.member("channelID", channelID)
        json.member("version", version)
        guard !body.isEmpty, let coding else { return }
        json.member("data", base64URL: body)
        json.member("headers") { json in
            json.member("encoding", coding.name.rawValue)
            json.member("encryption", coding.encryption)
            json.member("crypto_key", coding.cryptoKey)
        }
    }
}

/// What happened to a channel other than by the device's own request. Sent to Carillon clients only, and acknowledged
/// like a notification.
package struct ChannelEventFrame: Equatable, Sendable {
    package enum Event: Equatable, Sendable {
        /// The channel is closed; its token is dead.
        case closed
        /// A fault that cannot be mended, with a code of ``ChannelErrorCode``; its token is dead.
        case error(code: Int)
        /// The back end could not be pinged, with a code of ``PingFailure``; the channel stays open.
        case pingFailed(code: Int)
        /// The back end answers again.
        case recovered
        /// What a newer server tells; it is answered for, and nothing else comes of it.
        case other(String)

        /// Whether the channel has ended with it.
        package var isEnd: Bool {
            switch self {
            case .closed, .error: true
            case .pingFailed, .recovered, .other: false
            }
        }
    }

    package var channelID: String
    package var version: String
    package var event: Event

    package init(channelID: String, version: String, event: Event) {
        self.channelID = channelID
        self.version = version
        self.event = event
    }

    func write(to json: inout JSONWriter) {
        json.member("messageType", "channel")
        json.member("channelID", channelID)
        json.member("version", version)
        switch event {
        case .closed:
            json.member("event", "closed")
        case .error(let code):
            json.member("event", "error")
            json.member("code", code)
        case .pingFailed(let code):
            json.member("event", "pingFailed")
            json.member("code", code)
        case .recovered:
            json.member("event", "recovered")
        case .other(let name):
            json.member("event", name)
        }
    }
}
