import Logging
import Synchronization

/// Requests to the server by HTTP, about the device and its user.
extension SessionRunner {
    func report(_ report: PushDeviceMachine.Report, _ identity: DeviceIdentity) {
        send("push token") { registrar in
            await registrar.report(report, identity)
        } done: { device in
            { $0.reportTaken(report, of: identity, device.status, since: device.since, at: $1.now) }
        } refused: { error in
            { $0.reportRefused(report, of: identity, error, at: $1.now) }
        } failed: { retryAfter in
            { $0.reportFailed(retryAfter: retryAfter, at: $1.now, random: $1.random) }
        }
    }

    func report(_ claim: UserClaim, _ identity: DeviceIdentity) {
        send("user token") { registrar in
            await registrar.report(claim, identity)
        } done: { name in
            { $0.userTaken(claim, of: identity, as: name, at: $1.now) }
        } refused: { error in
            { $0.userRefused(claim, of: identity, error, at: $1.now) }
        } failed: { retryAfter in
            { $0.userReportFailed(retryAfter: retryAfter, at: $1.now, random: $1.random) }
        }
    }

    /// Deletes a device that was signed out, beside the live connection of another one.
    func deregister(_ deregistration: Deregistration) {
        send("deregistration", to: WebAddress(http: deregistration.server), delay: { $0.deregistrationDelay }) { registrar in
            await registrar.delete(deregistration)
        } done: { _ in
            { session, _ in session.deregistered(deregistration) }
        } failed: { retryAfter in
            { $0.deregistrationFailed(deregistration, retryAfter: retryAfter, at: $1.now, random: $1.random) }
        }
    }

    /// Sends one request, and lets the session take in what became of it.
    ///
    /// - Parameters:
    ///   - server: The server that is asked; nil for the configured one.
    ///   - delay: Returns how long it is until the next attempt, if that is known.
    ///   - refused: Nil if a refused request is sent again.
    ///   - failed: Stores nothing.
    private func send<Value: Sendable>(
        _ subject: String, to server: WebAddress? = nil,
        delay: @escaping @Sendable (SessionRunner) -> Duration? = { _ in nil },
        _ request: @escaping @Sendable (ClientRegistrar) async -> ClientRegistrar.Answer<Value>,
        done: @escaping @Sendable (Value) -> Change, refused: (@Sendable (PushError) -> Change)? = nil,
        failed: @escaping @Sendable (Duration?) -> Change
    ) {
        guard let registrar = deviceReporter.withLock({ $0 }) else { return }
        let server = server ?? registrar.server
        // Ends with a few requests, each of which has a time limit.
        Task {
            var (hasFailed, retryAfter) = (false, Duration?.none)
            do throws(PushError) {
                switch await request(registrar) {
                case .done(let value):
                    failures.answered(at: server)
                    return try await perform(done(value))
                case .failed(let failure, let error):
                    if failure == .refused, let refused {
                        failures.note(error)
                        logger.error("server refused request", metadata: ["request": "\(subject)", "reason": "\(error)"])
                        return try await perform(refused(error))
                    }
                    failures.failed(at: server, by: .http, error)
                    (hasFailed, retryAfter) = (true, failure.retryAfter)
                }
            } catch {
                failures.note(error)
                logger.error("cannot store answer", metadata: ["request": "\(subject)", "error": "\(error)"])
            }
            // Nothing is stored, so that there is no error to handle.
            try? await perform(failed(retryAfter))
            if hasFailed { failures.willRetry(at: server, after: delay(self)) }
        }
    }
}
