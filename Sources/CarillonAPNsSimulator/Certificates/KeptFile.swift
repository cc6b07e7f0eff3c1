import Foundation

/// The files of a data directory. An existing file is never overwritten.
enum KeptFile {
    static func isThere(_ file: URL) -> Bool {
        var status = stat()
        return lstat(file.path, &status) == 0
    }

    static func makeDirectory(_ place: URL) throws(SimulatorError) {
        do {
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        } catch {
            throw SimulatorError(
                .storageUnavailable,
                "The directory \(place.path) cannot be created; check its parent directory and your permissions.",
                cause: error)
        }
    }

    static func read(_ file: URL) throws(SimulatorError) -> String {
        do {
            return String(decoding: try Data(contentsOf: file), as: UTF8.self)
        } catch {
            throw SimulatorError(
                .storageUnavailable, "\(file.path) cannot be read; check whether it is a file, and your permissions.",
                cause: error)
        }
    }

    /// - Parameter isSecret: Whether only the file's owner can read it.
    static func make(_ text: String, at file: URL, isSecret: Bool) throws(SimulatorError) {
        let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, isSecret ? 0o600 : 0o644)
        guard descriptor >= 0 else { throw fault(file, errno) }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: Data(text.utf8))
            try handle.close()
        } catch {
            // An incomplete file would later be read as a damaged one.
            unlink(file.path)
            throw SimulatorError(
                .storageUnavailable, "\(file.path) cannot be written; check whether the disk is full.", cause: error)
        }
    }

    private static func fault(_ file: URL, _ number: Int32) -> SimulatorError {
        let why =
            switch number {
            case EEXIST: "already exists, and the simulator overwrites no file"
            case EACCES, EPERM, EROFS: "cannot be created: you are not allowed to write to the directory"
            case ENOSPC, EDQUOT: "cannot be created: the disk is full"
            default: "cannot be created"
            }
        return SimulatorError(.storageUnavailable, "\(file.path) \(why).")
    }
}
