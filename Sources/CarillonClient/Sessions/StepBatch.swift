/// The effect of steps that share one transaction: the next state of the session, and the actions that follow the transaction.
struct StepBatch: Sendable {
    private let before: ClientSession
    private(set) var session: ClientSession
    private(set) var actions: [SessionAction] = []
    /// The result of each step, in order.
    private(set) var results: [Result<Void, PushError>] = []

    init(_ session: ClientSession) {
        before = session
        self.session = session
    }

    /// Takes the next step, and returns the changes that must be stored. A step that fails changes nothing but the results.
    mutating func take(
        _ change: (inout ClientSession) throws(PushError) -> [SessionAction]
    ) -> [StoreChange] {
        do throws(PushError) {
            var next = session
            let actions = try change(&next)
            session = next
            self.actions += actions
            results.append(.success(()))
            return actions.compactMap { if case .write(let change) = $0 { change } else { nil } }
        } catch {
            results.append(.failure(error))
            return []
        }
    }

    /// Whether the device has another owner of updates.
    var isScopeChanged: Bool { session.updateScope != before.updateScope }

    /// Whether the app named a user, or the server answered about one.
    var isUserChanged: Bool { session.user.pending != before.user.pending || session.user.accepted != before.user.accepted }
}
