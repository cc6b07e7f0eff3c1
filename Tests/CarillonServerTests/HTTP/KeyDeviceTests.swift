import HTTPTypes
import Testing

@testable import CarillonServer

/// A key that is revoked with its devices.
@Suite(.timeLimit(.minutes(5)))
struct KeyDeviceTests {
    @Test(arguments: [false, true])
    func `the devices of a key are deleted with it, also if it was revoked before`(wasRevoked: Bool) async throws {
        let routes = try await RouteFixture()
        let other = try await routes.device()
        let key = try await routes.request(
            .post, "/v1/keys", key: routes.admin, #"{"role":"client","app":"com.example.app"}"#)
        let device = try await routes.request(.post, "/v1/devices", key: key["secret"])
        let path = "/v1/keys/" + key["id"]
        if wasRevoked { #expect(try await routes.request(.delete, path, key: routes.admin).status == 204) }
        #expect(try await routes.request(.get, "/v1/device", key: device["credential"]).status == 200)
        #expect(try await routes.request(.delete, path + "?devices=delete", key: routes.admin).status == 204)
        #expect(try await routes.request(.get, "/v1/device", key: device["credential"]).status == 401)
        #expect(try await routes.request(.post, "/v1/devices", key: key["secret"]).status == 401)
        #expect(try await routes.request(.get, "/v1/device", key: other.credential).status == 200)
    }

    @Test(arguments: [#"{"role":"admin"}"#, #"{"role":"sender","app":"com.example.app"}"#])
    func `a key that registers no devices is revoked alone`(body: String) async throws {
        let routes = try await RouteFixture()
        let device = try await routes.device()
        let key = try await routes.request(.post, "/v1/keys", key: routes.admin, body)
        let path = "/v1/keys/" + key["id"]
        #expect(try await routes.request(.delete, path + "?devices=delete", key: routes.admin).status == 204)
        #expect(try await routes.request(.delete, path, key: routes.admin).status == 404, "it was revoked before")
        #expect(try await routes.request(.get, "/v1/device", key: device.credential).status == 200)
    }
}
