import CarillonBasics
import CarillonWire
import Foundation
import Synchronization
import Testing

@testable import CarillonClient

/// The effect of each answer to a request beside the socket.
struct ClientRegistrarTests {
    /// Returns the answers of the test, in order, and stores the requests.
    private final class Answers: ClientTransport {
        private let answers: Mutex<[(status: Int, body: String)]>
        let asked = Mutex<[(bearer: String?, body: String)]>([])
        private let retryAfter: String?

        init(_ answers: [(status: Int, body: String)], retryAfter: String? = nil) {
            self.answers = Mutex(answers)
            self.retryAfter = retryAfter
        }

        func withConnection(
            to address: WebAddress, _ body: (WebSocketConnection) async -> Void
        ) async throws(TransportFault) { throw TransportFault(.unreachable, nil) }

        func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer {
            asked.withLock { $0.append((request.bearer, String(decoding: request.json ?? Data(), as: UTF8.self))) }
            guard let next = answers.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else {
                throw TransportFault(.unreachable, nil)
            }
            return WebAnswer(
                status: next.status, retryAfter: retryAfter, body: Data(next.body.utf8),
                contentType: next.body.hasPrefix("{") && next.status >= 400 ? ProblemDocument.mediaType : "text/html",
                server: "server-1")
        }
    }

    private let identity = DeviceIdentity(device: "d", credential: "d.old", socket: "ws://host/")

    private func registrar(_ answers: Answers) throws -> ClientRegistrar {
        let server = try #require(WebAddress(http: "http://host:1/"))
        return ClientRegistrar(server: server, app: "com.example.app", clientKey: nil, transport: answers)
    }

    private func problem(_ code: ErrorCode) -> (status: Int, body: String) {
        (
            code.status,
            #"{"type":"t","title":"t","status":\#(code.status),"detail":"d","code":"\#(code.rawValue)","retryable":\#(code.isRetryable)}"#
        )
    }

    // MARK: Registration

    @Test(arguments: [(409, true), (429, false), (503, false)])
    func `a refusal with a code of a later version is final unless its status is temporary`(
        _ status: Int, _ isFinal: Bool
    ) async throws {
        let body = #"{"type":"t","title":"t","status":\#(status),"detail":"d","code":"of_a_later_version"}"#
        let registrar = ClientRegistrar(
            server: try #require(WebAddress(http: "http://host:1/")), app: "com.example.app", clientKey: "key",
            transport: Answers([(status, body)]))
        guard case .failed(let failure, let error) = await registrar.register(as: "secret") else {
            Issue.record("the device is registered")
            return
        }
        #expect((failure == .refused) == isFinal)
        #expect(error.serverCode == (isFinal ? "of_a_later_version" : nil), "\(error.message)")
    }

    // MARK: Renewal

    private func renewal(_ answers: [(status: Int, body: String)]) async throws -> (outcome: String, bearers: [String]) {
        let answers = Answers(answers)
        let name =
            switch try await registrar(answers).renewCredential(of: identity, to: "new") {
            case .done: "done"
            case .unknown: "unknown"
            case .unsupported: "unsupported"
            case .failed(let failure, _): "\(failure)"
            }
        #expect(answers.asked.withLock { $0.allSatisfy { $0.body == #"{"secret":"new"}"# } })
        return (name, answers.asked.withLock { $0.compactMap(\.bearer) })
    }

    @Test func `a renewal whose answer was lost is found to be complete`() async throws {
        let refused = problem(.credentialInvalid)
        #expect(try await renewal([(204, "")]) == ("done", ["d.old"]))
        #expect(try await renewal([refused, (204, "")]) == ("done", ["d.old", "d.new"]))
        #expect(try await renewal([refused, refused]) == ("unknown", ["d.old", "d.new"]))
    }

    @Test func `a device is lost by nothing but two refusals`() async throws {
        #expect(try await renewal([problem(.notFound)]).outcome == "unsupported")
        #expect(try await renewal([problem(.methodNotAllowed)]).outcome == "unsupported")
        #expect(try await renewal([(404, "")]).outcome == "unavailable(retryAfter: nil)")
        #expect(try await renewal([(503, "")]).outcome == "unavailable(retryAfter: nil)")
        #expect(try await renewal([problem(.credentialInvalid), (502, "")]).outcome == "unavailable(retryAfter: nil)")
        #expect(try await renewal([problem(.credentialInvalid)]).outcome == "unreachable")
        #expect(try await renewal([]).outcome == "unreachable")
        #expect(try await renewal([(401, "<html>"), (204, "")]).outcome == "unavailable(retryAfter: nil)")
    }

