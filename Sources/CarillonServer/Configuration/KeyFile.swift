import CarillonBasics
package import CarillonCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The wrapping key file: 64 hexadecimal digits, with the permissions of a ``SecretFile``. Its key encrypts the key ring.
///
/// The operator must store the file apart from the data directory and its backups. A backup can be decrypted only with this file.
package enum KeyFile {
    package struct Fault: Error {
        /// A sentence for the operator.
        package let sentence: String
    }

    /// Reads the key from the file. Creates the file with a new key if it does not exist.
    ///
    /// - Throws: ``Fault``.
    package static func open(_ path: String) throws(Fault) -> WrappingKey {
        let file = descriptor(path, O_RDONLY | O_CLOEXEC)
        if file >= 0 { return try key(in: file, at: path) }
        guard errno == ENOENT else { throw unreadable(path) }
        try make(path)
        let made = descriptor(path, O_RDONLY | O_CLOEXEC)
        guard made >= 0 else { throw unreadable(path) }
        return try key(in: made, at: path)
    }

    /// Reads the key, and closes the file.
    private static func key(in file: Int32, at path: String) throws(Fault) -> WrappingKey {
        defer { close(file) }
        if let reason = SecretFile.fault(of: file, at: path) { throw fault(path, reason) }
        var bytes = [UInt8](repeating: 0, count: 1024)
        var count = 0
        while count < bytes.count {
            let length = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress?.advanced(by: count), $0.count - count) }
            if length < 0, errno == EINTR { continue }
            guard length >= 0 else { throw unreadable(path) }
            if length == 0 { break }
            count += length
        }
        var text = String(decoding: bytes[..<count], as: UTF8.self)[...]
        while let last = text.last, last.isWhitespace { text.removeLast() }
        guard let decoded = Hexadecimal.decode(text), decoded.count == WrappingKey.byteCount else {
            throw fault(path, "is not a wrapping key file: it must contain \(2 * WrappingKey.byteCount) hexadecimal digits")
        }
        return WrappingKey(bytes: decoded)
    }

    private static func make(_ path: String) throws(Fault) {
        let file = descriptor(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC)
        guard file >= 0 else { throw fault(path, "cannot be created: \(String(cString: strerror(errno)))") }
        let text = Array((Hexadecimal.encode(RandomSource.system.bytes(WrappingKey.byteCount)) + "\n").utf8)
        let written = write(file, text, text.count)
        let isOnDisk = written == text.count && fsync(file) == 0
        close(file)
        guard isOnDisk else {
            // An incomplete file would be reported as damaged at the next start.
            unlink(path)
            throw fault(path, "cannot be written")
        }
    }

    private static func descriptor(_ path: String, _ flags: Int32) -> Int32 {
        #if canImport(Glibc)
            Glibc.open(path, flags, 0o600)
        #elseif canImport(Musl)
            Musl.open(path, flags, 0o600)
        #else
            Darwin.open(path, flags, 0o600)
        #endif
    }

    private static func unreadable(_ path: String) -> Fault {
        fault(path, "cannot be read: \(String(cString: strerror(errno)))")
    }

    private static func fault(_ path: String, _ why: String) -> Fault {
        Fault(sentence: "\(PathPhrase.subject(path, "the wrapping key file ")) \(why)")
    }
}
