import CarillonWire

/// The app's decision about identities of other devices, and the questions that the app answers now.
struct IdentityVerifier {
    /// What the app is asked about an identity.
    struct Question: Hashable {
        var owner: ServiceMemory.Owner
        var peer: ServicePeer
        var user: String?
        var fingerprint: String
        var isFirst: Bool
    }

    var verify: (@Sendable (ServiceApplication, String, Bool) async -> Bool)?
    private var asked: [Question: Task<Bool, Never>] = [:]

    /// Returns the answer to a question, which the app is asked once at a time; nil if there is no verifier.
    mutating func task(for question: Question) -> Task<Bool, Never>? {
        if let task = asked[question] { return task }
        guard let verify else { return nil }
        // Ends with the answer of the app.
        let task = Task { await verify(ServiceApplication(question.peer), question.fingerprint, question.isFirst) }
        asked[question] = task
        return task
    }

    mutating func answered(_ question: Question) { asked[question] = nil }
}
