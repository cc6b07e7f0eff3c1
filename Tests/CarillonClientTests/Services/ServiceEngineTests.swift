import CarillonBasics
import CarillonWire
import Crypto
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The result of requests if the server returns wrong answers.
@Suite(.timeLimit(.minutes(5)))
struct ServiceEngineTests {
    private let fixture: ServiceEngineFixture
    private let engine: ServiceEngine
    private let own = ServiceEngineFixture.own
    private let other = ServiceEngineFixture.other

    init() async throws {
        fixture = try await ServiceEngineFixture()
        engine = fixture.engine
    }

    /// A provider as the server finds it, with a key that is signed or not.
    private func found(_ peer: ServicePeer, signedFor device: String) throws -> String {
        let bundle = try KeyBundle(
            Curve25519.KeyAgreement.PrivateKey(), named: "0011223344556677", until: ServiceEngine.now + 1_000_000,
            device: device, by: Curve25519.Signing.PrivateKey())
        let provider = JSONValue.object([
            .init(name: "app", value: .string(peer.app)), .init(name: "device", value: .string(peer.device)),
            .init(name: "name", value: .string("Files")), .init(name: "version", value: .string("1")),
            .init(name: "live", value: .bool(true)),
            .init(
                name: "services",
                value: .array([
                    .object([
                        .init(name: "id", value: .string("com.example.x")), .init(name: "version", value: .string("1")),
                    ])
                ])), .init(name: "keys", value: bundle.json),
        ])
        return String(
            decoding: JSONValue.object([.init(name: "providers", value: .array([provider]))]).bytes, as: UTF8.self)
    }

    private func call(_ device: String? = nil, service: String = "com.example.x", id: String? = nil) -> ServiceCall {
        var generator = SystemRandomNumberGenerator()
        return ServiceCall(
            id: id ?? ServiceRequestID.random(using: &generator).description, method: ServiceMethod(service, "1", "m"),
            to: ServiceApplication(app: "com.example.files", device: device), parameters: nil, attachments: [],
            deadlineSeconds: 60, foreground: .none)
    }

    private func code(_ call: ServiceCall, _ engine: ServiceEngine) async -> ServiceError.Code? {
        do {
            try await engine.send(call, result: nil)
            return nil
        } catch { return (error as? ServiceError)?.code }
    }

