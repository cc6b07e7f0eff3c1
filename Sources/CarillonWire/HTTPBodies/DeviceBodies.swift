package import CarillonBasics

package struct RegisteredDevice: Codable, Equatable, Sendable {
    package var id: String
    /// The device credential. The server returns it only once.
    package var credential: String
    /// The WebSocket address to connect to.
    package var socket: String
    /// The server's identifier; nil from a server that does not send it.
    package var server: String?
    /// Whether each answer to this registration contains the same credential. Nil from a server that does not send this member,
    /// and for a registration without a secret.
    package var repeatable: Bool?
    package init(
        id: String, credential: String, socket: String, server: String? = nil, repeatable: Bool? = nil
    ) {
        self.id = id
        self.credential = credential
        self.socket = socket
        self.server = server
        self.repeatable = repeatable
    }
}

/// The identifier of a server, and its public addresses.
package struct ServerBody: Codable, Equatable, Sendable {
    /// The server's identifier. It stays the same when the server moves.
    package var server: String
    /// The WebSocket address to connect to.
    package var socket: String
    /// The prefix of endpoints. A channel's token is appended to it.
    package var endpoints: String
    package init(server: String, socket: String, endpoints: String) {
        self.server = server
        self.socket = socket
        self.endpoints = endpoints
    }
}

package struct DeviceBody: Codable, Equatable, Sendable {
    /// The platform and environment of the device's push token. The token itself is not included.
    package struct Push: Codable, Equatable, Sendable {
        package var platform: String
        package var environment: String
        package init(platform: String, environment: String) {
            self.platform = platform
            self.environment = environment
        }
    }

    package var id: String
    package var app: String
    /// `registered` or `suspended`.
    package var status: String
    /// The time of the last change of the status.
    package var statusAt: String
    /// The reason of a suspension.
    package var reason: String?
    package var createdAt: String
    /// The number of envelopes in the inbox.
    package var waiting: Int
    package var channels: [ChannelBody]
    package var push: Push?
    /// The user of the device.
    package var user: String?
    package var appVersion: String?
    package var locale: String?
    package var timeZone: String?
    package var parameters: JSONValue?
    /// The device's revision of its description.
    package var revision: String?
    package init(
        id: String, app: String, status: String, statusAt: String, createdAt: String, waiting: Int, channels: [ChannelBody]
    ) {
        self.id = id
        self.app = app
        self.status = status
        self.statusAt = statusAt
        self.createdAt = createdAt
        self.waiting = waiting
        self.channels = channels
    }
}

package struct DeviceSummary: Codable, Equatable, Sendable {
    package var id: String
    package var app: String
    package var createdAt: String
    /// `registered` or `suspended`.
    package var status: String
    /// The reason of a suspension.
    package var reason: String?
    package var platform: String?
    package var environment: String?
    package var user: String?
    package init(
        id: String, app: String, createdAt: String, status: String, reason: String? = nil, platform: String? = nil,
        environment: String? = nil, user: String? = nil
    ) {
        self.id = id
        self.app = app
        self.createdAt = createdAt
        self.status = status
        self.reason = reason
        self.platform = platform
        self.environment = environment
        self.user = user
    }
}

package struct DeviceList: Codable, Sendable {
    package var devices: [DeviceSummary]
    /// The value of `after` for the next page; absent on the last page.
    package var next: String?
    package init(devices: [DeviceSummary], next: String?) {
        self.devices = devices
        self.next = next
    }
}

package struct ChannelBody: Codable, Equatable, Sendable {
    package var channelID: String
    package var name: String?
    /// Whether only the holder of one VAPID key can send.
    package var restricted: Bool
    /// The name of a ``WakeMode``.
    package var wake: String
    package init(channelID: String, name: String?, restricted: Bool, wake: String) {
        self.channelID = channelID
        self.name = name
        self.restricted = restricted
        self.wake = wake
    }
}

package struct RegisterChannel: StrictBody, Sendable {
    package static let memberNames: Set = ["channelID", "name", "key", "wake"]
    package var channelID: String
    package var name: String?
    /// The sender's VAPID public key. If present, only the holder of this key can send.
    package var key: String?
    /// The name of a ``WakeMode``. If absent, an open channel keeps its mode, and a new channel gets `background`.
    package var wake: String?
}

package struct InboxResults: StrictBody, Sendable {
    package static let memberNames: Set = ["results"]

    package struct Item: Codable, Sendable {
        package var version: String
        /// `acknowledged`, `failed`, `unsupported`, or `deferred`.
        package var result: String
        package var code: Int?

        package init(from decoder: any Decoder) throws {
            try StrictJSON.refuseUnknownMembers(of: decoder, known: ["version", "result", "code"])
            let container = try decoder.container(keyedBy: CodingKeys.self)
            version = try container.decode(String.self, forKey: .version)
            result = try container.decode(String.self, forKey: .result)
            code = try container.decodeIfPresent(Int.self, forKey: .code)
        }
    }

    package var results: [Item]
}
