import Logging
import Synchronization

/// HTTP requests to the server, about the device and its user.
extension SessionRunner {
    /// Handles the refusal of a credential in an HTTP request. Returns whether the request can succeed later: the device has
    /// another credential now, or the server never accepted this one on the socket. In the second case the registration is
    /// repeated, and requests wait for its answer.
    func repeatsRegistration(afterRefusalOf credential: String) -> Bool {
        guard session.canOutlast(refusalOf: credential) else { return false }
        begin({ session, _ in session.credentialRefused(credential) }) { _ in }
        return true
    }

    func report(_ report: PushDeviceMachine.Report, _ identity: DeviceIdentity) {
        send("push token") { registrar in
            await registrar.report(report, identity)
        } done: { device in
            { $0.reportAccepted(report, of: identity, device.status, since: device.since, at: $1.now) }
        } refused: { error in
            { $0.reportRefused(report, of: identity, error, at: $1.now) }
        } failed: { retryAfter in
            { $0.reportFailed(retryAfter: retryAfter, at: $1.now, random: $1.random) }
        }
    }

    func report(_ userChange: UserChange, _ identity: DeviceIdentity) {
        send("user token") { registrar in
            await registrar.report(userChange, identity)
        } done: { name in
            { $0.userAccepted(userChange, of: identity, as: name, at: $1.now) }
        } refused: { error in
            { $0.userRefused(userChange, of: identity, error, at: $1.now) }
        } failed: { retryAfter in
            { $0.userReportFailed(retryAfter: retryAfter, at: $1.now, random: $1.random) }
        }
    }

    /// Deletes a device that was signed out, while another device has the live connection.
    func deregister(_ deregistration: Deregistration) {
        send("deregistration", to: WebAddress(http: deregistration.server), delay: { $0.deregistrationDelay(at: .now) }) {
            registrar in
            await registrar.delete(deregistration)
        } done: { _ in
            { session, _ in session.deregistered(deregistration) }
        } failed: { retryAfter in
            { $0.deregistrationFailed(deregistration, retryAfter: retryAfter, at: $1.now, random: $1.random) }
        }
    }

    /// Sends one request, and passes its result to the session.
    ///
    /// - Parameters:
    ///   - server: The server that receives the request; nil for the configured one.
    ///   - delay: Returns the time until the next attempt, if it is known.
    ///   - refused: The step after a refusal; nil if a refused request is sent again.
    ///   - failed: The step after a failure. It stores nothing.
    private func send<Value: Sendable>(
        _ subject: String, to server: WebAddress? = nil,
        delay: @escaping @Sendable (ClientSession) -> Duration? = { _ in nil },
        _ request: @escaping @Sendable (ClientRegistrar) async -> ClientRegistrar.Answer<Value>,
        done: @escaping @Sendable (Value) -> Change, refused: (@Sendable (PushError) -> Change)? = nil,
        failed: @escaping @Sendable (Duration?) -> Change
    ) {
        guard let registrar = listeners.withLock({ $0.registrar }) else { return }
        let server = server ?? registrar.server
        // Ends after a few requests, each of which has a time limit.
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
            // The step stores nothing and cannot fail.
            try? await perform(failed(retryAfter))
            if hasFailed { failures.willRetry(at: server, after: delay(session)) }
        }
    }
}
