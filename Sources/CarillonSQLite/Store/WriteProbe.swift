#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Finds out why a database cannot be written, which SQLite does not say.
enum WriteProbe {
    /// The `errno` of the first thing that this process cannot do: open the files of the database for writing, or
    /// write a new file beside it. Nil when it can do all of that.
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
