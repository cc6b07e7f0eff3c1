/// A change of a request, in one transaction with the envelope that reports it. A change that does not fit the state of the
/// request has no effect.
package enum RequestStep: FeatureEffect {
    /// - Parameter between: The users of the two devices at the time when the request was allowed.
    case made(ServiceRequest, between: RequestUsers)
    case received(RequestSerial)
    /// The provider is notified that the consumer cancelled the request.
    case unwanted(RequestSerial)
    /// - Parameter replyHash: Nil if the server ended the request without a reply of the provider.
    case finished(RequestSerial, replyHash: [UInt8]?, at: Timestamp)

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .made(let request, _): hasher.combine(request.serial)
        case .received(let serial), .unwanted(let serial), .finished(let serial, _, _): hasher.combine(serial)
        }
    }
}

extension Effect {
    /// Changes a request of a service.
    package static func request(_ step: RequestStep) -> Effect { Effect(step) }
}
