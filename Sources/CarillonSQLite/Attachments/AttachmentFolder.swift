package import CarillonCore
package import CarillonWire
import Crypto
import Dispatch

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The files of attachments beside the database: `attachments/aa/bb/<id>`, and with `.part` while one grows.
///
/// What is answered is on disk: of a file its bytes, of a name its directory.
package struct AttachmentFolder: AttachmentFiles {
    /// Writes bytes to a file at an offset, as `pwrite` does.
    package typealias Write = @Sendable (_ file: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int

    private let path: String
    private let write: Write
    private let thread = DiskThreads()

    /// - Parameter directory: The data directory.
    package init(
        in directory: String, write: @escaping Write = { pwrite($0, $1.baseAddress, $1.count, off_t($2)) }
    ) {
        path = Self.path(in: directory)
        self.write = write
    }

    static func path(in directory: String) -> String { directory + "/attachments" }

    private static let growing = ".part"

    private struct Place {
        /// From the folder down to where the file is.
        var directories: [String]
        var file: String
    }

    private func place(of id: AttachmentID) -> Place {
        let file = "\(path)/\(Self.path(of: id))"
        let inner = StoreFile.directory(of: file)
        return Place(directories: [path, StoreFile.directory(of: inner), inner], file: file)
    }

    /// In the folder: `aa/bb/<id>`, after the part of the name that differs.
    static func path(of id: AttachmentID) -> String {
        let name = id.description
        let digits = name.dropFirst(4)
        return "\(digits.prefix(2))/\(digits.dropFirst(2).prefix(2))/\(name)"
    }

    // MARK: One that grows

    package func create(_ id: AttachmentID) async throws {
        try await thread.run {
            let place = place(of: id)
            var parent = StoreFile.directory(of: path)
            for directory in place.directories {
                if mkdir(directory, 0o700) == 0 {
                    try Self.syncDirectory(parent)
                } else if errno != EEXIST {
                    throw StoreFault(disk: errno)
                }
                parent = directory
            }
            let file = openFile(place.file + Self.growing, O_WRONLY | O_CREAT | O_EXCL)
            guard file >= 0 else { throw StoreFault(disk: errno) }
            close(file)
            do {
                try Self.syncDirectory(parent)
            } catch {
                unlink(place.file + Self.growing)
                throw error
            }
        }
    }

    package func openGrowing(_ id: AttachmentID, at offset: Int64) async throws -> (any GrowingFile)? {
        try await thread.run {
            let place = place(of: id)
            var file = openFile(place.file + Self.growing, O_WRONLY)
            // It may have been given its name before the row could say that it is whole.
            if file < 0, errno == ENOENT, rename(place.file, place.file + Self.growing) == 0 {
                file = openFile(place.file + Self.growing, O_WRONLY)
            }
            guard file >= 0 else {
                if errno == ENOENT { return nil }
                throw StoreFault(disk: errno)
            }
            let handle = DiskFile(file, thread, write)
            guard try handle.size() >= offset else { return nil }
            // What lies behind was never answered.
            guard ftruncate(file, off_t(offset)) == 0 else { throw StoreFault(disk: errno) }
            return handle
        }
    }

    package func publish(_ id: AttachmentID) async throws {
        try await thread.run {
            let place = place(of: id)
            if rename(place.file + Self.growing, place.file) != 0 {
                guard errno == ENOENT, StoreFile.exists(place.file) else { throw StoreFault(disk: errno) }
            }
            try Self.syncDirectory(StoreFile.directory(of: place.file))
        }
    }

    package func digest(ofGrowing id: AttachmentID) async throws -> [UInt8] {
        try await thread.run {
            let file = openFile(place(of: id).file + Self.growing, O_RDONLY)
            guard file >= 0 else { throw StoreFault(disk: errno) }
            let handle = DiskFile(file, thread, write)
            var hash = SHA256()
            var offset: Int64 = 0
            while true {
                let part = try handle.readNow(at: offset, count: 1 << 20)
                if part.isEmpty { return Array(hash.finalize()) }
                hash.update(data: part)
                offset += Int64(part.count)
            }
        }
    }

    // MARK: One that has its name

    package func open(_ id: AttachmentID) async throws -> (any ReadableFile)? {
        try await thread.run {
            let file = openFile(place(of: id).file, O_RDONLY)
            if file >= 0 { return DiskFile(file, thread, write) }
            if errno == ENOENT { return nil }
            throw StoreFault(disk: errno)
        }
    }

    package func remove(_ ids: [AttachmentID]) async throws {
        guard !ids.isEmpty else { return }
        try await thread.run {
            for id in ids {
                let file = place(of: id).file
                for name in [file, file + Self.growing] {
                    guard unlink(name) == 0 || errno == ENOENT else { throw StoreFault(disk: errno) }
                }
            }
        }
    }

    package func freeBytes() async throws -> Int64 {
        try await thread.run {
            var status = statvfs()
            guard statvfs(StoreFile.directory(of: path), &status) == 0 else { throw StoreFault(disk: errno) }
            return Int64(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize))
        }
    }

    /// A place is the number of a directory: there are 65,536, of which one is read at a time.
    package func list(after place: String?, before moment: Timestamp) async throws -> AttachmentPage {
        guard let place = Int(place ?? "-1"), (-1..<65_536).contains(place) else {
            throw StoreFault(.unavailable, "a page of attachments begins nowhere")
        }
        return try await thread.run {
            for number in place + 1..<65_536 {
                let names = Self.names(in: "\(path)/\(Self.hex(number >> 8))/\(Self.hex(number & 0xFF))")
                let old = names.filter { Self.isOlder($0.path, than: moment) }.compactMap { Self.id(of: $0.name) }
                if !old.isEmpty { return AttachmentPage(Array(Set(old)), next: String(number)) }
            }
            return AttachmentPage([])
        }
    }

    private static func id(of name: String) -> AttachmentID? {
        AttachmentID(name.hasSuffix(growing) ? String(name.dropLast(growing.count)) : name)
    }

    private static func hex(_ byte: Int) -> String {
        let digits = Array("0123456789abcdef")
        return String([digits[byte >> 4], digits[byte & 15]])
    }

    private static func names(in directory: String) -> [(name: String, path: String)] {
        guard let stream = opendir(directory) else { return [] }
        defer { closedir(stream) }
        var names: [(String, String)] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { start in
                start.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append((name, directory + "/" + name)) }
        }
        return names
    }

    private static func isOlder(_ path: String, than moment: Timestamp) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0 else { return false }
        #if canImport(Darwin)
            let changed = status.st_ctimespec
        #else
            let changed = status.st_ctim
        #endif
        return Int64(changed.tv_sec) * 1000 + Int64(changed.tv_nsec) / 1_000_000 < moment.milliseconds
    }

    private static func syncDirectory(_ path: String) throws {
        let directory = openFile(path, O_RDONLY)
        guard directory >= 0 else { throw StoreFault(disk: errno) }
        defer { close(directory) }
        try sync(directory)
    }

    fileprivate static func sync(_ file: Int32) throws {
        #if canImport(Darwin)
            // fsync ends at the drive's cache there.
            guard fcntl(file, F_FULLFSYNC) == 0 || fsync(file) == 0 else { throw StoreFault(disk: errno) }
        #else
            guard fsync(file) == 0 else { throw StoreFault(disk: errno) }
        #endif
    }
}

