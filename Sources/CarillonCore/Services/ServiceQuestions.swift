import CarillonWire

/// Withdraws a request from the inbox of its provider, and finishes the request if it was not delivered.
///
/// After an earlier withdrawal finished the request, a repetition finds it delivered.
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

/// Offers a front request to a provider's connection. The answer is whether a connection accepted it.
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

/// Finds which of some devices of another home are connected.
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

/// Informs the connections of devices that the providers of their users changed.
package struct ProvidersChanged: HomeQuestion {
    package typealias Answer = Void

    let devices: [DeviceSerial]
    package var shard: Shard? { nil }
}

/// A hint: the other homes end their due requests now. Without the hint, their sweeps do so.
package struct DueRequestsWait: HomeQuestion {
    package typealias Answer = Void

    package var shard: Shard? { nil }
}
