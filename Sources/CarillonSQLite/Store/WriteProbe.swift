#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Finds out why a database cannot be written, because SQLite does not report the reason.
enum WriteProbe {
    /// Returns the `errno` of the first failed operation: opening the files of the database for writing, or writing a new file
    /// next to them. Nil if all operations succeed.
    static func cause(against path: String, in directory: String) -> Int32? {
        for file in [path, path + "-wal", path + "-shm"] where access(file, F_OK) == 0 {
            let descriptor = open(file, O_RDWR | O_CLOEXEC)
            if descriptor < 0 { return errno }
            close(descriptor)
        }
        let probe = directory + "/probe.\(getpid())"
        let descriptor = open(probe, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor < 0 { return errno }
        defer {
            close(descriptor)
            unlink(probe)
        }
        let block = [UInt8](repeating: 1, count: 65_536)
        let written = write(descriptor, block, block.count)
        if written < 0 { return errno }
        if written < block.count { return ENOSPC }
        return fsync(descriptor) == 0 ? nil : errno
    }
}
