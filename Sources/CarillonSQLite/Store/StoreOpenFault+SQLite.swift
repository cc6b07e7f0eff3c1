package import CarillonCore
import GRDB

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

extension StoreOpenFault {
    static func locked(_ path: String) -> StoreOpenFault {
        StoreOpenFault(
            kind: .locked,
            description:
                "The data directory \(path) is in use by another carillon process. Stop that process, or use it with --server."
        )
    }

    static func missing(_ directory: String) -> StoreOpenFault {
        StoreOpenFault(
            kind: .missing,
            description: "\(directory) contains no data of a Carillon server. Name the data directory of a server.")
    }

    static func taken(_ path: String) -> StoreOpenFault {
        StoreOpenFault(kind: .taken, description: "\(path) already exists and was not changed. Move it away first.")
    }

    static func empty(_ path: String) -> StoreOpenFault {
        StoreOpenFault(
            kind: .empty,
            description: """
                \(path) is empty, although it was a database: it was emptied, or copied from a running server \
                without its -wal file. Restore a backup, or remove the file to start with no data.
                """)
    }

    static func withoutDatabase(_ path: String) -> StoreOpenFault {
        StoreOpenFault(
            kind: .empty,
            description: """
                \(path) is missing, but its log exists. Put the file back next to the log, or restore a backup; to start with \
                no data, remove the log.
                """)
    }

    static func newer(_ path: String, found: Int) -> StoreOpenFault {
        StoreOpenFault(
            kind: .newer,
            description: """
                \(path) was written by a newer Carillon (format \(found); this program supports \(Schema.version)). \
                Use that version, or restore a backup.
                """)
    }

    /// - Parameter difference: The fault of the table, as the rest of a sentence that begins with its name.
    static func different(_ path: String, table: String, _ difference: String) -> StoreOpenFault {
        StoreOpenFault(
            kind: .different,
            description: """
                \(path) does not have the tables of format \(Schema.version): the table "\(table)" \(difference). Another \
                development version of Carillon wrote it. It was not changed. Use that version, or restore a backup.
                """)
    }

    static func foreign(_ path: String) -> StoreOpenFault {
        StoreOpenFault(kind: .foreign, description: "\(path) is a database of another program. Choose another directory.")
    }

    static func damaged(_ path: String, _ reason: String) -> StoreOpenFault {
        StoreOpenFault(
            kind: .damaged,
            description: "\(path) is damaged (\(reason)) and was not changed. Restore a backup, or move the file away.")
    }

    /// - Parameter cause: The operating system's `errno`.
    package init(unusable path: String, cause: Int32) {
        let reason = String(cString: strerror(cause))
        switch cause {
        case ENOSPC, EDQUOT:
            self.init(kind: .full, description: "The disk of \(path) is full (\(reason)). Free space on the disk.")
        case EACCES, EPERM:
            self.init(
                kind: .notWritable,
                description: "\(path) cannot be written (\(reason)). Allow this user to write there.")
        case EROFS:
            self.init(
                kind: .notWritable,
                description: "\(path) cannot be written (\(reason)). Mount its file system for writing.")
        case ENOENT:
            self.init(
                kind: .notWritable,
                description: "\(path) cannot be written (\(reason)). Create its directory.")
        default:
            self.init(kind: .notWritable, description: "\(path) cannot be written (\(reason)).")
        }
    }

    /// - Parameter directory: The directory where SQLite could not write, if this is the fault. SQLite does not report the
    ///   reason, so a write is tried.
    init(_ error: DatabaseError, path: String, probing directory: String) {
        let reason = error.message ?? "SQLite error \(error.resultCode.rawValue)"
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT:
            self = .damaged(path, reason)
        case .SQLITE_FULL:
            self.init(unusable: path, cause: ENOSPC)
        case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_IOERR:
            if let cause = WriteProbe.cause(against: path, in: directory) {
                self.init(unusable: path, cause: cause)
            } else {
                self.init(kind: .other, description: "\(path) cannot be used: \(reason).")
            }
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self = .locked(path)
        default:
            self.init(kind: .other, description: "\(path) cannot be used: \(reason).")
        }
    }
}
