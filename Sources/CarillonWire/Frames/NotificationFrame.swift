import CarillonBasics

/// A message that is sent to a device.
package struct NotificationFrame: Equatable, Sendable {
    package var channelID: String
    /// The message's identifier. Mozilla's protocol calls this member `version`.
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

/// A change of a channel that the device did not request. The server sends this frame to Carillon clients only. The client
/// acknowledges it like a notification.
package struct ChannelEventFrame: Equatable, Sendable {
    package enum Event: Equatable, Sendable {
        /// The channel is closed. Its token is no longer valid.
        case closed
        /// A permanent fault with a code of ``ChannelErrorCode``. The channel's token is no longer valid.
        case error(code: Int)
        /// A ping of the backend failed, with a code of ``PingFailure``. The channel stays open.
        case pingFailed(code: Int)
        /// The backend answers again.
        case recovered
        /// An event of a newer server. The client acknowledges it and does nothing else.
        case other(String)

        /// Whether the event ends the channel.
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
