import CarillonClient
import CarillonWire
import Crypto
import Foundation
import TestSupport
import Testing

/// Users from end to end: the client library, the real executable, and tokens that an app's server signs.
@Suite(.timeLimit(.minutes(5)))
struct UserTests {
    @Test func `a user signs in, another one takes over, and the data of the first one is gone`() async throws {
        let server = try await LiveServer.start()
        let (clientKey, admin) = try await server.whileStopped { directory in
            let client = try await LiveServer.key(.client, in: directory)
            return (client, try await LiveServer.key(.admin, in: directory))
        }
        let signer = TokenSigner.eddsa(Curve25519.Signing.PrivateKey())
        let keys = server.directory + "/jwks.json"
        try Data("{\"keys\":[\(try signer.jwk("one"))]}".utf8).write(to: URL(filePath: keys))
        let set = try await run([
            "apps", "users", "set", LiveServer.app, "--jwks-file", keys, "--algorithm", "EdDSA", "--server", server.address,
            "--key", admin,
        ])
        #expect(set.status == 0 && set.lines.last?.contains("1 keys") == true, "\(set.lines)")
        func token(_ user: String) throws -> String {
            let expiry = Int(Date().timeIntervalSince1970) + 600
            return try signer.token(
                #"{"sub":"\#(user)","aud":"\#(LiveServer.app)","exp":\#(expiry)}"#, header: ["kid": "\"one\""])
        }
        func devices(of user: String) async throws -> [String] {
            try await run([
                "devices", "list", LiveServer.app, "--user", user, "--server", server.address, "--key", admin, "--json",
            ]).lines
        }
        let client = try PushClient(
            configuration: .init(
                server: server.address, app: LiveServer.app, clientKey: clientKey,
                storageDirectory: server.directory + "/client",
                backOff: .init(initial: .milliseconds(50), maximum: .milliseconds(200))))
        try await client.device.setUser(token("ada"))
        #expect(client.device.isUserPending, "before the client runs")
        try client.start()
        let orders = try client.channel("orders")
        let address = try await orders.ensureOpen(wake: .alert)
        #expect(!client.device.isUserPending, "a channel is opened when its user is known")
        #expect(try await devices(of: "ada").count == 1)
        _ = try await server.send("for ada", to: address.endpoint)
        try await eventually { client.channels.first?.waitingMessages == 1 }

        try await client.device.setUser("no token")
        var events = client.device.events.makeAsyncIterator()
        try await client.device.setUser("nor this")
        while let event = await events.next() {
            if case .userRefused(let error) = event {
                #expect(error.code == .userRefused)
                break
            }
        }
        #expect(orders.state == .open)

        try await client.device.setUser(token("bob"))
        try await eventually { orders.state == .error }
        #expect(orders.lastErrorCode == 203 && client.channels.first?.waitingMessages == 0)
        #expect(try await server.send("for ada", to: address.endpoint).status == 410)
        #expect(try await devices(of: "ada").isEmpty)
        #expect(try await devices(of: "bob").count == 1)
        let again = try await orders.ensureOpen()
        #expect(again.endpoint != address.endpoint)
        try await client.device.setUser(nil)
        try await eventually { orders.state == .error }
        #expect(try await devices(of: "bob").isEmpty)
        await client.stop()
    }
}
