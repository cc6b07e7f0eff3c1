/// What changes a request, in one transaction with the envelope that tells of it. What does not fit its state does not count.
package enum RequestStep: FeatureEffect {
    /// - Parameter between: Who the two devices belonged to when the request was allowed.
    case made(ServiceRequest, between: RequestParties)
    case received(RequestSerial)
    /// Its provider is told that it is not wanted.
    case unwanted(RequestSerial)
    /// - Parameter replyHash: Nil where the provider did not decide.
    case finished(RequestSerial, replyHash: [UInt8]?, at: Timestamp)

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .made(let request, _): hasher.combine(request.serial)
        case .received(let serial), .unwanted(let serial), .finished(let serial, _, _): hasher.combine(serial)
        }
    }
}

extension Effect {
    /// A request of a service goes on.
    package static func request(_ step: RequestStep) -> Effect { Effect(step) }
}
