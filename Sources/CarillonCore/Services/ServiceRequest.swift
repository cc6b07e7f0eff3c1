package import CarillonWire

/// One request of a service, from its acceptance until its id is forgotten: who asks whom, and how it stands. Its content is in the inbox
/// only.
///
/// | State | Left by |
/// |---|---|
/// | waiting | `received` → received; a reply, its deadline, a cancellation before delivery, the end of one of the two → finished |
/// | received | a reply, its deadline, the end of one of the two → finished |
/// | finished | nothing: the first decision counts |
package struct ServiceRequest: Equatable, Sendable {
    package enum State: Int, Sendable {
        case waiting = 0
        /// The provider has all of it on disk, and its consumer was told.
        case received = 1
        case finished = 2
    }

    package var id: ServiceRequestID
    /// Of the request's envelope in the inbox of the provider; the row's number, too.
    package var envelope: MessageID
    package var consumer: DeviceSerial
    package var consumerApp: AppSerial
    package var provider: DeviceSerial
    package var providerApp: AppSerial
    /// Of all that was asked.
    package var fingerprint: [UInt8]
    package var expiresAt: Timestamp
    package var state = State.waiting
    /// Its consumer does not want it any more, and its provider was told.
    package var isUnwanted = false
    /// Its consumer's device has another user: nobody waits for the result.
    package var isAbandoned = false
    /// What the server ends it with; nil: when its deadline comes.
    package var fault: ErrorCode?
    /// Of the reply that finished it.
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

    /// How long a finished request is remembered, so that what comes late is told so.
    package static let rememberedSeconds: Int64 = 86_400
    /// How long its result waits for a consumer that is away.
    package static let resultSeconds: Int64 = 7 * 86_400
    /// How many of a device may be unfinished at once.
    package static let mostOfConsumer = 1000
    /// How long the id of a request is remembered that was cancelled before its delivery.
    package static let undeliveredSeconds: Int64 = 600
    /// How many such ids of a device are remembered; beyond it the oldest are forgotten.
    package static let undeliveredOfConsumer = 1000
}

/// What is known when a request is asked for.
package enum RequestBeginning: Equatable, Sendable {
    case made(ServiceRequest)
    /// Nil: the device may call nobody.
    case new(ServiceReach?)
}

/// The users of a consumer and a provider. A request counts only while both are as they were when it was allowed.
package struct RequestParties: Equatable, Sendable {
    package var consumer: ServiceReach.Caller
    /// Nil for a server without a user.
    package var provider: UserID?

    package init(consumer: ServiceReach.Caller, provider: UserID?) {
        self.consumer = consumer
        self.provider = provider
    }
}

/// The store's number for a request: the place of its envelope.
package struct RequestSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
