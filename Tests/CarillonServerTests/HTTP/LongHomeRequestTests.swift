import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// Requests that can last long: a move of their shard does not wait for them.
@Suite(.timeLimit(.minutes(5)))
struct LongHomeRequestTests {
    private static let addresses = PublicAddresses(base: "https://push.example.com")

    /// An entry that sends all requests over one link.
    private struct Entry {
        let link = TestLink(to: NotingHome())
        private let forwarder: RequestForwarder
        private let fixture: RouteFixture

        init() async throws {
            let fixture = try await RouteFixture()
            link.take { _ async throws(HomeFault) -> HomeResponse in
                HomeResponse(status: 200, fields: [], body: .whole([]))
            }
            let homes = Homes([link, TestLink(to: NotingHome())].map { Homes.Place($0, local: nil) }) { _ in 0 }
            let routes = Routes.all(
                domain: fixture.domain, addresses: LongHomeRequestTests.addresses, store: fixture.store,
                settings: ServerSettings(dataDirectory: ""), readiness: fixture.readiness,
                sockets: ConnectionLimit(limit: 1, gauge: .sockets, refused: .socketsRefused))
            forwarder = RequestForwarder(
                domain: fixture.domain.shared, homes: homes, routes: routes, local: fixture.responder,
                clientAddress: ClientAddress())
            self.fixture = fixture
        }

        func request(_ method: HTTPRequest.Method, _ path: String, key: String) async throws -> Int {
            let head = HTTPRequest(
                method: method, scheme: nil, authority: nil, path: path, headerFields: [.authorization: "Bearer \(key)"])
            let context = RouteContext(.connection(NIOAsyncTestingChannel()), logger: fixture.domain.logger)
            let request = Request(head: head, body: RequestBody(buffer: ByteBuffer()))
            return try await forwarder.respond(to: request, context: context).status.code
        }
    }

    @Test(arguments: [.get, .patch, .delete] as [HTTPRequest.Method])
    func `a move does not wait for an upload or a download, and waits for other requests`(
        method: HTTPRequest.Method
    ) async throws {
        let entry = try await Entry()
        let device = DeviceID(Bytes16(high: 1, low: 5))
        let secret = Array(repeating: UInt8(9), count: DeviceCredential.secretByteCount)
        let key = DeviceCredential(device: device, secret: secret).text
        let attachment = AttachmentID(Bytes16(high: 1, low: 6))
        #expect(try await entry.request(method, "/v1/attachments/\(attachment)", key: key) == 200)
        #expect(try await entry.request(.get, "/v1/device", key: key) == 200)
        #expect(entry.link.requests.map(\.shard) == [nil, Shard(of: device)])
    }

    @Test func `a move does not wait for a poll that waits`() async throws {
        let fixture = try await RouteFixture()
        let home = fixture.domain.home
        let handler = HomeRequestHandler(
            domain: fixture.domain, responder: fixture.responder,
            publishHandler: PublishHandler(domain: fixture.domain, addresses: Self.addresses, logger: fixture.domain.logger),
            quotas: fixture.quotas, logger: fixture.domain.logger)
        let device = try await fixture.device()
        let id = try #require(DeviceID(device.id))
        let serial = try await fixture.domain.devices.find(id).serial
        let shard = Shard(of: serial)
        let gate = ShardGate(ShardSet([shard]), scheduler: .on(MultiThreadedEventLoopGroup.singleton))
        let request = HomeRequest(
            method: "GET", path: "/v1/inbox?wait=60", fields: [("authorization", "Bearer \(device.credential)")],
            body: .whole([]), shard: shard)
        try await gate.enter(shard)
        let pass = ShardPass(of: shard, at: gate)
        let poll = Task { try await handler.handle(request, pass) }
        // Closes as soon as the poll waits.
        #expect(await gate.close(shard, atMost: .seconds(20)))
        #expect(home.population.waiters == 1)
        home.end([serial], because: .serverStops)
        #expect(try await poll.value.status == 200)
    }
}
