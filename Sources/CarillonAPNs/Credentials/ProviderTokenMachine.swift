/// When a provider token is signed anew.
///
/// The service takes tokens that are at most an hour old, and refuses providers that renew more than once in 20 minutes.
/// So a token is renewed when it is 50 minutes old; earlier, but never before 20 minutes, when the service says that it
/// expired or when the wall clock was set, so that the token's time of issue is wrong.
struct ProviderTokenMachine: Sendable {
    enum Action: Equatable {
        case keep
        case sign(generation: Int)
    }

    static let renewsAfter = Duration.seconds(50 * 60)
    static let leastAge = Duration.seconds(20 * 60)
    /// How far wall clock and steady clock may part before the wall clock counts as set.
    static let toleratedStep: Int64 = 120

    private(set) var generation = 0
    private var signedAt: Moment?
    private var issuedAt: Int64 = 0
    private var isReportedExpired = false

    /// A token is wanted.
    func wanted(_ now: Moment, wall: Int64) -> Action {
        guard let signedAt else { return .sign(generation: generation + 1) }
        let age = now - signedAt
        if age >= Self.renewsAfter { return .sign(generation: generation + 1) }
        guard age >= Self.leastAge else { return .keep }
        let step = abs(wall - issuedAt - age.components.seconds)
        return isReportedExpired || step > Self.toleratedStep ? .sign(generation: generation + 1) : .keep
    }

    mutating func signed(_ now: Moment, wall: Int64) {
        generation += 1
        signedAt = now
        issuedAt = wall
        isReportedExpired = false
    }

    /// The service called the token of a generation expired.
    mutating func reportedExpired(generation: Int) {
        if generation == self.generation { isReportedExpired = true }
    }
}
