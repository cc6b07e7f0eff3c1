import CarillonBasics
import CarillonWire
import HTTPTypes
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(5)))
struct RouteTests {
    @Test func `the operator makes an app and keys, a device registers, opens a channel, and is forgotten`() async throws {
        let routes = try await RouteFixture()
        let (id, credential, _) = try await routes.device()
        #expect(id.utf8.count == 32)
        let channelID = "11111111-2222-4333-8444-555555555555"
        let opened = try await routes.request(
            .post, "/v1/device/channels", key: credential, #"{"channelID":"\#(channelID)","name":"news"}"#)
        #expect(opened.status == 201)
        #expect(opened["endpoint"] == "https://push.example.com/push/\(opened["token"])")
        let shown = try await routes.request(.get, "/v1/device", key: credential)
        #expect(shown["status"] == "registered")
        guard case .array(let channels)? = shown.json?["channels"] else { throw Refusal(.internalError, "no channels") }
        #expect(channels.map { $0["channelID"] } == [.string(channelID)])
        #expect(try await routes.request(.delete, "/v1/device", key: credential).status == 204)
        #expect(try await routes.request(.get, "/v1/device", key: credential).code == "credential_invalid")
        let path = "/push/\(opened["token"])"
        #expect(try await routes.request(.get, path).code == "token_gone")
    }

    @Test(
        arguments: [
            (HTTPRequest.Method.get, "/v1/apps", "credential_missing", 401),
            (.get, "/v1/device", "credential_missing", 401), (.get, "/v1/inbox", "credential_missing", 401),
            (.post, "/v1/devices", "credential_missing", 401), (.get, "/v1/messages/x", "credential_missing", 401),
            (.get, "/nothing", "not_found", 404), (.get, "/push/garbage", "token_unknown", 404),
            (.get, "/message/garbage", "message_unknown", 404), (.delete, "/message/garbage", "message_unknown", 404),
            (.get, "/push/garbage/watch", "token_unknown", 404), (.get, "/", "upgrade_required", 426),
        ])
    func `a request that cannot be served is refused with its code`(
        method: HTTPRequest.Method, path: String, code: String, status: Int
    ) async throws {
        let routes = try await RouteFixture()
        let answer = try await routes.request(method, path)
        #expect(answer.code == code)
        #expect(answer.status == status)
        #expect(answer.headers[.contentType] == "application/problem+json")
        #expect((answer.headers[.wwwAuthenticate] != nil) == (status == 401))
    }

    @Test(
        arguments: [
            (HTTPRequest.Method.put, "/push/x", "GET, HEAD, POST"), (.post, "/message/x", "DELETE, GET, HEAD"),
            (.patch, "/push/x/watch", "DELETE, GET, HEAD, PUT"), (.delete, "/health/ready", "GET, HEAD"),
        ])
    func `a known address names its methods`(method: HTTPRequest.Method, path: String, allowed: String) async throws {
        let answer = try await RouteFixture().request(method, path)
        #expect(answer.code == "method_not_allowed")
        #expect(answer.headers[.allow] == allowed)
    }

    @Test func `every response of a route names the server`() async throws {
        let routes = try await RouteFixture()
        let server = routes.domain.server.description
        for (method, path) in routes.declared {
            let parts = path.split(separator: "/").map { $0.hasPrefix("{") ? "x" : String($0) }
            let answer = try await routes.request(method, "/" + parts.joined(separator: "/"))
            #expect(answer.headers[.carillonServer] == server, "\(method) \(path)")
        }
        let (_, credential, _) = try await routes.device()
        let deleted = try await routes.request(.delete, "/v1/device", key: credential)
        #expect(deleted.status == 204 && deleted.headers[.carillonServer] == server)
        #expect(try await routes.request(.get, "/nothing").headers[.carillonServer] == server)
    }

    @Test func `HEAD is answered wherever GET is, without a body`() async throws {
        let routes = try await RouteFixture()
        let paths = routes.declared.filter { $0.method == .get }.map(\.path)
        #expect(paths.count > 30)
        for path in paths {
            let (got, head) = (try await routes.request(.get, path), try await routes.request(.head, path))
            #expect(head.status == got.status, "\(path)")
            #expect(head.body.isEmpty, "\(path)")
        }
    }

    @Test(
        arguments: [
            ("", "json_invalid"), ("{", "json_invalid"), ("[]", "json_invalid"), (#"{"id":"a"} x"#, "json_invalid"),
            ("{}", "field_missing"), (#"{"id":7}"#, "field_invalid"), (#"{"id":"no spaces"}"#, "field_invalid"),
            (#"{"id":"a","colour":"red"}"#, "field_unknown"),
        ])
    func `a body is refused with its fault`(body: String, code: String) async throws {
        let routes = try await RouteFixture()
        #expect(try await routes.request(.post, "/v1/apps", key: routes.admin, body).code == code)
    }

    @Test func `a key has the permissions of its role, and none after it was revoked`() async throws {
        let routes = try await RouteFixture()
        let (_, credential, clientKey) = try await routes.device()
        #expect(try await routes.request(.get, "/v1/apps", key: clientKey).code == "role_forbidden")
        #expect(try await routes.request(.post, "/v1/devices", key: routes.admin).code == "role_forbidden")
        #expect(try await routes.request(.get, "/v1/apps", key: credential).code == "credential_invalid")
        let keys = try await routes.request(.get, "/v1/keys", key: routes.admin)
        #expect(!String(decoding: keys.body, as: UTF8.self).contains(clientKey))
        let id = clientKey.split(separator: "_").dropLast().last.map(String.init) ?? ""
        #expect(try await routes.request(.delete, "/v1/keys/\(id)", key: routes.admin).status == 204)
        #expect(try await routes.request(.post, "/v1/devices", key: clientKey).code == "credential_invalid")
    }

    @Test func `readiness ends with the beginning of the stop`() async throws {
        let routes = try await RouteFixture()
        #expect(try await routes.request(.get, "/health/ready").status == 200)
        routes.readiness.beginStopping()
        let answer = try await routes.request(.get, "/health/ready")
        #expect(answer.code == "stopping")
        #expect(answer.headers[.retryAfter] == "5")
        #expect(try await routes.request(.get, "/health/live").status == 200)
    }

    @Test func `a request contains up to a thousand results, and not one more`() async throws {
        let routes = try await RouteFixture()
        let (_, credential, _) = try await routes.device()
        func answer(_ count: Int) async throws -> RouteFixture.Answer {
            let results = Array(repeating: #"{"version":"v","result":"deferred"}"#, count: count).joined(separator: ",")
            return try await routes.request(.post, "/v1/inbox/results", key: credential, #"{"results":[\#(results)]}"#)
        }
        #expect(try await answer(Limits.resultsPerRequest).status == 204)
        #expect(try await answer(Limits.resultsPerRequest + 1).code == "field_invalid")
    }

    @Test func `a token that is gone may be remembered for a day, and nothing else`() async throws {
        let routes = try await RouteFixture()
        let (_, credential, _) = try await routes.device()
        let opened = try await routes.request(
            .post, "/v1/device/channels", key: credential, #"{"channelID":"11111111-2222-4333-8444-555555555555"}"#)
        _ = try await routes.request(.delete, "/v1/device", key: credential)
        let gone = try await routes.request(.get, "/push/\(opened["token"])")
        #expect(gone.code == "token_gone")
        #expect(gone.headers[.cacheControl] == "max-age=86400")
        #expect(try await routes.request(.get, "/push/garbage").headers[.cacheControl] == "no-store")
    }

    @Test(arguments: ["wait=-1", "wait=x", "wait=301", "max=0", "max=501", "max=1.5"])
    func `a poll's parameters have bounds`(query: String) async throws {
        let routes = try await RouteFixture()
        let (_, credential, _) = try await routes.device()
        #expect(try await routes.request(.get, "/v1/inbox?\(query)", key: credential).code == "parameter_invalid")
    }
}
