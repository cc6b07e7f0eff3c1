import CarillonBasics
import CarillonWire
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The polls of the client: their contents, their delays, and when there is none.
@Suite(.timeLimit(.minutes(5)))
struct PushUpdatesTests {
    /// A server with answers that the test decides.
    private final class Door: ClientTransport {
        struct Answer {
            var status = 200
            var body = #"{"envelopes":[],"more":false,"position":"p"}"#
            var retryAfter: String?
            var contentType: String?

            static func problem(_ code: ErrorCode) -> Answer {
                Answer(
                    status: code.status,
                    body:
                        #"{"type":"t","title":"t","status":\#(code.status),"detail":"d","code":"\#(code.rawValue)","retryable":false}"#
                )
            }

            static func updates(_ frames: String..., more: Bool = false) -> Answer {
                Answer(body: #"{"envelopes":[\#(frames.joined(separator: ","))],"more":\#(more),"position":"p"}"#)
            }
        }

        /// Nil: it never answers.
        private let answer: @Sendable (Int, JSONValue) -> Answer?
        let asked = Mutex<[JSONValue]>([])
        let times = Mutex<[ContinuousClock.Instant]>([])
        let open = Mutex(0)
        let mostOpen = Mutex(0)

        init(_ answer: @escaping @Sendable (Int, JSONValue) -> Answer?) { self.answer = answer }

        var count: Int { asked.withLock { $0.count } }

        func withConnection(
            to address: WebAddress, _ body: (WebSocketConnection) async -> Void
        ) async throws(TransportFault) { throw TransportFault(.unreachable, nil) }

        func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer {
            let body = JSONValue(parsing: Array(request.json ?? Data())) ?? .null
            let number = asked.withLock { asked in
                times.withLock { $0.append(.now) }
                asked.append(body)
                return asked.count
            }
            let now = open.withLock { open in
                open += 1
                return open
            }
            mostOpen.withLock { $0 = max($0, now) }
            defer { open.withLock { $0 -= 1 } }
            guard let answer = answer(number, body) else {
                try? await Task.sleep(for: .seconds(1000))
                throw TransportFault(.timeOut, nil)
            }
            return WebAnswer(
                status: answer.status, retryAfter: answer.retryAfter, body: Data(answer.body.utf8),
                contentType: answer.contentType ?? (answer.status >= 400 ? ProblemDocument.mediaType : "application/json"))
        }
    }

    private struct World {
        let directory = TemporaryDirectory()
        let updates: PushUpdates
        let runner: SessionRunner
        let content = ContentFixture()
        let presenter = PresenterFixture()
        let inbox: UpdateInbox

        init(_ door: Door, user: String? = nil, refusedFor: Duration = .seconds(3600)) throws {
            let store = try ClientStore(directory: directory.path)
            var stored = StoredState()
            stored.identity = DeviceIdentity(device: "d", credential: "d.secret", socket: "ws://host/")
            stored.acceptedUser = user
            let backOff = PushClient.BackOff(initial: .milliseconds(10), maximum: .milliseconds(20))
            let settings = ClientSession.Settings(
                server: "http://host:1/", backOff: backOff, keepAlive: nil, receivesFirings: false, buffer: .init())
            runner = SessionRunner(
                store: store, session: ClientSession(settings, restoring: stored), logger: Logger(label: "test"))
            inbox = UpdateInbox(store: store)
            updates = PushUpdates(
                runner: runner, server: try #require(WebAddress(http: "http://host:1/")),
                api: ServerAPI("http://host:1/", over: door, backOff: backOff, failures: runner.failures),
                store: store, refusedFor: refusedFor)
            updates.settings.needsUser = false
        }

        func begin(_ parameters: @escaping PushUpdates.Parameters = { [:] }) {
            updates.process(content: content, presenter: presenter, parameters: parameters)
        }

        /// Runs until a condition is true, or for a time after it was first checked.
        func run(
            for duration: Duration = .seconds(60), asked door: Door? = nil,
            until isOver: @escaping @Sendable () async throws -> Bool = { false }
        ) async {
            await withTaskGroup { group in
                group.addTask { await updates.run() }
                group.addTask {
                    while let door, door.count == 0 { try? await Task.sleep(for: .milliseconds(2)) }
                    let end = ContinuousClock.now + duration
                    while ContinuousClock.now < end, (try? await isOver()) != true {
                        try? await Task.sleep(for: .milliseconds(2))
                    }
                }
                await group.next()
                group.cancelAll()
            }
        }
    }

