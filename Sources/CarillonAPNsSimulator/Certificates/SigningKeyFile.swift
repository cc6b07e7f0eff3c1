import Foundation

/// The key that a simulator has from the start, as the `.p8` file that a developer downloads.
enum SigningKeyFile {
    static func kept(in directory: String?) throws(SimulatorError) -> SigningKey {
        let fresh = try SigningKey()
        guard let directory, let pem = fresh.privateKey else { return fresh }
        let file = URL(fileURLWithPath: directory).appendingPathComponent("AuthKey_\(fresh.id).p8")
        do {
            if FileManager.default.fileExists(atPath: file.path) {
                return try SigningKey(
                    id: fresh.id, teamID: fresh.teamID, privateKey: String(contentsOf: file, encoding: .utf8))
            }
            try SecretFile.write(pem, to: file)
            return fresh
        } catch let error as SimulatorError {
            throw error
        } catch {
            throw SimulatorError(.storageUnavailable, "\(file.path) cannot be read or written: \(error)", cause: error)
        }
    }
}