    @Test func `a device that was signed out while it renewed is deleted under either credential`() async throws {
        let deregistration = Deregistration(
            device: "d", credential: "d.old", nextCredential: "d.new", server: "http://host:1")
        let answers = Answers([problem(.credentialInvalid), (204, "")])
        guard case .done = try await registrar(answers).delete(deregistration) else {
            Issue.record("it was not deleted")
            return
        }
        #expect(answers.asked.withLock { $0.map(\.bearer) } == ["d.old", "d.new"])
    }

    private func deletion(
        _ answers: [(status: Int, body: String)], key: String? = "key", server: String = "http://host:1"
    ) async throws -> (outcome: String, bearers: [String]) {
        let answers = Answers(answers)
        let registrar = ClientRegistrar(
            server: try #require(WebAddress(http: "http://host:1/")), app: "com.example.app", clientKey: key,
            transport: answers)
        let deregistration = Deregistration(device: "d", credential: "d.old", registration: "secret", server: server)
        let name =
            switch await registrar.delete(deregistration) {
            case .done: "done"
            case .failed(let failure, _): "\(failure)"
            }
        let asked = answers.asked.withLock { $0 }
        #expect(asked.allSatisfy { ($0.bearer == "key") == $0.body.contains(#""registration":"secret""#) })
        return (name, asked.compactMap(\.bearer))
    }

    @Test func `a device that was signed out before its credential was accepted is deleted with a valid credential`()
        async throws
    {
        let refused = problem(.credentialInvalid)
        let device = (201, #"{"id":"d","credential":"d.new","socket":"ws://host:1/"}"#)
        #expect(try await deletion([(204, "")]) == ("done", ["d.old"]))
        #expect(try await deletion([refused, device, (204, "")]) == ("done", ["d.old", "key", "d.new"]))
        #expect(try await deletion([refused, device]) == ("unreachable", ["d.old", "key", "d.new"]))
        #expect(
            try await deletion([refused, device, refused]) == ("unavailable(retryAfter: nil)", ["d.old", "key", "d.new"]))
        #expect(try await deletion([refused]) == ("unreachable", ["d.old", "key"]))
    }

    @Test func `a refusal of the repeated registration does not end a deregistration`() async throws {
        let refused = problem(.credentialInvalid)
        for code in [ErrorCode.credentialInvalid, .roleForbidden] {
            #expect(
                try await deletion([refused, problem(code)]) == ("unavailable(retryAfter: nil)", ["d.old", "key"]),
                "another key may be configured in the next run")
        }
        #expect(try await deletion([refused], key: nil) == ("unavailable(retryAfter: nil)", ["d.old"]))
    }

    @Test func `a repeated registration whose socket cannot be used is deleted`() async throws {
        let device = (201, #"{"id":"d","credential":"d.new","socket":"nowhere"}"#)
        #expect(
            try await deletion([problem(.credentialInvalid), device, (204, "")])
                == ("done", ["d.old", "key", "d.new"]))
    }

    @Test func `no other server than the configured one gets the client key`() async throws {
        let refused = problem(.credentialInvalid)
        #expect(try await deletion([refused], server: "http://former:1") == ("done", ["d.old"]))
        #expect(try await deletion([refused], server: "http://host:1/") == ("unreachable", ["d.old", "key"]))
    }

    // MARK: Users

    private func said(_ userChange: UserChange, _ answer: (status: Int, body: String)) async throws -> (String, String) {
        let answers = Answers([answer])
        let name =
            switch try await registrar(answers).report(userChange, identity) {
            case .done(let user): "done: \(user ?? "nobody")"
            case .failed(let failure, _): "\(failure)"
            }
        return (name, answers.asked.withLock { $0.first?.body ?? "" })
    }

    @Test func `a user token is refused only by a response that refuses it, and retried after all others`() async throws {
        #expect(try await said(.signedIn("t"), (200, #"{"id":"d","user":"ada"}"#)) == ("done: ada", #"{"userToken":"t"}"#))
        #expect(try await said(.signedOut, (200, #"{"id":"d"}"#)) == ("done: nobody", #"{"userToken":null}"#))
        for code in [ErrorCode.userTokenInvalid, .usersNotConfigured] {
            #expect(try await said(.signedIn("t"), problem(code)).0 == "refused")
        }
        for code in [ErrorCode.userKeysUnavailable, .credentialInvalid, .rateLimited] {
            #expect(try await said(.signedIn("t"), problem(code)).0 == "unavailable(retryAfter: nil)")
        }
        #expect(try await said(.signedIn("t"), (200, "{}")).0 == "unavailable(retryAfter: nil)")
        #expect(try await said(.signedIn("t"), (502, "<html>")).0 == "unavailable(retryAfter: nil)")
        let young = Answers([problem(.userTokenInvalid)], retryAfter: "120")
        guard case .failed(.unavailable(.seconds(120)), _) = try await registrar(young).report(.signedIn("t"), identity)
        else {
            Issue.record("a key that is too young for the server was taken for a forged one")
            return
        }
    }
}
