package import CarillonWire

/// One request of a service, from its acceptance until its id is removed: the consumer, the provider, and the state. Its content
/// is only in the inbox.
///
/// | State | Left by |
/// |---|---|
/// | waiting | `received` → received; a reply, its deadline, a cancellation before delivery, the end of one of the two → finished |
/// | received | a reply, its deadline, the end of one of the two → finished |
/// | finished | nothing: the first decision counts |
package struct ServiceRequest: Equatable, Sendable {
    package enum State: Int, Sendable {
        case waiting = 0
        /// The provider has stored the whole request, and the consumer was notified.
        case received = 1
        case finished = 2
    }

    package var id: ServiceRequestID
    /// The identifier of the request's envelope in the inbox of the provider. Its position is also the serial of the request.
    package var envelope: MessageID
    package var consumer: DeviceSerial
    package var consumerApp: AppSerial
    package var provider: DeviceSerial
    package var providerApp: AppSerial
    /// The fingerprint of the whole request.
    package var fingerprint: [UInt8]
    package var expiresAt: Timestamp
    package var state = State.waiting
    /// Whether the consumer cancelled the request, and the provider was notified.
    package var isUnwanted = false
    /// Whether the consumer's device has another user, so that no party waits for the result.
    package var isAbandoned = false
    /// The error with which the server ends the request; nil if the request ends at its deadline.
    package var fault: ErrorCode?
    /// The hash of the reply that finished the request.
    package var replyHash: [UInt8]?

    package init(
        id: ServiceRequestID, envelope: MessageID, consumer: DeviceSerial, consumerApp: AppSerial, provider: DeviceSerial,
        providerApp: AppSerial, fingerprint: [UInt8], expiresAt: Timestamp
    ) {
        self.id = id
        self.envelope = envelope
        self.consumer = consumer
        self.consumerApp = consumerApp
        self.provider = provider
        self.providerApp = providerApp
        self.fingerprint = fingerprint
        self.expiresAt = expiresAt
    }

    package var serial: RequestSerial { RequestSerial(envelope.position) }

    package var origin: Origin { Origin(.request, serial: serial.rawValue, id: id.value) }

    /// The number of seconds for which a finished request is kept, so that a late reply or cancellation gets the right answer.
    package static let rememberedSeconds: Int64 = 86_400
    /// The number of seconds for which a result waits for a consumer that is disconnected.
    package static let resultSeconds: Int64 = 7 * 86_400
    /// The largest number of unfinished requests of a device.
    package static let mostOfConsumer = 1000
    /// The number of seconds for which the id of a request is kept that was cancelled before delivery.
    package static let undeliveredSeconds: Int64 = 600
    /// The largest number of such ids of a device. Beyond it, the oldest are removed.
    package static let undeliveredOfConsumer = 1000
}

/// The state in the store before a request is made.
package enum RequestBeginning: Equatable, Sendable {
    case made(ServiceRequest)
    /// The id is new. Nil: the device can call no provider.
    case new(ServiceReach?)
}

/// The users of a consumer and a provider. A request is valid only while both have the users with which it was allowed.
package struct RequestUsers: Equatable, Sendable {
    package var consumer: ServiceReach.Caller
    /// Nil for a backend device without a user.
    package var provider: UserID?

    package init(consumer: ServiceReach.Caller, provider: UserID?) {
        self.consumer = consumer
        self.provider = provider
    }
}

/// The store's number of a request: the position of its envelope.
package struct RequestSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
