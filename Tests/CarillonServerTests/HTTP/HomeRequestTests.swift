import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Whole requests that a home runs for the process that accepted them.
@Suite(.timeLimit(.minutes(5)))
struct HomeRequestTests {
    /// A device of the second home.
    private struct World {
        let homes: ForwardingHomes
        let credential: String
        let serial: DeviceSerial

        init(attachmentFiles: any AttachmentFiles = NoAttachmentFiles()) async throws {
            homes = try await ForwardingHomes(attachmentFiles: attachmentFiles)
            let device = try await homes.device(at: 1, key: try await homes.key(.client))
            credential = device.credential
            serial = try await homes.domains[1].devices.find(device.id).serial
        }

        var domain: HomeDomain { homes.domains[1] }

        /// Puts messages into the inbox of the device.
        func publish(_ count: Int = 1) async throws {
            let token = try await homes.channel(credential).token
            let channel = try await domain.publisher.channel(of: token)
            let body = [UInt8](repeating: 1, count: 3000)
            for _ in 0..<count {
                let message = PublishRequest(body: body, coding: ContentCoding(.identity), ttl: 60)
                _ = try await domain.publisher.publish(message, to: channel)
            }
        }

        /// Begins a poll that waits.
        func poll(_ seconds: Int = 60) async throws -> Task<RouteFixture.Answer, any Error> {
            let (homes, credential, home) = (self.homes, self.credential, domain.home)
            let poll = Task { try await homes.request(.get, "/v1/inbox?wait=\(seconds)", key: credential) }
            try await eventually { home.population.waiters == 1 }
            return poll
        }

        /// Whether nothing of a request is left.
        var isIdle: Bool {
            domain.home.population.waiters == 0 && homes.quotas.devices.count(of: serial) == 0
                && domain.answers.largeAnswers(of: serial) == 0
        }
    }

    // MARK: Polls

    @Test func `a poll is answered when an envelope arrives`() async throws {
        let world = try await World()
        let poll = try await world.poll()
        try await world.publish()
        let answer = try await poll.value
        guard case .array(let envelopes)? = answer.json?["envelopes"] else { throw TwoHomes.Missing() }
        #expect(answer.status == 200 && envelopes.count == 1)
        #expect(answer.headers[values: .carillonServer] == [world.homes.shared.server.description])
        #expect(world.isIdle)
    }

    @Test func `a poll is answered without envelopes at the end of its time`() async throws {
        let world = try await World()
        let answer = try await world.homes.request(.get, "/v1/inbox?wait=1", key: world.credential)
        #expect(answer.status == 200 && answer.json?["envelopes"] == .array([]))
        #expect(answer.headers[.carillonServer] == world.homes.shared.server.description)
        #expect(world.isIdle)
    }

    @Test(arguments: [(.serverStops, 200), (.deviceGone, 401)] as [(SessionEnd, Int)])
    func `a poll ends with the home or the device`(reason: SessionEnd, status: Int) async throws {
        let world = try await World()
        let poll = try await world.poll()
        world.domain.home.end([world.serial], because: reason)
        #expect(try await poll.value.status == status)
        #expect(world.isIdle)
    }

    @Test func `a poll whose client sends nothing more is answered at once`() async throws {
        let world = try await World()
        let poll = try await world.poll()
        poll.cancel()
        let answer = try await poll.value
        #expect(answer.status == 200 && answer.json?["envelopes"] == .array([]))
        #expect(world.isIdle)
    }

    // MARK: Answers

    @Test func `a large answer is counted for its device until it is read, or is not wanted`() async throws {
        let world = try await World()
        try await world.publish(40)
        func request() async throws -> HomeResponse {
            try await world.homes.domains[1].runtime.handle(
                HomeRequest(
                    method: "GET", path: "/v1/inbox", fields: [("authorization", "Bearer \(world.credential)")],
                    body: .whole([])))
        }
        func count(_ bytes: [UInt8]) -> Int? {
            if case .array(let envelopes)? = JSONValue(parsing: bytes)?["envelopes"] { envelopes.count } else { nil }
        }
        var bytes: [UInt8] = []
        do {
            let response = try await request()
            #expect(world.domain.answers.largeAnswers(of: world.serial) == 1)
            if case .parts(let parts) = response.body {
                for try await part in parts {
                    #expect(part.count <= AnswerMemory.partBytes)
                    bytes += part
                }
            }
        }
        #expect(count(bytes) == 40)
        try await eventually { world.isIdle }
        // No code reads it.
        do { _ = try await request() }
        try await eventually { world.isIdle && world.domain.answers.used == 0 }
        let whole = try await world.homes.request(.get, "/v1/inbox", key: world.credential)
        #expect(count(Array(whole.body)) == 40)
        try await eventually { world.isIdle && world.domain.answers.used == 0 }
    }

