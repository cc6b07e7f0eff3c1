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

/// A file that must not change while it is sealed: its size, modification time and inode are compared before and after.
struct SteadyFile: Sendable {
    let path: String

    private static let mostAttempts = 2

    /// Seals the file to a new file, and starts again if the file changed meanwhile. Each attempt has its own key, so that no two
    /// contents are sealed with one key.
    ///
    /// - Parameter make: Seals an open file with a key to a new file.
    /// - Throws: ``PushError/Code/attachmentChanged`` if the file changed in each attempt, and the errors of `make`.
    func seal(
        to sealed: String,
        by make: (DiskFile, DiskFile, Data) throws(PushError) -> SealedFile.Made = SealedFile.make(of:at:key:)
    ) throws(PushError) -> (made: SealedFile.Made, key: Data) {
        for _ in 0..<Self.mostAttempts {
            let source = try DiskFile(path, .reading)
            let before = try source.mark()
            let key = ChunkSeal.makeKey()
            let made = try make(source, try DiskFile(sealed, .making), key)
            if try source.mark() == before, Self.mark(of: path) == before { return (made, key) }
            unlink(sealed)
        }
        throw PushError(.attachmentChanged, "\(path) changed while it was read; send it when nothing writes to it.")
    }

    /// The attributes that change when the content of a file changes.
    struct Mark: Equatable, Sendable {
        var device: UInt64
        var inode: UInt64
        var size: Int64
        var seconds: Int64
        var nanoseconds: Int64

        init(_ status: stat) {
            device = UInt64(truncatingIfNeeded: status.st_dev)
            inode = UInt64(truncatingIfNeeded: status.st_ino)
            size = Int64(status.st_size)
            #if canImport(Darwin)
                let time = status.st_mtimespec
            #else
                let time = status.st_mtim
            #endif
            (seconds, nanoseconds) = (Int64(time.tv_sec), Int64(time.tv_nsec))
        }
    }

    /// Returns nil if no file has the name any more.
    private static func mark(of path: String) -> Mark? {
        var status = stat()
        return stat(path, &status) == 0 ? Mark(status) : nil
    }
}
