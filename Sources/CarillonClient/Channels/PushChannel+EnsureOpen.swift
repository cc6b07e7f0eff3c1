import CarillonMessages
import ServiceLifecycle

extension PushChannel {
    /// Opens the channel unless it is open, and returns its address when it is.
    ///
    /// It connects a channel that was never connected, is closed, or has failed; waits for one that is connecting; and for
    /// one that is disconnecting it waits until that is done, and connects it then. It takes nothing from ``events``. The
    /// client must run, now or soon. Calls beside each other wait for the same opening.
    /// - Parameters:
    ///   - timeout: as in ``connect(timeout:encrypted:wake:)``, counted from this call for a channel that is connecting already.
    ///   - encrypted: as in ``connect(timeout:encrypted:wake:)``.
    ///   - wake: as there; of a channel that is open already it changes nothing.
    /// - Throws: ``PushError`` with ``PushError/Code/channelEnded`` when the channel fails or is disconnected meanwhile: its
    ///   ``state`` and ``lastErrorCode`` say how; with ``PushError/Code/alreadyOpen`` when it is open, or opening, with keys
    ///   and `encrypted` is false, or the other way round; with ``PushError/Code/cancelled`` when the task is cancelled or
    ///   its service group shuts down, and then the request stays; with ``PushError/Code/storageUnavailable``.
    @discardableResult
    public func ensureOpen(
        timeout: Duration? = nil, encrypted: Bool = false, wake: PushChannelWake? = nil
    ) async throws(PushError) -> PushChannelAddress {
        let changes = runner.changes(of: identifier)
        defer { runner.stopChanges(changes) }
        let result: Result<PushChannelAddress, PushError> = await withGracefulShutdownHandler {
            do throws(PushError) {
                return .success(try await open(following: changes, timeout: timeout, encrypted: encrypted, wake: wake))
            } catch {
                return .failure(error)
            }
        } onGracefulShutdown: { [runner] in
            runner.stopChanges(changes)
        }
        return try result.get()
    }

    private func open(
        following changes: ChannelChanges, timeout: Duration?, encrypted: Bool, wake: PushChannelWake?
    ) async throws(PushError) -> PushChannelAddress {
        let identifier = identifier
        let id = runner.makeChannelID()
        let keys = encrypted ? SubscriptionKeys() : nil
        var isUnderWay = false
        // The newest state first, and then each.
        for await machine in changes.stream {
            switch machine.state {
            case .open:
                guard (machine.keys != nil) == encrypted else {
                    throw PushError(
                        .alreadyOpen,
                        "The channel \"\(identifier)\" is open \(encrypted ? "without" : "with") keys; disconnect it first.")
                }
                guard let endpoint = machine.endpoint else { continue }
                return PushChannelAddress(
                    endpoint, subscription: machine.keys.map { PushSubscription($0, endpoint: endpoint) })
            case .none, .closed, .error:
                guard !isUnderWay else {
                    throw PushError(
                        .channelEnded,
                        machine.lastErrorCode.map { "The channel \"\(identifier)\" failed with code \($0)." }
                            ?? "The channel \"\(identifier)\" was disconnected before it was open.")
                }
                isUnderWay = true
                try await runner.perform { (session, context) throws(PushError) in
                    try session.openingWanted(
                        identifier, as: id, keys: keys, wake: wake?.mode, deadline: timeout.map { context.now + $0 })
                }
            case .connecting:
                guard !isUnderWay else { continue }
                isUnderWay = true
                try await runner.perform { (session, context) throws(PushError) in
                    try session.openingWanted(
                        identifier, as: id, keys: keys, wake: wake?.mode, deadline: timeout.map { context.now + $0 })
                }
            case .disconnecting:
                continue
            }
        }
        throw PushError(
            .cancelled,
            "The task was cancelled, or its service group shut down, while it waited for the channel \"\(identifier)\".")
    }
}
