import CarillonBasics

/// What a backend asks for with `PUT /push/{token}/watch`: the whole watch, as it is to be from then on.
package struct PutWatch: Codable, StrictBody, Sendable {
    package static let memberNames: Set = ["pingAddress", "pingIntervalSeconds", "disconnectAddress", "renewSecret"]
    package var pingAddress: String?
    package var pingIntervalSeconds: Int?
    package var disconnectAddress: String?
    /// Makes another signing secret; the present one is not used any more.
    package var renewSecret: Bool?

    package init(
        pingAddress: String? = nil, pingIntervalSeconds: Int? = nil, disconnectAddress: String? = nil,
        renewSecret: Bool? = nil
    ) {
        self.pingAddress = pingAddress
        self.pingIntervalSeconds = pingIntervalSeconds
        self.disconnectAddress = disconnectAddress
        self.renewSecret = renewSecret
    }
}

package struct WatchBody: Codable, Equatable, Sendable {
    package var pingAddress: String?
    package var pingIntervalSeconds: Int?
    package var disconnectAddress: String?
    package var createdAt: String
    /// Absent before the first ping.
    package var lastPing: LastPing?
    /// Absent without a ping address.
    package var nextPingAt: String?
    /// Present in the answer that made it, and never again.
    package var secret: String?

    package init(
        pingAddress: String?, pingIntervalSeconds: Int?, disconnectAddress: String?, createdAt: String,
        lastPing: LastPing?, nextPingAt: String?, secret: String?
    ) {
        self.pingAddress = pingAddress
        self.pingIntervalSeconds = pingIntervalSeconds
        self.disconnectAddress = disconnectAddress
        self.createdAt = createdAt
        self.lastPing = lastPing
        self.nextPingAt = nextPingAt
        self.secret = secret
    }

    package struct LastPing: Codable, Equatable, Sendable {
        package var at: String
        /// `answered` or `failed`.
        package var result: String
        /// A code of ``PingFailure``, when it failed.
        package var code: Int?
        /// What was met, in words for the developer of the backend.
        package var detail: String?

        package init(at: String, result: String, code: Int?, detail: String?) {
            self.at = at
            self.result = result
            self.code = code
            self.detail = detail
        }
    }
}

/// What the server posts to a backend, signed as Standard Webhooks has it.
package struct WebhookBody: Equatable, Sendable {
    package static let ping = "channel.ping"
    package static let disconnected = "channel.disconnected"

    package var type: String
    /// When what it tells of happened.
    package var timestamp: String
    package var data: Contents

    package init(type: String, timestamp: String, data: Contents) {
        self.type = type
        self.timestamp = timestamp
        self.data = data
    }

    /// The body as JSON. Each body can be written.
    package var bytes: [UInt8] {
        JSONWriter.object { writer in
            writer.member("data") { writer in
                writer.member("reason", data.reason)
                writer.member("token", data.token)
            }
            writer.member("timestamp", timestamp)
            writer.member("type", type)
        }
    }

    package struct Contents: Equatable, Sendable {
        /// The token with which the watch was registered.
        package var token: String
        /// Why the channel ended; in `channel.disconnected` only.
        package var reason: String?

        package init(token: String, reason: String? = nil) {
            self.token = token
            self.reason = reason
        }
    }
}
