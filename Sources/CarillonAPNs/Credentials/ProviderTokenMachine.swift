/// Decides when a new provider token is signed.
///
/// APNs accepts tokens that are at most an hour old, so a token is renewed when it is 50 minutes old. A token is renewed
/// earlier, for new connections only, in two cases:
///
/// - The wall clock was set by more than ``toleratedStep`` since the token was signed, so the token's time of issue is wrong.
/// - APNs refuses the token as expired or invalid.
///
/// APNs accepts a new token every 20 minutes. In both cases, a token that is at least ``freelyReplacedAfter`` old is
/// therefore replaced without a limit. The replacement of a younger token is a *correction*. There are at most
/// ``mostCorrections`` corrections in an hour. At most ``mostAfterRefusals`` of them follow a refusal, each at least a minute
/// after the previous correction. APNs refuses every token of a revoked key; the last correction is reserved for a clock that
/// is corrected.
struct ProviderTokenMachine: Sendable {
    enum Action: Equatable {
        case keep
        case sign(generation: Int, isForFreshConnections: Bool = false)
    }

    private struct Correction {
        var at: Moment
        var followsRefusal: Bool
    }

    static let renewsAfter = Duration.seconds(50 * 60)
    /// The age from which the replacement of a token is not a correction.
    static let freelyReplacedAfter = Duration.seconds(20 * 60)
    /// The number of seconds by which the wall clock can differ from the steady clock before it counts as set.
    static let toleratedStep: Int64 = 120
    static let mostCorrections = 3
    static let mostAfterRefusals = 2
    static let betweenRefusals = Duration.seconds(60)
    private static let hour = Duration.seconds(3600)

    private(set) var generation = 0
    private var signedAt: Moment?
    private var issuedAt: Int64 = 0
    /// Whether the token was refused and must be replaced.
    private var isRefused = false
    /// The corrections of the last hour, the oldest first.
    private var corrections: [Correction] = []

    /// Decides which token the next push needs.
    func wanted(_ now: Moment, wall: Int64) -> Action {
        guard let signedAt else { return .sign(generation: generation + 1) }
        let age = now - signedAt
        let hasStepped = abs(wall - issuedAt - age.components.seconds) > Self.toleratedStep
        let isAllowed = age >= Self.freelyReplacedAfter || recent(now).count < Self.mostCorrections
        if isRefused || (hasStepped && isAllowed) {
            return .sign(generation: generation + 1, isForFreshConnections: true)
        }
        return age >= Self.renewsAfter ? .sign(generation: generation + 1) : .keep
    }

    /// Whether there is a token that is younger than ``renewsAfter``.
    func isYoung(_ now: Moment) -> Bool {
        guard let signedAt else { return false }
        return now - signedAt < Self.renewsAfter
    }

    /// A token was signed after ``wanted(_:wall:)`` returned `sign`.
    mutating func signed(_ now: Moment, wall: Int64) {
        if let signedAt, now - signedAt < Self.freelyReplacedAfter,
            case .sign(generation: _, isForFreshConnections: true) = wanted(now, wall: wall)
        {
            corrections = recent(now) + [Correction(at: now, followsRefusal: isRefused)]
        }
        generation += 1
        signedAt = now
        issuedAt = wall
        isRefused = false
    }

    /// APNs refused the token of a generation as expired or invalid.
    mutating func refused(generation: Int, _ now: Moment) {
        guard let signedAt, generation == self.generation, !isRefused else { return }
        guard now - signedAt < Self.freelyReplacedAfter else {
            isRefused = true
            return
        }
        let latest = recent(now)
        let afterRefusals = latest.count { $0.followsRefusal }
        guard latest.count < Self.mostCorrections, afterRefusals < Self.mostAfterRefusals else { return }
        if let last = latest.last, now - last.at < Self.betweenRefusals { return }
        isRefused = true
    }

    /// Returns the corrections of the last hour.
    private func recent(_ now: Moment) -> [Correction] { corrections.filter { now - $0.at < Self.hour } }
}
