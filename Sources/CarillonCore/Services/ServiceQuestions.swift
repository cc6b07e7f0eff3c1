import CarillonWire

/// Takes a request out of the inbox of its provider, and finishes it if it was not delivered.
///
/// A request that an earlier question finished is found to be delivered.
package struct RequestWithdrawal: HomeQuestion {
    package enum Answer: Sendable {
        /// The request will not be delivered.
        case cancelled
        /// The request will not be delivered, and was finished before.
        case finished
        case delivered
    }

    let request: RequestSerial
    let envelope: MessageID
    let provider: DeviceSerial

    package var shard: Shard? { Shard(of: provider) }

    init(of request: ServiceRequest) {
        (self.request, envelope, provider) = (request.serial, request.envelope, request.provider)
    }
}

/// Offers a front request to a provider's connection. The answer is whether a connection took it.
///
/// If the answer is lost, the provider can get the request again. The second request has no effect, because the app of the
/// provider is at the front of the screen already.
package struct FrontRequest: HomeQuestion {
    package typealias Answer = Bool

    let device: DeviceSerial
    let app: AppSerial
    let request: ServiceRequestID
    /// The event.
    let body: [UInt8]
    let at: Timestamp

    package var shard: Shard? { Shard(of: device) }

    func envelope(_ id: MessageID) -> Envelope {
        Envelope(
            id: id, device: device, app: app, origin: Origin(.request, serial: id.position, id: request.value),
            kind: .service(.notice, body: body), acceptedAt: at, expiresAt: at)
    }
}

/// Asks which of some devices of another home are connected.
package struct ConnectedDevices: HomeQuestion {
    package typealias Answer = [DeviceSerial]

    package let shard: Shard?
    let devices: [DeviceSerial]

    /// - Parameter shard: The shard of one of the devices.
    init(at shard: Shard, among devices: [DeviceSerial]) {
        self.shard = shard
        self.devices = devices
    }
}

/// Informs the connections of devices that other providers serve their users.
package struct ProvidersChanged: HomeQuestion {
    package typealias Answer = Void

    let devices: [DeviceSerial]
    package var shard: Shard? { nil }
}

/// Makes the other homes end their due requests now, which they do regularly in any case.
package struct DueRequestsWait: HomeQuestion {
    package typealias Answer = Void

    package var shard: Shard? { nil }
}
