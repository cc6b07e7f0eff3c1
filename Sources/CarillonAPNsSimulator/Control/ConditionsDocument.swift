/// The conditions in JSON. In a request, a missing member leaves its condition unchanged, and 0 removes a limit.
struct ConditionsDocument: ControlDocument, Codable {
    enum Names: String, CodingKey, CaseIterable {
        case firstStreams, streams, rejection, excess, streamWindow, connectionWindow, roundTripMilliseconds, answersPings
        case certificate, welcome, idleSeconds, badDeviceTokens
    }
    typealias CodingKeys = Names

    var firstStreams: Int?
    var streams: Int?
    var rejection: String?
    var excess: String?
    var streamWindow: Int?
    var connectionWindow: Int?
    var roundTripMilliseconds: Int?
    var answersPings: Bool?
    var certificate: String?
    var welcome: String?
    var idleSeconds: Int?
    var badDeviceTokens: Int?

    init(_ conditions: Conditions) {
        firstStreams = conditions.firstStreams
        streams = conditions.streams
        rejection = conditions.rejection.rawValue
        excess = conditions.excess.rawValue
        streamWindow = conditions.streamWindow
        connectionWindow = conditions.connectionWindow
        roundTripMilliseconds = Int(conditions.roundTrip.milliseconds)
        answersPings = conditions.answersPings
        certificate = conditions.certificate.rawValue
        welcome = conditions.welcome.rawValue
        idleSeconds = conditions.idleTimeout.map { Int($0.components.seconds) }
        badDeviceTokens = conditions.badDeviceTokens
    }

    func applied(to old: Conditions) throws(ControlRefusal) -> Conditions {
        var new = old
        if let firstStreams { new.firstStreams = firstStreams }
        if let streams { new.streams = streams }
        if let rejection { new.rejection = try named(rejection, "rejection") }
        if let excess { new.excess = try named(excess, "excess") }
        if let streamWindow { new.streamWindow = streamWindow }
        if let connectionWindow { new.connectionWindow = connectionWindow }
        if let roundTripMilliseconds { new.roundTrip = .milliseconds(min(roundTripMilliseconds, 3_600_000)) }
        if let answersPings { new.answersPings = answersPings }
        if let certificate { new.certificate = try named(certificate, "certificate") }
        if let welcome { new.welcome = try named(welcome, "welcome") }
        if let idleSeconds { new.idleTimeout = idleSeconds == 0 ? nil : .seconds(idleSeconds) }
        if let badDeviceTokens { new.badDeviceTokens = badDeviceTokens == 0 ? nil : badDeviceTokens }
        return new
    }
}

/// The rules in JSON. In a request, a missing member leaves its rule unchanged.
struct RulesDocument: ControlDocument, Codable {
    enum Names: String, CodingKey, CaseIterable {
        case unknownDevices, acceptsUnknownApps, requestsPerDeviceAndMinute, channelsPerApp, tokenTroubleStays, shuttingDown
    }
    typealias CodingKeys = Names

    var unknownDevices: String?
    var acceptsUnknownApps: Bool?
    var requestsPerDeviceAndMinute: Int?
    var channelsPerApp: Int?
    var tokenTroubleStays: Bool?
    var shuttingDown: Bool?

    init(_ rules: Rules, isShuttingDown: Bool) {
        unknownDevices = rules.unknownDevices.rawValue
        acceptsUnknownApps = rules.acceptsUnknownApps
        requestsPerDeviceAndMinute = rules.requestsPerDeviceAndMinute
        channelsPerApp = rules.channelsPerApp
        tokenTroubleStays = rules.tokenTroubleStays
        shuttingDown = isShuttingDown
    }

    func applied(to old: Rules) throws(ControlRefusal) -> Rules {
        var new = old
        if let unknownDevices { new.unknownDevices = try named(unknownDevices, "unknownDevices") }
        if let acceptsUnknownApps { new.acceptsUnknownApps = acceptsUnknownApps }
        if let number = requestsPerDeviceAndMinute { new.requestsPerDeviceAndMinute = number <= 0 ? nil : number }
        if let channelsPerApp { new.channelsPerApp = channelsPerApp }
        if let tokenTroubleStays { new.tokenTroubleStays = tokenTroubleStays }
        return new
    }
}
