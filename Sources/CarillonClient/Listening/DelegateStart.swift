/// What is done before and after delegates are called with one event, so that a start of their code can be stored and taken back.
struct DelegateStart: Sendable {
    /// Called before the delegates. Returns whether the delegates are called.
    let begins: @Sendable () async -> Bool
    /// Called after ``begins``, when the delegates returned or were not called.
    let ended: @Sendable () -> Void
}
