import CarillonBasics
import CarillonCore
import CarillonServer
import CarillonWire
import Foundation
import NIOHTTP1
import TestSupport

extension MovingShards {
    /// Registers devices that are not connected, and sends each a message: a push wakes the device, which fetches the message then.
    func wakeDevices(_ place: Int) async {
        var random = SeededRandom(seed: record.seed &+ UInt64(7000 + place))
        while record.isRunning {
            do {
                try await wakeDevice(&random)
            } catch {
                guard !Task.isCancelled else { return }
                record.fault("sleeping device: \(error)")
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    private func wakeDevice(_ random: inout SeededRandom) async throws {
        let token = ScenarioPhone.secret()
        let profile = #""platform":"apple","pushToken":"\#(token)","environment":"test""#
        let made = try await http.repeating(
            .init(.POST, "/v1/devices", key: clientKey, #"{"registration":"\#(ScenarioPhone.secret())",\#(profile)}"#),
            expecting: 201)
        guard let id = made["id"].flatMap({ DeviceID($0) }), let credential = made["credential"],
            let device = try await store.device(id)?.serial
        else { throw NeverHappened() }
        record.add(Shard(of: id))
        let opened = try await http.repeating(
            .init(.POST, "/v1/device/channels", key: credential, #"{"channelID":"\#(UUID().uuidString.lowercased())"}"#),
            expecting: 201)
        let endpoint = "/push/\(opened["token"] ?? "")"
        let headers: HTTPHeaders = [
            "TTL": "600", "Content-Encoding": "identity", "Urgency": Bool.random(using: &random) ? "high" : "normal",
            "Idempotency-Key": UUID().uuidString,
        ]
        let sent = try await http.repeating(.init(.POST, endpoint, headers: headers, "x"), expecting: 201)
        let message = sent.headers.first(name: "location")?.split(separator: "/").last.map(String.init) ?? ""
        let sentAt = record.now()
        await expectPush(to: device, id, since: sentAt)
        try await fetch(message, by: credential, id, since: sentAt)
        record.count("wakes")
        guard Bool.random(using: &random) else { return }
        // Behind a first attempt whose answer was lost, the device is unknown.
        _ = try await http.repeating(.init(.DELETE, "/v1/device", key: credential), expecting: 204, 401)
        let late = ScenarioHTTP.Request(.POST, endpoint, headers: ["TTL": "600", "Content-Encoding": "identity"], "x")
        _ = try await http.repeating(late, expecting: 410)
        record.count("deleted devices")
    }

    private func pushes(to device: DeviceSerial) -> [TestGateway.Sent] {
        server.domain.gateways.testPushes(of: appSerial).filter { $0.device == device }
    }

    private func expectPush(to device: DeviceSerial, _ id: DeviceID, since: Int64) async {
        while pushes(to: device).isEmpty, record.now() - since < record.allowance, !record.isOver {
            try? await Task.sleep(for: .milliseconds(20))
        }
        guard !pushes(to: device).isEmpty else { return fault("no push was sent to the device", id, since) }
        // A second push would be sent now.
        try? await Task.sleep(for: .milliseconds(300))
        let count = pushes(to: device).count
        if count != 1 { fault("\(count) pushes were sent to the device for one message", id, since) }
    }

    /// The device fetches the waiting entries, and acknowledges them.
    private func fetch(_ message: String, by credential: String, _ id: DeviceID, since: Int64) async throws {
        for expected in [[message], []] {
            let read = try await http.repeating(.init(.GET, "/v1/inbox?carillon=6", key: credential), expecting: 200)
            var versions: [String] = []
            if case .array(let envelopes)? = read.json?["envelopes"] {
                versions = envelopes.map { envelope in
                    if case .string(let version)? = envelope["version"] { version } else { "none" }
                }
            }
            guard versions == expected else {
                return fault("\(versions) wait for the device, and not \(expected)", id, since)
            }
            guard !versions.isEmpty else { return }
            let results = #"{"results":[{"version":"\#(message)","result":"acknowledged"}]}"#
            _ = try await http.repeating(.init(.POST, "/v1/inbox/results", key: credential, results), expecting: 204)
        }
    }

    private func fault(_ text: String, _ id: DeviceID, _ since: Int64) {
        let shard = Shard(of: id)
        let moves = record.moves(of: shard, from: since - 1000, to: since + 6000).map(\.description)
        record.fault(
            "\(text) \(id), shard \(shard.number), message accepted at \(since); moves: \(moves.joined(separator: ", "))")
    }
}
