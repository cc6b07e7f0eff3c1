import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A request that the app makes.
struct ServiceCall: Sendable {
    var id: String
    var method: ServiceMethod
    var to: ServiceApplication
    var parameters: ServiceValue
    var attachments: [String]
    /// The names of the attachments at the receiver, in their order. The name in the path is used for nil and for a missing name.
    var names: [String?]
    /// The time limit of the provider, in whole seconds.
    var deadlineSeconds: Int64
    var foreground: ForegroundPreference
    /// When the call ends, in any state.
    var ends: ContinuousClock.Instant

    /// - Parameter ends: When the call ends; nil for the deadline from now on.
    init(
        id: String, method: ServiceMethod, to: ServiceApplication, parameters: ServiceValue, attachments: [String],
        names: [String?] = [], deadlineSeconds: Int64, foreground: ForegroundPreference, ends: ContinuousClock.Instant? = nil
    ) {
        self.id = id
        self.method = method
        self.to = to
        self.parameters = parameters
        self.attachments = attachments
        self.names = names
        self.deadlineSeconds = deadlineSeconds
        self.foreground = foreground
        let most = RequestHeader.longestDeadlineSeconds
        self.ends = ends ?? ContinuousClock.now + .seconds(min(max(0, deadlineSeconds), most))
    }

    /// Makes a call that begins now.
    init(
        id: String, method: ServiceMethod, to: ServiceApplication, parameters: ServiceValue, attachments: [String],
        names: [String?] = [], deadline: Duration, foreground: ForegroundPreference
    ) {
        let most = Duration.seconds(RequestHeader.longestDeadlineSeconds)
        self.init(
            id: id, method: method, to: to, parameters: parameters, attachments: attachments,
            names: names, deadlineSeconds: deadline.components.seconds, foreground: foreground,
            ends: ContinuousClock.now + min(max(.zero, deadline), most))
    }

    private var left: Double { ContinuousClock.now.duration(to: ends) / Duration.seconds(1) }

    /// The whole seconds until the end, rounded up and at least one.
    var remainingSeconds: Int64 { max(1, Int64(left.rounded(.up))) }

    /// The end of the call by the wall clock.
    var endDate: Date { Date.now + left }

    static let timeIsOver = ServiceError(.deadlineExceeded, "The request's time is over.")
}
