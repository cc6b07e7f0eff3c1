import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Synchronization
import TestStores
import Testing

@testable import CarillonServer

/// Devices of users, in apps that can have the same users; the sealed content is arbitrary.
struct ServiceWorld {
    struct Phone {
        var id: String
        var credential: String
        var app: String
        var serial: DeviceSerial
        var peer: ServicePeer { ServicePeer(app: app, device: id) }
    }

    static let service = "com.example.transfer-file"
    let routes: RouteFixture
    let clock: MovedClock

    final class MovedClock: Sendable {
        private let moment = Mutex(Timestamp(milliseconds: 1_800_000_000_000))
        var now: Timestamp { moment.withLock { $0 } }
        func pass(_ seconds: Int64) { moment.withLock { $0 = $0.adding(seconds: seconds) } }
    }

    init(_ rateLimits: RateLimits.Settings = .init(), inbox: InboxLimits = .init()) async throws {
        let clock = MovedClock()
        self.clock = clock
        routes = try await RouteFixture(
            rateLimits, store: stores.open(StoreSettings(inbox: inbox)), time: TimeSource { clock.now },
            // Used ids stay used.
            ticks: TickSource { 0 })
    }

    init(over routes: RouteFixture) { (self.routes, clock) = (routes, MovedClock()) }

    /// A device in an app, which is made where it is not there.
    func phone(_ app: String, of user: String?) async throws -> Phone {
        _ = try await routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"\#(app)"}"#)
        let key = try await routes.request(
            .post, "/v1/keys", key: routes.admin, #"{"role":"client","app":"\#(app)"}"#)
        let made = try await routes.request(.post, "/v1/devices", key: key["secret"])
        let id = try #require(DeviceID(made["id"]))
        let device = try #require(try await routes.store.device(id))
        let phone = Phone(id: made["id"], credential: made["credential"], app: app, serial: device.serial)
        try await signIn(user, on: phone)
        return phone
    }

    func signIn(_ user: String?, on phone: Phone) async throws {
        let claim: UserClaim = user.flatMap(UserID.init).map { .signedIn($0) } ?? .signedOut
        let request = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: claim)
        _ = try await routes.store.changeRegistration(of: phone.serial, at: clock.now) { _ in request }
    }

    func share(_ realm: String, _ apps: String...) async throws {
        for app in apps {
            let set = try await routes.request(
                .put, "/v1/apps/\(app)/realm", key: routes.admin, #"{"realm":"\#(realm)"}"#)
            #expect(set.status == 200)
        }
    }

    // MARK: Providers

    static func keys(_ id: String = "00112233445566aa") -> KeyBundle {
        KeyBundle(
            identity: Array(repeating: 1, count: 32), id: id, key: Array(repeating: 2, count: 32), until: 2_000_000_000_000,
            signature: Array(repeating: 3, count: 64))
    }

    @discardableResult
    func offer(
        _ phone: Phone, _ services: [(String, String)] = [(ServiceWorld.service, "1.0.0.0")], keys: KeyBundle = keys()
    ) async throws -> RouteFixture.Answer {
        let list = services.map { #"{"id":"\#($0)","version":"\#($1)"}"# }.joined(separator: ",")
        let bundle = String(decoding: keys.json.bytes, as: UTF8.self)
        return try await routes.request(
            .put, "/v1/device/services", key: phone.credential,
            #"{"name":"Files","version":"2.1","services":[\#(list)],"keys":\#(bundle)}"#)
    }

    func find(_ query: String = "", by phone: Phone) async throws -> [String] {
        let found = try await routes.request(.get, "/v1/services\(query)", key: phone.credential)
        guard case .array(let providers)? = found.json?["providers"] else { return ["status \(found.status)"] }
        return providers.compactMap { if case .string(let id)? = $0["device"] { id } else { nil } }
    }

    // MARK: Requests

    /// The JSON of a request, with some members changed.
    static func request(
        _ id: String, to phone: Phone, _ changes: [String: JSONValue?] = [:]
    ) -> String {
        var members: [String: JSONValue] = [
            "id": .string(id), "app": .string(phone.app), "device": .string(phone.id), "service": .string(service),
            "version": .string("1.0.0.0"), "method": .string("transferFile"),
        ]
        for member in content.members { members[member.name] = member.value }
        for (name, value) in changes { members[name] = value }
        let sorted = members.sorted { $0.key < $1.key }.map { JSONValue.Member(name: $0.key, value: $0.value) }
        return String(decoding: JSONValue.object(sorted).bytes, as: UTF8.self)
    }

    static func id(_ number: Int) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 32 - text.count) + text
    }

    static var content: SealedContent { content(body: [7, 7]) }

    static func content(body: [UInt8]) -> SealedContent {
        SealedContent(
            keyID: keys().id, sender: keys(), encapsulated: Array(repeating: 4, count: 32), body: body, files: 0,
            fileBytes: 0)
    }

    func ask(
        _ number: Int, from consumer: Phone, to provider: Phone, _ changes: [String: JSONValue?] = [:]
    ) async throws -> RouteFixture.Answer {
        try await routes.request(
            .post, "/v1/services/requests", key: consumer.credential, Self.request(Self.id(number), to: provider, changes))
    }

    func reply(_ number: Int, by provider: Phone, body: [UInt8] = [8]) async throws -> RouteFixture.Answer {
        try await routes.request(
            .post, "/v1/services/requests/\(Self.id(number))/reply", key: provider.credential,
            String(decoding: JSONValue.object(Self.content(body: body).members).bytes, as: UTF8.self))
    }

    func cancel(_ number: Int, by consumer: Phone) async throws -> RouteFixture.Answer {
        try await routes.request(.delete, "/v1/services/requests/\(Self.id(number))", key: consumer.credential)
    }

    /// The waiting entries of a device, which has them from then on.
    func events(of phone: Phone) async throws -> [ServiceEvent] {
        let frames = try await frames(of: phone)
        try await acknowledge(frames, by: phone)
        return frames.compactMap { $0["service"].flatMap { ServiceEvent($0.bytes) } }
    }

    func acknowledge(_ frames: [JSONValue], by phone: Phone) async throws {
        for frame in frames {
            guard case .string(let version)? = frame["version"] else { continue }
            _ = try await routes.request(
                .post, "/v1/inbox/results", key: phone.credential,
                #"{"results":[{"version":"\#(version)","result":"acknowledged"}]}"#)
        }
    }

    func frames(of phone: Phone) async throws -> [JSONValue] {
        let page = try await routes.request(.get, "/v1/inbox?carillon=6", key: phone.credential)
        guard case .array(let frames)? = page.json?["envelopes"] else {
            Issue.record("no page: \(page.status)")
            return []
        }
        return frames
    }

    func sweep() async throws {
        while try await !routes.domain.services.sweep(forgetting: .uninterrupted(at: clock.now)) {}
    }
}
