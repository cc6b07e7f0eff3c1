extension APNsClient {
    /// Returns the broadcast channels of an app.
    /// - Parameters:
    ///   - bundleID: the app; nil for the client's own.
    ///   - environment: nil for the client's default.
    public func channels(
        of bundleID: String? = nil, in environment: APNsEnvironment? = nil
    ) throws(APNsError) -> APNsChannels {
        APNsChannels(
            client: self, bundleID: try BroadcastPath.bundleID(bundleID ?? configuration.bundleID),
            address: (environment ?? configuration.environment).management)
    }

    /// Sends an update or the end of a Live Activity to all listeners of a channel.
    ///
    /// Without an expiration APNs stores nothing. A channel that stores nothing accepts only broadcasts that expire
    /// immediately.
    /// - Parameters:
    ///   - notification: the update or the end of a Live Activity.
    ///   - channelID: the ID that APNs returned.
    ///   - storage: the storage with which the channel was created, if you know it. The client then rejects an expiration
    ///     that the channel does not accept.
    ///   - environment: nil for the client's default.
    /// - Throws: ``APNsError``, as for a push to a device.
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
