import CarillonBasics
import CarillonClient
import CarillonWire
import ClientContent
import Crypto
import Foundation
import NIOHTTP1
import Synchronization
import TestSupport
import Testing

/// Updates from a backend to an app and back: the client library, the real executable, and content that the app stores.
@Suite(.timeLimit(.minutes(5)))
struct UpdatesTests {
    final class Source: ContentSource {
        func objects(_ change: PushUpdate.Content) async throws -> [String: String] {
            guard case .refresh(let object, _, _) = change else { return [:] }
            return [object: "of the server"]
        }

        func definitions() async throws -> String { "definitions" }
        func commit(_ edits: [String: String]) async -> CommitOutcome { .committed }
        func file(of attachment: PushUpdate.Attachment) async throws -> Data { Data() }
    }

    final class Presenter: UpdatePresenter {
        let shown = Mutex<PopupDialog?>(nil)
        let failures = Mutex<[UpdateFailure.Kind]>([])

        func received(_ counts: [String: Int]) async {}
        func failed(_ failure: UpdateFailure) async { failures.withLock { $0.append(failure.kind) } }
        func conflict(_ update: PushUpdate) async {}
        func mayCommit(before update: PushUpdate, deadline: Date) async -> CommitConsent { .declined }
        func notify(_ popup: PushUpdate.Popup) async {}
        func show(_ dialog: PopupDialog) async { shown.withLock { $0 = dialog } }
        func dismiss(_ dialog: PopupDialog.ID) async { shown.withLock { $0 = nil } }
        func open(_ attachment: PushUpdate.Attachment) async {}
    }

    private final class Place: Sendable {
        let region = Mutex<String?>("north")
    }

    /// A server with an app that declares a region, a device of it, and a publisher.
    private final class World: Sendable {
        /// Concurrent tests only send requests to it, and its address stays.
        nonisolated(unsafe) let server: LiveServer
        let content: SQLiteContent
        let presenter = Presenter()
        let client: PushClient
        let sender: String
        let place = Place()
        private let signer = TokenSigner.eddsa(Curve25519.Signing.PrivateKey())

        init() async throws {
            let server = try await LiveServer.start()
            let (clientKey, admin, sender) = try await server.whileStopped { directory in
                let client = try await LiveServer.key(.client, in: directory)
                let admin = try await LiveServer.key(.admin, in: directory)
                return (client, admin, try await LiveServer.key(.sender, in: directory))
            }
            self.server = server
            self.sender = sender
            let keys = server.directory + "/jwks.json"
            try Data("{\"keys\":[\(try signer.jwk("one"))]}".utf8).write(to: URL(filePath: keys))
            let access = ["--server", server.address, "--key", admin]
            let set = try await run(
                ["apps", "users", "set", LiveServer.app, "--jwks-file", keys, "--algorithm", "EdDSA"] + access)
            try #require(set.status == 0, "\(set.lines)")
            let declared = try await run(["apps", "parameters", "set", LiveServer.app, "region=string"] + access)
            try #require(declared.status == 0, "\(declared.lines)")
            content = try SQLiteContent(path: server.directory + "/content.sqlite", source: Source())
            client = try PushClient(
                configuration: .init(
                    server: server.address, app: LiveServer.app, clientKey: clientKey,
                    storageDirectory: server.directory + "/client",
                    backOff: .init(initial: .milliseconds(50), maximum: .milliseconds(200))))
        }

        func process(_ settings: PushUpdates.Settings = .init()) {
            client.updates.settings = settings
            client.updates.process(content: content, presenter: presenter) { [place] in
                place.region.withLock { region in region.map { ["region": .text($0)] } ?? [:] }
            }
        }

        func token(of user: String) throws -> String {
            let expiry = Int(Date().timeIntervalSince1970) + 600
            return try signer.token(
                #"{"sub":"\#(user)","aud":"\#(LiveServer.app)","exp":\#(expiry)}"#, header: ["kid": "\"one\""])
        }

        func publish(_ body: String) async throws -> String {
            let answer = try await server.request(
                .POST, "/v1/updates", key: sender, headers: ["content-type": "application/json"], body: body)
            try #require(answer.status == 201, "\(answer.text)")
            guard case .string(let id)? = JSONValue(parsing: Array(answer.text.utf8))?["id"] else { throw NeverHappened() }
            return id
        }

        /// How many devices are in which state.
        func states(_ id: String) async throws -> String {
            let answer = try await server.request(.GET, "/v1/updates/\(id)", key: sender)
            let devices = JSONValue(parsing: Array(answer.text.utf8))?["devices"]
            return devices.map { String(decoding: $0.bytes, as: UTF8.self) } ?? ""
        }
    }

    private static let refresh =
        #"{"kind":"content","payload":{"action":"refresh","object":"pump"},"audience":"region == 'north'"}"#

