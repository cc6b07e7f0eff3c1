import Synchronization

extension SessionRunner {
    /// Decides what a refusal of a credential beside the socket means.
    ///
    /// - Returns: Whether the request can succeed later: the device has another credential by now, or the server never accepted this
    ///   one on the socket. Then the registration is repeated, and requests wait until its answer is there.
    func repeatsRegistration(afterRefusalOf credential: String) -> Bool {
        guard session.withLock({ $0.canOutlast(refusalOf: credential) }) else { return false }
        begin { session, _ in
            session.credentialRefused(credential)
        } done: { _ in
        }
        return true
    }
}
