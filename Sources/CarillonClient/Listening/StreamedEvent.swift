#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An event of a public stream, which can be dropped when the buffer of an iteration is full.
protocol StreamedEvent: Sendable {
    /// Makes the event that reports the number of dropped events.
    static func missed(_ count: Int) -> Self

    var rank: EventRank { get }

    /// The bytes of the values, texts and paths in the event; 0 if its size has a small bound.
    var contentBytes: Int { get }

    /// Whether the event is about data of the device's user. Such an event is not delivered after the user changed.
    var isOfUser: Bool { get }
}

extension StreamedEvent {
    var contentBytes: Int { 0 }
    var isOfUser: Bool { true }
}

/// Which events a full buffer drops first.
enum EventRank: Hashable, Sendable {
    /// The progress of a transfer, in bytes. A newer event of the same transfer replaces it.
    case progress(Transfer)
    /// A step of a request, which is followed by an event of a higher rank.
    case step
    /// A result, or a change of state.
    case lasting

    /// The files of a request, or of the reply to it.
    struct Transfer: Hashable, Sendable {
        let request: String
        let direction: ServiceProgress.Direction

        init(_ direction: ServiceProgress.Direction, of request: String) {
            self.request = request
            self.direction = direction
        }
    }
}

// An event that is not listed here is lasting.

extension ServiceClientEvent: StreamedEvent {
    var rank: EventRank {
        switch self {
        case .sending(let id, _, _): .progress(.init(.sending, of: id))
        case .receiving(let id, _, _): .progress(.init(.receiving, of: id))
        case .didStartSending, .willStartReceiving, .willStartReceivingFile: .step
        default: .lasting
        }
    }

    var contentBytes: Int {
        switch self {
        case .didReceive(_, .success(let reply), _): reply.value.contentBytes + reply.attachments.contentBytes
        case .didReceive(_, .failure(let error), _): error.contentBytes
        case .didFinishSending(_, let attachments, let parameters, _): parameters.contentBytes + attachments.contentBytes
        default: 0
        }
    }

    var isOfUser: Bool { if case .missed = self { false } else { true } }
}

extension ServiceProviderEvent: StreamedEvent {
    var rank: EventRank {
        switch self {
        case .sending(let id, _, _): .progress(.init(.sending, of: id))
        case .receiving(let id, _, _): .progress(.init(.receiving, of: id))
        case .didStartSending, .willStartReceiving, .willStartReceivingFile: .step
        default: .lasting
        }
    }

    var contentBytes: Int {
        switch self {
        case .didReceive(let request): request.parameters.contentBytes + request.attachments.contentBytes
        case .didFinishSending(_, let attachments, _): attachments.contentBytes
        case .requestFailed(_, let error, _): error.contentBytes
        default: 0
        }
    }

    var isOfUser: Bool {
        switch self {
        case .missed, .offerRefused: false
        default: true
        }
    }
}

extension PushDeviceEvent: StreamedEvent {
    var rank: EventRank { .lasting }

    var contentBytes: Int { if case .firingCrashed(let firing) = self { firing.bytes } else { 0 } }

    /// All other events are about the state of the device.
    var isOfUser: Bool { if case .firingCrashed = self { true } else { false } }
}

extension NotificationSubscriptionEvent: StreamedEvent {
    var rank: EventRank { .lasting }
}

extension ServiceValue {
    /// The bytes of the texts, data and names in the value, and 16 for each value.
    fileprivate var contentBytes: Int {
        switch self {
        case .null, .bool, .integer, .number: 16
        case .string(let text): 16 + text.utf8.count
        case .bytes(let data): 16 + data.count
        case .array(let elements): elements.reduce(16) { $0 + $1.contentBytes }
        case .object(let members): members.reduce(16) { $0 + $1.key.utf8.count + $1.value.contentBytes }
        }
    }
}

extension ServiceError {
    fileprivate var contentBytes: Int { text.utf8.count + (details?.contentBytes ?? 0) }
}

extension [String] {
    fileprivate var contentBytes: Int { reduce(0) { $0 + $1.utf8.count } }
}
