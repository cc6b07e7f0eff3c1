import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import Foundation
import HTTPTypes
import NIOSSL
import SwiftASN1
import TestSupport
import Testing
import X509

@testable import CarillonServer

/// The push credentials that an operator sets for an app, and the refused ones.
@Suite(.timeLimit(.minutes(5)))
struct CredentialTests {
    private static let wrapping = WrappingKey(bytes: Array(repeating: 1, count: 32))
    private static let path = "/v1/apps/com.example.app/credentials/"

    private func routes(key: WrappingKey? = wrapping) async throws -> RouteFixture {
        let routes = try await RouteFixture(key: key)
        #expect(try await routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"com.example.app"}"#).status == 201)
        return routes
    }

    private func body(_ members: [String: String]) throws -> String {
        String(decoding: try JSONEncoder().encode(members), as: UTF8.self)
    }

    private func token(
        _ pem: String = P256.Signing.PrivateKey().pemRepresentation, bundleID: String = "com.example.app"
    ) throws -> String {
        try body(["p8": pem, "keyID": "ABC1234567", "teamID": "DEF1234567", "bundleID": bundleID])
    }

    /// A certificate like Apple's: the bundle ID is in its subject, and an extension contains the environment.
    private func certificate(
        for bundleID: String = "com.example.app", environment: UInt = 2, from: TimeInterval = -60, until: TimeInterval = 600
    ) throws -> (pem: String, key: String) {
        let key = P256.Signing.PrivateKey()
        let subject = DistinguishedName([
            RelativeDistinguishedName(
                RelativeDistinguishedName.Attribute(
                    type: [0, 9, 2342, 19_200_300, 100, 1, 1], utf8String: bundleID))
        ])
        let mark = Certificate.Extension(
            oid: [1, 2, 840, 113_635, 100, 6, 3, environment], critical: false, value: [5, 0][...])
        let made = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(key.publicKey),
            notValidBefore: Date(timeIntervalSinceNow: from), notValidAfter: Date(timeIntervalSinceNow: until),
            issuer: subject, subject: subject, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions([mark]), issuerPrivateKey: .init(key))
        return (try made.serializeAsPEM().pemString, key.pemRepresentation)
    }

    private func certificateBody(_ certificate: (pem: String, key: String)) throws -> String {
        try body(["certificate": certificate.pem, "privateKey": certificate.key])
    }

    @Test func `credentials take no room in the memory of documents`() async throws {
        let routes = try await routes()
        let set = try await routes.request(.put, Self.path + "production", key: routes.admin, try token())
        #expect(set.status == 200)
        try await routes.domain.gateways.open()
        let app = try await routes.domain.serial(ofApp: "com.example.app")
        let found = try await routes.domain.gateways.credentials(of: try AppID.checked("com.example.app"))
        #expect(found.map { $0.credential.queue.environment } == [.production])
        for environment in PushEnvironment.allCases {
            let queue = PushQueue(app: app, environment: environment)
            #expect(!routes.domain.documents.remembers(queue.credential), "\(environment)")
        }
        await routes.domain.gateways.close()
    }

    @Test func `the runner of a home that ends leaves the gateways to the others`() async throws {
        let routes = try await routes()
        let gateways = routes.domain.gateways
        #expect(try await routes.request(.put, Self.path + "production", key: routes.admin, try token()).status == 200)
        let time = routes.domain.time
        let outboxes = (0..<2).map { _ in Outbox(store: routes.domain.pushes, time: time) }
        for outbox in outboxes { try await gateways.open(for: outbox) }
        let queue = PushQueue(app: try await routes.domain.serial(ofApp: "com.example.app"), environment: .production)
        await gateways.close(for: outboxes[0])
        #expect(gateways.isConfigured(queue))
        await gateways.close(for: outboxes[1])
        #expect(!gateways.isConfigured(queue))
    }

    @Test func `a signing key is set, listed without its secret, set anew, and removed`() async throws {
        let routes = try await routes()
        let secret = P256.Signing.PrivateKey().pemRepresentation
        let set = try await routes.request(.put, Self.path + "production", key: routes.admin, try token(secret))
        #expect(set.status == 200 && set["kind"] == "token" && set["keyID"] == "ABC1234567" && set["teamID"] == "DEF1234567")
        #expect(set["bundleID"] == "com.example.app")
        #expect(!String(decoding: set.body, as: UTF8.self).contains("PRIVATE"))
        #expect(try await routes.request(.put, Self.path + "production", key: routes.admin, try token()).status == 200)
        let list = try await routes.request(.get, "/v1/apps/com.example.app/credentials", key: routes.admin)
        guard case .array(let all)? = list.json?["credentials"] else { throw NoList() }
        #expect(all.count == 1 && all[0]["environment"] == .string("production"))
        #expect(try await routes.request(.delete, Self.path + "production", key: routes.admin).status == 204)
        let again = try await routes.request(.delete, Self.path + "production", key: routes.admin)
        #expect(again.status == 404 && again.code == "credentials_unknown")
    }

    private struct NoList: Error {}

    @Test func `a certificate is set for its app and its environment`() async throws {
        let routes = try await routes()
        let set = try await routes.request(
            .put, Self.path + "production", key: routes.admin, try certificateBody(try certificate()))
        #expect(set.status == 200 && set["kind"] == "certificate" && !set["expiresAt"].isEmpty)
        #expect(
            try await routes.request(
                .put, Self.path + "sandbox", key: routes.admin, try certificateBody(try certificate(environment: 1))
            ).status == 200)
    }

    @Test func `a PKCS 12 file is set with its passphrase, and refused without`() async throws {
        let routes = try await routes()
        let certificate = try certificate()
        let bundle = NIOSSLPKCS12Bundle(
            certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(certificate.pem.utf8)),
            privateKey: try NIOSSLPrivateKey(bytes: Array(certificate.key.utf8), format: .pem))
        let file = Data(try bundle.serialize(passphrase: "open".utf8)).base64EncodedString()
        let set = try await routes.request(
            .put, Self.path + "production", key: routes.admin, try body(["p12": file, "passphrase": "open"]))
        #expect(set.status == 200 && set["kind"] == "certificate" && set["bundleID"] == "com.example.app")
        #expect(!set["expiresAt"].isEmpty)
        for wrong in [["p12": file, "passphrase": "shut"], ["p12": file]] {
            let answer = try await routes.request(.put, Self.path + "production", key: routes.admin, try body(wrong))
            #expect(answer.status == 400 && answer.code == "credentials_invalid" && answer["detail"].contains("passphrase"))
        }
    }

    @Test func `invalid credentials are refused with the reason, and the earlier ones stay`() async throws {
        let routes = try await routes()
        let first = try await routes.request(.put, Self.path + "production", key: routes.admin, try token())
        #expect(first.status == 200)
        let wrong: [(String, String, String)] = [
            (try token("nonsense"), "credentials_invalid", "P-256"),
            (try token(P384.Signing.PrivateKey().pemRepresentation), "credentials_invalid", "P-256"),
            (
                try body(["p8": P256.Signing.PrivateKey().pemRepresentation, "keyID": "short", "teamID": "DEF1234567"]),
                "credentials_invalid", "10"
            ),
            (try token(bundleID: ""), "credentials_invalid", "bundleID"),
            (try token(bundleID: "com.example app"), "credentials_invalid", "bundleID"),
            (try token(bundleID: "com.example\n"), "credentials_invalid", "bundleID"),
            (try body(["p8": "x", "keyID": "ABC1234567"]), "field_missing", "teamID"),
            (try body(["p12": "AAAA"]), "credentials_invalid", ".p12"),
            (try body(["p12": "%%"]), "field_invalid", "base64"),
            (try body([:]), "field_missing", "p8"),
            (try body(["p8": "x", "p12": "AAAA"]), "field_missing", "one of"),
            (#"{"p8":7,"keyID":"ABC1234567","teamID":"DEF1234567"}"#, "field_invalid", "text"),
            (#"{"p9":"x"}"#, "field_unknown", "p9"),
            (try certificateBody(try certificate(for: "com.example.other")), "credentials_invalid", "com.example.other"),
            (try certificateBody(try certificate(environment: 1)), "credentials_invalid", "production"),
            (try certificateBody(try certificate(from: -600, until: -60)), "credentials_invalid", "expired"),
            (try certificateBody(try certificate(from: 300, until: 600)), "credentials_invalid", "not valid"),
            (try certificateBody((try certificate().pem, "nonsense")), "credentials_invalid", "key"),
        ]
        for (body, code, part) in wrong {
            let answer = try await routes.request(.put, Self.path + "production", key: routes.admin, body)
            #expect(answer.status == 400 && answer.code == code, "\(body.prefix(40))")
            #expect(answer["detail"].contains(part), "\(answer["detail"])")
        }
        let list = try await routes.request(.get, "/v1/apps/com.example.app/credentials", key: routes.admin)
        guard case .array(let all)? = list.json?["credentials"] else { throw NoList() }
        #expect(all.first?["setAt"] == .string(first["setAt"]))
    }

    @Test func `push credentials need a key file, an app, an environment of Apple's, and an operator`() async throws {
        let bare = try await routes(key: nil)
        let refused = try await bare.request(.put, Self.path + "production", key: bare.admin, try token())
        #expect(refused.status == 409 && refused.code == "key_file_missing")
        let routes = try await routes()
        let none = try await routes.request(
            .put, "/v1/apps/com.example.none/credentials/production", key: routes.admin, try token())
        #expect(none.status == 404 && none.code == "app_unknown")
        #expect(
            try await routes.request(.put, Self.path + "staging", key: routes.admin, try token()).code == "parameter_invalid"
        )
        #expect(try await routes.request(.put, Self.path + "test", key: routes.admin, try token()).code == "field_invalid")
        let (_, credential, client) = try await routes.device()
        for key in [credential, client, nil] {
            let answer = try await routes.request(.put, Self.path + "production", key: key, try token())
            #expect(answer.status == 401 || answer.status == 403)
            #expect(try await routes.request(.get, "/v1/apps/com.example.app/pushes/test", key: key).status >= 401)
            #expect(
                try await routes.request(.put, "/v1/apps/com.example.app/alert", key: key, #"{"title":"x"}"#).status >= 401)
        }
    }

    @Test func `an alert's text is set, shown and removed`() async throws {
        let routes = try await routes()
        let path = "/v1/apps/com.example.app/alert"
        #expect(try await routes.request(.get, path, key: routes.admin).status == 404)
        let set = try await routes.request(
            .put, path, key: routes.admin, #"{"titleKey":"NEW","body":"Look","sound":"default"}"#)
        #expect(set.status == 200 && set["titleKey"] == "NEW")
        let shown = try await routes.request(.get, path, key: routes.admin)
        #expect(shown["body"] == "Look" && shown["sound"] == "default")
        let wrong = [
            #"{"sound":"default"}"#, #"{"title":"a","titleKey":"b"}"#, #"{"title":""}"#, #"{"title":7}"#, "{}",
            #"{"title":"\#(String(repeating: "x", count: 513))"}"#, #"{"subtitle":"x"}"#,
        ]
        for body in wrong {
            #expect(try await routes.request(.put, path, key: routes.admin, body).status == 400, "\(body.prefix(30))")
        }
        #expect(try await routes.request(.get, path, key: routes.admin)["body"] == "Look")
        #expect(try await routes.request(.delete, path, key: routes.admin).status == 204)
        #expect(try await routes.request(.get, path, key: routes.admin).status == 404)
    }
}

struct KeyFileTests {
    @Test func `a key file is made once, for its owner alone, and read again`() throws {
        let path = try TemporaryDirectory.make() + "/key"
        _ = try KeyFile.open(path)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.utf8.count == 65)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        _ = try KeyFile.open(path)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
    }

    @Test(arguments: [
        "", "00", String(repeating: "0", count: 63), String(repeating: "0", count: 66), String(repeating: "g", count: 64),
    ])
    func `a file that is none is refused, and left as it is`(_ text: String) throws {
        let path = try TemporaryDirectory.make() + "/key"
        try Data(text.utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        #expect(throws: KeyFile.Fault.self) { _ = try KeyFile.open(path) }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
    }

    @Test(arguments: [0o604, 0o660, 0o644, 0o444, 0o602, 0o601, 0o620, 0o610])
    func `a file with permissions for others, or that its group can change, is refused`(_ mode: Int) throws {
        let path = try TemporaryDirectory.make() + "/key"
        _ = try KeyFile.open(path)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        let fault = #expect(throws: KeyFile.Fault.self) { _ = try KeyFile.open(path) }
        #expect(fault?.sentence.contains("chmod") == true)
    }

    @Test(arguments: [0o400, 0o440, 0o600, 0o640])
    func `a file of the process's user that its group can read at most is accepted`(_ mode: Int) throws {
        let path = try TemporaryDirectory.make() + "/key"
        _ = try KeyFile.open(path)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        _ = try KeyFile.open(path)
    }

    @Test func `a place that cannot be written is reported`() {
        #expect(throws: KeyFile.Fault.self) { _ = try KeyFile.open("/nowhere/at/all") }
    }
}
