import Crypto
import Foundation
import Testing

@testable import CarillonAPNsSimulator

struct CredentialTests {
    private static func token(
        header: String = #"{"alg":"ES256","kid":"SIMULATED1"}"#, claims: String, signedBy key: P256.Signing.PrivateKey
    ) throws -> String {
        let text = ProviderToken.encoded(Data(header.utf8)) + "." + ProviderToken.encoded(Data(claims.utf8))
        let signature = try key.signature(for: Data(text.utf8))
        return "bearer " + text + "." + ProviderToken.encoded(signature.rawRepresentation)
    }

    @Test(arguments: [
        (#"{"alg":"ES256","kid":"SIMULATED1"}"#, #"{"iss":"SIMTEAM001","iat":1800000000}"#, true),
        (#"{"alg":"ES256","kid":"SIMULATED1","typ":"JWT"}"#, #"{"iss":"SIMTEAM001","iat":1800000000.5}"#, true),
        (#"{"alg":"ES256","kid":"SIMULATED1"}"#, #"{"iss":"SIMTEAM001","iat":"1800000000"}"#, false),
        (#"{"alg":"ES256","kid":"SIMULATED1"}"#, #"{"iss":"SIMTEAM001"}"#, false),
        (#"{"alg":"ES256","kid":"SIMULATED1"}"#, #"{"iss":"OTHERTEAM1","iat":1800000000}"#, false),
        (#"{"alg":"ES256"}"#, #"{"iss":"SIMTEAM001","iat":1800000000}"#, false),
        (#"{"alg":"HS256","kid":"SIMULATED1"}"#, #"{"iss":"SIMTEAM001","iat":1800000000}"#, false),
        (#"{"alg":"ES256","kid":"UNKNOWN001"}"#, #"{"iss":"SIMTEAM001","iat":1800000000}"#, false),
        (#"{"alg":"ES256","kid":"SHORT"}"#, #"{"iss":"SIMTEAM001","iat":1800000000}"#, false),
    ])
    func `a provider token has one shape only`(header: String, claims: String, isGood: Bool) throws {
        let key = P256.Signing.PrivateKey()
        var asker = try Asker(
            key: SigningKey(id: "SIMULATED1", teamID: "SIMTEAM001", privateKey: key.pemRepresentation))
        let token = try Self.token(header: header, claims: claims, signedBy: key)
        #expect(try asker.ask { $0.fields.authorization = token }.reason == (isGood ? nil : .invalidProviderToken))
    }

    @Test func `a signature may be raw or in DER, and must be right in both`() throws {
        let key = P256.Signing.PrivateKey()
        let text =
            ProviderToken.encoded(Data(#"{"alg":"ES256","kid":"SIMULATED1"}"#.utf8)) + "."
            + ProviderToken.encoded(Data(#"{"iss":"SIMTEAM001","iat":1800000000}"#.utf8))
        let good = try key.signature(for: Data(text.utf8))
        let wrong = try P256.Signing.PrivateKey().signature(for: Data(text.utf8))
        let signatures: [(Data, Bool)] = [
            (good.rawRepresentation, true), (good.derRepresentation, true), (wrong.rawRepresentation, false),
            (wrong.derRepresentation, false), (good.derRepresentation.dropLast(), false), (Data(), false),
            (good.rawRepresentation + [0], false), (good.derRepresentation + [0], false),
            (Data(repeating: 0, count: 64), false),
        ]
        for (signature, isGood) in signatures {
            var asker = try Asker(
                key: SigningKey(id: "SIMULATED1", teamID: "SIMTEAM001", privateKey: key.pemRepresentation))
            let token = "bearer " + text + "." + ProviderToken.encoded(signature)
            let answer = try asker.ask { $0.fields.authorization = token }
            #expect(answer.reason == (isGood ? nil : .invalidProviderToken), "\(signature.count) bytes")
        }
    }

    @Test func `a token that another key signed is invalid`() throws {
        var asker = try Asker()
        let token = try Self.token(
            claims: #"{"iss":"SIMTEAM001","iat":1800000000}"#, signedBy: P256.Signing.PrivateKey())
        #expect(try asker.ask { $0.fields.authorization = token }.reason == .invalidProviderToken)
    }

    @Test(arguments: [(3599, nil), (3601, Reason.expiredProviderToken), (-3599, nil), (-3601, .invalidProviderToken)])
    func `a token is good for an hour`(age: Int, reason: Reason?) throws {
        var asker = try Asker()
        #expect(try asker.ask(with: asker.authorization(age: Int64(age))).reason == reason)
    }

    @Test func `a token grows old on its connection`() throws {
        var asker = try Asker()
        let token = try asker.authorization()
        #expect(try asker.ask { $0.fields.authorization = token }.status == 200)
        asker.now = asker.now + .seconds(3601)
        #expect(try asker.ask { $0.fields.authorization = token }.reason == .expiredProviderToken)
        #expect(try asker.ask(with: asker.authorization()).status == 200)
    }

    @Test func `a token may not change twice within twenty minutes`() throws {
        var asker = try Asker()
        // Of the second change as of the first, the time counts since the connection saw the token, and not since its issue.
        let first = try asker.authorization(age: 1500)
        #expect(try asker.ask(with: first).status == 200)
        for _ in 0..<2 {
            asker.now = asker.now + .seconds(1199)
            #expect(try asker.ask(with: asker.authorization()).reason == .tooManyProviderTokenUpdates)
            asker.now = asker.now + .seconds(1)
            #expect(try asker.ask(with: asker.authorization()).status == 200)
        }
        // Another connection counts for itself.
        asker.binding = ConnectionBinding()
        #expect(try asker.ask(with: asker.authorization(age: 1)).status == 200)
    }

    @Test func `a response that is about neither the credentials nor a fault of the service proves the token`() {
        let silent = Reason.allCases.filter { !$0.showsThatCredentialsAreTaken }
        #expect(silent.allSatisfy { $0.status == 403 || $0.status >= 500 || $0.status == 429 || $0.status == 400 })
        #expect(silent.filter { $0.status == 400 } == [.topicDisallowed, .featureNotEnabled])
        #expect(silent.filter { $0.status == 429 } == [.tooManyProviderTokenUpdates])
        #expect(Reason.allCases.allSatisfy { ($0.status != 403 && $0.status < 500) || silent.contains($0) })
    }

    @Test func `token trouble stays on its connection where that was chosen`() throws {
        var asker = try Asker()
        asker.service.rules.tokenTroubleStays = true
        #expect(try asker.ask(with: asker.authorization(age: 4000)).reason == .expiredProviderToken)
        #expect(try asker.ask(with: asker.authorization()).reason == .expiredProviderToken)
        asker.binding = ConnectionBinding()
        #expect(try asker.ask(with: asker.authorization()).status == 200)
    }

    @Test func `a revoked key is refused at once`() throws {
        var asker = try Asker()
        let token = try asker.authorization()
        #expect(try asker.ask { $0.fields.authorization = token }.status == 200)
        let isRevoked = asker.service.accounts.revoke(asker.key.id)
        #expect(isRevoked)
        #expect(try asker.ask { $0.fields.authorization = token }.reason == .invalidProviderToken)
    }

    @Test func `a key of the other environment is refused`() throws {
        var asker = try Asker(key: SigningKey(environments: [.production]))
        #expect(try asker.ask().reason == .badEnvironmentKeyIDInToken)
    }

    @Test func `the first push binds a connection to its key`() throws {
        var asker = try Asker()
        let stranger = try SigningKey(id: "STRANGER01", teamID: "OTHERTEAM1")
        let sister = try SigningKey(id: "SISTERKEY1", teamID: "SIMTEAM001")
        let narrow = try SigningKey(id: "NARROWKEY1", teamID: "SIMTEAM001", topics: ["com.example.app"])
        for key in [stranger, sister, narrow] { try asker.service.accounts.add(key) }
        #expect(try asker.ask(with: asker.authorization()).status == 200)
        asker.now = asker.now + .seconds(1200)
        for key in [stranger, narrow] {
            #expect(
                try asker.ask(with: asker.authorization(key: key)).reason
                    == .unrelatedKeyIDInToken)
        }
        #expect(try asker.ask(with: asker.authorization(key: sister)).status == 200)
        asker.binding = ConnectionBinding()
        #expect(try asker.ask(with: asker.authorization(key: stranger)).status == 200)
    }

    @Test func `a topic-specific key is for its topics`() throws {
        var asker = try Asker(key: SigningKey(topics: ["com.example.other"]))
        #expect(try asker.ask().reason == .topicDisallowed)
    }

    @Test func `an app of another team, or registered after the first push, needs another connection`() throws {
        var asker = try Asker()
        asker.service.accounts.add(App(bundleID: "com.example.app", teamID: asker.key.teamID))
        asker.service.accounts.add(App(bundleID: "com.example.foreign", teamID: "OTHERTEAM1"))
        #expect(try asker.ask().status == 200)
        #expect(try asker.ask { $0.fields.topic = "com.example.foreign" }.reason == .topicDisallowed)
        asker.service.accounts.add(App(bundleID: "com.example.late", teamID: asker.key.teamID))
        asker.service.devices.put(Device(token: "ee", topic: "com.example.late"), at: asker.now)
        func late(_ submission: inout Submission) {
            submission.path = "/3/device/ee"
            submission.fields.topic = "com.example.late"
        }
        #expect(try asker.ask(late).reason == .topicDisallowed)
        asker.binding = ConnectionBinding()
        #expect(try asker.ask(late).status == 200)
    }

    private static func certificate(
        topics: [String] = ["com.example.app"], environments: Set<Environment> = [.sandbox], isTrusted: Bool = true,
        until: Timestamp = Asker.start + .days(1)
    ) -> ClientCertificate {
        ClientCertificate(
            topics: topics, environments: environments, validFrom: Asker.start - .days(1), validUntil: until,
            isTrusted: isTrusted)
    }

    @Test func `a certificate needs no token, and no topic when it has one`() throws {
        var asker = try Asker()
        asker.binding = ConnectionBinding(certificate: Self.certificate())
        let answer = try asker.ask {
            $0.fields.authorization = "bearer nonsense"
            $0.fields.topic = nil
        }
        #expect(answer.status == 200)
        asker.binding = ConnectionBinding(
            certificate: Self.certificate(topics: ["com.example.app", "com.example.app.voip"]))
        #expect(try asker.ask { $0.fields.topic = nil }.reason == .missingTopic)
    }

    @Test(arguments: [
        (certificate(isTrusted: false), Reason.badCertificate),
        (certificate(until: Asker.start - .seconds(1)), .badCertificate),
        (certificate(topics: []), .badCertificate),
        (certificate(environments: [.production]), .badCertificateEnvironment),
        (certificate(topics: ["com.example.other"]), .topicDisallowed),
    ])
    func `a certificate is judged by the answer`(certificate: ClientCertificate, reason: Reason) throws {
        var asker = try Asker()
        asker.binding = ConnectionBinding(certificate: certificate)
        #expect(try asker.ask().reason == reason)
    }

    @Test func `location pushes need a token`() throws {
        var asker = try Asker()
        asker.binding = ConnectionBinding(certificate: Self.certificate())
        let answer = try asker.ask {
            $0.fields.pushType = "location"
            $0.fields.topic = "com.example.app.location-query"
        }
        #expect(answer.reason == .forbidden)
    }

    @Test func `the authority can read the certificates that it issues`() throws {
        let authority = try CertificateAuthority(now: Date())
        let topics = ["com.example.app", "com.example.app.voip"]
        let identity = try authority.makeClientIdentity(
            topics: topics, environments: [.production], from: Date() - 600, until: Date() + 600)
        let base64 = identity.certificate.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()
        let read = authority.clientCertificate(der: Array(try #require(Data(base64Encoded: base64))))
        #expect(read.topics == topics)
        #expect(read.environments == [.production])
        #expect(read.isValid(at: Timestamp(Date())))
        #expect(
            try CertificateAuthority(now: Date()).clientCertificate(der: Array(Data(base64Encoded: base64) ?? Data()))
                .isTrusted == false)
    }
}
