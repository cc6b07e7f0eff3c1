import Logging
import Synchronization

/// What is said to the server by HTTP of the device and its user.
extension SessionRunner {
    func report(_ report: PushDeviceMachine.Report, _ identity: DeviceIdentity) {
        guard let registrar = deviceReporter.withLock({ $0 }) else { return }
        // Ends with one request, which has a time limit.
        Task {
            var retryAfter: Duration?
            do throws(PushError) {
                switch await registrar.report(report, identity) {
                case .taken(let status, let since):
                    failures.answered(at: registrar.server)
                    return try await perform { session, context in
                        session.reportTaken(report, of: identity, status, since: since, at: context.now)
                    }
                case .failed(.refused, let error):
                    failures.note(error)
                    logger.error("The server refused the push token", metadata: ["reason": "\(error)"])
                    return try await perform { session, context in
                        session.reportRefused(report, of: identity, error, at: context.now)
                    }
                case .failed(let failure, let error):
                    failures.failed(at: registrar.server, by: .http, error)
                    failures.willRetry(at: registrar.server)
                    if case .unavailable(let after) = failure { retryAfter = after }
                }
            } catch {
                failures.note(error)
                logger.error("What the server said of the push token could not be stored", metadata: ["error": "\(error)"])
            }
            let wait = retryAfter
            // This stores nothing, so that there is no error to handle.
            try? await perform { session, context in
                session.reportFailed(retryAfter: wait, at: context.now, random: context.random)
            }
        }
    }

    func report(_ word: UserWord, _ identity: DeviceIdentity) {
        guard let registrar = deviceReporter.withLock({ $0 }) else { return }
        // Ends with one request, which has a time limit.
        Task {
            var retryAfter: Duration?
            do throws(PushError) {
                switch await registrar.report(word, identity) {
                case .done(let name):
                    failures.answered(at: registrar.server)
                    return try await perform { session, context in
                        session.userTaken(word, of: identity, as: name, at: context.now)
                    }
                case .failed(.refused, let error):
                    failures.note(error)
                    logger.error("The server refused the user token", metadata: ["reason": "\(error)"])
                    return try await perform { session, context in
                        session.userRefused(word, of: identity, error, at: context.now)
                    }
                case .failed(let failure, let error):
                    failures.failed(at: registrar.server, by: .http, error)
                    failures.willRetry(at: registrar.server)
                    if case .unavailable(let after) = failure { retryAfter = after }
                }
            } catch {
                failures.note(error)
                logger.error("What the server said of the user could not be stored", metadata: ["error": "\(error)"])
            }
            let wait = retryAfter
            // This stores nothing, so that there is no error to handle.
            try? await perform { session, context in
                session.userReportFailed(retryAfter: wait, at: context.now, random: context.random)
            }
        }
    }

    /// Deletes a device that was signed out, beside the live connection of another one.
    func say(_ deregistration: Deregistration) {
        guard let registrar = deviceReporter.withLock({ $0 }) else { return }
        // Ends with a few requests, each of which has a time limit.
        Task {
            let server = WebAddress(http: deregistration.server) ?? registrar.server
            var retryAfter: Duration?
            do throws(PushError) {
                switch await registrar.delete(deregistration) {
                case .done:
                    failures.answered(at: server)
                    return try await perform { session, _ in session.deregistered(deregistration) }
                case .failed(let failure, let error):
                    failures.failed(at: server, by: .http, error)
                    retryAfter = failure.retryAfter
                }
            } catch {
                failures.note(error)
                logger.error(
                    "cannot store that the server deleted the device; retrying", metadata: ["error": "\(error)"])
            }
            let wait = retryAfter
            // This stores nothing, so that there is no error to handle.
            try? await perform { session, context in
                session.deregistrationFailed(deregistration, retryAfter: wait, at: context.now, random: context.random)
            }
            failures.willRetry(at: server, after: deregistrationDelay)
        }
    }
}
