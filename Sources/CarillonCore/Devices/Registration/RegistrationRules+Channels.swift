package import CarillonWire

/// A channel that a device asks for.
package struct ChannelWish: Equatable, Sendable {
    package var id: ChannelID
    package var device: DeviceSerial
    package var name: String?
    package var vapidKey: [UInt8]?
    /// Nil leaves an open channel as it is. A new one wakes in the background.
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
        /// The channel is open, and stays as it is.
        case found(PushChannel)
        /// The channel is open, and wakes in another way from now on.
        case rewoken(PushChannel)
        /// The store assigns the serial.
        case opened(PushChannel, isOfUser: Bool)
    }

    /// - Parameters:
    ///   - limit: The number of channels that a device may have.
    ///   - facts: Nil if there is no such device.
    package static func open(
        _ wish: ChannelWish, limit: Int, at now: Timestamp, knowing facts: OpenChannelFacts?
    ) -> Opening {
        guard let facts else { return .refused(.deviceGone) }
        if var open = facts.channel {
            if facts.isOfFormerUser { return .refused(.ofFormerUser) }
            guard let wake = wish.wake, wake != open.wake, open.vapidKey == wish.vapidKey else { return .found(open) }
            open.wake = wake
            return .rewoken(open)
        }
        guard facts.channels < limit else { return .refused(.tooMany) }
        let channel = PushChannel(
            serial: ChannelSerial(0), device: wish.device, app: facts.app, id: wish.id, name: wish.name,
            vapidKey: wish.vapidKey, wake: wish.wake ?? .background, createdAt: now)
        return .opened(channel, isOfUser: facts.hasUser)
    }
}
