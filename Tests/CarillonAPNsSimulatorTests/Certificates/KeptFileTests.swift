import Foundation
import Testing

@testable import CarillonAPNsSimulator

/// The files that a simulator creates and reads in its data directory, and the files that it does not change.
struct KeptFileTests {
    private func withDirectory(_ work: (URL) throws -> Void) throws {
        let place = FileManager.default.temporaryDirectory.appending(path: "carillon-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: place) }
        try work(place)
    }

    private func make(in place: URL) throws(SimulatorError) -> APNsSimulator {
        var configuration = APNsSimulator.Configuration()
        configuration.dataDirectory = place.path
        return try APNsSimulator(configuration)
    }

    /// The kind of content of each file.
    private func contents(_ place: URL) throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: place.path) {
            contents[name] = try Data(contentsOf: place.appending(path: name))
        }
        return contents
    }

    @Test func `stored files are found again, and only their owner can read the secrets`() throws {
        try withDirectory { place in
            let first = try make(in: place)
            let files = try contents(place)
            #expect(Set(files.keys) == ["authority.pem", "authority-key.pem", "AuthKey_SIMULATED1.p8"])
            for (name, mode) in [("authority.pem", 0o644), ("authority-key.pem", 0o600), ("AuthKey_SIMULATED1.p8", 0o600)] {
                let attributes = try FileManager.default.attributesOfItem(atPath: place.appending(path: name).path)
                #expect((attributes[.posixPermissions] as? Int ?? 0) & 0o600 == 0o600)
                #expect((attributes[.posixPermissions] as? Int ?? 0) & 0o077 & ~mode == 0, "\(name)")
            }
            let second = try make(in: place)
            #expect(second.trustRoot == first.trustRoot)
            #expect(second.signingKey.privateKey == first.signingKey.privateKey)
            #expect(try contents(place) == files)
        }
    }

    /// Files that another program created, and the expected error messages.
    static let strange: [(files: [String: String], words: String)] = [
        (["authority.pem": "mine"], "without authority-key.pem"), (["authority-key.pem": "mine"], "without authority.pem"),
        (["authority.pem": "mine", "authority-key.pem": "mine"], "is damaged"),
        (["authority.pem": "", "authority-key.pem": ""], "is damaged"),
        (["AuthKey_SIMULATED1.p8": "mine"], "AuthKey_SIMULATED1.p8 cannot be used. The private key of"),
    ]

    @Test(arguments: strange.indices) func `a file that it did not make is not written over`(index: Int) throws {
        let (files, words) = Self.strange[index]
        try withDirectory { place in
            for (name, text) in files { try Data(text.utf8).write(to: place.appending(path: name)) }
            let error = #expect(throws: SimulatorError.self) { try make(in: place) }
            #expect(error?.code == .storageUnavailable)
            #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
            for internals in ["Error(", "ASN1", "NSCocoa", "CryptoKit", "domain"] {
                #expect(error?.message.contains(internals) == false, "\(error?.message ?? "")")
            }
            let after = try contents(place)
            for (name, text) in files { #expect(after[name] == Data(text.utf8)) }
        }
    }

    @Test func `a file that is created between the check and the write is not overwritten`() throws {
        try withDirectory { place in
            let file = place.appending(path: "file")
            try KeptFile.make("mine", at: file, isSecret: true)
            let error = #expect(throws: SimulatorError.self) { try KeptFile.make("other", at: file, isSecret: true) }
            #expect(error?.message.contains("already exists") == true, "\(error?.message ?? "")")
            #expect(try KeptFile.read(file) == "mine")
        }
    }

    @Test func `a link that leads nowhere is somebody's, too`() throws {
        try withDirectory { place in
            let target = place.appending(path: "elsewhere")
            try FileManager.default.createSymbolicLink(
                at: place.appending(path: "AuthKey_SIMULATED1.p8"), withDestinationURL: target)
            #expect(throws: SimulatorError.self) { try make(in: place) }
            #expect(!FileManager.default.fileExists(atPath: target.path))
        }
    }

    @Test func `a key of another authority is reported`() throws {
        try withDirectory { place in
            _ = try make(in: place)
            let other = try CertificateAuthority(now: Date())
            let key = place.appending(path: "authority-key.pem")
            try FileManager.default.removeItem(at: key)
            try KeptFile.make(other.keyPEM, at: key, isSecret: true)
            let error = #expect(throws: SimulatorError.self) { try make(in: place) }
            #expect(error?.message.contains("is not the key of authority.pem") == true, "\(error?.message ?? "")")
        }
    }

    @Test(arguments: [APNsSimulator.KeyType.p256, .rsa]) func `a client certificate has the requested key`(
        type: APNsSimulator.KeyType
    ) throws {
        let simulator = try APNsSimulator()
        let identity = try simulator.makeClientIdentity(topics: ["com.example.app"], keyType: type)
        #expect(identity.privateKey.contains("BEGIN PRIVATE KEY"))
        #expect((identity.privateKey.utf8.count > 1000) == (type == .rsa))
    }
}
