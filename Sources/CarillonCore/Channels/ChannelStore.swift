package import CarillonWire

package protocol ChannelStore: Sendable {
    /// Opens the channel, or finds it open. The restriction of an open channel is not changed; how it wakes is, when that is
    /// said with the right restriction.
    func openChannel(
        _ id: ChannelID, device: DeviceSerial, name: String?, vapidKey: [UInt8]?, wake: WakeMode?, limit: Int,
        at now: Timestamp
    ) async throws -> OpenChannelResult
    func channel(_ serial: ChannelSerial) async throws -> PushChannel?
    func channels(device: DeviceSerial) async throws -> [PushChannel]
    func channel(_ id: ChannelID, device: DeviceSerial) async throws -> PushChannel?
    /// Removes the channel; its waiting messages end as ``Outcome/gone``. Answers nil when it was not open.
    func closeChannel(_ id: ChannelID, device: DeviceSerial, at now: Timestamp) async throws -> ChannelSerial?
}

package enum OpenChannelResult: Equatable, Sendable {
    case opened(PushChannel)
    case alreadyOpen(PushChannel)
    case tooMany
    case deviceGone
    /// A channel of that name was opened for a user to whom the device belongs no more, and is not closed yet.
    case ofFormerUser
}
