import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import HTTPTypes
import Logging
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Lines about something that has a secret: they are written, and show none of it. ``SecretWatch`` reads all lines.
@Suite(.timeLimit(.minutes(5)))
struct LoggedSecretTests {
    private static let secret = "s3cr3t" + String(repeating: "Zx9", count: 15)

    private let catcher = LogCatcher()

    @Test(arguments: [true, false])
    func `a line that shows a secret is an issue, whichever comes first`(isKnownBefore: Bool) {
        withKnownIssue {
            let watch = SecretWatch(before: catcher.logger)
            if isKnownBefore { watch.note(Self.secret) }
            watch.logger.debug("a line", metadata: ["reason": "it is \(Self.secret)."])
            if !isKnownBefore { watch.noteMembers(of: #"{"key":{"secret":"\#(Self.secret)"}}"#.utf8) }
        }
        #expect(catcher.lines.count == 1)
    }

    @Test(arguments: [
        #"{"keys":[{"secret":"SECRET"}]}"#, #"{"endpoint":"https://push.example.com/push/SECRET"}"#,
        #"{"jwksURL":"https://id.example/SECRET?x=1"}"#, #"{"userToken":"SECRET"}"#, #"{"p8":"-----X-----\nSECRET\n"}"#,
    ])
    func `secrets are found in bodies`(body: String) {
        withKnownIssue {
            let watch = SecretWatch()
            watch.noteMembers(of: body.split(separator: "SECRET").joined(separator: Self.secret).utf8)
            watch.logger.info("\(Self.secret)?x=1")
        }
    }

    // MARK: Push credentials

    @Test(arguments: ["p8", "p12", "certificate"])
    func `push credentials that cannot be used`(form: String) async throws {
        let wrapping = WrappingKey(bytes: Array(repeating: 1, count: 32))
        let routes = try await RouteFixture(key: wrapping, logger: catcher.logger)
        _ = try await routes.device()
        let app = try #require(AppID("com.example.app"))
        let serial = try await routes.domain.serial(ofApp: app.text)
        let secret = Self.secret
        let members: [(String, String)] =
            switch form {
            case "p8": [("p8", secret), ("keyID", "ABC1234567"), ("teamID", "DEF1234567")]
            case "p12": [("p12", Base64URL.encode(Array(secret.utf8))), ("passphrase", secret)]
            default: [("certificate", "nonsense"), ("privateKey", secret), ("passphrase", secret)]
            }
        let body = JSONValue.object(members.map { .init(name: $0.0, value: .string($0.1)) })
        let keys = try await KeyRing.open(routes.store, wrappedBy: wrapping, .system)
        let sealed = try SecretSealer(keys: keys, for: .gateway, random: .system).seal(body.bytes, for: serial.rawValue)
        let queue = PushQueue(app: serial, environment: .production)
        let document = SealedDocument(text: "{}", sealed: sealed)
        _ = try await routes.store.putDocument(document.bytes, as: queue.credential, at: routes.domain.time.now())
        routes.watch.noteMembers(of: body.bytes)
        try await routes.domain.gateways.open()
        #expect(catcher.lines.count { $0.contains("cannot use the push credentials") } == 1, "\(catcher.lines)")
        let held = String(decoding: try await routes.request(.get, "/health/ready").body, as: UTF8.self)
        #expect(held.contains("production") && !held.contains(secret))
    }

    // MARK: Addresses

    private final class KeySets: Sendable {
        let answer: Mutex<UserKeyFetcher.Answer>
        init(_ first: UserKeyFetcher.Answer) { answer = Mutex(first) }
        var fetcher: UserKeyFetcher { UserKeyFetcher { _ in self.answer.withLock { $0 } } }
    }

    @Test(arguments: [
        UserKeyFetcher.Answer.failed("the connection was refused"), .found(Array("nonsense".utf8)),
        .found(Array(#"{"keys":[]}"#.utf8)),
    ])
    func `a key set that cannot be fetched, and that is fetched again`(first: UserKeyFetcher.Answer) async throws {
        let (sets, clock) = (KeySets(first), ServiceWorld.MovedClock())
        let routes = try await RouteFixture(
            userKeys: sets.fetcher, time: TimeSource { clock.now },
            ticks: TickSource { clock.now.milliseconds * 1_000_000 }, logger: catcher.logger)
        let device = try await routes.device()
        let rules = try await routes.request(
            .put, "/v1/apps/com.example.app/users", key: routes.admin,
            #"{"jwksURL":"https://id.example/keys?code=\#(Self.secret)"}"#)
        #expect(rules.status == 200)
        let signer = TokenSigner.es256(P256.Signing.PrivateKey())
        func say() async throws -> Int {
            let claims = #"{"sub":"ada","aud":"com.example.app","exp":\#(clock.now.seconds + 60)}"#
            let token = try signer.token(claims, header: ["kid": "\"one\""])
            return try await routes.request(
                .patch, "/v1/device", key: device.credential, #"{"userToken":"\#(token)"}"#
            ).status
        }
        #expect(try await say() == 503)
        #expect(catcher.lines.count { $0.contains("cannot fetch the key set") && $0.contains("id.example:443") } == 1)
        let keys = "{\"keys\":[\(try signer.jwk("one"))]}"
        sets.answer.withLock { $0 = .found(Array(keys.utf8)) }
        clock.pass(3600)
        #expect(try await say() == 200)
        #expect(catcher.lines.count { $0.contains("fetched the key set") } == 1, "\(catcher.lines)")
        #expect(!catcher.text.contains(Self.secret) && !catcher.text.contains("code="))
    }

    @Test func `an app's server that cannot be reached, and that answers again`() async throws {
        let backend = ApprovalHookTests.Backend()
        backend.answer.withLock { $0 = .failed("the connection was refused") }
        let routes = try await RouteFixture(approvalHookCaller: backend.caller, logger: catcher.logger)
        let (_, _, key) = try await routes.device()
        let set = try await routes.request(
            .put, "/v1/apps/com.example.app/veto", key: routes.admin,
            #"{"url":"https://back.example.com/veto/\#(Self.secret)"}"#)
        #expect(set.status == 200 && !set["secret"].isEmpty)
        #expect(try await routes.request(.post, "/v1/devices", key: key).status == 503)
        backend.answers(200)
        #expect(try await routes.request(.post, "/v1/devices", key: key).status == 201)
        #expect(catcher.lines.count { $0.contains("the approval hook of an app") } == 2, "\(catcher.lines)")
        #expect(!catcher.text.contains(Self.secret) && !catcher.text.contains(set["secret"]))
    }

    // MARK: Faults of the store

    @Test(arguments: [StoredRows.deviceProfiles, .devices])
    func `requests that meet a store fault`(rows: StoredRows) async throws {
        let store = try await stores.open()
        let routes = try await RouteFixture(store: store, logger: catcher.logger)
        let device = try await routes.device()
        let id = "6f3f1e0e-1111-4222-8333-444455556666"
        let channel = try await routes.request(
            .post, "/v1/device/channels", key: device.credential, #"{"channelID":"\#(id)"}"#)
        #expect(channel.status == 201)
        try await stores.makeUnreadable(rows, in: store)
        let statuses = [
            try await routes.request(.patch, "/v1/device", key: device.credential, #"{"locale":"de"}"#).status,
            try await routes.request(.get, "/v1/inbox?carillon=4", key: device.credential).status,
        ]
        #expect(statuses.contains { $0 >= 500 }, "\(statuses)")
        #expect(!catcher.lines.isEmpty)
    }
}
