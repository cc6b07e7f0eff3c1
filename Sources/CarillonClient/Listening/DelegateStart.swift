/// The work before and after the calls of delegates with one event: it stores that their code starts, and removes that record afterwards.
struct DelegateStart: Sendable {
    /// Called before the delegates. Returns whether the delegates are called.
    let begins: @Sendable () async -> Bool
    /// Called after ``begins``, when the delegates returned or were not called.
    let ended: @Sendable () -> Void
}