    @Test func `an update reaches the device that matches, is processed beside edits, and the sender is notified`()
        async throws
    {
        let world = try await World()
        try await world.content.edit("pump", to: "of the user")
        try await world.client.device.setUser(world.token(of: "ada"))
        world.process()
        let early = try await world.publish(Self.refresh)
        try world.client.start()
        try await eventually { try await world.states(early) == #"{"done":1}"# }
        #expect(try await world.content.objects() == ["pump": "of the user"])
        let late = try await world.publish(Self.refresh)
        try await eventually { try await world.states(late) == #"{"done":1}"# }
        // It moves away, and back.
        world.place.region.withLock { $0 = nil }
        world.client.updates.poll()
        let other = try await world.publish(Self.refresh)
        let everybody = try await world.publish(#"{"kind":"popup","payload":{"style":"important","title":"t"}}"#)
        try await eventually { world.presenter.shown.withLock { $0 != nil } }
        try await eventually { try await world.states(everybody) == #"{"stored":1}"# }
        world.presenter.shown.withLock { $0 }?.press()
        try await eventually { try await world.states(everybody) == #"{"done":1}"# }
        world.place.region.withLock { $0 = "north" }
        world.client.updates.poll()
        try await eventually { try await world.states(other) == #"{"done":1}"# }
        // Definitions wait for the user, and are replaced when he has committed.
        let definitions = try await world.publish(#"{"kind":"definitions"}"#)
        try await eventually { try await world.states(definitions) == #"{"deferred":1}"# }
        #expect(await world.content.commitByHand() == .committed)
        try await eventually { try await world.states(definitions) == #"{"done":1}"# }
        #expect(try await world.content.mode() == .automatic)
        #expect(world.presenter.failures.withLock { $0 } == [])
        await world.client.stop()
    }

    @Test
    func `updates for a user are delivered while the user is signed in, and a popup is dismissed when the user changes`()
        async throws
    {
        let world = try await World()
        world.process()
        try world.client.start()
        let popup = try await world.publish(
            #"{"kind":"popup","payload":{"style":"failure","title":"t"},"audience":"user == 'ada'"}"#)
        let channel = try world.client.channel("orders")
        try await channel.ensureOpen()
        #expect(try await world.states(popup) == "{}")
        try await world.client.device.setUser(world.token(of: "ada"))
        try await eventually { world.presenter.shown.withLock { $0 != nil } }
        try await world.client.device.setUser(world.token(of: "bob"))
        try await eventually { world.presenter.shown.withLock { $0 == nil } }
        try await eventually { try await world.states(popup) == #"{"gone":1}"# }
        try await world.client.device.setUser(world.token(of: "ada"))
        try await eventually { world.presenter.shown.withLock { $0 != nil } }
        world.presenter.shown.withLock { $0 }?.press()
        try await eventually { try await world.states(popup) == #"{"done":1}"# }
        await world.client.stop()
    }

    @Test func `in the background one poll fetches, processes and reports, and no other is made`() async throws {
        let world = try await World()
        try await world.client.device.setUser(world.token(of: "ada"))
        world.process()
        world.client.updates.isInForeground = false
        try world.client.start()
        try await eventually { !world.client.device.isUserPending && world.client.deviceID != nil }
        #expect(await world.client.updates.performBackgroundPoll(deadline: .now + 60) == .noData)
        let id = try await world.publish(Self.refresh)
        #expect(await world.client.updates.performBackgroundPoll(deadline: .now + 60) == .newData)
        #expect(try await world.states(id) == #"{"done":1}"#)
        await world.client.stop()
        // Also where the client does not run.
        let next = try await world.publish(Self.refresh)
        #expect(await world.client.updates.performBackgroundPoll(deadline: .now + 60) == .newData)
        #expect(try await world.states(next) == #"{"done":1}"#)
        #expect(await world.client.updates.performBackgroundPoll(deadline: .now) == .failed, "there is no time")
        // Switched off.
        world.client.updates.settings.isActive = false
        let last = try await world.publish(Self.refresh)
        #expect(await world.client.updates.performBackgroundPoll(deadline: .now + 20) == .failed)
        #expect(["{}", #"{"waiting":1}"#].contains(try await world.states(last)))
    }

    @Test func `a server that is away is reported once, and results of the meantime are reported later`() async throws {
        let world = try await World()
        try await world.client.device.setUser(world.token(of: "ada"))
        world.process(.init(polling: .every(.milliseconds(50))))
        try world.client.start()
        let popup = try await world.publish(#"{"kind":"popup","payload":{"style":"failure","title":"t"}}"#)
        try await eventually { world.presenter.shown.withLock { $0 != nil } }
        _ = try await world.server.whileStopped(signal: SIGKILL) { _ in
            try await eventually { world.presenter.failures.withLock { !$0.isEmpty } }
            world.presenter.shown.withLock { $0 }?.press()
            try await eventually { world.presenter.shown.withLock { $0 == nil } }
            try await Task.sleep(for: .milliseconds(300))
        }
        try await eventually { try await world.states(popup) == #"{"done":1}"# }
        #expect(world.presenter.failures.withLock { $0 } == [.unreachable])
        await world.client.stop()
    }

    @Test func `a wrong address is reported as such`() async throws {
        let world = try await World()
        try await world.client.device.setUser(world.token(of: "ada"))
        world.process(.init(service: "elsewhere"))
        try world.client.start()
        try await eventually { world.presenter.failures.withLock { $0 } == [.incompatible] }
        world.client.updates.settings = .init(server: "127.0.0.1", port: try LiveServer.freePort())
        try await eventually { world.presenter.failures.withLock { $0 }.last == .unreachable }
        let id = try await world.publish(Self.refresh)
        world.client.updates.settings = .init(server: "127.0.0.1", port: world.server.port)
        try await eventually { try await world.states(id) == #"{"done":1}"# }
        // Undeclared parameters are omitted.
        world.client.updates.process(content: world.content, presenter: world.presenter) { ["height": .integer(3)] }
        try await eventually { world.presenter.failures.withLock { $0 }.last == .parametersRefused }
        let more = try await world.publish(#"{"kind":"content","payload":{"action":"roots"}}"#)
        try await eventually { try await world.states(more) == #"{"done":1}"# }
        await world.client.stop()
    }
}
