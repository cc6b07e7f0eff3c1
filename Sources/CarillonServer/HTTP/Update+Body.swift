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
        func text(_ name: String, _ value: String?) -> [JSONValue.Member] {
            value.map { [.init(name: name, value: .string($0))] } ?? []
        }
        let published = JSONValue(parsing: body)
        var members = text("id", id.description) + text("kind", kind.name)
        members.append(.init(name: "payload", value: published?["payload"] ?? .null))
        members += text("audience", audience) + text("mode", mode.rawValue) + text("orderKey", orderKey)
        if isResync { members.append(.init(name: "resync", value: .bool(true))) }
        if isPaused, status == .live { members.append(.init(name: "paused", value: .bool(true))) }
        members += text("wake", wakes ? "match" : "none")
        members += text("supersedes", supersedes?.description)
        members += text("publishedAt", Timestamp3339.text(publishedAt.milliseconds))
        members += text("expiresAt", Timestamp3339.text(expiresAt.milliseconds))
        members += text("status", status.name) + text("statusAt", Timestamp3339.text(statusAt.milliseconds))
        if let counts {
            let states = CompletionMachine.State.allCases.compactMap { state in
                counts[state].map { JSONValue.Member(name: state.name, value: .integer($0)) }
            }
            members.append(.init(name: "devices", value: .object(states)))
        }
        return .object(members)
    }
}

extension DeviceCompletion {
    var json: JSONValue {
        let machine = completion.machine
        var members: [JSONValue.Member] = [.init(name: "device", value: .string(device.description))]
        if let user { members.append(.init(name: "user", value: .string(user.text))) }
        if !profile.isEmpty { members.append(.init(name: "profile", value: .string(profile))) }
        members.append(.init(name: "entry", value: .integer(completion.key.entry)))
        members.append(.init(name: "state", value: .string(machine.state.name)))
        members.append(.init(name: "attempt", value: .integer(machine.attempt)))
        members.append(.init(name: "failures", value: .integer(machine.failures)))
        if let reason = machine.reason { members.append(.init(name: "reason", value: .string(reason))) }
        members.append(.init(name: "changedAt", value: .string(Timestamp3339.text(completion.changedAt.milliseconds))))
        if let dueAt = machine.dueAt {
            members.append(.init(name: "dueAt", value: .string(Timestamp3339.text(dueAt.milliseconds))))
        }
        return .object(members)
    }
}

extension AudienceReport {
    var counts: [JSONValue.Member] {
        [.init(name: "count", value: .integer(count)), .init(name: "exact", value: .bool(all == nil))]
    }

    /// The reasons, the most frequent first.
    var reasons: [JSONValue.Member] {
        let errors = errors.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { error, count in
            JSONValue.object([
                .init(name: "error", value: .string(error)), .init(name: "count", value: .integer(count)),
            ])
        }
        return [.init(name: "looked", value: .integer(looked)), .init(name: "errors", value: .array(errors))]
    }
}

extension DeviceReport {
    static func members(_ report: DeviceReport?) -> [JSONValue.Member] {
        guard let report else {
            return [
                .init(name: "matches", value: .bool(false)),
                .init(name: "error", value: .string("The device has not polled for updates yet, or its user signed out.")),
            ]
        }
        var members: [JSONValue.Member] = [.init(name: "matches", value: .bool(report.verdict == .belongs))]
        if case .error(let text) = report.verdict { members.append(.init(name: "error", value: .string(text))) }
        if !report.profile.isEmpty { members.append(.init(name: "profile", value: .string(report.profile))) }
        members.append(.init(name: "says", value: .array(report.reportedParameters.map { .string($0) })))
        return members
    }
}

extension AuditEntry {
    package var json: JSONValue {
        var members: [JSONValue.Member] = [
            .init(name: "at", value: .string(Timestamp3339.text(at.milliseconds))),
            .init(name: "key", value: .string(key.description)),
            .init(name: "action", value: .string(action.rawValue)),
            .init(name: "update", value: .string(update.description)),
        ]
        if let count { members.append(.init(name: "count", value: .integer(count))) }
        return .object(members)
    }
}
