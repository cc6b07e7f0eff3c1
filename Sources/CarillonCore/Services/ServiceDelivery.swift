import CarillonWire

/// Appends an event of a request to the inbox of one of its devices, with the change of the request in the same transaction.
///
/// A repetition appends nothing and is refused, because each change fits the state of the request only once (``RequestStep``).
package struct ServiceDelivery: HomeQuestion {
    package typealias Answer = InboxResult

    enum Change: Sendable {
        /// The request is made. The envelope of the event is the envelope of the request.
        case made(NewRequest, between: RequestUsers)
        case step(RequestStep)
    }

    var device: DeviceSerial
    var app: AppSerial
    var request: ServiceRequestID
    var part: Envelope.ServicePart
    /// The event.
    var body: [UInt8]
    var change: Change
    var acceptedAt: Timestamp
    var expiresAt: Timestamp
    var wakes: Bool
    /// The consumer against whose quota of the inbox the event counts; nil for an event without a quota.
    var consumer: DeviceSerial?

    package var shard: Shard? { Shard(of: device) }

    /// Returns the envelope with its identifier, and the rules of the append.
    func envelope(_ id: MessageID) -> (Envelope, AppendRules) {
        let step =
            switch change {
            case .made(let request, let users): RequestStep.made(request.inEnvelope(id), between: users)
            case .step(let given): given
            }
        let envelope = Envelope(
            id: id, device: device, app: app,
            origin: Origin(.request, serial: step.serial.rawValue, id: request.value), kind: .service(part, body: body),
            acceptedAt: acceptedAt, expiresAt: expiresAt)
        let wake = wakes ? WakeRequest(Urgency.normal.wake(on: .background), dueAt: acceptedAt) : nil
        return (envelope, AppendRules(effects: [.request(step)], wake: wake, consumer: consumer))
    }
}

/// A request that has no envelope yet.
struct NewRequest: Sendable {
    var id: ServiceRequestID
    var consumer: DeviceSerial
    var consumerApp: AppSerial
    var provider: DeviceSerial
    var providerApp: AppSerial
    /// The fingerprint of the whole request.
    var fingerprint: [UInt8]
    var expiresAt: Timestamp

    func inEnvelope(_ envelope: MessageID) -> ServiceRequest {
        ServiceRequest(
            id: id, envelope: envelope, consumer: consumer, consumerApp: consumerApp, provider: provider,
            providerApp: providerApp, fingerprint: fingerprint, expiresAt: expiresAt)
    }
}
