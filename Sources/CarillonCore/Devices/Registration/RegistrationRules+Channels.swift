package import CarillonWire

/// A request of a device to open a channel.
package struct ChannelRequest: Equatable, Sendable {
    package var id: ChannelID
    package var device: DeviceSerial
    package var name: String?
    package var vapidKey: [UInt8]?
    /// The wake mode. If it is nil, an open channel keeps its mode, and a new channel wakes in the background.
    package var wake: WakeMode?

    package init(_ id: ChannelID, device: DeviceSerial, name: String?, vapidKey: [UInt8]?, wake: WakeMode?) {
        self.id = id
        self.device = device
        self.name = name
        self.vapidKey = vapidKey
        self.wake = wake
    }
}

extension RegistrationRules {
    package enum Opening: Equatable, Sendable {
        case refused(OpenChannelResult)
        /// The channel is open, and does not change.
        case found(PushChannel)
        /// The channel is open, and gets another wake mode.
        case rewoken(PushChannel)
        /// The store assigns the serial.
        case opened(PushChannel, isOfUser: Bool)
    }

    /// - Parameters:
    ///   - limit: The number of channels that a device may have.
    ///   - facts: Nil if there is no such device.
    package static func open(
        _ request: ChannelRequest, limit: Int, at now: Timestamp, knowing facts: OpenChannelFacts?
    ) -> Opening {
        guard let facts else { return .refused(.deviceGone) }
        if var open = facts.channel {
            if facts.isOfFormerUser { return .refused(.ofFormerUser) }
            guard let wake = request.wake, wake != open.wake, open.vapidKey == request.vapidKey else { return .found(open) }
            open.wake = wake
            return .rewoken(open)
        }
        guard facts.channels < limit else { return .refused(.tooMany) }
        let channel = PushChannel(
            serial: ChannelSerial(0), device: request.device, app: facts.app, id: request.id, name: request.name,
            vapidKey: request.vapidKey, wake: request.wake ?? .background, createdAt: now)
        return .opened(channel, isOfUser: facts.hasUser)
    }
}
