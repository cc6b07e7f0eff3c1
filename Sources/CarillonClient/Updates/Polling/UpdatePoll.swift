import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// One poll: the request, and the meaning of its response.
struct UpdatePoll: Sendable {
    var profile: String
    var kinds: [String]
    var position: String?
    /// The parameters; nil if they have not changed.
    var parameters: ParameterSet?
    var results: [WaitingResult]
    var waitSeconds: Int
    var capacity: Int

    /// The version of the poll.
    static let version = 1
    static let mostResults = 200
    static let mostUpdates = 100
    /// The maximum size of a response, in bytes: the updates that the server sends at once, with a margin for JSON.
    static let answerLimit = 8 << 20

    var body: Data {
        var members: [JSONValue.Member] = [
            .init(name: "protocol", value: .integer(Self.version)), .init(name: "only", value: .string("updates")),
            .init(name: "kinds", value: .array(kinds.sorted().map { .string($0) })),
            .init(name: "wait", value: .integer(capacity > 0 ? waitSeconds : 0)),
            .init(name: "max", value: .integer(min(capacity, Self.mostUpdates))),
        ]
        if !profile.isEmpty { members.append(.init(name: "profile", value: .string(profile))) }
        if let position { members.append(.init(name: "position", value: .string(position))) }
        if let parameters { members.append(.init(name: "parameters", value: parameters.json)) }
        if !results.isEmpty { members.append(.init(name: "results", value: .array(results.map(\.json)))) }
        return Data(JSONValue.object(members).bytes)
    }

    /// Returns the response of a poll; nil if the body does not follow the protocol.
    static func answer(_ body: [UInt8]) -> PollAnswer? {
        guard let json = JSONValue(parsing: body), case .array(let envelopes)? = json["envelopes"],
            case .bool(let more)? = json["more"], case .string(let position)? = json["position"]
        else { return nil }
        var answer = PollAnswer(position: position, more: more)
        switch json["parametersRevision"] {
        case .null?: answer.parameters = .none
        case .string(let revision)?: answer.parameters = .revision(revision)
        default: break
        }
        if case .integer(let seconds)? = json["retryAfter"] {
            answer.retryAfter = RetryAfter.duration(seconds: seconds)
        }
        for envelope in envelopes {
            // The poll did not request other types of envelopes.
            guard case .string("update")? = envelope["messageType"] else { continue }
            guard case .string(let version)? = envelope["version"], case .integer(let attempt)? = envelope["attempt"],
                case .integer(let entry)? = envelope["entry"], let update = envelope["update"]
            else { return nil }
            func seconds(_ name: String) -> Int? { if case .integer(let seconds)? = envelope[name] { seconds } else { nil } }
            answer.updates.append(
                UpdateFrame(
                    version: version, attempt: attempt, entry: entry, body: update.bytes, startsIn: seconds("startsIn"),
                    endsIn: seconds("endsIn")))
        }
        return answer
    }
}

/// The reason why a poll failed.
enum PollFault: Error, Equatable, Sendable {
    /// The position belongs to another device or to another server.
    case positionRefused
    case failed(UpdateFailure, retryAfter: Duration?)

    /// Makes the fault for a refusal.
    ///
    /// - Parameter server: The server's name for the user.
    init(_ refusal: ServerRefusal, retryAfter: Duration?, hadParameters: Bool, server: String) {
        func failed(_ kind: UpdateFailure.Kind, _ what: String) -> PollFault {
            .failed(UpdateFailure(kind, "The server \(server) \(what)"), retryAfter: retryAfter)
        }
        let status = refusal.status
        switch (status, refusal.code) {
        case (_, .positionInvalid?): self = .positionRefused
        case (_, .protocolUnsupported?):
            self = failed(.incompatible, "speaks another version of the protocol; update the app.")
        case (_, .notFound?), (_, .methodNotAllowed?):
            self = failed(.incompatible, "has no updates; is the service's name right, and the server new enough?")
        case (401, _), (403, _): self = failed(.refused, "does not let this device in.")
        case (429, _), (500..., _): self = failed(.unreachable, "cannot answer now (status \(status)).")
        case (_, .fieldInvalid?) where hadParameters, (_, .fieldUnknown?) where hadParameters:
            self = failed(.parametersRefused, "does not take the parameters: \(refusal.detail)")
        default: self = failed(.protocolViolated, "answered with status \(status), which is no answer to a poll.")
        }
    }
}
