import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import TestStores
import Testing

@testable import CarillonServer

/// The descriptions that a device and a server send to each other by HTTP.
@Suite(.timeLimit(.minutes(5)))
struct RegistrationTests {
    private static let secret = String(repeating: "a", count: 43)

    private func register(
        _ routes: RouteFixture, _ key: String, _ secret: String? = secret
    ) async throws -> (id: String, credential: String) {
        let body = secret.map { #"{"registration":"\#($0)"}"# }
        let answer = try await routes.request(.post, "/v1/devices", key: key, body)
        #expect(answer.status == 201, "\(String(decoding: answer.body, as: UTF8.self))")
        return (answer["id"], answer["credential"])
    }

    private func opens(_ credential: String, _ routes: RouteFixture) async throws -> Bool {
        try await routes.request(.get, "/v1/device", key: credential).status == 200
    }

    @Test func `a registration that is repeated leads to the same device, and every answer stays valid`() async throws {
        let routes = try await RouteFixture()
        let (_, _, key) = try await routes.device()
        let first = try await register(routes, key)
        let second = try await register(routes, key)
        #expect(second.id == first.id && second.credential == first.credential)
        #expect(try await opens(first.credential, routes))
        #expect(first.credential.hasPrefix(first.id + ".") && first.credential.utf8.count == first.id.utf8.count + 33)
        #expect(try await stores.count(.registrations, in: routes.store) == 1)
    }

    @Test func `the answer shows that a registration with a secret can be repeated`() async throws {
        let routes = try await RouteFixture()
        let (_, _, key) = try await routes.device()
        let body = #"{"registration":"\#(Self.secret)"}"#
        let named = try await routes.request(.post, "/v1/devices", key: key, body)
        #expect(try JSONDecoder().decode(RegisteredDevice.self, from: named.body).repeatable == true)
        let unnamed = try await routes.request(.post, "/v1/devices", key: key)
        #expect(try JSONDecoder().decode(RegisteredDevice.self, from: unnamed.body).repeatable == nil)
    }

    @Test func `a registration that is repeated after the device chose a credential makes another device`() async throws {
        let routes = try await RouteFixture()
        let (_, _, key) = try await routes.device()
        let first = try await register(routes, key)
        let chosen = String(repeating: "b", count: 32)
        let renewal = try await routes.request(
            .put, "/v1/device/credential", key: first.credential, #"{"secret":"\#(chosen)"}"#)
        #expect(renewal.status == 204)
        #expect(try await !opens(first.credential, routes))
        let again = try await register(routes, key)
        #expect(again.id != first.id)
        #expect(try await opens(again.credential, routes))
        #expect(try await !opens(first.credential, routes))
        #expect(try await opens("\(first.id).\(chosen)", routes))
    }

    @Test func `another secret, or none, is another device, and replaces none`() async throws {
        let routes = try await RouteFixture()
        let (_, _, key) = try await routes.device()
        let first = try await register(routes, key)
        let others = [
            try await register(routes, key, String(repeating: "b", count: 43)), try await register(routes, key, nil),
            try await register(routes, key, nil),
        ]
        #expect(Set(others.map(\.id) + [first.id]).count == 4)
        for device in others + [first] { #expect(try await opens(device.credential, routes)) }
    }

    @Test func `the key of another app leads to no device of this one`() async throws {
        let routes = try await RouteFixture()
        let (_, _, key) = try await routes.device()
        let first = try await register(routes, key)
        _ = try await routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"com.example.other"}"#)
        let other = try await routes.request(
            .post, "/v1/keys", key: routes.admin, #"{"role":"client","app":"com.example.other"}"#)
        let second = try await register(routes, other["secret"])
        #expect(second.id != first.id)
        #expect(try await opens(first.credential, routes))
    }

    @Test func `a device that was deleted is not come back to`() async throws {
        let routes = try await RouteFixture()
        let (_, _, key) = try await routes.device()
        let first = try await register(routes, key)
        #expect(try await routes.request(.delete, "/v1/device", key: first.credential).status == 204)
        let second = try await register(routes, key)
        #expect(second.id != first.id)
        #expect(try await opens(second.credential, routes))
    }

    @Test(arguments: ["", "short", String(repeating: "a", count: 129), String(repeating: "!", count: 43)])
    func `a secret that could be guessed is refused`(secret: String) async throws {
        let routes = try await RouteFixture()
        let (_, _, key) = try await routes.device()
        let answer = try await routes.request(.post, "/v1/devices", key: key, #"{"registration":"\#(secret)"}"#)
        #expect(answer.code == "field_invalid")
    }

    @Test func `a server sends its identity and its address to each client and to each device`() async throws {
        let routes = try await RouteFixture()
        let answer = try await routes.request(.get, "/v1/server")
        #expect(answer.status == 200)
        let server = try JSONDecoder().decode(ServerBody.self, from: answer.body)
        #expect(server.server == routes.domain.server.description)
        #expect(server.server.utf8.count == 32)
        #expect(server.socket == "wss://push.example.com/")
        #expect(server.endpoints == "https://push.example.com/push/")
        let (_, _, key) = try await routes.device()
        #expect(try await routes.request(.post, "/v1/devices", key: key)["server"] == server.server)
    }
}
