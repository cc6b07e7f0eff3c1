import CarillonBasics
package import CarillonCore

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

/// The file that holds the key which wraps the key ring: 64 hexadecimal digits, for its owner alone.
///
/// It is to be kept apart from the data directory and its backups: with it they open, and without it they do not.
package enum KeyFile {
    package struct Fault: Error {
        /// For the operator.
        package let sentence: String
    }

    /// Reads the file; makes one when there is none.
    ///
    /// - Throws: ``Fault``.
    package static func open(_ path: String) throws(Fault) -> WrappingKey {
        var status = stat()
        if stat(path, &status) != 0 {
            guard errno == ENOENT else { throw fault(path, "cannot be looked at") }
            try make(path)
            return try read(path)
        }
        guard status.st_mode & 0o077 == 0 else {
            throw fault(path, "may be read by others than its owner: chmod 600 it")
        }
        return try read(path)
    }

    private static func read(_ path: String) throws(Fault) -> WrappingKey {
        let data: Data
        do { data = try Data(contentsOf: URL(filePath: path)) } catch { throw fault(path, "cannot be read") }
        var text = String(decoding: data.prefix(1024), as: UTF8.self)[...]
        while let last = text.last, last.isWhitespace { text.removeLast() }
        guard let bytes = Hexadecimal.decode(text), bytes.count == WrappingKey.byteCount else {
            throw fault(path, "is not a key file: it must hold \(2 * WrappingKey.byteCount) hexadecimal digits")
        }
        return WrappingKey(bytes: bytes)
    }

    private static func make(_ path: String) throws(Fault) {
        let file = Self.descriptor(path)
        guard file >= 0 else { throw fault(path, "cannot be made: \(String(cString: strerror(errno)))") }
        let text = Array((Hexadecimal.encode(RandomSource.system.bytes(WrappingKey.byteCount)) + "\n").utf8)
        let written = write(file, text, text.count)
        let isOnDisk = written == text.count && fsync(file) == 0
        close(file)
        guard isOnDisk else {
            // Half a file would be taken for a damaged one.
            unlink(path)
            throw fault(path, "cannot be written")
        }
    }

    private static func descriptor(_ path: String) -> Int32 {
        #if canImport(Glibc)
            Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        #elseif canImport(Musl)
            Musl.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        #else
            Darwin.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        #endif
    }

    private static func fault(_ path: String, _ why: String) -> Fault { Fault(sentence: "the key file \(path) \(why)") }
}
