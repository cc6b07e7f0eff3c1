import CarillonBasics
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOPosix
import Synchronization
import TestStores
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// Requests on their way to a home in a server with several homes.
@Suite(.timeLimit(.minutes(5)))
struct RequestForwarderTests {
    /// The credential of a device whose id leads to the first home.
    private static let credential = DeviceCredential(
        device: DeviceID(Bytes16(high: 1, low: 5)), secret: Array(repeating: 9, count: DeviceCredential.secretByteCount)
    ).text
    /// A shard of the second home.
    private static let other = Shard(number: 900)

    private static func respond(_ homes: ForwardingHomes) {
        for (place, link) in homes.links.enumerated() {
            link.take { _ async throws(HomeFault) -> HomeResponse in
                HomeResponse(status: 200, fields: [], body: .whole(Array("\(place)".utf8)))
            }
        }
    }

    private static func counts(_ homes: ForwardingHomes) -> [Int] { homes.links.map(\.requests.count) }

    // MARK: Faults

    @Test func `a request whose device has moved is sent once more, and its device is remembered`() async throws {
        let homes = try await ForwardingHomes()
        Self.respond(homes)
        homes.links[0].fail(with: .moved(to: Self.other))
        for count in 1...3 {
            let answer = try await homes.request(.get, "/v1/device", key: Self.credential)
            #expect(answer.status == 200 && String(decoding: answer.body, as: UTF8.self) == "1")
            #expect(Self.counts(homes) == [1, count])
        }
        let id = DeviceID(Bytes16(high: 1, low: 5))
        #expect(homes.homes.shard(of: id) == Self.other)
        _ = try await homes.request(.get, "/v1/devices/\(id)", key: homes.admin)
        #expect(Self.counts(homes) == [1, 4])
    }

    @Test func `a request whose shard moves back and forth is refused in the end`() async throws {
        let homes = try await ForwardingHomes()
        Self.respond(homes)
        for _ in 0..<5 {
            homes.links[0].fail(with: .moved(to: Self.other))
            homes.links[1].fail(with: .moved(to: Shard(number: 3)))
        }
        let answer = try await homes.request(.get, "/v1/device", key: Self.credential)
        #expect(answer.status == 503 && answer.code == "storage_unavailable")
        #expect(answer.headers[.retryAfter] == "1")
        // The first call, and one call for each of eight moves.
        #expect(Self.counts(homes) == [5, 4])
    }

    @Test(arguments: [HomeFault.unreachable, .outcomeUnknown])
    func `a request whose home does not answer is refused, and not repeated`(fault: HomeFault) async throws {
        let homes = try await ForwardingHomes()
        Self.respond(homes)
        for (method, path) in [(HTTPRequest.Method.get, "/v1/device"), (.post, "/v1/inbox")] {
            let before = Self.counts(homes)[0]
            homes.links[0].fail(with: fault)
            let answer = try await homes.request(method, path, key: Self.credential, "{}")
            #expect(answer.status == 503 && answer.code == "storage_unavailable")
            #expect(answer.headers[.retryAfter] == "1")
            #expect(answer.headers[values: .carillonServer] == [homes.shared.server.description])
            #expect(Self.counts(homes) == [before + 1, 0])
        }
    }

    @Test func `an outcome that is unknown behind a move is not repeated`() async throws {
        let homes = try await ForwardingHomes()
        Self.respond(homes)
        homes.links[0].fail(with: .moved(to: Self.other))
        homes.links[1].fail(with: .outcomeUnknown)
        let answer = try await homes.request(.delete, "/v1/device", key: Self.credential)
        #expect(answer.status == 503)
        #expect(Self.counts(homes) == [1, 1])
    }

    @Test func `a GNP client receives its own code if the home does not answer`() async throws {
        let homes = try await ForwardingHomes()
        let token = try homes.shared.tokens.seal(.init(device: DeviceSerial(1 << 40 | 5), channel: ChannelSerial(1)))
        homes.links[0].fail(with: .unreachable)
        let answer = try await homes.request(
            .get, "/GNP1.0?method=checkToken", headers: [.init(name: .gnpToken, value: token)])
        #expect(answer.status == 200 && answer.headers[.gnpCode] == "507 Storage Unavailable")
        #expect(answer.headers[.retryAfter] == "1")
    }

