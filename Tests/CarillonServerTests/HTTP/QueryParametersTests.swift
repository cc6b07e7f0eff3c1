import CarillonBasics
import HTTPTypes
import Testing

@testable import CarillonServer

/// The answer of a route to unknown parameters.
@Suite(.timeLimit(.minutes(5)))
struct QueryParametersTests {
    @Test func `an unknown or repeated parameter is refused by every route but those of endpoints`() async throws {
        let routes = try await RouteFixture()
        #expect(routes.queries.count == routes.declared.count)
        for (method, path) in routes.declared {
            let names = try #require(routes.queries["\(method.rawValue) \(path)"]).names
            guard let names else {
                #expect(path.hasPrefix("/push/"))
                #expect(try await routes.request(method, "\(path)?up=1&up=1").code != "parameter_invalid")
                continue
            }
            #expect(!path.hasPrefix("/push/"))
            for query in ["foo=1", "foo", "FOO=", "foo=1&foo=2", "=1"] + names.map({ "\($0)=x&\($0)=x" }) {
                let answer = try await routes.request(method, "\(path)?\(query)", key: routes.admin)
                #expect(answer.status == 400 && answer.code == "parameter_invalid", "\(method) \(path)?\(query)")
                for name in names { #expect(answer["detail"].contains("\"\(name)\""), "\(method) \(path)") }
            }
        }
    }

    @Test(arguments: ["valid=true", "validate=true&validate=false", "app=com.example.app&foo=1"])
    func `nothing is done before the parameters are read`(query: String) async throws {
        let routes = try await RouteFixture()
        _ = try await routes.device()
        let key = try await routes.request(
            .post, "/v1/keys", key: routes.admin, #"{"role":"sender","app":"com.example.app"}"#)["secret"]
        let update = #"{"kind":"status","payload":{"status":"maintenance"}}"#
        let answer = try await routes.request(.post, "/v1/updates?\(query)", key: key, update)
        #expect(answer.code == "parameter_invalid")
        let list = try await routes.request(.get, "/v1/updates", key: key)
        #expect(list.json?["updates"] == .array([]))
    }

    @Test(arguments: ["", "?", "?&", "?limit=1&", "?&limit=1", "?limit=1&&status=all"])
    func `empty parts of a query are no parameters`(query: String) async throws {
        let routes = try await RouteFixture()
        _ = try await routes.device()
        let path = "/v1/updates\(query)\(query.isEmpty ? "?" : "&")app=com.example.app"
        #expect(try await routes.request(.get, path, key: routes.admin).status == 200)
    }
}
