/// Reports to the server by HTTP beside the socket.
///
/// One report is under way at a time. One that failed is sent again after a while; one that was refused is not, until the app
/// says something else.
struct SessionReporting: Sendable {
    private var isUnderWay = false
    private(set) var retryAt: ContinuousClock.Instant?
    private var schedule: ClientReconnectSchedule

    init(_ backOff: PushClient.BackOff) { schedule = ClientReconnectSchedule(backOff) }

    func isReady(at now: ContinuousClock.Instant) -> Bool { !isUnderWay && retryAt.map { $0 <= now } ?? true }

    mutating func began() { (isUnderWay, retryAt) = (true, nil) }

    mutating func ended() { isUnderWay = false }

    mutating func succeeded() { schedule.succeeded() }

    mutating func failed(retryAfter: Duration?, at now: ContinuousClock.Instant, random: Double) {
        isUnderWay = false
        retryAt = now + schedule.failed(hint: retryAfter, random: random)
    }

    /// There is something else to report, which does not wait.
    mutating func changed() { retryAt = nil }
}
