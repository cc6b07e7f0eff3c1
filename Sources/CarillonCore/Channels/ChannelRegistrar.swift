import CarillonBasics
package import CarillonWire
import Crypto

/// Opens and closes channels.
package struct ChannelRegistrar: Sendable {
    package struct Registration: Equatable, Sendable {
        package var channel: PushChannel
        package var token: String
    }

    private let channels: any ChannelStore
    private let directory: ChannelDirectory
    private let home: any LocalHome
    private let formerChannels: FormerChannels
    private let sealer: TokenSealer
    private let rateLimits: RateLimits
    private let time: TimeSource

    package init(
        channels: any ChannelStore, directory: ChannelDirectory, home: any LocalHome, formerChannels: FormerChannels,
        sealer: TokenSealer, rateLimits: RateLimits, time: TimeSource
    ) {
        self.channels = channels
        self.directory = directory
        self.home = home
        self.formerChannels = formerChannels
        self.sealer = sealer
        self.rateLimits = rateLimits
        self.time = time
    }

    /// Opens the channel, or finds it open, and returns a new token for it. Earlier tokens stay valid.
    ///
    /// - Parameters:
    ///   - wake: Nil leaves an open channel unchanged; a new channel wakes in the background.
    ///   - address: The address of the device, whose rate limit is used; nil uses none.
    package func register(
        _ id: ChannelID, device: DeviceSerial, name: String?, vapidKey: [UInt8]?, wake: WakeMode? = nil,
        from address: NetworkAddress? = nil
    ) async throws -> Registration {
        try Self.check(name: name)
        try rateLimits.takeRegistration(of: device, from: address)
        func open() async throws -> OpenChannelResult {
            try await directory.opening {
                try await channels.openChannel(
                    id, device: device, name: name, vapidKey: vapidKey, wake: wake, limit: Limits.channelsPerDevice,
                    at: time.now())
            }
        }
        var result = try await open()
        if result == .ofFormerUser {
            try await formerChannels.close(of: device)
            result = try await open()
        }
        switch result {
        case .ofFormerUser:
            throw Refusal(
                .overloaded, "The server is closing the channel of the device's previous user; retry.", retryAfterSeconds: 1)
        case .alreadyOpen(let channel) where channel.vapidKey != vapidKey:
            throw Refusal(
                .fieldInvalid, "The channel is already open with another VAPID key, or without one; close it first.")
        case .opened(let channel), .alreadyOpen(let channel):
            let token = try sealer.seal(.init(device: device, channel: channel.serial))
            return Registration(channel: channel, token: token)
        case .tooMany:
            throw Refusal(.channelsTooMany, "A device can have up to \(Limits.channelsPerDevice) channels; close one first.")
        case .deviceGone:
            throw Refusal(.deviceUnknown, "The device was deleted.")
        }
    }

    package static func check(name: String?) throws(Refusal) {
        if let name, name.utf8.count > Limits.channelNameBytes {
            throw Refusal(.fieldInvalid, "The channel's \"name\" must have at most \(Limits.channelNameBytes) bytes.")
        }
    }

    package func list(device: DeviceSerial) async throws -> [PushChannel] { try await channels.channels(device: device) }

    /// Closes the channel at its device's request. Returns whether it was open.
    package func unregister(_ id: ChannelID, device: DeviceSerial) async throws -> Bool {
        guard let serial = try await channels.closeChannel(id, device: device, at: time.now()) else {
            return false
        }
        directory.forget([serial])
        await home.withdraw(.all(of: .channel(serial)), from: device)
        return true
    }

    /// Closes the channel at the operator's request. The app receives `closed`, or `error` if there is a code, now or at its next
    /// connection.
    package func revoke(_ id: ChannelID, device: DeviceSerial, code: Int?) async throws {
        if let code, !ChannelErrorCode.client.contains(code), !ChannelErrorCode.server.contains(code) {
            throw Refusal(.fieldInvalid, "The \"code\" of a channel error must be from 200 to 599, not \(code).")
        }
        guard let channel = try await channels.channel(id, device: device) else { throw notOpen(id) }
        let now = time.now()
        let delivered = await home.deliver(to: device, .kept) { envelopeID in
            Envelope(
                id: envelopeID, device: device, app: channel.app, origin: channel.origin,
                kind: code.map { .channelError(code: $0) } ?? .channelClosed, acceptedAt: now, expiresAt: .never)
        }
        switch delivered {
        case .stored, .answered, .sent:
            directory.forget([channel.serial])
            await home.withdraw(.all(of: channel.origin.key), from: device)
        case .failed(let fault): throw fault
        default: throw notOpen(id)
        }
    }

    private func notOpen(_ id: ChannelID) -> Refusal {
        Refusal(.channelUnknown, "The device has no open channel \(id).")
    }

    /// Parses a VAPID public key: an uncompressed point on P-256 in base64url (RFC 8292 section 3.2). Padding and the characters
    /// of base64 are accepted because some libraries write keys so. Keys are compared by their bytes.
    package static func parseVapidKey(_ text: String) throws(Refusal) -> [UInt8] {
        guard let bytes = Base64URL.decodeLeniently(text), bytes.count == 65,
            (try? P256.Signing.PublicKey(x963Representation: bytes)) != nil
        else {
            throw Refusal(
                .fieldInvalid, "The key must be an uncompressed P-256 point of 65 bytes in base64url (87 characters).")
        }
        return bytes
    }
}
