import CarillonWire

/// The app's verifier of the identities of other devices, and its pending questions.
struct IdentityVerifier {
    /// A question to the app about an identity.
    struct Question: Hashable {
        var owner: ServiceCache.Owner
        var peer: ServicePeer
        var user: String?
        var fingerprint: String
        var isFirst: Bool
    }

    var verify: (@Sendable (ServiceApplication, String, Bool) async -> Bool)?
    private var running: [Question: Task<Bool, Never>] = [:]

    /// Returns the task of the answer to a question. The same question runs once at a time. Returns nil if the app set no
    /// verifier.
    mutating func task(for question: Question) -> Task<Bool, Never>? {
        if let task = running[question] { return task }
        guard let verify else { return nil }
        // The task ends with the answer of the app.
        let task = Task { await verify(ServiceApplication(question.peer), question.fingerprint, question.isFirst) }
        running[question] = task
        return task
    }

    mutating func answered(_ question: Question) { running[question] = nil }
}