    // MARK: Bodies

    /// A body in parts that counts how often a reader begins.
    private struct Stream: AsyncSequence, Sendable {
        final class Count: Sendable {
            let value = Mutex(0)
        }

        let parts: [String]
        private let readers = Count()

        init(parts: [String]) { self.parts = parts }

        struct Iterator: AsyncIteratorProtocol {
            var parts: [String]
            mutating func next() async throws -> ByteBuffer? {
                parts.isEmpty ? nil : ByteBuffer(string: parts.removeFirst())
            }
        }

        func makeAsyncIterator() -> Iterator {
            readers.value.withLock { $0 += 1 }
            return Iterator(parts: parts)
        }

        var readerCount: Int { readers.value.withLock { $0 } }
    }

    private static func attachment(at place: Int) throws -> AttachmentID {
        try #require(
            (0..<1000).lazy.map { AttachmentID(Bytes16(high: 1, low: UInt64($0))) }
                .first { TwoHomes.place(of: Shard(of: $0)) == place })
    }

    @Test func `a body in parts is not read before a home moves the request, and is read by the other home`() async throws {
        let homes = try await ForwardingHomes()
        let body = Stream(parts: ["first ", "second"])
        let readBefore = Stream.Count()
        let attachment = try Self.attachment(at: 0)
        homes.links[0].fail(with: .moved(to: Self.other))
        homes.links[1].take { request async throws(HomeFault) -> HomeResponse in
            readBefore.value.withLock { $0 += body.readerCount }
            guard case .parts(let parts) = request.body else { throw .unreachable }
            var bytes: [UInt8] = []
            do {
                for try await part in parts { bytes += part }
            } catch {
                throw .outcomeUnknown
            }
            return HomeResponse(status: 200, fields: [], body: .whole(bytes))
        }
        let answer = try await homes.request(
            .patch, "/v1/attachments/\(attachment)", key: Self.credential, stream: RequestBody(asyncSequence: body))
        #expect(answer.status == 200 && String(decoding: answer.body, as: UTF8.self) == "first second")
        #expect(readBefore.value.withLock { $0 } == 0 && body.readerCount == 1)
    }

    @Test func `the routes of a home do not read a body in parts of an attachment that another home has`() async throws {
        let homes = try await ForwardingHomes()
        let device = try await homes.device(at: 0, key: try await homes.key(.client))
        let body = Stream(parts: ["data"])
        let attachment = try Self.attachment(at: 1)
        let request = HomeRequest(
            method: "PATCH", path: "/v1/attachments/\(attachment)",
            fields: [("authorization", "Bearer \(device.credential)"), ("upload-offset", "0")],
            body: .parts(body.map { Array(buffer: $0) }))
        await #expect(throws: HomeFault.moved(to: Shard(of: attachment))) {
            try await homes.domains[0].runtime.handle(request)
        }
        #expect(body.readerCount == 0)
    }

    @Test func `a body that is too large is refused by the home`() async throws {
        let homes = try await ForwardingHomes()
        let device = try await homes.device(at: 1, key: try await homes.key(.client))
        let before = Self.counts(homes)[1]
        let fault = NIOTooManyBytesError(maxBytes: 100)
        let body = AsyncThrowingStream<ByteBuffer, any Error> { $0.finish(throwing: fault) }
        let head = HTTPRequest(
            method: .put, scheme: nil, authority: nil, path: "/v1/device",
            headerFields: [.authorization: "Bearer \(device.credential)"])
        let context = RouteContext(.connection(NIOAsyncTestingChannel()), logger: TwoHomes.logger)
        let response = try await homes.routes.responder.respond(
            to: Request(head: head, body: RequestBody(asyncSequence: body)), context: context)
        let answer = try await RouteFixture.Answer(response)
        #expect(answer.status == 413 && answer.code == "body_too_large")
        #expect(Self.counts(homes)[1] == before + 1)
    }

    // MARK: Real homes

    @Test func `devices of both homes register, and are served by their homes`() async throws {
        let homes = try await ForwardingHomes()
        let key = try await homes.key(.client)
        for place in 0..<2 {
            let device = try await homes.device(at: place, key: key)
            #expect(TwoHomes.place(of: Shard(of: device.id)) == place)
            let before = Self.counts(homes)
            let answer = try await homes.request(.get, "/v1/device", key: device.credential)
            #expect(answer.status == 200 && answer["id"] == device.id.description)
            #expect(Self.counts(homes)[place] == before[place] + 1)
            #expect(Self.counts(homes)[1 - place] == before[1 - place])
            let serial = try await homes.domains[place].devices.find(device.id).serial
            #expect(homes.domains[place].home.has(serial) && !homes.domains[1 - place].home.has(serial))
        }
        // Without a secret, the home that runs the request has the device.
        let plain = try await homes.request(.post, "/v1/devices", key: key)
        let id = try #require(DeviceID(plain["id"]))
        #expect(TwoHomes.place(of: Shard(of: id)) == 0)
    }

    @Test func `a registration that led to another shard before is repeated at its home, and changes nothing`() async throws
    {
        let homes = try await ForwardingHomes()
        let key = try await homes.key(.client)
        let secret = try #require(try ForwardingHomes.registrations(at: 0).first { _ in true })
        let new = NewDevice(
            DeviceID(random: .system, in: Self.other), app: homes.app.id,
            registration: SecretHash(of: secret.utf8))
        let credential = NewCredential.made(of: .ofRegistration(secret))
        let inserted = try await homes.store.insertDevice(new, at: homes.shared.time.now(), credential: credential)
        guard case .stored(let device, _) = inserted else { throw TwoHomes.Missing() }
        let answer = try await homes.request(.post, "/v1/devices", key: key, #"{"registration":"\#(secret)"}"#)
        #expect(answer.status == 201 && answer["id"] == device.id.description)
        #expect(Self.counts(homes) == [1, 1])
        let devices = try await homes.store.devices(app: homes.app.id, .all, after: nil, limit: 10).devices
        #expect(devices.map(\.device.serial) == [device.serial])
    }

    @Test func `a request has the pass of the shard of its device, also if the id names another shard`() async throws {
        let homes = try await ForwardingHomes()
        // Their ids have no shards.
        try await stores.addDevices(60, to: homes.app.serial, in: homes.store)
        let devices = try await homes.domains[0].devices.list(app: homes.app.id, after: nil, limit: 60).map(\.device)
        let device = try #require(
            devices.first { device in
                let (named, shard) = (Shard(of: device.id), Shard(of: device.serial))
                return named != shard && TwoHomes.place(of: named) == TwoHomes.place(of: shard)
            })
        let (named, shard) = (Shard(of: device.id), Shard(of: device.serial))
        let link = homes.links[TwoHomes.place(of: shard)]
        for _ in 0..<2 {
            #expect(try await homes.request(.get, "/v1/devices/\(device.id)", key: homes.admin).status == 200)
        }
        #expect(link.requests.map(\.shard) == [named, shard, shard])
    }

    @Test func `a home that does not have a device does not mark it as seen`() async throws {
        let homes = try await ForwardingHomes()
        let device = try await homes.device(at: 1, key: try await homes.key(.client))
        let serial = try await homes.domains[1].devices.find(device.id).serial
        for domain in homes.domains { _ = domain.devices.seen.takeConnected() }
        let fields = [(name: "authorization", value: "Bearer \(device.credential)")]
        for (method, path) in [("GET", "/v1/device"), ("GET", "/v1/inbox"), ("POST", "/v1/inbox")] {
            let request = HomeRequest(
                method: method, path: path, fields: fields, body: .whole(Array(#"{"protocol":1}"#.utf8)))
            await #expect(throws: HomeFault.moved(to: Shard(of: serial))) {
                try await homes.domains[0].runtime.handle(request)
            }
            #expect(homes.domains[0].devices.seen.takeConnected().isEmpty, "\(method) \(path)")
            let response = try await homes.domains[1].runtime.handle(request)
            #expect(response.status == 200, "\(method) \(path)")
            #expect(homes.domains[1].devices.seen.takeConnected() == [serial], "\(method) \(path)")
        }
    }

    @Test func `a response of a home has each header field once, and the fields of the entry are not in it`() async throws {
        let homes = try await ForwardingHomes()
        let device = try await homes.device(at: 1, key: try await homes.key(.client))
        let origin = HTTPField(name: .origin, value: "https://app.example.com")
        for (path, status) in [("/v1/device", 200), ("/v1/inbox?max=0", 400), ("/v1/device/subscriptions/x", 404)] {
            let answer = try await homes.request(.get, path, key: device.credential, headers: [origin])
            #expect(answer.status == status, "\(path)")
            let names = answer.headers.map(\.name.canonicalName)
            #expect(Set(names).count == names.count, "\(names)")
            #expect(answer.headers[.carillonServer] == homes.shared.server.description)
            #expect(!names.contains("date") && !names.contains { $0.hasPrefix("access-control") })
            #expect(answer.headers[.contentLength] == String(answer.body.count))
        }
    }

    @Test func `only the head is sent for HEAD, with the length that the body has`() async throws {
        let homes = try await ForwardingHomes()
        let device = try await homes.device(at: 1, key: try await homes.key(.client))
        let whole = try await homes.request(.get, "/v1/device", key: device.credential)
        let head = try await homes.request(.get, "/v1/device", key: device.credential, isHead: true)
        #expect(homes.links[1].requests.last?.isHead == true)
        #expect(head.status == 200 && head.body.isEmpty && !whole.body.isEmpty)
        #expect(head.headers[.contentLength] == String(whole.body.count))
        // A poll that wants only the head waits as well.
        let started = ContinuousClock.now
        let poll = try await homes.request(.get, "/v1/inbox?wait=1", key: device.credential, isHead: true)
        #expect(poll.status == 200 && poll.body.isEmpty && ContinuousClock.now - started >= .milliseconds(900))
    }

    // MARK: Messages

    @Test func `a message to a device of each home is published by the home`() async throws {
        let homes = try await ForwardingHomes()
        let key = try await homes.key(.client)
        let handler = PublishHandler(
            domain: homes.domains[0], addresses: TwoHomes.addresses, logger: TwoHomes.logger)
        let executor = EventLoopExecutor(MultiThreadedEventLoopGroup.singleton.next())
        func publish(_ token: String, _ body: RequestMachine.Body) async -> HTTPAnswer {
            let fields: HTTPHeaders = ["TTL": "60", "Content-Encoding": "identity"]
            let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/push/\(token)", headers: fields)
            return await withCheckedContinuation { continuation in
                handler.publish(.init(head: head, body: body), to: token[...], on: executor) {
                    continuation.resume(returning: $0)
                }
            }
        }
        for place in 0..<2 {
            let device = try await homes.device(at: place, key: key)
            let token = try await homes.channel(device.credential).token
            let before = Self.counts(homes)[place]
            let answer = await publish(token, .whole(ByteBuffer(string: "hello")))
            #expect(answer.status == .created)
            #expect(Self.counts(homes)[place] == before + 1)
            let id = try #require(answer.headers.first(name: "location")?.split(separator: "/").last)
            let outcome = try await homes.request(.get, "/message/\(id)")
            #expect(outcome.status == 200 && outcome["state"] == "waiting")
            let serial = try await homes.domains[place].devices.find(device.id).serial
            #expect(try await homes.domains[place].home.waitingCount(device: serial) == 1)
            #expect(await publish(token, .tooLarge(limit: 5)).status == .payloadTooLarge)
            homes.links[place].fail(with: .outcomeUnknown)
            let lost = await publish(token, .whole(ByteBuffer(string: "hello")))
            #expect(lost.status == .serviceUnavailable && lost.headers.first(name: "retry-after") == "1")
            #expect(Self.counts(homes)[place] == before + 4, "the outcome was asked for, and nothing was repeated")
        }
        #expect(await publish(String(repeating: "A", count: 60), .whole(ByteBuffer())).status == .notFound)
    }
}
