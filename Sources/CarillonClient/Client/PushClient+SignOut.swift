extension PushClient {
    /// Deletes this device: on the server with its channels and its inbox, and here with all its stored data.
    ///
    /// The data here is deleted first, whether or not the server can be reached. Each live channel reports
    /// ``PushChannelEvent/closed(token:)``, and is as if it had never been connected. The client need not run. It registers
    /// another device when a channel is connected, and not before.
    /// - Throws: ``PushError`` with ``PushError/Code/serverUnreachable`` or ``PushError/Code/serverUnavailable`` if the server
    ///   could not be notified now. The pending deregistration is stored, and a client that runs with this storage repeats it
    ///   until it succeeds. Meanwhile the client can register another device. The same applies to
    ///   ``PushError/Code/clientKeyMissing`` and ``PushError/Code/registrationRefused``: a server of an earlier version replaced
    ///   the device's credential, and another credential needs a valid client key. With ``PushError/Code/storageUnavailable``
    ///   nothing has changed.
    public func signOut() async throws(PushError) {
        try await runner.perform { session, context in session.signedOut(at: context.now) }
        for deregistration in runner.session.deregistrations.waiting {
            switch await registrar.delete(deregistration) {
            case .done:
                try await runner.perform { session, _ in session.deregistered(deregistration) }
            case .failed(let failure, let error):
                runner.failures.note(error)
                try await runner.perform { session, context in
                    session.deregistrationFailed(
                        deregistration, retryAfter: failure.retryAfter, at: context.now, random: context.random)
                }
                throw error
            }
        }
    }
}
