import Foundation

/// Files that only their owner may read.
enum SecretFile {
    static func write(_ text: String, to file: URL) throws {
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        guard FileManager.default.createFile(atPath: file.path, contents: Data(text.utf8), attributes: attributes) else {
            throw CocoaError(.fileWriteUnknown)
        }
    }
}
