import NIOCore

/// A consumer device and a provider device of the same user, with the requests that they send.
struct ServicePair: Sendable {
    let consumer: Device
    let provider: Device
    /// The request with which the provider publishes its service.
    let offer: ByteBuffer
    let request: RequestTemplate
    let reply: RequestTemplate

    static let service = "com.example.echo"

    init(_ number: Int, consumer: Device, provider: Device) throws {
        self.consumer = consumer
        self.provider = provider
        let (asking, answering) = (ServiceKey(2 * number), ServiceKey(2 * number + 1))
        offer = Self.bytes(
            "PUT", "/v1/device/services", provider,
            #"{"name":"Bench","version":"1.0","services":[{"id":"\#(Self.service)","version":"1.0"}],"#
                + #""keys":\#(answering.bundle)}"#)
        let (asked, answered) = (asking.sealed(to: answering), answering.sealed(to: asking))
        request = try RequestTemplate { id in
            Self.bytes(
                "POST", "/v1/services/requests", consumer,
                #"{"id":"\#(id)","app":"\#(ServiceRealm.providerApp)","device":"\#(provider.id)","#
                    + #""service":"\#(Self.service)","version":"1.0","method":"echo","deadline":3600,"#
                    + #""foreground":"none",\#(asked)}"#)
        }
        reply = try RequestTemplate { id in
            Self.bytes("POST", "/v1/services/requests/\(id)/reply", provider, "{\(answered)}")
        }
    }

    private static func bytes(_ method: String, _ path: String, _ device: Device, _ body: String) -> ByteBuffer {
        HTTPRequest.bytes(
            method, path, headers: ["Authorization: Bearer \(device.credential)"], body: ByteBuffer(string: body))
    }

    /// Returns the sockets of the pairs. An even number is a consumer, and the next number is its provider.
    static func subscription(_ number: Int, of pairs: [ServicePair]) -> Subscription {
        let pair = pairs[number / 2]
        let device = number.isMultiple(of: 2) ? pair.consumer : pair.provider
        let hello = ClientFrame.text(
            #"{"messageType":"hello","use_webpush":true,"carillon":6,"device":"\#(device.id)","#
                + #""credential":"\#(device.credential)"}"#)
        return Subscription(handshake: HTTPRequest.handshake("/"), beginning: .helloUntilCaughtUp(hello))
    }
}
