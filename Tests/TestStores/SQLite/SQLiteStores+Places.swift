import Foundation

extension SQLiteStores {
    private static let database = "carillon.sqlite"

    package func isClosed(at place: String) throws -> Bool {
        guard try Self.files(in: place).contains(Self.database) else { return false }
        // The last connection empties the log, or removes it.
        let log = FileManager.default.contents(atPath: "\(place)/\(Self.database)-wal")
        return log?.isEmpty ?? true
    }

    package func replaceStore(in place: String, withStoreOf other: String) async throws {
        try await removeStore(in: place)
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        for name in try Self.files(in: other) {
            try FileManager.default.copyItem(atPath: "\(other)/\(name)", toPath: "\(place)/\(name)")
        }
    }

    package func removeStore(in place: String) async throws {
        for name in try Self.files(in: place) { try FileManager.default.removeItem(atPath: "\(place)/\(name)") }
    }

    /// The files of the store in a place that may contain others.
    private static func files(in place: String) throws -> [String] {
        guard FileManager.default.fileExists(atPath: place) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: place).filter { $0.hasPrefix(database) }
    }
}
