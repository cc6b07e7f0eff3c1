import CarillonMessages
import NIOCore
import NIOPosix
import ServiceLifecycle

extension PushChannel {
    /// Opens the channel unless it is open, and returns its address.
    ///
    /// A channel that was never connected, is closed, or has failed is connected. If the channel is connecting, the call waits.
    /// If the channel is disconnecting, the call waits until it is closed, and then connects it. The call takes nothing from
    /// ``events``. The client must run, now or soon. Concurrent calls wait for the same opening. The call waits as long as the
    /// server cannot be reached; use ``ensureOpen(within:timeout:encrypted:wake:)`` for a limit.
    /// - Parameters:
    ///   - timeout: As in ``connect(timeout:encrypted:wake:)``. For a channel that is connecting already, the time starts at this
    ///     call.
    ///   - encrypted: As in ``connect(timeout:encrypted:wake:)``.
    ///   - wake: As in ``connect(timeout:encrypted:wake:)``. It has no effect on a channel that is open already.
    /// - Throws: ``PushError`` with one of these codes. ``PushError/Code/channelEnded``: the channel failed or was disconnected
    ///   meanwhile; ``state`` and ``lastErrorCode`` have the result. ``PushError/Code/alreadyOpen``: the channel is open with
    ///   keys and `encrypted` is false, or without keys and `encrypted` is true. ``PushError/Code/cancelled``: the task was
    ///   cancelled or its service group shuts down; the request stays. ``PushError/Code/storageUnavailable``.
    @discardableResult
    public func ensureOpen(
        timeout: Duration? = nil, encrypted: Bool = false, wake: PushChannelWake? = nil
    ) async throws(PushError) -> PushChannelAddress {
        let changes = runner.changes(of: identifier)
        defer { runner.stopChanges(changes) }
        return try await open(changes, timeout: timeout, encrypted: encrypted, wake: wake)
    }

    /// Opens the channel like ``ensureOpen(timeout:encrypted:wake:)``, and waits up to a limit.
    ///
    /// After the limit the request stays: the channel opens when the server can be reached, and ``events`` reports it then.
    /// - Parameters:
    ///   - limit: How long the call waits, from now on.
    ///   - timeout: As in ``ensureOpen(timeout:encrypted:wake:)``.
    ///   - encrypted: As in ``ensureOpen(timeout:encrypted:wake:)``.
    ///   - wake: As in ``ensureOpen(timeout:encrypted:wake:)``.
    /// - Throws: ``PushError`` as ``ensureOpen(timeout:encrypted:wake:)``. After the limit, the failure that keeps the client
    ///   from its server, with its code and reason, such as ``PushError/Code/serverUnreachable``; ``PushError/Code/timedOut`` if
    ///   no failure is known, or the client does not run.
    @discardableResult
    public func ensureOpen(
        within limit: Duration, timeout: Duration? = nil, encrypted: Bool = false, wake: PushChannelWake? = nil
    ) async throws(PushError) -> PushChannelAddress {
        let changes = runner.changes(of: identifier)
        let stop = StopFlag()
        let timer = MultiThreadedEventLoopGroup.singleton.any().scheduleTask(in: TimeAmount(limit)) { [runner] in
            stop.set()
            runner.stopChanges(changes)
        }
        defer {
            timer.cancel()
            runner.stopChanges(changes)
        }
        do throws(PushError) {
            return try await open(changes, timeout: timeout, encrypted: encrypted, wake: wake)
        } catch {
            guard stop.isSet, !Task.isCancelled, error.code == .cancelled else { throw error }
            throw notOpen(after: limit)
        }
    }

    private func notOpen(after limit: Duration) -> PushError {
        let sentence = "The channel \"\(identifier)\" is not open after \(limit.text)."
        guard runner.session.isRunning else {
            return PushError(.timedOut, sentence + " The client does not run; call start() or run().")
        }
        guard var failure = runner.failures.present(isLive: runner.session.phase == .live) else {
            return PushError(.timedOut, sentence)
        }
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
        // The first value is the present state.
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
                    try session.openRequested(
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
