package import CarillonWire

/// Stores the channels of devices.
///
/// Each change is one transaction: a concurrent call sees all of it or nothing. Every method throws ``StoreFault`` if the store
/// cannot be read or written; a change that throws is not made. Channels of former users and of deleted apps are not found.
package protocol ChannelStore: Sendable {
    /// Opens the channel, or returns the open one. The restriction of an open channel is not changed. Its wake mode is changed if
    /// the call has the right restriction. Concurrent calls open a channel once, and do not exceed the limit of channels of the
    /// device.
    func openChannel(
        _ id: ChannelID, device: DeviceSerial, name: String?, vapidKey: [UInt8]?, wake: WakeMode?, limit: Int,
        at now: Timestamp
    ) async throws -> OpenChannelResult
    /// Returns an open channel by its serial number, which is never used again; nil if the channel is closed.
    func channel(_ serial: ChannelSerial) async throws -> PushChannel?
    /// Returns the open channels of a device in the order in which they were opened.
    func channels(device: DeviceSerial) async throws -> [PushChannel]
    /// Returns an open channel of a device; nil if the device has none with this identifier.
    func channel(_ id: ChannelID, device: DeviceSerial) async throws -> PushChannel?
    /// Closes the channel. Its waiting messages end as ``Outcome/gone`` in the same transaction. Of concurrent calls, one returns
    /// the channel. The others return nil, as for a channel that was not open.
    func closeChannel(_ id: ChannelID, device: DeviceSerial, at now: Timestamp) async throws -> ChannelSerial?
}

package enum OpenChannelResult: Equatable, Sendable {
    case opened(PushChannel)
    case alreadyOpen(PushChannel)
    case tooMany
    case deviceGone
    /// A channel of this identifier was opened for a former user of the device, and is not closed yet.
    case ofFormerUser
}
