import Foundation
import GRDB

/// The kinds of damage of disks.
enum Damage {
    /// Overwrites the first page of a table or an index in a database file that is not in use.
    static func overwrite(_ name: String, in path: String) throws {
        let queue = try DatabaseQueue(path: path)
        let (page, size) = try queue.read { db in
            (
                try Int.fetchOne(db, sql: "SELECT rootpage FROM sqlite_master WHERE name = ?", arguments: [name]) ?? 0,
                try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
            )
        }
        try queue.close()
        guard page > 1 else { throw CocoaError(.fileNoSuchFile) }
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64((page - 1) * size))
        try file.write(contentsOf: Data(repeating: 0xA5, count: size))
        try file.close()
    }
}
