import CarillonMessages
import CarillonWire
import Logging
import Synchronization

/// The channels of the app: their changes, messages, keys and the delivery of their tokens.
extension SessionRunner {
    func channel(_ identifier: String) -> ChannelMachine { session.channels[identifier] ?? ChannelMachine() }

    func readQueue(of identifier: String) -> ChannelReadQueue { channels.withLock { $0.readQueue(of: identifier) } }

    var summaries: [PushChannelSummary] {
        let session = session
        let (machines, buffers) = (session.channels.machines, session.messages.buffers)
        return Set(machines.keys).union(buffers.filter { $0.value.messages > 0 }.keys).sorted().map { identifier in
            PushChannelSummary(
                identifier: identifier, state: PushChannelState(machines[identifier]?.state ?? .none),
                waitingMessages: buffers[identifier]?.messages ?? 0, waitingBytes: buffers[identifier]?.bytes ?? 0,
                isBeingRead: readQueue(of: identifier).hasReader)
        }
    }

    /// Whether messages wait on a channel that the app reads.
    var isHandlingMessages: Bool { summaries.contains { $0.isBeingRead && $0.waitingMessages > 0 } }

    /// Returns the present state of a channel and the later ones. A slow reader receives only the newest state.
    func changes(of identifier: String) -> ChannelChanges {
        // The state is read under the lock, so that later states follow it.
        channels.withLock { $0.watch(identifier, channel(identifier)) }
    }

    func stopChanges(_ changes: ChannelChanges) { channels.withLock { $0.unwatch(changes) }?.finish() }

    // MARK: Identifiers

    /// Returns false if a ``PushChannel`` with the identifier exists.
    func reserveIdentifier(_ identifier: String) -> Bool { channels.withLock { $0.reserve(identifier) } }

    func identifierReleased(_ identifier: String) { channels.withLock { $0.release(identifier) } }

    func makeChannelID() -> ChannelID {
        var generator = SystemRandomNumberGenerator()
        return .random(using: &generator)
    }

    /// The app has handled a message.
    func handled(_ message: BufferedMessage, on identifier: String, failure: Int?) async throws(PushError) {
        try await perform(mustReachDisk: false) { session, context throws(PushError) in
            session.messageHandled(
                message, of: identifier, failure: failure, isStored: try context.isStored(message))
        }
        starts.handled(message)
        readQueue(of: identifier).remove(.message(message))
        shared?.forgetShown(MessageHash.text(of: message.id))
    }

    /// Whether the extension showed a message.
    func wasPresented(_ id: String) -> Bool { shared?.wasShown(MessageHash.text(of: id)) ?? false }

    /// Writes the keys of the channels for the extension, if they have changed.
    func shareKeys() {
        guard let shared, let keys = sharedKeys.withLock({ $0.change(for: session.channels.machines.values) }) else {
            return
        }
        do {
            try shared.replaceKeys(keys)
        } catch {
            logger.error(
                "cannot write the directory that is shared with the extension; retrying", metadata: ["reason": "\(error)"])
            again { runner in
                runner.sharedKeys.withLock { $0.reset() }
                runner.shareKeys()
            }
        }
    }

    /// Returns one page of the stored messages of a channel.
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
        // The former hook can own the channel, and is released after the lock.
        _ = channels.withLock { $0.setTokenDeliverer(deliver, of: identifier) }
        let isSet = deliver != nil
        // The step stores nothing and cannot fail.
        begin({ session, context in session.tokenDeliverySet(identifier, isSet: isSet, at: context.now) }) { _ in }
    }

    func deliver(_ address: PushChannelAddress, of identifier: String) {
        guard let deliver = channels.withLock({ $0.tokenDeliverer(of: identifier) }) else { return }
        // Ends with the app's hook, which is called for one address at a time.
        Task {
            do {
                try await deliver(address)
                try await perform { session, context in
                    session.tokenDelivered(identifier, token: address.token, at: context.now)
                }
            } catch {
                logger.info(
                    "The token was not delivered", metadata: ["channel": "\(identifier)", "reason": "\(type(of: error))"])
                // The step stores nothing and cannot fail.
                try? await perform { session, context in
                    session.tokenDeliveryFailed(identifier, at: context.now, random: context.random)
                }
            }
        }
    }
}