    // MARK: Attachments

    @Test func `an attachment is uploaded in parts and downloaded through its home`() async throws {
        let directory = TemporaryDirectory()
        let world = try await World(attachmentFiles: stores.factory.attachmentFiles(of: directory.path))
        let (homes, credential) = (world.homes, world.credential)
        let content = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
        let half = content.count / 2
        func fields(_ offset: Int?, isComplete: Bool) -> [HTTPField] {
            var fields: [HTTPField] = []
            for (name, value) in [
                ("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", isComplete ? "?1" : "?0"),
                ("Upload-Length", "\(content.count)"), ("Upload-Offset", offset.map { "\($0)" } ?? ""),
                ("Content-Type", "application/partial-upload"),
            ] where !value.isEmpty {
                if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
            }
            return fields
        }
        func body(_ bytes: ArraySlice<UInt8>) -> RequestBody {
            RequestBody(
                asyncSequence: AsyncStream<ByteBuffer> { parts in
                    for start in stride(from: bytes.startIndex, to: bytes.endIndex, by: 30_000) {
                        parts.yield(ByteBuffer(bytes: bytes[start..<min(start + 30_000, bytes.endIndex)]))
                    }
                    parts.finish()
                })
        }
        let begun = try await homes.request(
            .post, "/v1/attachments?readers=senders", key: credential, headers: fields(nil, isComplete: false),
            stream: body(content[..<half]))
        #expect(begun.status == 201, "\(begun.json as Any)")
        let location = try #require(begun.headers[.location])
        let id = try #require(location.split(separator: "/").last.flatMap { AttachmentID($0) })
        // The home that began the upload has its turns.
        #expect(TwoHomes.place(of: Shard(of: id)) == 0)
        let before = homes.links[0].requests.count
        let path = "/v1/attachments/\(id)"
        let standing = try await homes.request(
            .get, path, key: credential, headers: [.init(name: .uploadDraft, value: "8")], isHead: true)
        #expect(standing.status == 204 && standing.headers[.uploadOffset] == "\(half)")
        let ended = try await homes.request(
            .patch, path, key: credential, headers: fields(half, isComplete: true), stream: body(content[half...]))
        #expect(ended.status == 200, "\(ended.json as Any)")
        let fetched = try await homes.request(.get, path, key: credential)
        #expect(fetched.status == 200 && Array(fetched.body) == content)
        #expect(fetched.headers[values: .contentLength] == ["\(content.count)"])
        let part = try await homes.request(
            .get, path, key: credential, headers: [.init(name: .range, value: "bytes=10-19")])
        #expect(part.status == 206 && Array(part.body) == Array(content[10..<20]))
        let sender = try await homes.key(.sender)
        #expect(try await homes.request(.delete, path, key: sender).status == 204)
        #expect(homes.links[0].requests.count == before + 5)
        try await eventually { world.isIdle }
    }

    // MARK: Sockets

    @Test func `the questions of a socket run at the home of its device`() async throws {
        let world = try await World()
        func request(_ path: String, _ device: DeviceSerial) -> HomeRequest {
            HomeRequest(method: "GET", path: path, fields: [], body: .whole([]), session: device)
        }
        let list = request("/v1/device/subscriptions", world.serial)
        let response = try await world.homes.domains[1].runtime.handle(list)
        #expect(response.status == 200)
        await #expect(throws: HomeFault.moved(to: Shard(of: world.serial))) {
            try await world.homes.domains[0].runtime.handle(list)
        }
        // A device that was deleted meanwhile.
        let other = DeviceSerial(world.serial.rawValue + 1024)
        #expect(try await world.homes.domains[1].runtime.handle(request("/v1/device/subscriptions", other)).status == 401)
        #expect(world.homes.quotas.devices.count(of: world.serial) == 0)
    }

    @Test func `a request with an invalid method is refused`() async throws {
        let world = try await World()
        let request = HomeRequest(method: "", path: "/v1/device", fields: [], body: .whole([]))
        let response = try await world.homes.domains[1].runtime.handle(request)
        #expect(response.status == 400)
        #expect(response.fields.filter { $0.name.lowercased() == "carillon-server" }.count == 1)
    }
}
