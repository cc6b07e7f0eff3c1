import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Copies the files of complete attachments next to a backup: `<backup>.attachments/aa/bb/<id>`. The files never change, so on
/// the same disk they are hard links and use no space.
///
/// Incomplete uploads are not copied. Their senders must begin them again.
enum AttachmentCopies {
    static func directory(of backup: String) -> String { backup + ".attachments" }

    /// Copies the attachments that the database contains. Attachments that were removed meanwhile are left out.
    ///
    /// - Parameters:
    ///   - source: The folder with `aa/bb/<id>`.
    ///   - target: The folder for the copies, with the same structure. Existing files belong to an incomplete attempt and are
    ///     removed.
    static func copy(namedIn database: String, from source: String, to target: String) throws {
        if StoreFile.exists(target) { try FileManager.default.removeItem(atPath: target) }
        var made: Set<String> = []
        do {
            try StoreFile.read(database) { db in
                guard try db.tableExists("attachment") else { return }
                let rows = try Data.fetchCursor(db, sql: "SELECT id FROM attachment WHERE is_complete")
                while let bytes = try rows.next() {
                    guard let id = AttachmentID(Array(bytes)) else { continue }
                    try copy(AttachmentFolder.path(of: id), from: source, to: target, &made)
                }
            }
        } catch {
            try? FileManager.default.removeItem(atPath: target)
            throw error
        }
        // The deepest directories are synchronized first, so that an entry is on disk after the directory that it names.
        for directory in made.sorted(by: >) { try sync(directory) }
    }

    private static func copy(_ name: String, from source: String, to target: String, _ made: inout Set<String>) throws {
        let (from, to) = ("\(source)/\(name)", "\(target)/\(name)")
        guard StoreFile.exists(from) else { return }
        try makeDirectory(StoreFile.directory(of: to), below: StoreFile.directory(of: target), &made)
        if link(from, to) == 0 { return }
        guard errno == EXDEV || errno == EPERM || errno == EMLINK else { return try fail(to) }
        do {
            try FileManager.default.copyItem(atPath: from, toPath: to)
        } catch {
            guard StoreFile.exists(from) else { return }
            throw error
        }
        chmod(to, 0o600)
        try sync(to)
    }

    private static func makeDirectory(_ path: String, below parent: String, _ made: inout Set<String>) throws {
        guard path != parent, !made.contains(path) else { return }
        try makeDirectory(StoreFile.directory(of: path), below: parent, &made)
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { return try fail(path) }
        made.formUnion([path, StoreFile.directory(of: path)])
    }

    private static func sync(_ path: String) throws {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return try fail(path) }
        defer { close(file) }
        guard fsync(file) == 0 else { return try fail(path) }
    }

    private static func fail(_ path: String) throws { throw StoreOpenFault(unusable: path, cause: errno) }
}
