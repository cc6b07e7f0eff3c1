import NIOCore

/// Registers devices and opens their channels over the HTTP API.
struct DeviceRegistrar: Sendable {
    let address: SocketAddress
    let key: String
    let app: String

    func register(_ count: Int) async throws -> [Device] {
        let address = address
        let registration = HTTPRequest.bytes(
            "POST", "/v1/devices", headers: ["Authorization: Bearer \(key)"],
            body: ByteBuffer(string: #"{"app":"\#(app)"}"#))
        let registered = Registered(count)
        try await LoadLoop.run {
            HTTPConnection.open(64, address).flatMap { connections in
                RequestPump.run(count, over: connections) { _ in
                    registration
                } check: { index, answer in
                    guard answer.status == 201, let id = answer.body.text(after: "\"id\":\""),
                        let credential = answer.body.text(after: "\"credential\":\"")
                    else { return false }
                    registered.devices[index].id = String(buffer: id)
                    registered.devices[index].credential = String(buffer: credential)
                    return true
                }.flatMap {
                    RequestPump.run(count, over: connections) { index in
                        HTTPRequest.bytes(
                            "POST", "/v1/device/channels",
                            headers: ["Authorization: Bearer \(registered.devices[index].credential)"],
                            body: ByteBuffer(string: #"{"channelID":"\#(Device.channelID(index))"}"#))
                    } check: { index, answer in
                        guard answer.status == 201, let token = answer.body.text(after: "\"token\":\"") else {
                            return false
                        }
                        registered.devices[index].token = String(buffer: token)
                        return true
                    }
                }.always { _ in for connection in connections { connection.close() } }
            }
        }
        return registered.devices
    }

    /// `@unchecked Sendable`: it lives on ``LoadLoop`` until the pumps are done.
    private final class Registered: @unchecked Sendable {
        var devices: [Device]

        init(_ count: Int) {
            devices = Array(repeating: Device(id: "", credential: "", token: ""), count: count)
        }
    }
}
