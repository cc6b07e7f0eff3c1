import CarillonBasics
import Foundation

enum TokenKeyFile {
    /// The key's ten characters in a name as Apple's portal gives it.
    static func identifier(_ path: String) -> String? {
        URL(filePath: path).lastPathComponent.firstMatch(of: /^AuthKey_([A-Za-z0-9]{10})\.p8$/).map { String($0.1) }
    }

    static func withoutIdentifier(_ path: String, option: String) -> String {
        guard PathPhrase.isShown(path) else {
            return "\(option) needs --key-id ID: the name of \(PathPhrase.subject(path)) is not like AuthKey_ABC1234567.p8."
        }
        let name = URL(filePath: path).lastPathComponent
        return "\(option) needs --key-id ID: the name \"\(name)\" is not like AuthKey_ABC1234567.p8."
    }
}

enum PassphraseFile {
    /// Its first line.
    static func read(_ path: String) throws -> String {
        let text = try InputFile.secretText(path)
        return text.split(separator: /\r?\n/, maxSplits: 1, omittingEmptySubsequences: false).first.map(String.init) ?? ""
    }
}
