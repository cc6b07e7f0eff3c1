import GRDB

/// Why a data directory cannot be used, in words for the operator. Nothing in it was changed.
package struct StoreOpenFault: Error, Equatable, CustomStringConvertible {
    package enum Kind: Equatable, Sendable {
        case locked
        case notWritable
        case newer
        case foreign
        case damaged
        case other
    }

    package var kind: Kind
    package var description: String

    static func locked(_ path: String) -> StoreOpenFault {
        StoreOpenFault(
            kind: .locked,
            description:
                "The data directory \(path) is in use by another carillon process. Stop it, or reach it with --server.")
    }

    static func notWritable(_ path: String, _ reason: String) -> StoreOpenFault {
        StoreOpenFault(
            kind: .notWritable,
            description: "The data directory \(path) cannot be written (\(reason)). Give this user write access to it.")
    }

    static func newer(_ path: String, found: Int) -> StoreOpenFault {
        StoreOpenFault(
            kind: .newer,
            description: """
                \(path) was written by a newer Carillon (format \(found); this program knows \(Schema.version)). \
                Use that version, or restore a backup.
                """)
    }

    static func foreign(_ path: String) -> StoreOpenFault {
        StoreOpenFault(kind: .foreign, description: "\(path) is a database, but not Carillon's. Choose another directory.")
    }

    static func damaged(_ path: String, _ reason: String) -> StoreOpenFault {
        StoreOpenFault(
            kind: .damaged,
            description: "\(path) is damaged (\(reason)). It was left as it is; restore a backup, or move it away.")
    }

    init(kind: Kind, description: String) {
        self.kind = kind
        self.description = description
    }

    init(_ error: DatabaseError, path: String) {
        let reason = error.message ?? "SQLite error \(error.resultCode.rawValue)"
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT:
            self = .damaged(path, reason)
        case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM:
            self = .notWritable(path, reason)
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self = .locked(path)
        default:
            self.init(kind: .other, description: "\(path) cannot be opened: \(reason).")
        }
    }
}
