/// A fault rule in JSON: the kind of fault, its parameters, and its conditions.
struct FaultDocument: ControlDocument, Codable {
    enum Names: String, CodingKey, CaseIterable {
        case fault, at, skip, times, rate, pathSuffix, connection, reason, status, body, bytes, text, milliseconds, code
        case stopsBody, repeated, last, closes, streams, happened
    }
    typealias CodingKeys = Names

    var fault: String
    var at: String?
    var stopsBody: Bool?
    var skip: Int?
    var times: Int?
    var rate: Double?
    var pathSuffix: String?
    var connection: Int?
    var reason: String?
    var status: Int?
    var body: String?
    var bytes: Int?
    var text: String?
    var milliseconds: Double?
    var code: String?
    var repeated: Bool?
    var last: String?
    var closes: Bool?
    var streams: Int?
    /// How often the fault has happened; only in responses.
    var happened: Int?

    // MARK: Reading

    func rule() throws(ControlRefusal) -> FaultRule {
        var rule = FaultRule(
            try kind(), stopsBody: stopsBody ?? false, skip: skip ?? 0, times: times, rate: rate ?? 1,
            pathSuffix: pathSuffix, connection: connection)
        if let at { rule.moment = try named(at, "at") }
        return rule
    }

    private func kind() throws(ControlRefusal) -> Fault {
        switch fault {
        case "reject": return .reject(try named(try needed(reason, "reason"), "reason"))
        case "answer": return .answer(status: try needed(status, "status"), try content())
        case "delay": return .delay(.microseconds(Int64(try checkedMilliseconds() * 1000)))
        case "silence": return .silence
        case "reset": return .reset(try errorCode(or: .refusedStream), isRepeated: repeated ?? false)
        case "breakOff": return .breakOff(try errorCode(or: .internalError))
        case "goAway":
            return .goAway(
                reason: reason ?? text,
                last: try last.map { text throws(ControlRefusal) in try named(text, "last") } ?? .this,
                code: try errorCode(or: .noError), closes: closes ?? true)
        case "close": return .close
        case "streamLimit": return .streamLimit(try needed(streams, "streams"))
        case "streamWindow": return .streamWindow(try needed(bytes, "bytes"))
        case "refuseOthers": return .refuseOthers
        case "wedge": return .wedge
        default:
            throw ControlRefusal(
                400,
                """
                "fault" must not be "\(fault)" but one of reject, answer, delay, silence, reset, breakOff, goAway, close, streamLimit, \
                streamWindow, refuseOthers, wedge.
                """)
        }
    }

    private func content() throws(ControlRefusal) -> Fault.Body {
        switch body ?? (text == nil ? "empty" : "text") {
        case "empty": return .empty
        case "html": return .html
        case "huge": return .huge(bytes: bytes ?? 1_000_000)
        case "text": return .text(try needed(text, "text"))
        default: throw ControlRefusal(400, "\"body\" must be empty, html, huge or text.")
        }
    }

    private func checkedMilliseconds() throws(ControlRefusal) -> Double {
        let number = try needed(milliseconds, "milliseconds")
        guard (0...86_400_000).contains(number) else {
            throw ControlRefusal(400, "\"milliseconds\" must be from 0 to 86400000 (one day).")
        }
        return number
    }

    private func errorCode(or standard: APNsSimulator.HTTP2ErrorCode) throws(ControlRefusal) -> APNsSimulator.HTTP2ErrorCode
    {
        guard let code else { return standard }
        guard let known = APNsSimulator.HTTP2ErrorCode(name: code) else {
            throw ControlRefusal(
                400, "\"code\" must be a name of RFC 9113 section 7, such as REFUSED_STREAM, not \"\(code)\".")
        }
        return known
    }

    private func needed<Value>(_ value: Value?, _ name: String) throws(ControlRefusal) -> Value {
        guard let value else { throw ControlRefusal(400, "The fault \(fault) needs \"\(name)\".") }
        return value
    }

    // MARK: Writing

    init(_ rule: FaultRule, happened: Int) {
        fault = ""
        at = rule.moment.rawValue
        stopsBody = rule.stopsBody
        skip = rule.skip
        times = rule.times
        rate = rule.rate
        pathSuffix = rule.pathSuffix
        connection = rule.connection
        self.happened = happened
        describe(rule.fault)
    }

    private mutating func describe(_ kind: Fault) {
        switch kind {
        case .reject(let reason):
            fault = "reject"
            self.reason = reason.rawValue
        case .answer(let status, let content):
            fault = "answer"
            self.status = status
            describe(content)
        case .delay(let duration):
            fault = "delay"
            milliseconds = duration / .milliseconds(1)
        case .silence: fault = "silence"
        case .reset(let code, let isRepeated):
            fault = "reset"
            self.code = code.name
            repeated = isRepeated
        case .breakOff(let code):
            fault = "breakOff"
            self.code = code.name
        case .goAway(let reason, let last, let code, let closes):
            fault = "goAway"
            self.reason = reason
            self.last = last.rawValue
            self.code = code.name
            self.closes = closes
        case .close: fault = "close"
        case .streamLimit(let limit):
            fault = "streamLimit"
            streams = limit
        case .streamWindow(let size):
            fault = "streamWindow"
            bytes = size
        case .refuseOthers: fault = "refuseOthers"
        case .wedge: fault = "wedge"
        }
    }

    private mutating func describe(_ content: Fault.Body) {
        switch content {
        case .empty: body = "empty"
        case .html: body = "html"
        case .huge(let size):
            body = "huge"
            bytes = size
        case .text(let whole):
            body = "text"
            text = whole
        }
    }
}
