import Foundation

/// The signing key of a new simulator, as the `.p8` file that a developer downloads.
enum SigningKeyFile {
    static func kept(in directory: String?) throws(SimulatorError) -> SigningKey {
        let fresh = try SigningKey()
        guard let directory, let pem = fresh.privateKey else { return fresh }
        let file = URL(fileURLWithPath: directory).appendingPathComponent("AuthKey_\(fresh.id).p8")
        guard KeptFile.isThere(file) else {
            try KeptFile.make(pem, at: file, isSecret: true)
            return fresh
        }
        do {
            return try SigningKey(id: fresh.id, teamID: fresh.teamID, privateKey: try KeptFile.read(file))
        } catch  where error.code == .keyInvalid {
            throw SimulatorError(
                .storageUnavailable, "\(file.path) cannot be used. \(error.message) To create a new key, remove the file.",
                cause: error)
        }
    }
}
