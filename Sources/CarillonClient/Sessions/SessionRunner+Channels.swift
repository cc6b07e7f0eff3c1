import CarillonMessages
import CarillonWire
import Logging
import Synchronization

/// The channels of the app: their changes, messages, keys and the delivery of their tokens.
extension SessionRunner {
    /// What a channel is, and then each time what it has become; a slow reader misses what was between.
    func changes(of identifier: String) -> ChannelChanges {
        let (stream, watcher) = AsyncStream.makeStream(of: ChannelMachine.self, bufferingPolicy: .bufferingNewest(1))
        let number = UInt64.random(in: .min ... .max)
        watchers.withLock { watchers in
            watchers[identifier, default: [:]][number] = watcher
            // Under the lock, so that what is posted meanwhile comes after it.
            watcher.yield(channel(identifier))
        }
        return ChannelChanges(identifier: identifier, number: number, stream: stream)
    }

    func stopChanges(_ changes: ChannelChanges) {
        let watcher = watchers.withLock { $0[changes.identifier]?.removeValue(forKey: changes.number) }
        watcher?.finish()
    }

    func post(_ channel: ChannelMachine, of identifier: String) {
        watchers.withLock { watchers in
            for watcher in (watchers[identifier] ?? [:]).values { watcher.yield(channel) }
        }
    }

    // MARK: Identifiers

    /// Answers false when a living channel has the identifier.
    func identifierTaken(_ identifier: String) -> Bool {
        liveIdentifiers.withLock { $0.insert(identifier).inserted }
    }

    func identifierReleased(_ identifier: String) {
        liveIdentifiers.withLock { _ = $0.remove(identifier) }
    }

    func makeChannelID() -> ChannelID {
        var generator = SystemRandomNumberGenerator()
        return .random(using: &generator)
    }

    /// The app is done with a message.
    func handled(_ message: BufferedMessage, on identifier: String, failure: Int?) async throws(PushError) {
        try await perform(mustReachDisk: false) { session, context throws(PushError) in
            session.messageHandled(
                message, of: identifier, failure: failure, isStored: try context.isStored(message))
        }
        starts.handled(message)
        inbox(of: identifier).remove(.message(message))
        shared?.forgetShown(MessageHash.text(of: message.id))
    }

    /// Whether the extension showed a message.
    func wasPresented(_ id: String) -> Bool { shared?.wasShown(MessageHash.text(of: id)) ?? false }

    /// The extension has the keys of channels that are open, or may be again; what ended is opened by nobody any more.
    func shareKeys(of session: ClientSession, isFirst: Bool = false) {
        guard shared != nil else { return }
        var keys: [ChannelID: SubscriptionKeys] = [:]
        for channel in session.channels.machines.values {
            guard let id = channel.channelID else { continue }
            switch channel.state {
            case .connecting, .open, .disconnecting: keys[id] = channel.keys
            case .none, .closed, .error: break
            }
        }
        let isChanged = sharedKeys.withLock { known in
            defer { known = keys }
            return known != keys
        }
        guard isChanged || isFirst else { return }
        do {
            try shared?.replaceKeys(keys)
        } catch {
            logger.error(
                "cannot write the directory that is shared with the extension; retrying", metadata: ["reason": "\(error)"])
            again { runner in runner.shareKeys(of: runner.session.withLock { $0 }, isFirst: true) }
        }
    }

    /// A page of what is stored for a channel.
    func messages(of identifier: String, after position: Int64) async throws(PushError) -> [BufferedMessage] {
        let result: Result<[BufferedMessage], PushError> = await withCheckedContinuation { continuation in
            store.schedule { database in
                continuation.resume(
                    returning: Result { () throws(PushError) in
                        try ClientStore.messages(of: identifier, after: position, in: database)
                    })
            }
        }
        return try result.get()
    }

    func setTokenDelivery(_ deliver: PushChannel.TokenDeliverer?, of identifier: String) {
        tokenDeliverers.withLock { $0[identifier] = deliver }
        let isSet = deliver != nil
        // Nothing is written, so that nothing can fail.
        begin({ session, context in session.tokenDeliverySet(identifier, isSet: isSet, at: context.now) }) { _ in }
    }

    func deliver(_ address: PushChannelAddress, of identifier: String) {
        guard let deliver = tokenDeliverers.withLock({ $0[identifier] }) else { return }
        // Ends with the app's hook, which is asked for one address at a time.
        Task {
            do {
                try await deliver(address)
                try await perform { session, context in
                    session.tokenDelivered(identifier, token: address.token, at: context.now)
                }
            } catch {
                logger.info(
                    "The token was not delivered", metadata: ["channel": "\(identifier)", "reason": "\(type(of: error))"])
                // Nothing is written by this.
                try? await perform { session, context in
                    session.tokenDeliveryFailed(identifier, at: context.now, random: context.random)
                }
            }
        }
    }
}
