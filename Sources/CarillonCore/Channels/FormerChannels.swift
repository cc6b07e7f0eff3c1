import CarillonWire

/// Notifies apps that channels were closed because their device has another user: the app receives an error with
/// ``ChannelErrorCode/userChanged``.
///
/// The store closed these channels with the change of the user. It keeps a row for each channel until its app is notified.
package struct FormerChannels: Sendable {
    private let store: any FormerChannelStore
    private let home: any LocalHome
    private let directory: ChannelDirectory
    private let time: TimeSource

    package init(store: any FormerChannelStore, home: any LocalHome, directory: ChannelDirectory, time: TimeSource) {
        self.store = store
        self.home = home
        self.directory = directory
        self.time = time
    }

    /// Withdraws envelopes that ended with the former user from the device's connection.
    package func withdraw(_ ended: [Int64], from device: DeviceSerial) async {
        guard !ended.isEmpty else { return }
        await home.withdraw(.envelopes(Set(ended)), from: device)
    }

    /// Closes the channels of former users of a device.
    package func close(of device: DeviceSerial) async throws {
        // The shard of the device can be closing during the call. A device has no more channels than the limit.
        let channels = try await store.channelsOfFormerUsers(of: device, in: .all, limit: Limits.channelsPerDevice)
        directory.forget(channels.map(\.serial))
        for channel in channels { _ = try await close(channel) }
    }

    /// Closes the remaining channels of former users of all devices, for example after a server was killed.
    ///
    /// - Throws: The first fault, after the other channels were tried.
    package func closeAll() async throws {
        var fault: (any Error)?
        while !Task.isCancelled {
            let channels = try await store.channelsOfFormerUsers(of: nil, in: home.shards, limit: Self.atOnce)
            directory.forget(channels.map(\.serial))
            var closed = 0
            for channel in channels {
                do {
                    if try await close(channel) { closed += 1 }
                } catch {
                    fault = fault ?? error
                }
            }
            if channels.count < Self.atOnce || closed == 0 { break }
        }
        if let fault { throw fault }
    }

    /// Returns false if another call has closed the channel.
    private func close(_ channel: PushChannel) async throws -> Bool {
        let now = time.now()
        let delivered = await home.deliver(to: channel.device, .kept) { id in
            Envelope(
                id: id, device: channel.device, app: channel.app, origin: channel.origin,
                kind: .channelError(code: ChannelErrorCode.userChanged), acceptedAt: now, expiresAt: .never)
        }
        switch delivered {
        case .stored, .answered, .sent: break
        case .failed(let fault): throw fault
        default: return false
        }
        await home.withdraw(.all(of: channel.origin.key), from: channel.device)
        return true
    }

    private static let atOnce = 100
}
