/// Returns the channels of former users, which are removed in parts.
package protocol FormerChannelStore: Sendable {
    /// Returns channels that were opened for a former user of their device, in the order of their serial numbers. The change of
    /// the user ends them in its own transaction: ``ChannelStore`` does not return them any more.
    ///
    /// - Parameter device: Nil for the channels of all devices.
    func channelsOfFormerUsers(of device: DeviceSerial?, in shards: ShardSet, limit: Int) async throws -> [PushChannel]
}
