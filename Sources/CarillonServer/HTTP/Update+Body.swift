package import CarillonBasics
import CarillonCore
import CarillonWire

extension Update.Definition {
    static let memberNames: Set = ["kind", "payload", "audience", "mode", "ttl", "orderKey", "wake", "supersedes"]

    /// - Parameter body: An object without unknown members.
    init(_ body: JSONValue) throws(Refusal) {
        guard let name = try body.textMember("kind") else { throw Refusal(.fieldMissing, "The field \"kind\" is missing.") }
        guard let kind = UpdateKind(name) else {
            throw Refusal(
                .fieldInvalid,
                "\"kind\" must be one of content, definitions, status and popup, or a name of the app with a dot in it, such as com.example.route."
            )
        }
        _ = try UpdatePayload(body["payload"], of: kind)
        self.init(
            kind: kind, payload: (body["payload"] ?? .object([])).bytes,
            audience: try Self.text("audience", in: body, upTo: UpdateLimits.audienceBytes), mode: try Self.mode(body),
            ttlSeconds: try Self.ttl(body), orderKey: try Self.text("orderKey", in: body, upTo: UpdateLimits.orderKeyBytes),
            wakes: try Self.wakes(body), supersedes: try Self.id("supersedes", in: body))
    }

    private static func text(_ name: String, in body: JSONValue, upTo bytes: Int) throws(Refusal) -> String? {
        guard let text = try body.textMember(name) else { return nil }
        guard (1...bytes).contains(text.utf8.count) else {
            throw Refusal(.fieldInvalid, "The field \"\(name)\" must be a text of 1 to \(bytes) bytes.")
        }
        return text
    }

    private static func mode(_ body: JSONValue) throws(Refusal) -> Update.Mode {
        guard let name = try body.textMember("mode") else { return .once }
        guard let mode = Update.Mode(rawValue: name) else {
            throw Refusal(.fieldInvalid, "\"mode\" must be \"once\" or \"standing\".")
        }
        return mode
    }

    private static func wakes(_ body: JSONValue) throws(Refusal) -> Bool {
        switch try body.textMember("wake") {
        case nil, "none"?: return false
        case "match"?: return true
        default: throw Refusal(.fieldInvalid, "\"wake\" must be \"none\" or \"match\".")
        }
    }

    private static func ttl(_ body: JSONValue) throws(Refusal) -> Int64 {
        switch body["ttl"] {
        case nil, .null: return UpdateLimits.standardTTLSeconds
        case .integer(let seconds) where UpdateLimits.ttlSeconds.contains(Int64(seconds)): return Int64(seconds)
        default:
            throw Refusal(
                .fieldInvalid,
                "\"ttl\" must be a whole number of seconds from \(UpdateLimits.ttlSeconds.lowerBound) to \(UpdateLimits.ttlSeconds.upperBound)."
            )
        }
    }

    private static func id(_ name: String, in body: JSONValue) throws(Refusal) -> UpdateID? {
        guard let text = try body.textMember(name) else { return nil }
        guard let id = UpdateID(text) else {
            throw Refusal(
                .fieldInvalid, "The field \"\(name)\" must be the ID of an update, which is 32 hexadecimal digits.")
        }
        return id
    }
}

extension Update {
    /// Returns the update in the form for senders.
    ///
    /// - Parameter counts: The number of completions in each state; nil if they were not requested.
    func json(_ counts: [CompletionMachine.State: Int]? = nil) -> JSONValue {
        let devices = counts.map { counts in
            CompletionMachine.State.allCases.compactMap { state in
                counts[state].map { JSONValue.Member(name: state.name, value: .integer($0)) }
            }
        }
        return [
            "id": .string(id.description),
            "kind": .string(kind.name),
            "payload": JSONValue(parsing: body)?["payload"] ?? .null,
            "audience": audience.map(JSONValue.string),
            "mode": .string(mode.rawValue),
            "orderKey": orderKey.map(JSONValue.string),
            "resync": isResync ? .bool(true) : nil,
            "paused": isPaused && status == .live ? .bool(true) : nil,
            "wake": .string(wakes ? "match" : "none"),
            "supersedes": (supersedes?.description).map(JSONValue.string),
            "publishedAt": .string(Timestamp3339.text(publishedAt.milliseconds)),
            "expiresAt": .string(Timestamp3339.text(expiresAt.milliseconds)),
            "status": .string(status.name),
            "statusAt": .string(Timestamp3339.text(statusAt.milliseconds)),
            "devices": devices.map(JSONValue.object),
        ]
    }
}

extension DeviceCompletion {
    var json: JSONValue {
        let machine = completion.machine
        return [
            "device": .string(device.description),
            "user": (user?.text).map(JSONValue.string),
            "profile": profile.isEmpty ? nil : .string(profile),
            "entry": .integer(completion.key.entry),
            "state": .string(machine.state.name),
            "attempt": .integer(machine.attempt),
            "failures": .integer(machine.failures),
            "reason": machine.reason.map(JSONValue.string),
            "changedAt": .string(Timestamp3339.text(completion.changedAt.milliseconds)),
            "dueAt": machine.dueAt.map { .string(Timestamp3339.text($0.milliseconds)) },
        ]
    }
}

extension AudienceReport {
    var counts: [JSONValue.Member] {
        [.init(name: "count", value: .integer(count)), .init(name: "exact", value: .bool(all == nil))]
    }

    /// The reasons, the most frequent first.
    var reasons: [JSONValue.Member] {
        let errors = errors.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { error, count -> JSONValue in
            ["error": .string(error), "count": .integer(count)]
        }
        return [.init(name: "looked", value: .integer(looked)), .init(name: "errors", value: .array(errors))]
    }
}

extension DeviceReport {
    static func json(_ report: DeviceReport?) -> JSONValue {
        guard let report else {
            let reason = "The device has not polled for updates yet, or its user signed out."
            return ["matches": .bool(false), "error": .string(reason)]
        }
        let error: String? = if case .error(let text) = report.verdict { text } else { nil }
        return [
            "matches": .bool(report.verdict == .belongs),
            "error": error.map(JSONValue.string),
            "profile": report.profile.isEmpty ? nil : .string(report.profile),
            "says": .array(report.reportedParameters.map(JSONValue.string)),
        ]
    }
}

extension AuditEntry {
    package var json: JSONValue {
        [
            "at": .string(Timestamp3339.text(at.milliseconds)),
            "key": .string(key.description),
            "action": .string(action.rawValue),
            "update": .string(update.description),
            "count": count.map(JSONValue.integer),
        ]
    }
}
