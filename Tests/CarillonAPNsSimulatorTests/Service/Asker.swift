import Foundation
import NIOCore

@testable import CarillonAPNsSimulator

/// Asks a service without a socket, at a time that a test chooses.
struct Asker {
    static let start = Timestamp.seconds(1_800_000_000)
    static let token = "00ff00ff00ff00ff"

    var service = PushService(seed: 7)
    var binding = ConnectionBinding()
    var now = Asker.start
    let key: SigningKey

    init(key: SigningKey? = nil) throws {
        self.key = try key ?? SigningKey()
        try service.accounts.add(self.key)
        service.devices.put(Device(token: Self.token, topic: "com.example.app"), at: now)
    }

    func authorization(age: Int64 = 0, key: SigningKey? = nil) throws -> String {
        "bearer " + (try (key ?? self.key).makeProviderToken(issuedAt: now.seconds - age))
    }

    /// A good push to the device, unless it is changed.
    func push(_ change: (inout Submission) throws -> Void = { _ in }) throws -> Submission {
        var fields = RequestFields()
        fields.authorization = try binding.currentAuthorization ?? authorization()
        fields.topic = "com.example.app"
        fields.pushType = "alert"
        let body = ByteBuffer(string: #"{"aps":{"alert":"hello"}}"#)
        var submission = Submission(
            environment: .sandbox, services: .push, method: "POST", path: "/3/device/\(Self.token)", fields: fields,
            payload: body, payloadBytes: body.readableBytes)
        try change(&submission)
        return submission
    }

    mutating func ask(_ change: (inout Submission) throws -> Void = { _ in }) throws -> SimulatorAnswer {
        service.received(try push(change), on: &binding, at: now)
    }

    /// A good push with these credentials.
    mutating func ask(with authorization: String) throws -> SimulatorAnswer {
        try ask { $0.fields.authorization = authorization }
    }

    struct Unknown: Error {}

    /// The results of the pushes to the device.
    mutating func report() throws -> APNsSimulator.DeviceReport {
        guard let report = service.devices.report(.init(token: Self.token, environment: .sandbox), at: now) else {
            throw Unknown()
        }
        return report
    }
}

extension Submission {
    mutating func setBody(_ text: String) {
        payload = ByteBuffer(string: text)
        payloadBytes = payload.readableBytes
    }
}
