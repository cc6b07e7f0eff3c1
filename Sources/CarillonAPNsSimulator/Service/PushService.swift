import NIOCore

/// The state and the decisions of the simulated service, as a value: it returns the response to a complete request.
///
/// A request is checked in this order, and the first fault determines the response: path and method, repeated headers,
/// credentials, each header, APNs topic, body, and finally the device or channel.
struct PushService: Sendable {
    var rules = Rules()
    var accounts = Accounts()
    var devices = DeviceBook()
    var channels = ChannelBook()
    var identifiers: IdentifierSource
    /// Whether every new request is rejected with 503 Shutdown.
    var isShuttingDown = false

    init(seed: UInt64) { identifiers = IdentifierSource(seed: seed) }

    /// Checks a request, and performs it if it has no fault.
    mutating func received(_ request: Submission, on binding: inout ConnectionBinding, at now: Timestamp) -> SimulatorAnswer
    {
        guard let target = Target(path: request.path, services: request.services) else {
            return identified(SimulatorAnswer(.badPath), request)
        }
        var answer: SimulatorAnswer
        switch target {
        case .device(let token): answer = pushed(to: token, request, &binding, now)
        case .broadcast(let bundleID): answer = broadcast(to: bundleID, request, &binding, now)
        case .channels(let bundleID): answer = managed(channelsOf: bundleID, request, &binding, now)
        case .allChannels(let bundleID): answer = listed(channelsOf: bundleID, request, &binding, now)
        }
        answer = identified(answer, request)
        if case .device = target, answer.isAccepted { deliver(request, answer, binding, at: now) }
        return answer
    }

    /// Adds the identifiers to a response that a response to such a request has, also for the response of a fault rule.
    mutating func identified(_ answer: SimulatorAnswer, _ request: Submission) -> SimulatorAnswer {
        var answer = answer
        guard case .device? = Target(path: request.path, services: request.services) else {
            answer.requestID = validID(request.fields.requestID) ?? identifiers.makeUUID().lowercased()
            return answer
        }
        answer.id = validID(request.fields.id) ?? identifiers.makeUUID()
        if request.environment == .sandbox { answer.uniqueID = identifiers.makeUUID().lowercased() }
        return answer
    }

    private func validID(_ text: String?) -> String? { text.flatMap { Identifiers.isUUID($0) ? $0 : nil } }

    /// Checks the rules for every request.
    func commonRefusal(
        _ request: Submission, methods: [String], _ binding: inout ConnectionBinding, _ now: Timestamp
    ) -> Reason? {
        guard methods.contains(request.method) else { return .methodNotAllowed }
        if isShuttingDown { return .shutdown }
        if request.fields.duplicate != nil { return .duplicateHeaders }
        return binding.refusal(
            request.fields.authorization, in: request.environment, accounts: accounts, isSticky: rules.tokenTroubleStays,
            at: now)
    }

    /// Reads a number of seconds since 1970; nil for any other text.
    func expiration(_ text: String) -> Int64? {
        guard let seconds = Int64(text), seconds >= 0, seconds < 1 << 40, text.utf8.first != UInt8(ascii: "+") else {
            return nil
        }
        return seconds
    }

    func priority(_ text: String) -> Int? {
        switch text {
        case "10": 10
        case "5": 5
        case "1": 1
        default: nil
        }
    }
}
