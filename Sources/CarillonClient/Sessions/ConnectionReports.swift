/// Decides which failures to connect are reported: the first at a host, and each with another reason.
///
/// A failure is noted when it is known, and reported when the wait before the next attempt is known. A host that is reached again is
/// forgotten: its next failure is the first again.
struct ConnectionReports: Sendable {
    /// How a host is asked. HTTP may work where a WebSocket does not.
    enum Route: Hashable, Sendable {
        case http
        case socket
    }

    struct Report: Equatable, Sendable {
        var address: String
        var summary: String
        var advice: String?
    }

    /// Beyond it all hosts are forgotten: servers can give other addresses without end.
    static let mostHosts = 32

    private var reasons: [String: [Route: String]] = [:]
    private var unreported: [String: Report] = [:]
    private var failing: (place: String, route: Route, error: PushError)?
    /// How many connections reached the point at which messages can arrive.
    private(set) var liveCount = 0

    /// The failure that keeps the client from its server now; nil when none does.
    var present: PushError? { failing?.error }

    /// The same without failures of HTTP requests.
    var presentOfSocket: PushError? { failing?.route == .socket ? failing?.error : nil }

    /// Notes a failure.
    ///
    /// - Parameters:
    ///   - place: The host and the port.
    ///   - address: The whole address, for people.
    mutating func failed(at place: String, _ address: String, by route: Route, _ error: PushError) {
        failing = (place, route, error)
        if let report = remember(place, address, route, error) { unreported[place] = report }
    }

    /// Notes the failure of an HTTP request that is not repeated. Returns its report; nil for a repetition.
    mutating func failedOnce(at place: String, _ address: String, _ error: PushError) -> Report? {
        remember(place, address, .http, error)
    }

    /// Returns the report of a reason that is new.
    private mutating func remember(
        _ place: String, _ address: String, _ route: Route, _ error: PushError
    ) -> Report? {
        let report = Report(error, at: address)
        let known = reasons[place] ?? [:]
        if reasons.count >= Self.mostHosts, known.isEmpty { reasons = [:] }
        reasons[place, default: [:]][route] = report.summary
        return known.values.contains(report.summary) ? nil : report
    }

    /// Returns the report that is due before another attempt; nil for a repetition.
    mutating func willRetry(at place: String) -> Report? { unreported.removeValue(forKey: place) }

    /// A host answered over HTTP. Returns whether it had failed before.
    mutating func answered(at place: String) -> Bool {
        if failing?.place == place, failing?.route == .http { failing = nil }
        guard reasons[place]?.removeValue(forKey: .http) != nil else { return false }
        unreported[place] = nil
        if reasons[place]?.isEmpty == true { reasons[place] = nil }
        return true
    }

    /// Messages can arrive. Returns whether there was a failure before.
    mutating func connected() -> Bool {
        liveCount += 1
        defer { (reasons, unreported, failing) = ([:], [:], nil) }
        return !reasons.isEmpty
    }
}

extension ConnectionReports.Report {
    fileprivate init(_ error: PushError, at address: String) {
        self.address = address
        if let failure = error.cause as? ConnectionFailure {
            (summary, advice) = (failure.reason.summary, failure.reason.advice)
        } else {
            (summary, advice) = (Self.clause(of: error.message), nil)
        }
    }

    /// The sentence as a clause: with a small letter first, unless it begins with an abbreviation, and without its full stop.
    static func clause(of sentence: String) -> String {
        let text = sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
        guard text.dropFirst().first.map({ $0.isLowercase }) ?? false else { return text }
        return text.prefix(1).lowercased() + text.dropFirst()
    }
}