    @Test func `a server that finds another device than the requested one is not followed`() async throws {
        fixture.web.on("POST", 201, #"{"id":"a","expiresAt":"2026-01-31T12:00:00.000Z"}"#)
        let elsewhere = ServicePeer(app: "com.example.evil", device: other.device)
        let body = try found(elsewhere, signedFor: other.device)
        fixture.web.on("GET /v1/services", 200, body)
        #expect(await code(call(), engine) == .applicationNotFound)
        let right = try found(other, signedFor: other.device)
        fixture.web.on("GET /v1/services", 200, right)
        #expect(await code(call(String(repeating: "3", count: 32)), engine) == .applicationNotFound)
        let unsigned = try found(other, signedFor: own)
        fixture.web.on("GET /v1/services", 200, unsigned)
        #expect(await code(call(), engine) == .sealInvalid)
        #expect(fixture.web.asked.allSatisfy { $0.hasPrefix("GET") }, "nothing was sent")
        fixture.web.on("GET /v1/services", 200, right)
        #expect(await code(call(), engine) == nil)
    }

    private final class Delegate: ServiceClientDelegate, ServiceProviderDelegate {
        let changed = Mutex<[String]>([])

        func serviceClient(
            _ client: ServiceClient, didReceiveFrom application: ServiceApplication,
            _ result: Result<ServiceReply, ServiceError>, id: String
        ) {}

        func serviceClient(
            _ client: ServiceClient, identityChanged application: ServiceApplication, fingerprint: String
        ) { changed.withLock { $0.append("client \(application.device ?? "") \(fingerprint)") } }

        func serviceProvider(
            _ provider: ServiceProvider, identityChanged application: ServiceApplication, fingerprint: String
        ) { changed.withLock { $0.append("provider \(application.device ?? "") \(fingerprint)") } }
    }

    @Test(arguments: [false, true])
    func `a changed identity is reported, is accepted by either side, and the request is sent again`(
        _ byProvider: Bool
    ) async throws {
        let (client, provider) = (ServiceClient(engine: engine), ServiceProvider(engine: engine))
        let delegate = Delegate()
        client.addDelegate(delegate)
        provider.addDelegate(delegate)
        fixture.web.on("POST", 201, #"{"id":"a","expiresAt":"2026-01-31T12:00:00.000Z"}"#)
        for number in 1...2 {
            let body = try found(other, signedFor: other.device)
            fixture.web.on("GET /v1/services", 200, body)
            // The result of a moment ago is for another service.
            let wanted: ServiceError.Code? = number == 1 ? nil : .identityChanged
            #expect(await code(call(service: "com.example.x\(number)"), engine) == wanted)
        }
        let application = ServiceApplication(app: other.app, device: other.device)
        let listed = try #require(try await client.identities().first)
        let offered = try #require(listed.offeredFingerprint)
        #expect(listed.application == application && listed.user == nil && listed.fingerprint != offered)
        let told = ["client", "provider"].map { "\($0) \(other.device) \(offered)" }
        try await eventually { delegate.changed.withLock { $0.sorted() } == told }
        #expect(try await !client.accept(application, fingerprint: listed.fingerprint))
        #expect(await code(call(service: "com.example.x3"), engine) == .identityChanged)
        if byProvider {
            #expect(try await provider.accept(application))
        } else {
            #expect(try await client.accept(application, fingerprint: offered.uppercased()))
        }
        #expect(await code(call(service: "com.example.x3"), engine) == nil)
        #expect(try await client.identities().map(\.fingerprint) == [offered])
        #expect(delegate.changed.withLock { $0.count } == 2, "it is reported once")
    }

    @Test func `a server that names another user does not replace the identity of a device`() async throws {
        func bundle(_ identity: Curve25519.Signing.PrivateKey) throws -> KeyBundle {
            try KeyBundle(
                Curve25519.KeyAgreement.PrivateKey(), named: "0011223344556677", until: ServiceEngine.now + 1_000_000,
                device: other.device, by: identity)
        }
        func isAuthentic(_ bundle: KeyBundle, _ user: String?) async throws -> Bool {
            do {
                try await engine.authenticate(bundle, of: other, user: user)
                return true
            } catch let error as ServiceError where error.code == .identityChanged {
                return false
            }
        }
        let (ada, ben) = (try bundle(.init()), try bundle(.init()))
        #expect(try await isAuthentic(ada, "ada"))
        #expect(try await isAuthentic(ben, "ben"))
        #expect(try await isAuthentic(ada, "ada"))
        #expect(try await !isAuthentic(ben, "ada"))
        #expect(try await !isAuthentic(ada, "ben"), "what was believed of one user is not of the other")
        #expect(try await isAuthentic(ada, nil))
        #expect(try await isAuthentic(ben, nil), "the phone that they share is called without a user")
        #expect(try await !isAuthentic(try bundle(.init()), nil))
    }

    @Test func `an identity that another one replaced is believed no more`() async throws {
        func bundle() throws -> KeyBundle {
            try KeyBundle(
                Curve25519.KeyAgreement.PrivateKey(), named: "0011223344556677", until: ServiceEngine.now + 1_000_000,
                device: other.device, by: Curve25519.Signing.PrivateKey())
        }
        func isAuthentic(_ bundle: KeyBundle) async throws -> Bool {
            do {
                try await engine.authenticate(bundle, of: other, user: nil)
                return true
            } catch let error as ServiceError where error.code == .identityChanged {
                return false
            }
        }
        let (former, present) = (try bundle(), try bundle())
        // The second time the engine remembers the identity.
        for _ in 0..<2 { #expect(try await isAuthentic(former)) }
        #expect(try await !isAuthentic(present))
        #expect(try await engine.accept(other.device))
        #expect(try await !isAuthentic(former))
        #expect(try await isAuthentic(present))
    }

    @Test func `a server knows an identity for the user whose devices it requested`() async throws {
        let client = fixture.client
        fixture.web.on("POST", 201, #"{"id":"a","expiresAt":"2026-01-31T12:00:00.000Z"}"#)
        let (ada, ben) = (try found(other, signedFor: other.device), try found(other, signedFor: other.device))
        let calls: [(user: String, body: String, wanted: ServiceError.Code?)] = [
            ("ada", ada, nil), ("ben", ben, nil), ("ben", ada, .identityChanged), ("ada", ada, nil),
        ]
        for (number, (user, body, wanted)) in calls.enumerated() {
            fixture.web.on("GET /v1/services", 200, body)
            _ = try await client.providers(user: user)
            // The result of a moment ago is for another service.
            #expect(await code(call(service: "com.example.x\(number)"), engine) == wanted, "call \(number)")
        }
    }

    @Test(arguments: [false, true])
    func `a first identity is stored after the app accepts it, and the app is asked once`(_ accepts: Bool) async throws {
        let bundle = try KeyBundle(
            Curve25519.KeyAgreement.PrivateKey(), named: "0011223344556677", until: ServiceEngine.now + 1_000_000,
            device: other.device, by: Curve25519.Signing.PrivateKey())
        let asked = Mutex(0)
        let answer = PendingResult<Bool>()
        await engine.setVerifier { _, _, isFirst in
            asked.withLock { $0 += 1 }
            return isFirst ? (try? await answer.value) ?? false : true
        }
        let peer = other
        let believing = (0..<3).map { _ in
            Task { () async throws -> Bool in
                do {
                    try await engine.authenticate(bundle, of: peer, user: nil)
                    return true
                } catch let error as ServiceError where error.code == .identityChanged {
                    return false
                }
            }
        }
        try await eventually { asked.withLock { $0 } == 1 }
        // The others search meanwhile.
        try await Task.sleep(for: .milliseconds(50))
        #expect(asked.withLock { $0 } == 1)
        #expect(try await engine.identities().isEmpty, "a kill now leaves nothing")
        answer.resume(.success(accepts))
        for task in believing { #expect(try await task.value == accepts) }
        #expect(asked.withLock { $0 } == 1)
        #expect(try await engine.identities().count == (accepts ? 1 : 0))
    }

    @Test func `the fingerprint waits until the user of the device is known`() async throws {
        let runner = await engine.runner
        let identity = try #require(runner.session.registration.identity)
        try await runner.perform { session, context in session.userSet(.signedIn("t"), at: context.now) }
        let early = Task { try await ServiceProvider(engine: engine).fingerprint }
        early.cancel()
        await #expect(throws: CancellationError.self) { try await early.value }
        let asked = Task { try await ServiceProvider(engine: engine).fingerprint }
        try await runner.perform { session, context in
            session.userAccepted(.signedIn("t"), of: identity, as: "ada", at: context.now)
        }
        let fingerprint = try await asked.value
        let later = try await ServiceProvider(engine: engine).fingerprint
        #expect(fingerprint == later)
    }

    @Test func `an answer from a third device is nobody's`() async throws {
        fixture.web.on("POST", 201, #"{"id":"a","expiresAt":"2026-01-31T12:00:00.000Z"}"#)
        let right = try found(other, signedFor: other.device)
        fixture.web.on("GET /v1/services", 200, right)
        try await engine.send(call(id: String(repeating: "a", count: 32)), result: nil)
        let third = ServicePeer(app: other.app, device: String(repeating: "3", count: 32))
        let key = try KeyBundle(
            Curve25519.KeyAgreement.PrivateKey(), named: "0011223344556678", until: ServiceEngine.now + 1_000_000,
            device: third.device, by: Curve25519.Signing.PrivateKey())
        let content = SealedContent(
            keyID: "0011223344556677", sender: key, encapsulated: Array(repeating: 1, count: 32), body: [1], files: 0,
            fileBytes: 0)
        let id = try #require(ServiceRequestID(String(repeating: "a", count: 32)))
        let body = ServiceEvent.reply(id, from: third, content).body
        try await engine.runner.perform { _, _ in [.write(.saveServiceEvent(body)), .notifyServices] }
        let run = Task { await engine.run() }
        let box = await engine.box
        try await eventually { try await box.events(after: 0, at: 1, limit: 1).events.isEmpty }
        run.cancel()
        await run.value
        #expect(try await box.call(id.description) != nil, "its result is still to come")
    }
}
