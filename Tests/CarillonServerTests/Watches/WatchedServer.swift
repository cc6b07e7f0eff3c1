import AsyncHTTPClient
import CarillonCore
import CarillonServer
import CarillonWire
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import TestStores
import TestSupport

/// A whole server in this process, with one app, and the ways to it that a device and a backend have.
struct WatchedServer: Sendable {
    let homes: [HomeDomain]
    let port: Int
    /// Has all lines of the log, and knows the secrets of all requests and answers.
    let watch: SecretWatch
    /// The first home.
    var domain: HomeDomain { homes[0] }
    var address: String { "http://127.0.0.1:\(port)" }

    struct Answer: Sendable {
        var status: Int
        var headers: HTTPHeaders
        var text: String

        func decode<Body: Decodable>(_ type: Body.Type) throws -> Body {
            try JSONDecoder().decode(type, from: Data(text.utf8))
        }
    }

    /// A channel, as its device and its backend have it.
    struct Channel: Sendable {
        let token: String
        let id: String
        let credential: String
        let device: DeviceSerial
    }

    func home(of device: DeviceSerial) -> HomeDomain { homes.first { $0.home.has(device) } ?? domain }

    static func directory() -> String {
        FileManager.default.temporaryDirectory.appendingPathComponent("carillon-\(UUID().uuidString)").path
    }

    /// Serves while the closure runs. Backends are at this machine, pings may be a second apart.
    ///
    /// - Parameters:
    ///   - link: Returns how connections and other homes reach a home.
    ///   - factory: Opens the store.
    ///   - logger: Has all lines of the log as well.
    static func run(
        _ directory: String = directory(), configure: (inout OutwardSettings) -> Void = { _ in },
        settings change: (inout ServerSettings) -> Void = { _ in },
        link: (@Sendable (any Home) -> any Home)? = nil, factory: any StoreFactory = stores.factory,
        logger: Logger? = nil, _ body: @Sendable (WatchedServer) async throws -> Void
    ) async throws {
        var settings = ServerSettings(port: 0, dataDirectory: directory)
        settings.outward.rules.allowsPrivate = true
        settings.outward.shortestPingSeconds = 1
        settings.outward.answerSeconds = 15
        settings.homes = TestHomes.count
        configure(&settings.outward)
        change(&settings)
        let watch = SecretWatch(before: logger)
        let (running, began) = AsyncStream.makeStream(of: CarillonServer.Running.self)
        let server = CarillonServer(
            settings: settings, stores: factory, logger: watch.logger, onRunning: { began.yield($0) }, link: link)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { began.finish() }
                try await server.run()
            }
            for await running in running {
                try await body(WatchedServer(homes: running.homes, port: running.port, watch: watch))
                break
            }
            group.cancelAll()
            while let result = await group.nextResult() {
                if case .failure(let error) = result, !(error is CancellationError) { throw error }
            }
        }
    }

    func request(
        _ method: HTTPMethod, _ path: String, headers: HTTPHeaders = [:], body: String? = nil
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: address + path)
        request.method = method
        request.headers = headers
        for field in headers["authorization"] { watch.noteField(field) }
        watch.noteToken(in: path)
        watch.noteMembers(of: (body ?? "").utf8)
        if let body { request.body = .bytes(Array(body.utf8)) }
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
        let bytes = try await response.body.collect(upTo: 1 << 20)
        watch.noteMembers(of: bytes.readableBytesView)
        return Answer(status: Int(response.status.code), headers: response.headers, text: String(buffer: bytes))
    }

    func openChannel() async throws -> Channel {
        let app = try AppID.checked("com.example.app")
        if try await domain.apps.serial(of: app) == nil { _ = try await domain.apps.create(app) }
        let (device, credential) = try await domain.devices.register(app: app)
        return try await openChannel(of: device.serial, credential.text)
    }

    /// Another channel of the device that has this one.
    func openChannel(beside other: Channel) async throws -> Channel {
        try await openChannel(of: other.device, other.credential)
    }

    private func openChannel(of device: DeviceSerial, _ credential: String) async throws -> Channel {
        var random = SystemRandomNumberGenerator()
        let id = ChannelID.random(using: &random)
        let registration = try await home(of: device).channels.register(id, device: device, name: nil, vapidKey: nil)
        return Channel(
            token: registration.token, id: id.description, credential: credential, device: device)
    }

    func put(_ watch: PutWatch, on channel: Channel) async throws -> Answer {
        let body = String(decoding: try JSONEncoder().encode(watch), as: UTF8.self)
        return try await request(.PUT, "/push/\(channel.token)/watch", body: body)
    }

    /// Watches a channel, with pings a second apart.
    func watch(_ channel: Channel, ping: String? = nil, gone: String? = nil) async throws -> WatchBody {
        let watch = PutWatch(
            pingAddress: ping, pingIntervalSeconds: ping == nil ? nil : 1, disconnectAddress: gone)
        return try await put(watch, on: channel).decode(WatchBody.self)
    }

    func shown(_ channel: Channel) async throws -> WatchBody {
        try await request(.GET, "/push/\(channel.token)/watch").decode(WatchBody.self)
    }

    struct Event: Decodable, Equatable, Sendable {
        var event: String?
        var code: Int?
        var channelID: String
        var version: String
    }

    /// The waiting entries of the device, as soon as there are any.
    func events(_ channel: Channel, wait: Int = 10) async throws -> [Event] {
        struct Page: Decodable { var envelopes: [Event] }
        let answer = try await request(
            .GET, "/v1/inbox?wait=\(wait)", headers: ["Authorization": "Bearer \(channel.credential)"])
        return try answer.decode(Page.self).envelopes
    }

    /// The next event, acknowledged.
    func nextEvent(_ channel: Channel) async throws -> Event {
        while true {
            guard let event = try await events(channel).first else { continue }
            _ = try await request(
                .POST, "/v1/inbox/results", headers: ["Authorization": "Bearer \(channel.credential)"],
                body: #"{"results":[{"version":"\#(event.version)","result":"acknowledged"}]}"#)
            return event
        }
    }
}
