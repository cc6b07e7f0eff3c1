import CarillonBasics
import Foundation
import TestSupport
import Testing

struct PathPhraseTests {
    private static let hidden = "the file (its path is not shown because it could be a key)"
    /// Texts without a directory that exists.
    private static let texts = [
        String(repeating: "a.", count: 128), "a\nb", "a\\nb", "//" + String(repeating: "0a", count: 32),
        "deploy/no-such/apns/team-DEF1234567/sandbox",
    ]

    @Test(arguments: [
        "AuthKey_ABC1234567.p8", "/home/user/projects/carillon/secrets/of/2026/AuthKey_ABC1234567.p8", "keys/my key",
        "/home/user/projects/of/2026/carillon/secrets/key", "",
    ])
    func `a path is repeated`(path: String) {
        #expect(PathPhrase.subject(path, "the file ") == "the file \(path)")
    }

    @Test(arguments: [
        "pods/8f14e45f-ceea-467f-a8b2-1d2c3e4f5a6b/volumes/keys", String(repeating: "deploy/production/", count: 20),
        "", "with\\name", "-----",
    ])
    func `a path that resembles a key is repeated if its directory exists`(directory: String) throws {
        let parent = try TemporaryDirectory.make() + "/" + directory
        try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        // The last component resembles a key in any temporary directory.
        let name = "key " + String(repeating: "0a", count: 32)
        let path = "\(parent)/\(name)"
        #expect(PathPhrase.subject(path, "the file ") == "the file \(path)")
        #expect(!PathPhrase.isShown("\(parent)-of-another/\(name)"))
        #expect(!PathPhrase.isShown(path + "\nb"))
    }

    @Test(arguments: KeySample.leftBare(KeySample.certificateKey) + Self.texts)
    func `a text that can be a key is not repeated`(text: String) {
        #expect(PathPhrase.subject(text, "the file ") == Self.hidden)
    }
}
