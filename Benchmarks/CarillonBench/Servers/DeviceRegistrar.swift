import NIOCore

/// Registers devices over the HTTP API, and opens their channels.
struct DeviceRegistrar: Sendable {
    let address: SocketAddress
    let key: String
    let app: String
    var withPushTokens = false
    var withChannels = true
    /// The user tokens of the devices, in their order; empty for devices without a user.
    var userTokens: [String] = []

    /// - Parameter first: The number of the first device. The push tokens are made from the numbers.
    func register(_ count: Int, from first: Int = 0) async throws -> [Device] {
        let (address, channels) = (address, withChannels ? count : 0)
        @Sendable func registration(_ index: Int) -> ByteBuffer {
            let push = withPushTokens ? #","platform":"apple","pushToken":"\#(token(first + index))""# : ""
            let user = userTokens.isEmpty ? "" : #","userToken":"\#(userTokens[index])""#
            return HTTPRequest.bytes(
                "POST", "/v1/devices", headers: ["Authorization: Bearer \(key)"],
                body: ByteBuffer(string: #"{"app":"\#(app)"\#(push)\#(user)}"#))
        }
        let registered = Registered(count)
        try await LoadLoop.run {
            HTTPConnection.open(64, address).flatMap { connections in
                RequestPump.run(count, over: connections) { index in
                    registration(index)
                } check: { index, answer in
                    guard answer.status == 201, let id = answer.body.text(after: "\"id\":\""),
                        let credential = answer.body.text(after: "\"credential\":\"")
                    else { return false }
                    registered.devices[index].id = String(buffer: id)
                    registered.devices[index].credential = String(buffer: credential)
                    return true
                }.flatMap {
                    RequestPump.run(channels, over: connections) { index in
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

    /// Reports the push tokens of some devices once more, with a constant step between the devices.
    ///
    /// - Parameter devices: The devices in the order of their numbers, from 0.
    func repeatTokens(_ count: Int, of devices: [Device]) async throws {
        let (address, step) = (address, max(1, devices.count / count))
        try await LoadLoop.run {
            HTTPConnection.open(64, address).flatMap { connections in
                RequestPump.run(count, over: connections) { index in
                    let device = index * step % devices.count
                    return HTTPRequest.bytes(
                        "PUT", "/v1/device", headers: ["Authorization: Bearer \(devices[device].credential)"],
                        body: ByteBuffer(string: #"{"platform":"apple","pushToken":"\#(token(device))"}"#))
                } check: { _, answer in
                    answer.status == 200
                }.always { _ in for connection in connections { connection.close() } }
            }
        }
    }

    /// Makes a push token with the length of Apple's device tokens.
    private func token(_ index: Int) -> String {
        let digits = String(index, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    /// `@unchecked Sendable`: it is used only on ``LoadLoop`` until the pumps are done.
    private final class Registered: @unchecked Sendable {
        var devices: [Device]

        init(_ count: Int) {
            devices = Array(repeating: Device(id: "", credential: "", token: ""), count: count)
        }
    }
}
