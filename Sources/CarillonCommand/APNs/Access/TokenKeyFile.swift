import CarillonBasics
import Foundation

enum TokenKeyFile {
    /// Returns the ten characters of the key's ID from a file name in the form of Apple's portal.
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
    /// Returns the first line of the file.
    static func read(_ path: String) throws -> String {
        let text = try InputFile.secretText(path)
        return text.split(separator: /\r?\n/, maxSplits: 1, omittingEmptySubsequences: false).first.map(String.init) ?? ""
    }
}
