import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// An app that declares parameters, devices of it that poll, and a sender, by HTTP and a clock that the test moves.
final class UpdateWorld: Sendable {
    let routes: RouteFixture
    let sender: String
    let client: String
    let first: Device
    private let clock: SubscriptionWorld.Clock
    private let objects: Counter

    private final class Counter: Sendable {
        let value = Atomic(0)
    }

    /// A device as its client knows itself.
    final class Device: Sendable {
        let id: String
        let credential: String
        /// The answer to its last poll.
        let position = Mutex<String?>(nil)

        init(id: String, credential: String) {
            self.id = id
            self.credential = credential
        }
    }

    /// An update as it was delivered to a device.
    struct Copy: Equatable {
        var update: String
        var kind: String
        var attempt: Int
        var entry: Int
        var version: String

        init?(_ frame: JSONValue) {
            guard frame["messageType"] == .string("update"), case .integer(let attempt)? = frame["attempt"],
                case .integer(let entry)? = frame["entry"], case .string(let version)? = frame["version"],
                case .string(let id)? = frame["update"]?["id"]
            else { return nil }
            (self.attempt, self.entry, self.version) = (attempt, entry, version)
            update = id
            kind = if case .string(let kind)? = frame["update"]?["kind"] { kind } else { "" }
        }
    }

    static let parameters =
        #"{"parameters":{"region":"string","level":"int","score":"double","on":"bool","since":"timestamp","tags":"strings","place":"location"}}"#
    static let kinds = ["content", "definitions", "status", "popup"]

    init(
        store: (any Store)? = nil, limits: UpdateLimits = .init(), turnLimits: RequestLimiter.Limits = .init(),
        ticks: TickSource? = nil, positionsUsed: Int64 = 0
    ) async throws {
        (clock, objects) = (.init(), Counter())
        let time = clock.time
        let ticks = ticks ?? TickSource { time.now().milliseconds * 1_000_000 }
        routes = try await RouteFixture(
            updateLimits: limits, turnLimits: turnLimits, store: store, time: time, ticks: ticks,
            positionsUsed: positionsUsed)
        let (id, credential, client) = try await routes.device()
        self.client = client
        first = Device(id: id, credential: credential)
        sender = try await routes.request(
            .post, "/v1/keys", key: routes.admin, #"{"role":"sender","app":"com.example.app"}"#)["secret"]
        try await declare(Self.parameters)
    }

    /// The same devices and sender before another server.
    init(_ world: UpdateWorld, goingOnWith store: any Store) async throws {
        (clock, objects, sender, client, first) = (world.clock, world.objects, world.sender, world.client, world.first)
        routes = try await RouteFixture(store: store, time: clock.time)
    }

    var now: Timestamp { clock.time.now() }

    func advance(seconds: Int64) { clock.advance(seconds: seconds) }

    func declare(_ parameters: String) async throws {
        let answer = try await routes.request(.put, "/v1/apps/com.example.app/parameters", key: routes.admin, parameters)
        #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
    }

    func device() async throws -> Device {
        let answer = try await routes.request(.post, "/v1/devices", key: client)
        return Device(id: answer["id"], credential: answer["credential"])
    }

    /// Nil signs out.
    func signIn(_ user: String?, on device: Device) async throws {
        let id = try #require(DeviceID(device.id))
        let serial = try #require(try await routes.store.device(id)).serial
        let claim: UserClaim = user.flatMap(UserID.init).map { .signedIn($0) } ?? .signedOut
        let result = try await routes.store.changeRegistration(of: serial, at: now) { current in
            .reports(current.profile, confirms: false, user: claim)
        }
        _ = try #require(result).get()
    }

    /// Of all devices.
    func profiles() async throws -> Set<String> {
        var profiles: Set<String> = []
        for name in (0..<130).map(\.description) + ["more", "other", "third"] {
            if try await stores.hasBinding(ofProfile: name, in: routes.store) { profiles.insert(name) }
        }
        return profiles
    }

    // MARK: Senders

    /// Returns the update's identifier.
    ///
    /// - Parameter payload: By default, a refresh of an object of its own.
    @discardableResult func publish(
        _ kind: String = "content", _ payload: String? = nil, audience: String? = nil, _ rest: String = ""
    ) async throws -> String {
        let number = objects.value.wrappingAdd(1, ordering: .relaxed).newValue
        let payload = payload ?? #"{"action":"refresh","object":"o\#(number)"}"#
        let audience = audience.map { #","audience":\#(String(decoding: JSONValue.string($0).bytes, as: UTF8.self))"# } ?? ""
        let answer = try await routes.request(
            .post, "/v1/updates", key: sender, #"{"kind":"\#(kind)","payload":\#(payload)\#(audience)\#(rest)}"#)
        #expect(answer.status == 201, "\(String(decoding: answer.body, as: UTF8.self))")
        return answer["id"]
    }

    func withdraw(_ update: String) async throws {
        let answer = try await routes.request(.delete, "/v1/updates/\(update)", key: sender)
        #expect(answer.status == 204, "\(String(decoding: answer.body, as: UTF8.self))")
    }

    /// How many devices are in each state.
    func counts(_ update: String) async throws -> [String: Int] {
        let answer = try await routes.request(.get, "/v1/updates/\(update)", key: sender)
        guard case .object(let members)? = answer.json?["devices"] else { return [:] }
        return Dictionary(
            members.map {
                ($0.name, $0.value == .integer(0) ? 0 : Int(String(decoding: $0.value.bytes, as: UTF8.self)) ?? -1)
            }
        ) { $1 }
    }

    // MARK: Devices

    /// A poll; its answer.
    @discardableResult func ask(
        _ device: Device? = nil, _ members: String = "", kinds: [String] = kinds, position: String?? = .none,
        expecting status: Int = 200
    ) async throws -> RouteFixture.Answer {
        let device = device ?? first
        let position = position ?? device.position.withLock { $0 }
        let kinds = kinds.map { #""\#($0)""# }.joined(separator: ",")
        let answer = try await routes.request(
            .post, "/v1/inbox", key: device.credential,
            #"{"protocol":1,"kinds":[\#(kinds)]\#(position.map { #","position":"\#($0)""# } ?? "")\#(members.isEmpty ? "" : "," + members)}"#
        )
        #expect(answer.status == status, "\(String(decoding: answer.body, as: UTF8.self))")
        if answer.status == 200 { device.position.withLock { $0 = answer["position"] } }
        return answer
    }

    /// The updates of a poll.
    func poll(_ device: Device? = nil, _ members: String = "", kinds: [String] = kinds, position: String?? = .none)
        async throws -> [Copy]
    {
        let answer = try await ask(device, members, kinds: kinds, position: position)
        guard case .array(let envelopes)? = answer.json?["envelopes"] else { return [] }
        return envelopes.compactMap(Copy.init)
    }

    static func parameters(_ values: String, revision: String = "1") -> String {
        #""parameters":{"revision":"\#(revision)","values":{\#(values)}}"#
    }

    static func result(_ copy: Copy, _ result: String = "done", _ rest: String = "") -> String {
        #""results":[{"update":"\#(copy.update)","entry":\#(copy.entry),"result":"\#(result)"\#(rest)}]"#
    }

    func sweep() async throws {
        try await routes.domain.updateDelivery.sweep(forgetting: .uninterrupted(at: now))
    }
}
