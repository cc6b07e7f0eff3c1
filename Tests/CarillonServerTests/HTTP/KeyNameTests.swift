import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import Testing

@testable import CarillonServer

/// The names of keys.
@Suite(.timeLimit(.minutes(5)))
struct KeyNameTests {
    @Test(arguments: ["a", "ä"]) func `the name of a key has at most 256 bytes`(character: String) async throws {
        let routes = try await RouteFixture()
        let longest = String(repeating: character, count: Limits.keyNameBytes / character.utf8.count)
        func create(_ name: String) async throws -> RouteFixture.Answer {
            try await routes.request(.post, "/v1/keys", key: routes.admin, #"{"role":"admin","name":"\#(name)"}"#)
        }
        let keys = try await stores.count(.accessKeys, in: routes.store)
        #expect(try await create(longest + "a").code == "field_invalid")
        #expect(try await stores.count(.accessKeys, in: routes.store) == keys)
        let created = try await create(longest)
        #expect(created.status == 201 && created["name"] == longest)
    }
}
