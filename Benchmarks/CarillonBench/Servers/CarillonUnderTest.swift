import Foundation
import NIOCore

/// A running Carillon server with a data directory.
struct CarillonUnderTest: PushServer {
    let process: ServerProcess
    let address: SocketAddress
    let devices: [Device]
    /// Whether subscribers are not registered devices and only send a hello.
    var isAnonymous = false

    func subscription(_ index: Int) -> Subscription {
        let handshake = HTTPRequest.handshake("/")
        if isAnonymous {
            let hello = ClientFrame.text(#"{"messageType":"hello","use_webpush":true,"uaid":""}"#)
            return Subscription(handshake: handshake, beginning: .hello(hello))
        }
        let device = devices[index]
        let hello = ClientFrame.text(
            #"{"messageType":"hello","use_webpush":true,"carillon":1,"device":"\#(device.id)","#
                + #""credential":"\#(device.credential)"}"#)
        return Subscription(handshake: handshake, beginning: .helloUntilCaughtUp(hello))
    }

    func message(_ body: ByteBuffer, to index: Int) -> ByteBuffer {
        HTTPRequest.bytes(
            "POST", "/push/\(devices[index].token)", headers: ["TTL: 3600", "Content-Encoding: identity"], body: body)
    }

    func isAccepted(_ answer: HTTPAnswer) -> Bool { answer.status == 201 }

    func text(of body: String) -> String {
        Data(body.utf8).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// Returns the number of waiting messages in all inboxes, as reported to the devices.
    func waitingCount() async throws -> Int {
        let address = address
        let requests = devices.map {
            HTTPRequest.bytes("GET", "/v1/device", headers: ["Authorization: Bearer \($0.credential)"])
        }
        let sum = Sum()
        try await LoadLoop.run {
            HTTPConnection.open(16, address).flatMap { connections in
                RequestPump.run(requests.count, over: connections) {
                    requests[$0]
                } check: { _, answer in
                    guard answer.status == 200, let place = answer.body.offset(of: "\"waiting\":") else { return false }
                    sum.value += answer.body.number(at: place + 10)
                    return true
                }.always { _ in for connection in connections { connection.close() } }
            }
        }
        return sum.value
    }

    /// `@unchecked Sendable`: it is used only on ``LoadLoop`` until the pump is done.
    private final class Sum: @unchecked Sendable {
        var value = 0
    }
}
