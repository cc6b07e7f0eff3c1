package import CarillonWire

/// A pair of devices: the first sends requests to the second.
package struct RequestPair: Hashable, Sendable {
    package var consumer: DeviceSerial
    package var provider: DeviceSerial

    package init(consumer: DeviceSerial, provider: DeviceSerial) {
        self.consumer = consumer
        self.provider = provider
    }
}

/// The facts that ``RequestRules`` needs from the store.
package struct RequestQuestions: Equatable, Sendable {
    /// A new request.
    package struct Candidate: Hashable, Sendable {
        package var id: ServiceRequestID
        package var pair: RequestPair

        package init(_ request: ServiceRequest) {
            id = request.id
            pair = request.pair
        }
    }

    /// The rows of these requests.
    package var requests: Set<RequestSerial> = []
    /// Whether the id was used, the present users of the two devices, and the number of unfinished requests of the consumer that
    /// are not abandoned.
    package var candidates: Set<Candidate> = []

    package init() {}
}

/// The facts from the store. If a fact was requested and is missing here, it does not exist.
package struct RequestFacts: Equatable, Sendable {
    package var requests: [RequestSerial: ServiceRequest] = [:]
    package var usedIDs: Set<ServiceRequestID> = []
    /// Without pairs whose consumer can call no provider, or whose provider offers no service.
    package var users: [RequestPair: RequestUsers] = [:]
    package var unfinished: [DeviceSerial: Int] = [:]
    /// The number of ids of a consumer that are kept of requests that were cancelled before delivery.
    package var undelivered: [DeviceSerial: Int] = [:]

    package init() {}
}

extension ServiceRequest {
    /// The consumer and the provider.
    package var pair: RequestPair { RequestPair(consumer: consumer, provider: provider) }
}
