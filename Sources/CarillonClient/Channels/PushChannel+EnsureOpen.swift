import CarillonMessages
import NIOCore
import NIOPosix
import ServiceLifecycle

extension PushChannel {
    /// Opens the channel unless it is open, and returns its address when it is.
    ///
    /// It connects a channel that was never connected, is closed, or has failed; waits for one that is connecting; and for
    /// one that is disconnecting it waits until that is done, and connects it then. It takes nothing from ``events``. The
    /// client must run, now or soon. Calls beside each other wait for the same opening. The call waits while the server cannot be
    /// reached: ``ensureOpen(within:timeout:encrypted:wake:)`` has a limit.
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
        return try await open(changes, timeout: timeout, encrypted: encrypted, wake: wake)
    }

    /// Opens the channel as ``ensureOpen(timeout:encrypted:wake:)`` does, and waits no longer than a limit.
    ///
    /// After the limit the request stays: the channel opens when the server can be reached, and ``events`` has it then.
    /// - Parameters:
    ///   - limit: How long the call waits, from now on.
    ///   - timeout: as in ``ensureOpen(timeout:encrypted:wake:)``.
    ///   - encrypted: as there.
    ///   - wake: as there.
    /// - Throws: ``PushError`` as there. After the limit, the failure that keeps the client from its server, with its code and reason, such
    ///   as ``PushError/Code/serverUnreachable``; ``PushError/Code/timedOut`` when none is known, or the client does not run.
    @discardableResult
    public func ensureOpen(
        within limit: Duration, timeout: Duration? = nil, encrypted: Bool = false, wake: PushChannelWake? = nil
    ) async throws(PushError) -> PushChannelAddress {
        let changes = runner.changes(of: identifier)
        let end = WaitEnd()
        let timer = MultiThreadedEventLoopGroup.singleton.any().scheduleTask(in: TimeAmount(limit)) { [runner] in
            end.come()
            runner.stopChanges(changes)
        }
        defer {
            timer.cancel()
            runner.stopChanges(changes)
        }
        do throws(PushError) {
            return try await open(changes, timeout: timeout, encrypted: encrypted, wake: wake)
        } catch {
            guard end.hasCome, !Task.isCancelled, error.code == .cancelled else { throw error }
            throw notOpen(after: limit)
        }
    }

    private func notOpen(after limit: Duration) -> PushError {
        let sentence = "The channel \"\(identifier)\" is not open after \(limit.text)."
        guard runner.isRunning else {
            return PushError(.timedOut, sentence + " The client does not run; call start() or run().")
        }
        guard var failure = runner.failures.present(isLive: runner.isLive) else { return PushError(.timedOut, sentence) }
        failure.message = sentence + " " + failure.message
        return failure
    }

    private func open(
        _ changes: ChannelChanges, timeout: Duration?, encrypted: Bool, wake: PushChannelWake?
    ) async throws(PushError) -> PushChannelAddress {
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
            case .connecting where isUnderWay: continue
            case .none, .closed, .error, .connecting:
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
            case .disconnecting:
                continue
            }
        }
        throw PushError(
            .cancelled,
            "The task was cancelled, or its service group shut down, while it waited for the channel \"\(identifier)\".")
    }
}
