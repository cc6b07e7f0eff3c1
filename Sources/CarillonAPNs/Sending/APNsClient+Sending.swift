#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension APNsClient {
    /// Sends a notification to one device.
    ///
    /// A refusal by the service is a value: see ``APNsResponse/outcome-swift.property``. When the task is cancelled the
    /// push is taken back if it can be; one whose status was read already is answered.
    /// - Parameters:
    ///   - notification: what is sent.
    ///   - recipient: a device token, or a record of yours.
    /// - Throws: ``APNsError`` when the notification breaks a rule or there is no answer;
    ///   ``APNsError/mayHaveBeenProcessed`` says whether the service can have taken it.
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
    /// The payload is encoded once. Pushes go out while the results are read, at most
    /// ``Configuration/batchWindow`` at a time, so that a slow reader slows the sending; nothing is sent before the first
    /// result is asked for. Results come in the order of the answers, exactly one for each recipient. The sequence can be
    /// read once.
    /// - Throws: ``APNsError`` when the notification breaks a rule; then nothing is sent.
    public func send<Recipients: Sequence>(
        _ notification: APNsNotification, to recipients: Recipients
    ) throws(APNsError) -> APNsResults<Recipients> where Recipients.Element: APNsRecipient {
        APNsResults(BatchFeed(client: self, prepared: try prepare(notification), recipients: recipients))
    }

    /// Sends a notification to devices whose tokens come as they are read, from a database for instance.
    ///
    /// As with a list, pushes go out while the results are read, and a slow reader slows the reading of tokens: at most
    /// ``Configuration/batchWindow`` tokens are read ahead of the results, also when reading stops; cancelling the reading
    /// task, or letting the results go, stops the sending. An error of the source is thrown when the results of what was
    /// read before are all there. The source must end when its task is cancelled.
    /// - Throws: ``APNsError`` when the notification breaks a rule; then nothing is sent.
    public func send<Recipients: AsyncSequence & Sendable>(
        _ notification: APNsNotification, to recipients: Recipients
    ) throws(APNsError) -> APNsAsyncResults<Recipients> where Recipients.Element: APNsRecipient {
        APNsAsyncResults(RecipientFlow(client: self, prepared: try prepare(notification), recipients: recipients))
    }

    /// Says what would be refused before sending, without sending.
    /// - Parameters:
    ///   - notification: what would be sent.
    ///   - channelID: the channel of a broadcast; nil for a push to a device.
    public func check(_ notification: APNsNotification, toChannel channelID: String? = nil) throws(APNsError) {
        _ = try headers(of: notification, toChannel: channelID)
    }

    /// The headers with which a notification is sent, in their order, without the `authorization`.
    /// - Parameters:
    ///   - notification: what would be sent.
    ///   - channelID: the channel of a broadcast; nil for a push to a device.
    /// - Throws: ``APNsError`` when the notification breaks a rule.
    public func headers(
        of notification: APNsNotification, toChannel channelID: String? = nil
    ) throws(APNsError) -> [(name: String, value: String)] {
        let channelID = try channelID.map(BroadcastPath.checked)
        return try prepare(notification, channelID: channelID).head.fields.map { ($0.name.rawValue, $0.value) }
    }

    func prepare(_ notification: APNsNotification, channelID: String? = nil) throws(APNsError) -> PreparedNotification {
        var context = context(channelID: channelID)
        // What may be sent twice must be known by one ID.
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
