import CarillonBasics
import CarillonWire
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Each call of the library when a relay answers it once in the server's place.
@Suite(.timeLimit(.minutes(5)))
struct RelayedCallTests {
    /// Answers the first request as the relay does, and each later one as the server does.
    private final class Relay: ClientTransport {
        private let first: RelayAnswer
        private let right: WebAnswer
        let asked = Mutex<[String]>([])

        init(_ first: RelayAnswer, then right: WebAnswer) {
            self.first = first
            self.right = right
        }

        func withConnection(
            to address: WebAddress, _ body: (WebSocketConnection) async -> Void
        ) async throws(TransportFault) { throw TransportFault(.unreachable, nil) }

        func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer {
            let isFirst = asked.withLock { asked in
                asked.append("\(request.method.rawValue) \(request.address.target)")
                return asked.count == 1
            }
            if isFirst { return first.web }
            return request.address.target == "/v1/server" ? RelayedCallTests.description : right
        }
    }

    private static func json(_ status: Int, _ body: String) -> WebAnswer {
        WebAnswer(status: status, body: Data(body.utf8), contentType: "application/json", server: "server-1")
    }

    private static let noContent = WebAnswer(status: 204, body: Data(), server: "server-1")
    private static let description = json(
        200, #"{"server":"server-1","socket":"ws://host:1/","endpoints":"http://host:1/push/"}"#)
    private static let device = json(200, #"{"id":"d","status":"registered","statusAt":"2026-01-31T12:00:00.000Z"}"#)
    private static let identity = DeviceIdentity(device: "d", credential: "d.c", socket: "ws://host:1/")

    // MARK: Registration and the device

    private struct Call: Sendable {
        var name: String
        var right: WebAnswer
        /// Nil: the call succeeded.
        var make: @Sendable (ClientRegistrar) async -> (failure: RegistrationFailure?, error: PushError)?
    }

    private static let calls: [Call] = [
        Call(name: "register", right: json(201, #"{"id":"d","credential":"d.c","socket":"ws://host:1/"}"#)) { registrar in
            guard case .failed(let failure, let error) = await registrar.register(as: "secret") else { return nil }
            return (failure, error)
        },
        Call(name: "locate", right: description) { registrar in
            guard case .failed(let failure, let error) = await registrar.locate() else { return nil }
            return (failure, error)
        },
        Call(name: "delete", right: noContent) { registrar in
            let deregistration = Deregistration(device: "d", credential: "d.c", nextCredential: nil, server: "http://host:1")
            guard case .failed(let failure, let error) = await registrar.delete(deregistration) else { return nil }
            return (failure, error)
        },
        Call(name: "renew", right: noContent) { registrar in
            switch await registrar.renewCredential(of: identity, to: "secret") {
            case .done: return nil
            case .failed(let failure, let error): return (failure, error)
            case .unknown, .unsupported: return (.refused, PushError(.deviceUnknown, "The renewal was given up."))
            }
        },
        Call(name: "report", right: device) { registrar in
            let report = PushDeviceMachine.Report(token: "aa", details: PushDeviceDetails())
            guard case .failed(let failure, let error) = await registrar.report(report, identity) else { return nil }
            return (failure, error)
        },
        Call(name: "user", right: device) { registrar in
            guard case .failed(let failure, let error) = await registrar.report(UserChange.signedOut, identity) else {
                return nil
            }
            return (failure, error)
        },
        Call(name: "badge", right: noContent) { registrar in
            do throws(PushError) {
                try await registrar.resetBadge(identity)
                return nil
            } catch {
                return (nil, error)
            }
        },
    ]

    @Test(arguments: RelayAnswer.allCases)
    func `a request of the device fails for now, and succeeds when the server answers`(relay: RelayAnswer) async throws {
        for call in Self.calls {
            let transport = Relay(relay, then: call.right)
            let server = try #require(WebAddress(http: "http://host:1/"))
            let registrar = ClientRegistrar(server: server, app: "com.example.app", clientKey: "key", transport: transport)
            let failed = try #require(await call.make(registrar), "\(call.name)")
            #expect(failed.failure == nil || failed.failure == .unavailable(retryAfter: nil), "\(call.name)")
            #expect(failed.error.code == .serverUnavailable, "\(call.name)")
            #expect(failed.error.message.contains("http://host:1/v1/"), "\(failed.error.message)")
            #expect(failed.error.message.contains("status \(relay.status)"), "\(failed.error.message)")
            let isDone = await call.make(registrar) == nil
            #expect(isDone, "\(call.name)")
        }
    }

    @Test(arguments: RelayAnswer.allCases)
    func `a badge that is not reset for now is the last failure`(relay: RelayAnswer) async throws {
        let directory = TemporaryDirectory()
        var stored = StoredState()
        stored.identity = Self.identity
        let runner = SessionRunner(
            store: try ClientStore(directory: directory.path), session: ClientSession(.init(), restoring: stored),
            logger: Logger(label: "test"))
        let registrar = ClientRegistrar(
            server: try #require(WebAddress(http: "http://host:1/")), app: "com.example.app", clientKey: "key",
            transport: Relay(relay, then: Self.noContent))
        let device = PushDevice(runner: runner, registrar: registrar)
        await #expect(throws: PushError.self) { try await device.resetBadge() }
        #expect(runner.failures.last?.message.contains("status \(relay.status)") == true)
        try await device.resetBadge()
        withExtendedLifetime(directory) {}
    }

    // MARK: Services

    private static let requests: [(method: WebRequest.Method, path: String, right: WebAnswer)] = [
        (.get, "/v1/services?app=a", json(200, #"{"providers":[]}"#)),
        (.put, "/v1/device/services", noContent), (.delete, "/v1/device/services", noContent),
        (.post, "/v1/services/requests", json(201, #"{"id":"a","expiresAt":"2026-01-31T12:00:00.000Z"}"#)),
        (.delete, "/v1/services/requests?app=a&device=d", json(200, #"{"cancelled":[]}"#)),
        (.delete, "/v1/services/requests/a", noContent), (.post, "/v1/services/requests/a/received", noContent),
        (.post, "/v1/services/requests/a/reply", noContent), (.delete, "/v1/attachments/a", noContent),
    ]

    private func services(_ transport: Relay, _ failures: FailureNote) -> ServiceAPI {
        ServiceAPI(
            base: "http://host:1", transport: transport,
            backOff: .init(initial: .milliseconds(1), maximum: .milliseconds(2)), requester: SocketRequester { _ in },
            failures: failures
        ) { Self.identity }
    }

    @Test(arguments: RelayAnswer.allCases)
    func `a request of services is repeated until the server answers`(relay: RelayAnswer) async throws {
        for request in Self.requests {
            let transport = Relay(relay, then: request.right)
            let lines = LogCatcher()
            let failures = FailureNote(logger: lines.logger)
            let server = services(transport, failures)
            _ = try await server.persist(until: .now + 30, request.method, request.path)
            let line = "\(request.method.rawValue) \(request.path)"
            #expect(transport.asked.withLock { $0.count { $0 == line } } == 2, "\(line)")
            #expect(failures.last?.message.contains("status \(relay.status)") == true, "\(line)")
            #expect(failures.present?.message == nil, "\(line)")
            let warning = lines.warnings.first ?? ""
            #expect(lines.warnings.count == 1 && warning.contains("address=http://host:1 "), "\(lines.warnings)")
            #expect(warning.contains("status \(relay.status)"), "\(warning)")
        }
    }

    @Test(arguments: RelayAnswer.allCases)
    func `a page of a relay is no icon`(relay: RelayAnswer) async {
        let png = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 1])
        let transport = Relay(relay, then: WebAnswer(status: 200, body: png, contentType: "image/png"))
        let lines = LogCatcher()
        let failures = FailureNote(logger: lines.logger)
        let server = services(transport, failures)
        #expect(await server.image("/v1/services/icon?app=a&device=d") == nil)
        #expect(failures.last?.message.contains("status \(relay.status)") == true)
        #expect(failures.present == nil, "the request is not repeated")
        #expect(lines.warnings.count == 1 && !lines.warnings.joined().contains("retrying"), "\(lines.warnings)")
        #expect(await server.image("/v1/services/icon?app=a&device=d") == png)
    }

    @Test func `a response to the request for an icon ends an earlier failure`() async throws {
        let png = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 1])
        let problem = try JSONEncoder().encode(ProblemDocument(Refusal(.notFound, "why")))
        let address = try #require(WebAddress(http: "http://host:1"))
        for right in [
            WebAnswer(status: 200, body: png, contentType: "image/png", server: "server-1"),
            WebAnswer(status: 404, body: problem, contentType: ProblemDocument.mediaType, server: "server-1"),
        ] {
            let transport = Relay(.loginPage, then: right)
            let failures = FailureNote()
            let server = services(transport, failures)
            _ = await server.image("/v1/services/icon?app=a&device=d")
            failures.failed(at: address, by: .http, PushError(.serverUnavailable, "An upload failed."))
            _ = await server.image("/v1/services/icon?app=a&device=d")
            #expect(failures.present == nil, "\(right.status)")
        }
    }
}
