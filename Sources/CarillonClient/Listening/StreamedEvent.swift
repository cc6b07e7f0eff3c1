/// An event of a public stream, which can be dropped when the buffer of an iteration is full.
protocol StreamedEvent: Sendable {
    /// Stands for events that were dropped.
    static func missed(_ count: Int) -> Self

    var rank: EventRank { get }
}

/// Which events a full buffer drops first.
enum EventRank: Hashable, Sendable {
    /// The bytes of a transfer. A newer event of the same transfer replaces it.
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

// An event that is not named here lasts.

extension ServiceClientEvent: StreamedEvent {
    var rank: EventRank {
        switch self {
        case .sending(let id, _, _): .progress(.init(.sending, of: id))
        case .receiving(let id, _, _): .progress(.init(.receiving, of: id))
        case .didStartSending, .willStartReceiving, .willStartReceivingFile: .step
        default: .lasting
        }
    }
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
}

extension PushDeviceEvent: StreamedEvent {
    var rank: EventRank { .lasting }
}

extension NotificationSubscriptionEvent: StreamedEvent {
    var rank: EventRank { .lasting }
}