/// An open file, closed when nobody has it any more.
private final class DiskFile: GrowingFile, ReadableFile {
    private let file: Int32
    private let thread: DiskThreads
    private let writePart: AttachmentFolder.Write

    init(_ file: Int32, _ thread: DiskThreads, _ writePart: @escaping AttachmentFolder.Write) {
        self.file = file
        self.thread = thread
        self.writePart = writePart
    }

    deinit { close(file) }

    func size() throws -> Int64 {
        var status = stat()
        guard fstat(file, &status) == 0 else { throw StoreFault(disk: errno) }
        return Int64(status.st_size)
    }

    func write(_ bytes: any FileBytes, at offset: Int64) async throws {
        try await thread.run { [self] in
            try bytes.withBytes { bytes in
                var written = 0
                while written < bytes.count {
                    let part = UnsafeRawBufferPointer(rebasing: bytes[written...])
                    let count = writePart(file, part, offset + Int64(written))
                    if count < 0, errno == EINTR { continue }
                    guard count > 0 else {
                        let cause = count == 0 ? EIO : errno
                        // A part of the bytes would take the room that others need.
                        _ = ftruncate(file, off_t(offset))
                        throw StoreFault(disk: cause)
                    }
                    written += count
                }
            }
        }
    }

    func sync() async throws { try await thread.run { [self] in try AttachmentFolder.sync(file) } }

    func read(at offset: Int64, count: Int) async throws -> [UInt8] {
        try await thread.run { [self] in try readNow(at: offset, count: count) }
    }

    func readNow(at offset: Int64, count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            guard let start = buffer.baseAddress else { return }
            while filled < count {
                let got = pread(file, start + filled, count - filled, off_t(offset) + off_t(filled))
                if got < 0, errno == EINTR { continue }
                guard got >= 0 else { throw StoreFault(disk: errno) }
                if got == 0 { return }
                filled += got
            }
        }
    }

}

/// A link is not followed.
private func openFile(_ path: String, _ flags: Int32) -> Int32 { open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0o600) }

/// Where calls wait for the disk.
private final class DiskThreads: Sendable {
    private let queue = DispatchQueue(label: "carillon.attachments", attributes: .concurrent)

    func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try work() }) }
        }
    }
}

extension StoreFault {
    /// A fault of the operating system.
    init(disk cause: Int32) {
        let kind: Kind = [ENOSPC, EDQUOT, EFBIG].contains(cause) ? .full : .unavailable
        self.init(kind, String(cString: strerror(cause)))
    }
}
