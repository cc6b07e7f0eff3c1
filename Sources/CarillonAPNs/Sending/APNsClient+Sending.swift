#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension APNsClient {
    /// Sends a notification to one device.
    ///
    /// A rejection by APNs is a value: see ``APNsResponse/outcome-swift.property``. When the task is cancelled, the push is
    /// withdrawn if possible. If its status was already received, the response is returned.
    /// - Parameters:
    ///   - notification: the notification.
    ///   - recipient: a device token, or a value of your own type.
    /// - Throws: ``APNsError`` if the notification breaks a rule or there is no response. ``APNsError/mayHaveBeenProcessed``
    ///   reports whether APNs may have processed the push.
    public func send(
        _ notification: APNsNotification, to recipient: some APNsRecipient
    ) async throws(APNsError) -> APNsResponse {
        let path = try DevicePath.make(recipient.deviceToken)
        let prepared = try prepare(notification)
        let answer = try await request(
            prepared.head, path: path, body: prepared.payload, at: (recipient.environment ?? configuration.environment).push)
        return APNsResponse(answer)
    }

    /// Sends a notification to many devices.
    ///
    /// The payload is encoded once. Pushes are sent while the results are read, at most ``Configuration/batchWindow`` at a
    /// time, so a slow reader slows the sending. Nothing is sent before the first result is requested. Results are in the
    /// order of the responses, exactly one for each recipient. The sequence can be read once.
    /// - Throws: ``APNsError`` if the notification breaks a rule; nothing is sent then.
    public func send<Recipients: Sequence>(
        _ notification: APNsNotification, to recipients: Recipients
    ) throws(APNsError) -> APNsResults<Recipients> where Recipients.Element: APNsRecipient {
        APNsResults(BatchFeed(client: self, prepared: try prepare(notification), recipients: recipients))
    }

    /// Sends a notification to devices whose tokens come from an asynchronous sequence, for instance from a database.
    ///
    /// As with a list, pushes are sent while the results are read, and a slow reader slows the reading of tokens. At most
    /// ``Configuration/batchWindow`` tokens are read ahead of the results, also when the reader stops. Sending ends when the
    /// reading task is cancelled or the results are released. An error of the source is thrown after the results of all
    /// recipients before it. The source must end when its task is cancelled.
    /// - Throws: ``APNsError`` if the notification breaks a rule; nothing is sent then.
    public func send<Recipients: AsyncSequence & Sendable>(
        _ notification: APNsNotification, to recipients: Recipients
    ) throws(APNsError) -> APNsAsyncResults<Recipients> where Recipients.Element: APNsRecipient {
        APNsAsyncResults(RecipientFlow(client: self, prepared: try prepare(notification), recipients: recipients))
    }

    /// Checks whether a notification breaks a rule, without sending it.
    /// - Parameters:
    ///   - notification: the notification.
    ///   - channelID: the channel of a broadcast; nil for a push to a device.
    /// - Throws: ``APNsError`` if the notification breaks a rule.
    public func check(_ notification: APNsNotification, toChannel channelID: String? = nil) throws(APNsError) {
        _ = try headers(of: notification, toChannel: channelID)
    }

    /// Returns the headers with which a notification is sent, in their order, without `authorization`.
    /// - Parameters:
    ///   - notification: the notification.
    ///   - channelID: the channel of a broadcast; nil for a push to a device.
    /// - Throws: ``APNsError`` if the notification breaks a rule.
    public func headers(
        of notification: APNsNotification, toChannel channelID: String? = nil
    ) throws(APNsError) -> [(name: String, value: String)] {
        let channelID = try channelID.map(BroadcastPath.checked)
        return try prepare(notification, channelID: channelID).head.fields.map { ($0.name.rawValue, $0.value) }
    }

    func prepare(_ notification: APNsNotification, channelID: String? = nil) throws(APNsError) -> PreparedNotification {
        var context = context(channelID: channelID)
        // All attempts of a push that may be sent twice must have the same ID.
        if configuration.retryPolicy.resendsOfUnknownFate > 0 { context.fallbackID = UUID() }
        return try PreparedNotification(notification, in: context)
    }

    func request(
        _ head: APNsRequestHead, path: String, body: RequestBody, at address: APNsEnvironment.Address,
        rule: AnswerRule = .push, isRepeatable: Bool = true
    ) async throws(APNsError) -> RawAnswer {
        let submission = Submission(
            head: head, path: path, body: body, timeout: configuration.timeout, isRepeatable: isRepeatable,
            rule: rule)
        return try await submission.result(of: pool(of: address)).get()
    }
}
