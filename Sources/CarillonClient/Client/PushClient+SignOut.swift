extension PushClient {
    /// Deletes this device: on the server with its channels and its inbox, and here with all that was stored.
    ///
    /// What is stored here is gone first, whether the server can be reached or not; each live channel is notified
    /// ``PushChannelEvent/closed(token:)``, and is as if it had never been connected. The client may run or not. It
    /// registers another device when a channel is connected, and not before.
    /// - Throws: ``PushError`` with ``PushError/Code/serverUnreachable`` or ``PushError/Code/serverUnavailable`` when the
    ///   server could not be notified now: that it must be is stored, and a client that runs with this storage tries again
    ///   until it is. Meanwhile it can register another device. The same is true of ``PushError/Code/clientKeyMissing`` and ``PushError/Code/registrationRefused``: a server
    ///   of an earlier version replaced the device's credential, and another one needs a valid client key. With
    ///   ``PushError/Code/storageUnavailable`` nothing has changed.
    public func signOut() async throws(PushError) {
        try await runner.perform { session, context in session.signedOut(at: context.now) }
        for deregistration in runner.deregistrations {
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
