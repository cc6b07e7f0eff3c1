import CarillonWire
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Requests beside the socket whose credential the server refuses before it accepted it once.
@Suite(.timeLimit(.minutes(5)))
struct RefusedCredentialTests {
    private static let identity = DeviceIdentity(device: "d", credential: "c", socket: "ws://127.0.0.1:1/")
    private static let path = "/v1/services/requests"

    private func services(_ web: ScriptedWeb, isRepeated: Bool) -> ServiceAPI {
        ServiceAPI(
            base: ScriptedWeb.base, transport: web, backOff: .init(), requester: SocketRequester { _ in }
        ) {
            Self.identity
        } repeatsRegistration: { credential in
            isRepeated && credential == "c"
        }
    }

    @Test(arguments: [true, false])
    func `a request of services is sent later while the registration is repeated`(isRepeated: Bool) async throws {
        let web = ScriptedWeb()
        try web.refuse("POST \(Self.path)", .credentialInvalid)
        let answer = await services(web, isRepeated: isRepeated).send(.post, Self.path, [])
        switch answer {
        case .later: #expect(isRepeated)
        case .refused: #expect(!isRepeated)
        case .done: Issue.record("the server refused it")
        }
    }

    @Test(arguments: [true, false])
    func `a badge is reset later while the registration is repeated`(isRepeated: Bool) async throws {
        let directory = TemporaryDirectory()
        let web = ScriptedWeb()
        try web.refuse("POST /v1/device/badge/reset", .credentialInvalid)
        var stored = StoredState()
        stored.identity = Self.identity
        stored.registration = isRepeated ? "secret" : nil
        let runner = SessionRunner(
            store: try ClientStore(directory: directory.path), session: ClientSession(.init(), restoring: stored),
            logger: Logger(label: "test"))
        let registrar = ClientRegistrar(
            server: try #require(WebAddress(http: ScriptedWeb.base)), app: "com.example.app", clientKey: nil,
            transport: web)
        let device = PushDevice(runner: runner, registrar: registrar)
        let error = await #expect(throws: PushError.self) { try await device.resetBadge() }
        #expect(error?.code == .serverUnavailable)
        #expect(error?.serverCode == (isRepeated ? nil : "credential_invalid"))
        try await runner.perform { _, _ in [] }
        #expect((runner.session.usableIdentity == nil) == isRepeated)
        withExtendedLifetime(directory) {}
    }
}