    private static func popup(_ id: String, attempt: Int = 1) -> String {
        #"{"messageType":"update","version":"v","attempt":\#(attempt),"entry":1,"update":{"id":"\#(id)","kind":"popup","payload":{"style":"failure","title":"t"},"publishedAt":"2026-01-31T12:00:00.000Z"}}"#
    }

    private static func content(_ id: String) -> String {
        #"{"messageType":"update","version":"v","attempt":1,"entry":1,"update":{"id":"\#(id)","kind":"content","payload":{"action":"refresh","object":"\#(id)"},"publishedAt":"2026-01-31T12:00:00.000Z"}}"#
    }

    // MARK: Contents of polls

    @Test func `a position that the server will not have is forgotten`() async throws {
        let door = Door { number, _ in number == 2 ? .problem(.positionInvalid) : number < 4 ? .init() : nil }
        let world = try World(door)
        world.updates.settings.polling = .every(.milliseconds(1))
        world.begin()
        await world.run { door.count >= 3 }
        let positions = door.asked.withLock { $0.map { $0["position"] } }
        #expect(positions[0] == nil && positions[1] == .string("p") && positions[2] == nil)
    }

    @Test func `parameters are sent only after a change, and refused values are not sent again`() async throws {
        let region = Mutex("north")
        let door = Door { _, body in
            body["parameters"]?["values"]?["region"] == .string("nowhere") ? .problem(.fieldInvalid) : .init()
        }
        let world = try World(door)
        world.updates.settings.polling = .every(.seconds(1000))
        let place = Place(region)
        world.begin { ["region": .text(place.region.withLock { $0 })] }
        @Sendable func regions() -> [JSONValue?] {
            door.asked.withLock { $0.map { $0["parameters"]?["values"]?["region"] } }
        }
        await world.run {
            let asked = regions()
            let refused = asked.firstIndex { $0 == .string("nowhere") }
            if refused == nil, asked.count >= 2 { place.region.withLock { $0 = "nowhere" } }
            // One more poll does not contain the refused parameters.
            if let refused, asked.count >= refused + 2 { place.region.withLock { $0 = "south" } }
            world.updates.poll()
            return asked.contains { $0 == .string("south") }
        }
        let said = regions().compactMap { $0 }
        #expect(said.first == .string("north") && said.last == .string("south"))
        #expect(said.count == Set(said.map { "\($0)" }).count, "\(said)")
        #expect(world.presenter.seen.failures.count { $0.kind == .parametersRefused } <= 1)
    }

