import CarillonBasics
import CarillonWire
import Crypto
import Foundation
import NIOHTTP1
import Synchronization
import TestSupport
import Testing

/// Random faults around an app that processes updates: each update is applied once, for its user, and its publisher receives the
/// result.
///
/// A relay loses, delays, repeats and replaces messages between the client and the server. The app's process and the server are
/// killed, the app's disk is full for a while, and the device changes its user.
///
/// `CARILLON_CLIENT_ROUNDS` is the number of rounds, of about two seconds each. `CARILLON_SEED` repeats the choices, but not the
/// times of the processes.
@Suite(.timeLimit(.minutes(60)))
struct RandomUpdateTests {
    private static let rounds = Int(ProcessInfo.processInfo.environment["CARILLON_CLIENT_ROUNDS"] ?? "") ?? 8
    private static let users = ["ada", "bob"]

    private struct Published: Sendable {
        var id: String
        var object: String
        var user: String
    }

    /// A server behind a relay with faults, and the updates that were published there.
    private final class World: Sendable {
        /// The test uses the server from one task at a time, and its address stays.
        nonisolated(unsafe) let server: LiveServer
        let relay: Program
        let address: String
        let sender: String
        let clientKey: String
        let directory: String
        let published = Mutex<[Published]>([])
        private let signer = TokenSigner.eddsa(Curve25519.Signing.PrivateKey())

        init(seed: UInt64) async throws {
            let started = Mutex<(relay: Program, address: String)?>(nil)
            let server = try await LiveServer.start { port in
                let relay = try Program(
                    Interop.python ?? "python3",
                    ["\(Interop.directory)/faulty_relay.py", "--target", String(port), "--seed", String(seed)])
                let address = try await relay.line { $0.hasPrefix("http://") ? $0 : nil }
                started.withLock { $0 = (relay, address) }
                return address
            }
            let (relay, address) = try #require(started.withLock { $0 })
            let (clientKey, admin, sender) = try await server.whileStopped { directory in
                let client = try await LiveServer.key(.client, in: directory)
                let admin = try await LiveServer.key(.admin, in: directory)
                return (client, admin, try await LiveServer.key(.sender, in: directory))
            }
            self.server = server
            self.relay = relay
            self.address = address
            self.sender = sender
            self.clientKey = clientKey
            directory = server.directory + "/update-app"
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            let keys = server.directory + "/jwks.json"
            try Data("{\"keys\":[\(try signer.jwk("one"))]}".utf8).write(to: URL(filePath: keys))
            let rules = ["apps", "users", "set", LiveServer.app, "--jwks-file", keys, "--algorithm", "EdDSA"]
            let set = try await run(rules + ["--server", server.address, "--key", admin])
            try #require(set.status == 0, "\(set.lines)")
        }

        func makeApp(of user: String, milliseconds: Int, isKilled: Bool, hasFullDisk: Bool) throws -> UpdateApp {
            let expiry = Int(Date().timeIntervalSince1970) + 600
            let token = try signer.token(
                #"{"sub":"\#(user)","aud":"\#(LiveServer.app)","exp":\#(expiry)}"#, header: ["kid": "\"one\""])
            return UpdateApp(
                server: address, clientKey: clientKey, directory: directory, user: user, token: token,
                milliseconds: milliseconds, isKilled: isKilled, hasFullDisk: hasFullDisk)
        }

        func publish(for user: String) async throws {
            let object = "object-\(published.withLock { $0.count })"
            let body = """
                {"kind":"content","payload":{"action":"refresh","object":"\(object)"},"audience":"user == '\(user)'"}
                """
            let answer = try await server.request(
                .POST, "/v1/updates", key: sender, headers: ["content-type": "application/json"], body: body)
            try #require(answer.status == 201, "\(answer.text)")
            guard case .string(let id)? = JSONValue(parsing: Array(answer.text.utf8))?["id"] else { throw NeverHappened() }
            published.withLock { $0.append(Published(id: id, object: object, user: user)) }
        }

        /// Whether all updates for a user were applied, and the server knows it.
        func isComplete(for user: String) async throws -> Bool {
            let applied = Set(try AppliedContent.all(in: directory).map(\.object))
            for update in published.withLock({ $0 }) where update.user == user {
                guard applied.contains(update.object) else { return false }
                let answer = try await server.request(.GET, "/v1/updates/\(update.id)", key: sender)
                let devices = JSONValue(parsing: Array(answer.text.utf8))?["devices"]
                guard devices?["done"] == .integer(1) else { return false }
            }
            return true
        }
    }

    @Test func `each update is applied once and for its user, despite faults around it`() async throws {
        var chance = SeededRandom.forTest()
        let world = try await World(seed: chance.next() >> 1)
        var kills = 0
        for _ in 0..<Self.rounds {
            let isKilled = Double.random(in: 0..<1, using: &chance) < 0.6
            kills += isKilled ? 1 : 0
            let app = try world.makeApp(
                of: Self.users.randomElement(using: &chance) ?? "", milliseconds: Int.random(in: 300...3000, using: &chance),
                isKilled: isKilled, hasFullDisk: Double.random(in: 0..<1, using: &chance) < 0.3)
            async let end: Void = Self.start(app)
            for _ in 0..<Int.random(in: 1...4, using: &chance) {
                try await world.publish(for: Self.users.randomElement(using: &chance) ?? "")
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...400, using: &chance)))
            }
            if Double.random(in: 0..<1, using: &chance) < 0.25 {
                try await world.server.whileStopped(signal: SIGKILL) { _ in }
            }
            await end
        }
        world.relay.signal(SIGUSR1)
        let faults = try await world.relay.line { $0.hasPrefix("{") ? $0 : nil }
        for user in Self.users { try await finish(user, world) }
        let published = world.published.withLock { $0 }
        let applied = try AppliedContent.all(in: world.directory)
        for update in published {
            let own = applied.filter { $0.object == update.object }
            #expect(own.count == 1, "\(update.object) for \(update.user) was applied \(own.count) times: \(own)")
            #expect(own.map(\.user) == [update.user])
        }
        #expect(applied.count == published.count, "something else was applied: \(applied)")
        print("updates: \(published.count), kills: \(kills), faults: \(faults)")
        #expect(published.count >= Self.rounds)
        guard case .object(let members)? = JSONValue(parsing: Array(faults.utf8)) else { throw NeverHappened() }
        #expect(!members.isEmpty, "the relay made no faults")
    }

    /// Lets the app run for a user until everything is done.
    private func finish(_ user: String, _ world: World) async throws {
        let app = try world.makeApp(of: user, milliseconds: 60_000, isKilled: false, hasFullDisk: false)
        async let end: Void = Self.start(app)
        do {
            try await eventually { try await world.isComplete(for: user) }
        } catch {
            Issue.record("The updates for \(user) are not complete: \(error)")
        }
        _ = FileManager.default.createFile(atPath: app.stopPath, contents: nil)
        await end
        try FileManager.default.removeItem(atPath: app.stopPath)
    }

    /// Runs the app in a process of its own.
    private static func start(_ app: UpdateApp) async {
        let end: ExitTest.Condition = app.isKilled ? .signal(SIGKILL) : .success
        await #expect(processExitsWith: end) { [app = app as UpdateApp] in
            try await app.run()
        }
    }
}
