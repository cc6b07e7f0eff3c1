import Dispatch

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

/// An open file of attachments. It is closed when it is released. Blocking operations run on separate threads.
final class DiskFile: Sendable {
    private let descriptor: Int32

    enum Use {
        case reading
        /// The content of an existing file stays.
        case going
        /// No file may exist at the path.
        case making
    }

    /// - Throws: ``PushError/Code/fileInvalid`` if the path is not a regular file, or the file cannot be opened.
    init(_ path: String, _ use: Use) throws(PushError) {
        let flags =
            switch use {
            case .reading: O_RDONLY | O_NONBLOCK
            case .going: O_RDWR | O_CREAT | O_NOFOLLOW
            case .making: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
            }
        descriptor = open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw PushError(file: path, errno) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw PushError(.fileInvalid, "\(path) is no file.")
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    func size() throws(PushError) -> Int64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw PushError(file: nil, errno) }
        return Int64(status.st_size)
    }

    func mark() throws(PushError) -> SteadyFile.Mark {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw PushError(file: nil, errno) }
        return SteadyFile.Mark(status)
    }

    /// Returns fewer bytes only at the end of the file.
    func read(at offset: Int64, count: Int) throws(PushError) -> Data {
        var data = Data(count: count)
        var filled = 0
        var fault: Int32 = 0
        data.withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return }
            while filled < count {
                let got = pread(descriptor, start + filled, count - filled, off_t(offset) + off_t(filled))
                if got < 0, errno == EINTR { continue }
                if got < 0 { fault = errno }
                if got <= 0 { return }
                filled += got
            }
        }
        guard fault == 0 else { throw PushError(file: nil, fault) }
        return filled == count ? data : data.prefix(filled)
    }

    func write(_ data: some DataProtocol, at offset: Int64) throws(PushError) {
        var place = off_t(offset)
        for region in data.regions {
            var fault: Int32 = 0
            region.withUnsafeBytes { bytes in
                guard let start = bytes.baseAddress else { return }
                var written = 0
                while written < bytes.count {
                    let count = pwrite(descriptor, start + written, bytes.count - written, place)
                    if count < 0, errno == EINTR { continue }
                    guard count > 0 else { return fault = count == 0 ? EIO : errno }
                    written += count
                    place += off_t(count)
                }
            }
            guard fault == 0 else { throw PushError(file: nil, fault) }
        }
    }

    func cut(to length: Int64) throws(PushError) {
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw PushError(file: nil, errno) }
    }

    func sync() throws(PushError) {
        #if canImport(Darwin)
            guard fcntl(descriptor, F_FULLFSYNC) == 0 || fsync(descriptor) == 0 else { throw PushError(file: nil, errno) }
        #else
            guard fsync(descriptor) == 0 else { throw PushError(file: nil, errno) }
        #endif
    }

    // MARK: Names

    /// Replaces a file, or makes it if it does not exist, with all its content at once.
    static func replace(_ path: String, with data: Data) throws(PushError) {
        let draft = path + ".new"
        unlink(draft)
        let file = try DiskFile(draft, .making)
        try file.write(data, at: 0)
        try file.sync()
        guard rename(draft, path) == 0 else { throw PushError(file: path, errno) }
        try syncDirectory(of: path)
    }

    /// Moves a file to its final name, unless a file with this name exists.
    static func publish(_ draft: String, as path: String) throws(PushError) {
        guard link(draft, path) == 0 else {
            let cause = errno
            // An earlier call was interrupted by the end of the process.
            if cause == EEXIST, let names = namesOfSame(draft, path) {
                // Two different paths can be the same name of the file, which must not be removed if it is the only name.
                if draft != path, names > 1 { unlink(draft) }
                return
            }
            if cause == EEXIST { throw PushError(.fileExists, "\(path) is there already; it was left as it is.") }
            throw PushError(file: path, cause)
        }
        unlink(draft)
        try syncDirectory(of: path)
    }

    /// Returns the number of names of a file; nil if the paths are of different files.
    private static func namesOfSame(_ one: String, _ other: String) -> Int? {
        var (first, second) = (stat(), stat())
        guard lstat(one, &first) == 0, lstat(other, &second) == 0, first.st_ino == second.st_ino,
            first.st_dev == second.st_dev
        else { return nil }
        return Int(first.st_nlink)
    }

    static func makeDirectory(_ path: String) throws(PushError) {
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw PushError(.storageUnavailable, "The directory \(path) cannot be made.", cause: error)
        }
    }

    static func directory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func syncDirectory(of path: String) throws(PushError) {
        let descriptor = open(directory(of: path), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw PushError(file: path, errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw PushError(file: path, errno) }
    }

    /// Runs a blocking operation on the queue for the disk.
    static func work<Value: Sendable>(
        _ body: @escaping @Sendable () throws(PushError) -> Value
    ) async throws(PushError) -> Value {
        let result: Result<Value, PushError> = await withCheckedContinuation { continuation in
            queue.async {
                do throws(PushError) {
                    continuation.resume(returning: .success(try body()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    private static let queue = DispatchQueue(label: "carillon.attachments", attributes: .concurrent)
}

extension PushError {
    /// The causes that do not concern one file: a full or read-only disk, an error of the disk, and too many open files.
    private static let storageCauses: Set<Int32> = [ENOSPC, EDQUOT, EIO, EROFS, EMFILE, ENFILE]

    /// Makes the error for an error number of the system.
    init(file path: String?, _ cause: Int32) {
        let reason = String(cString: strerror(cause))
        self.init(
            Self.storageCauses.contains(cause) ? .storageUnavailable : .fileInvalid,
            path.map { "\($0): \(reason)" } ?? reason)
    }
}