    @Test(arguments: ["null", "\"before\""])
    func `parameters that the server lost are reported again at once, and only then`(_ lost: String) async throws {
        let held = Mutex("null")
        let door = Door { number, body in
            if number == 4 {
                // It was restored, or a proxy repeated an old poll.
                held.withLock { $0 = lost }
            } else if case .string(let revision)? = body["parameters"]?["revision"] {
                held.withLock { $0 = "\"\(revision)\"" }
            }
            let revision = held.withLock { $0 }
            return number < 7
                ? .init(body: #"{"envelopes":[],"more":\#(number < 6),"position":"p","parametersRevision":\#(revision)}"#)
                : nil
        }
        let world = try World(door)
        world.begin { ["region": .text("north")] }
        await world.run(asked: door) { door.count >= 7 }
        let said = door.asked.withLock { $0.map { $0["parameters"] != nil } }
        #expect(said.prefix(7) == [true, false, false, false, true, false, false])
        let word = try await world.inbox.report(results: 1)
        #expect(word.parameters == ParameterSet(["region": .text("north")], at: 0).revision)
    }

    @Test func `parameters that the server lost are reported at once, also if nothing else waits`() async throws {
        let door = Door { number, _ in
            number < 3
                ? .init(body: #"{"envelopes":[],"more":false,"position":"p","parametersRevision":"other"}"#) : nil
        }
        let world = try World(door)
        let parameters = ParameterSet(["region": .text("north")], at: 0)
        let owner = UpdateOwner(device: "d", user: "", profile: "")
        try await world.inbox.setOwner(owner)
        _ = try await world.inbox.received(
            PollAnswer(position: "p"), to: nil, by: owner, reported: [], parameters: parameters.revision)
        world.updates.settings.polling = .every(.seconds(1000))
        world.begin { ["region": .text("north")] }
        await world.run(asked: door) { door.count >= 2 }
        let said = door.asked.withLock { $0.map { $0["parameters"] != nil } }
        #expect(said == [false, true], "and a server that will not have them is not asked without end")
    }

    @Test func `refused parameters are reported again after a while, because they may be declared by then`() async throws {
        let refusals = Mutex(0)
        let door = Door { _, body in
            guard body["parameters"] != nil else { return .init() }
            let isRefused = refusals.withLock { refusals in
                refusals += 1
                return refusals <= 2
            }
            return isRefused ? .problem(.fieldUnknown) : .init()
        }
        let world = try World(door, refusedFor: .milliseconds(20))
        world.updates.settings.polling = .every(.seconds(1000))
        world.begin { ["region": .text("north")] }
        await world.run {
            world.updates.poll()
            return try await world.inbox.report(results: 0).parameters != nil
        }
        let said = door.asked.withLock { $0.count { $0["parameters"] != nil } }
        #expect(said >= 3)
    }

    private final class Place: Sendable {
        let region: Mutex<String>
        init(_ region: consuming Mutex<String>) { self.region = region }
    }

    @Test func `results are reported at once, by a poll that does not wait`() async throws {
        let door = Door { number, _ in number == 1 ? .updates(Self.content("a")) : number == 2 ? .init() : nil }
        let world = try World(door)
        world.begin()
        await world.run { door.count >= 3 }
        let asked = door.asked.withLock { $0 }
        #expect(asked[0]["results"] == nil && asked[0]["wait"] != .integer(0))
        guard case .array(let results)? = asked[1]["results"] else { return #expect(Bool(false), "\(asked[1])") }
        #expect(results.map { $0["update"] } == [.string("a")] && results.map { $0["result"] } == [.string("done")])
        #expect(results.map { $0["attempt"] } == [.integer(1)])
        #expect(asked[1]["wait"] == .integer(0))
        #expect(asked[2]["results"] == nil, "once")
    }

    @Test func `with a full inbox, nothing is requested`() async throws {
        let world = try World(Door { _, _ in nil })
        try await world.inbox.setOwner(ProcessingFixture.owner)
        for start in stride(from: 0, to: UpdateInbox.mostWaiting, by: 500) {
            let frames = (start..<start + 500).map {
                ProcessingFixture.frame("u\($0)", "popup", #"{"style":"failure","title":"t"}"#)
            }
            _ = try await world.inbox.received(
                PollAnswer(updates: frames), to: nil, by: ProcessingFixture.owner, reported: [], parameters: nil)
        }
        #expect(try await world.inbox.report(results: 3).capacity == 0)
    }

    // MARK: How soon again

    @Test func `updates that wait behind a page are requested at once`() async throws {
        let door = Door { number, _ in number < 4 ? .updates(more: true) : nil }
        let world = try World(door)
        world.updates.settings.polling = .every(.seconds(1000))
        world.begin()
        await world.run { door.count >= 4 }
        #expect(door.count == 4)
    }

    @Test(arguments: [503, 429]) func `a server that asks for time gets it`(status: Int) async throws {
        let problem = #"{"type":"t","title":"t","status":\#(status),"detail":"d","code":"overloaded","retryable":true}"#
        let door = Door { _, _ in .init(status: status, body: problem, retryAfter: "1000") }
        let world = try World(door)
        // Without a wait: a hint ends one, and an unanswered request would be repeated.
        world.updates.settings.polling = .every(.milliseconds(1))
        world.begin()
        await world.run(asked: door) {
            world.updates.poll()
            let first = door.times.withLock { $0.first }
            let isLongAgo = first.map { $0.duration(to: .now) > .milliseconds(600) } ?? false
            return isLongAgo && !world.presenter.seen.failures.isEmpty
        }
        #expect(door.count == 1)
        #expect(world.presenter.seen.failures.map(\.kind) == [.unreachable])
    }

    @Test(arguments: RelayAnswer.allCases)
    func `a relay that answers for the server delays updates, and no more`(relay: RelayAnswer) async throws {
        let door = Door { number, _ in
            number < 3 ? .init(status: relay.status, body: relay.body, contentType: relay.contentType) : .init()
        }
        let world = try World(door)
        world.updates.settings.polling = .every(.milliseconds(1))
        world.begin()
        await world.run { door.count >= 4 }
        #expect(door.count >= 4)
        #expect(world.presenter.seen.failures.map(\.kind) == [.unreachable])
        #expect(world.runner.failures.last?.message.contains("status \(relay.status)") == true)
    }

    private struct NoServer: ClientTransport {
        var cause: any Error

        func withConnection(
            to address: WebAddress, _ body: (WebSocketConnection) async -> Void
        ) async throws(TransportFault) { throw TransportFault(.unreachable, cause) }

        func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer {
            throw TransportFault(.unreachable, cause)
        }
    }

    @Test(arguments: [true, false])
    func `a poll that cannot connect is the last failure, unless it was cancelled`(isCancelled: Bool) async throws {
        let directory = TemporaryDirectory()
        let inbox = UpdateInbox(store: try ClientStore(directory: directory.path))
        let owner = UpdateOwner(device: "d", user: "", profile: "")
        try await inbox.setOwner(owner)
        let failures = FailureNote()
        let poller = UpdatePoller(
            owner: owner, credential: "c", base: "http://host:1", kinds: ["content"], inbox: inbox,
            transport: NoServer(cause: isCancelled ? CancellationError() as any Error : ChannelFault()), failures: failures)
        await #expect(throws: PollFault.self) { _ = try await poller.poll(wait: 0, parameters: nil, hints: Signal()) }
        #expect(failures.last?.message.contains("http://host:1") == (isCancelled ? nil : true))
        withExtendedLifetime(directory) {}
    }

    @Test(arguments: [true, false])
    func `a poll with a refused credential is tried again while the registration is repeated`(isRepeated: Bool) async throws
    {
        let directory = TemporaryDirectory()
        let inbox = UpdateInbox(store: try ClientStore(directory: directory.path))
        let owner = UpdateOwner(device: "d", user: "", profile: "")
        try await inbox.setOwner(owner)
        let poller = UpdatePoller(
            owner: owner, credential: "c", base: "http://host:1", kinds: ["content"], inbox: inbox,
            transport: Door { _, _ in .problem(.credentialInvalid) }
        ) { isRepeated && $0 == "c" }
        let fault = await #expect(throws: PollFault.self) {
            _ = try await poller.poll(wait: 0, parameters: nil, hints: Signal())
        }
        guard case .failed(let failure, _)? = fault else {
            Issue.record("no failure")
            return
        }
        #expect(failure.kind == (isRepeated ? .unreachable : .refused))
        withExtendedLifetime(directory) {}
    }

    private struct ChannelFault: Error {}

    @Test func `a busy server is not called for the time that it sets`() async throws {
        let door = Door { _, _ in .init(body: #"{"envelopes":[],"more":true,"position":"p","retryAfter":1000}"#) }
        let world = try World(door)
        world.updates.settings.polling = .every(.milliseconds(1))
        world.begin()
        await world.run(for: .milliseconds(600), asked: door) {
            world.updates.poll()
            return false
        }
        #expect(door.count == 1)
    }

    @Test func `a failure is retried, later each time, and reported once`() async throws {
        let door = Door { _, _ in .init(status: 500, body: "") }
        let world = try World(door)
        world.begin()
        let began = ContinuousClock.now
        await world.run { door.count >= 10 }
        #expect(door.count >= 10)
        #expect(ContinuousClock.now - began >= .milliseconds(50), "each wait is half of its length at the least")
        #expect(world.presenter.seen.failures.count == 1)
    }

    @Test(arguments: [PushUpdates.Settings.Polling.every(.zero), .long(.seconds(25))])
    func `a server that does not wait is not polled without a pause`(polling: PushUpdates.Settings.Polling) async throws {
        let door = Door { _, _ in .init() }
        let world = try World(door)
        world.updates.settings.polling = polling
        let began = ContinuousClock.now
        world.begin()
        await world.run { door.count >= 3 }
        let times = door.times.withLock { $0 }
        let third = try #require(times.dropFirst(2).first)
        #expect(began.duration(to: third) >= .milliseconds(1780), "two waits of a second, less a tenth")
    }

    @Test func `automatic polls stop in the background and continue in the foreground`() async throws {
        let door = Door { _, _ in .init() }
        let world = try World(door)
        world.updates.settings.polling = .every(.seconds(1))
        world.begin()
        world.updates.isInForeground = false
        await world.run(for: .milliseconds(3500), asked: door)
        let before = door.count
        #expect(before <= 2, "the update under way, and the one that reports that it is in the background")
        world.updates.isInForeground = true
        await world.run { door.count >= before + 2 }
        #expect(door.count >= before + 2)
    }

    @Test func `the jitter of an interval is a tenth`() async throws {
        let door = Door { _, _ in .init() }
        let world = try World(door)
        world.updates.settings.polling = .every(.seconds(1))
        world.begin()
        let began = ContinuousClock.now
        await world.run { door.count >= 2 }
        #expect(door.count >= 2)
        #expect(began.duration(to: .now) >= .milliseconds(890))
    }

    // MARK: When not

    @Test func `switching updates off ends the open poll and stops polling, and switching them on starts polling again`()
        async throws
    {
        let door = Door { _, _ in nil }
        let world = try World(door)
        world.begin()
        await world.run {
            if door.count == 1 { world.updates.settings.isActive = false }
            return door.count == 1 && door.open.withLock { $0 } == 0
        }
        #expect(door.open.withLock { $0 } == 0)
        await world.run(for: .milliseconds(100))
        #expect(door.count == 1, "nothing is asked")
        world.updates.settings.isActive = true
        await world.run { door.count == 2 }
        #expect(door.count == 2)
    }

    @Test func `without a user, updates that need one are not requested`() async throws {
        let door = Door { _, _ in .init() }
        let world = try World(door)
        world.updates.settings.needsUser = true
        world.begin()
        try await world.inbox.setOwner(UpdateOwner(device: "d", user: "ada", profile: ""))
        _ = try await world.inbox.received(
            PollAnswer(updates: [ProcessingFixture.frame("a", "definitions")]), to: nil,
            by: UpdateOwner(device: "d", user: "ada", profile: ""), reported: [], parameters: nil)
        await world.run { try await world.inbox.next() == nil }
        await world.run(for: .milliseconds(200))
        #expect(door.count == 0)
        #expect(try await world.inbox.next() == nil, "the updates of the user are removed")
        let signedIn = try World(door, user: "ada")
        signedIn.updates.settings.needsUser = true
        signedIn.begin()
        await signedIn.run { door.count >= 1 }
        #expect(door.count >= 1)
    }

    @Test func `two runs are performed one after the other`() async throws {
        let door = Door { _, _ in nil }
        let world = try World(door)
        world.begin()
        await withTaskGroup { group in
            for _ in 0..<3 { group.addTask { await world.updates.run() } }
            while door.count == 0 { try? await Task.sleep(for: .milliseconds(2)) }
            try? await Task.sleep(for: .milliseconds(300))
            group.cancelAll()
        }
        #expect(door.mostOpen.withLock { $0 } == 1)
    }

    // MARK: In the background

    @Test func `a background poll processes the received updates, reports it, and then ends`() async throws {
        let door = Door { _, body in body["position"] == nil ? .updates(Self.content("a"), Self.content("b")) : .init() }
        let world = try World(door)
        world.updates.isInForeground = false
        world.begin()
        #expect(await world.updates.performBackgroundPoll(deadline: .now + 60) == .newData)
        #expect(world.content.content.applied.count == 2)
        let said = door.asked.withLock { asked in
            asked.flatMap { body -> [JSONValue] in if case .array(let results)? = body["results"] { results } else { [] } }
        }
        #expect(Set(said.map { "\($0["update"] ?? .null)" }).count == 2, "before the app is put to sleep again")
        #expect(await world.updates.performBackgroundPoll(deadline: .now + 60) == .noData)
    }

    @Test func `a background poll ends at its deadline`() async throws {
        // The server never answers.
        let world = try World(Door { _, _ in nil })
        world.begin()
        #expect(await world.updates.performBackgroundPoll(deadline: .now + 0.3) == .failed)
    }

    // MARK: Dialogs

    @Test func `a dialog closes with its update, and with its owner`() async throws {
        let door = Door { number, body in
            switch number {
            case 1: .updates(Self.popup("a"))
            case 2: nil
            case 3: .updates(Self.popup("a", attempt: 0), Self.popup("b"))
            default: nil
            }
        }
        let world = try World(door)
        world.begin()
        let presenter = world.presenter
        await world.run {
            if door.count == 2, presenter.seen.shown?.id.key.update == "a" { world.updates.poll() }
            return presenter.seen.shown?.id.key.update == "b"
        }
        #expect(presenter.seen.all.map(\.id.key.update) == ["a", "b"])
        #expect(presenter.seen.shown == nil, "no presenter is left")
        #expect(presenter.seen.dismissed == 2)
    }
}
