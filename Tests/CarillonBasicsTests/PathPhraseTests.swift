import CarillonBasics
import TestSupport
import Testing

struct PathPhraseTests {
    @Test(arguments: [
        "AuthKey_ABC1234567.p8", "/home/user/projects/carillon/secrets/of/2026/AuthKey_ABC1234567.p8", "keys/my key",
        "/home/user/projects/of/2026/carillon/secrets/key", "",
    ])
    func `a path is repeated`(path: String) {
        #expect(PathPhrase.subject(path, "the file ") == "the file \(path)")
    }

    @Test(arguments: KeySample.leftBare(KeySample.certificateKey) + [String(repeating: "a.", count: 128), "a\nb", "a\\nb"])
    func `a text that can be a key is not repeated`(text: String) {
        #expect(PathPhrase.subject(text, "the file ") == "the given text, which is not a path,")
    }
}
