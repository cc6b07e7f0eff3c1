import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Requests that evaluate or read much, at the same time.
@Suite(.timeLimit(.minutes(5)))
struct PreviewTurnTests {
    /// The requests of the class, as an app's sender and an operator make them.
    private static func requests(_ world: UpdateWorld, _ update: String) -> [(HTTPRequest.Method, String, String, String?)] {
        [
            (.post, "/v1/updates/explain", world.sender, "{}"),
            (.post, "/v1/updates?validate=true", world.sender, #"{"kind":"definitions"}"#),
            (.get, "/v1/updates/\(update)", world.sender, nil),
            (.get, "/v1/updates/\(update)/devices", world.sender, nil),
            (.get, "/v1/apps/com.example.app/audit", world.routes.admin, nil),
            (.get, "/v1/apps/com.example.app/devices?platform=apple", world.routes.admin, nil),
        ]
    }

    @Test func `each of these requests waits for its turn, and is refused with Retry-After`() async throws {
        // No caller has a turn, so that each waits in vain.
        let world = try await UpdateWorld(turnLimits: .init(all: 0, wait: .milliseconds(1)))
        let update = try await world.publish()
        for (method, path, key, body) in Self.requests(world, update) {
            let answer = try await world.routes.request(method, path, key: key, body)
            #expect(answer.status == 429 && answer.code == "rate_limited", "\(path)")
            #expect(answer.headers[.retryAfter] == "1", "\(path)")
        }
        #expect(try await world.poll().map(\.update) == [update])
    }

    @Test func `many at once are answered one after the other`() async throws {
        let world = try await UpdateWorld(turnLimits: .init(wait: .seconds(60)))
        let update = try await world.publish()
        let requests = Self.requests(world, update)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<64 {
                let (method, path, key, body) = requests[number % requests.count]
                group.addTask { try await world.routes.request(method, path, key: key, body).status }
            }
            for try await status in group { #expect(status == 200) }
        }
    }

    @Test func `a list with a filter finds devices behind many others`() async throws {
        let world = try await UpdateWorld()
        let store = world.routes.store
        var suspended: [String] = []
        // The first of them is the last of the devices that are read at a time.
        for count in [998, 1502, 0] {
            if count > 0 { try await stores.addDevices(count, to: AppSerial(1), in: store) }
            let device = try await world.device()
            suspended.append(device.id)
            _ = try await world.routes.request(
                .post, "/v1/devices/\(device.id)/suspend", key: world.routes.admin, "{}")
        }
        let first = try #require(DeviceID(suspended[0]))
        let thousandth = try #require(try await store.device(first)).serial
        #expect(try await stores.countDevices(upTo: thousandth, in: store) == 1000)
        func list(_ query: String) async throws -> [String] {
            let answer = try await world.routes.request(
                .get, "/v1/apps/com.example.app/devices?\(query)", key: world.routes.admin)
            guard case .array(let devices)? = answer.json?["devices"] else { return [] }
            return devices.compactMap { if case .string(let id)? = $0["id"] { id } else { nil } }
        }
        #expect(try await list("status=suspended") == suspended)
        #expect(try await list("status=suspended&limit=2") == Array(suspended.prefix(2)))
        #expect(try await list("status=suspended&after=\(suspended[0])") == Array(suspended.dropFirst()))
        #expect(try await list("limit=1000").count == 1000)
        var (count, after) = (0, String?.none)
        while true {
            let page = try await list("status=registered&limit=700" + (after.map { "&after=\($0)" } ?? ""))
            count += page.count
            guard page.count == 700, let last = page.last else { break }
            after = last
        }
        #expect(count == 2501)
    }
}
