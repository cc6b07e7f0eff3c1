extension APNsClient {
    /// The broadcast channels of an app.
    /// - Parameters:
    ///   - bundleID: the app; the client's own when nil.
    ///   - environment: the client's default when nil.
    public func channels(
        of bundleID: String? = nil, in environment: APNsEnvironment? = nil
    ) throws(APNsError) -> APNsChannels {
        APNsChannels(
            client: self, bundleID: try BroadcastPath.bundleID(bundleID ?? configuration.bundleID),
            address: (environment ?? configuration.environment).management)
    }

    /// Sends an update, or the end, of a Live Activity to all who listen to a channel.
    ///
    /// Without an expiration the service stores nothing. A channel that stores nothing takes no other.
    /// - Parameters:
    ///   - notification: an update or an end.
    ///   - channelID: as the service gave it.
    ///   - storage: how the channel was created, when it is known: an expiration that it does not take is refused here.
    ///   - environment: the client's default when nil.
    /// - Throws: ``APNsError`` as for a push to a device.
    public func broadcast(
        _ notification: APNsNotification, to channelID: String, storing storage: APNsChannels.Storage? = nil,
        in environment: APNsEnvironment? = nil
    ) async throws(APNsError) -> APNsResponse {
        if storage == .nothing, let expiration = notification.fields.expiration, expiration != .immediately {
            throw APNsError(
                .notificationInvalid,
                "A channel that stores nothing accepts only broadcasts that expire immediately; set the expiration to 0.")
        }
        let bundleID = try BroadcastPath.bundleID(notification.fields.bundleID ?? configuration.bundleID)
        let prepared = try prepare(notification, channelID: try BroadcastPath.checked(channelID))
        let answer = try await request(
            prepared.head, path: "/4/broadcasts/apps/\(bundleID)", body: prepared.payload,
            at: (environment ?? configuration.environment).push, rule: .broadcast)
        return APNsResponse(answer)
    }
}
