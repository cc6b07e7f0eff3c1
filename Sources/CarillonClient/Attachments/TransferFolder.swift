import Synchronization

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

/// The stored state of a transfer.
protocol TransferState: Codable, Sendable {
    /// The state with its paths converted.
    func converting(_ convert: (String) -> String) -> Self
}

/// The stored states of the transfers that are not done: a file for each, beside the sealed file of an upload.
struct TransferFolder: Sendable {
    struct UploadState: TransferState {
        var key: Data
        var length: Int64
        var digest: Data
        var readers: [String]
        var lifetimeSeconds: Int64
        /// The location of the upload on the server; nil before it is begun.
        var location: String?
        /// The result of a completed upload, whose sealed file was removed; nil before.
        var manifest: AttachmentManifest?
        /// Whether the upload was cancelled, and the server may not have been notified.
        var isGivenUp: Bool?

        func converting(_ convert: (String) -> String) -> UploadState { self }
    }

    struct DownloadState: TransferState {
        var manifest: AttachmentManifest
        var path: String
        /// Whether the content is complete and verified. Whether the file has its final name can be seen on the disk.
        var isWhole: Bool?

        /// The path of the partial file, in the directory of the final path. It is not stored, because a bookmark of it would
        /// follow the file to its final name.
        var part: String { "\(DiskFile.directory(of: path))/.\(manifest.id.suffix(16)).part" }

        func converting(_ convert: (String) -> String) -> DownloadState {
            var state = self
            state.path = convert(path)
            return state
        }
    }

    let path: String
    let paths: StoragePaths

    /// - Parameter storage: The storage directory; nil if it is the directory of the transfers.
    init(path: String, storage: String? = nil) {
        self.path = path
        paths = StoragePaths(directory: storage ?? path)
    }

    func sealed(_ id: String) -> String { "\(path)/\(id).sealed" }
    private func file(_ id: String, _ kind: Kind) -> String { "\(path)/\(id).\(kind.rawValue)" }

    enum Kind: String {
        case upload, download
    }

    func write(_ state: some TransferState, _ kind: Kind, of id: String) throws(PushError) {
        do {
            let kept = state.converting { paths.kept($0) }
            try DiskFile.replace(file(id, kind), with: try JSONEncoder().encode(kept))
        } catch {
            throw PushError(.storageUnavailable, "The state of a transfer cannot be written.", cause: error)
        }
    }

    func read<State: TransferState>(_ type: State.Type, _ kind: Kind, of id: String) throws(PushError) -> State? {
        try stored(type, kind, of: id)?.converting { paths.path($0) }
    }

    /// Converts the paths in the state of a download of an earlier version.
    func convertPaths(of id: String) throws(PushError) {
        guard let state = try stored(DownloadState.self, .download, of: id), !paths.isKept(state.path) else { return }
        try write(state.converting { paths.path(paths.converted($0)) }, .download, of: id)
    }

    /// Returns the state with its paths in their stored form.
    private func stored<State: TransferState>(
        _ type: State.Type, _ kind: Kind, of id: String
    ) throws(PushError) -> State? {
        let path = file(id, kind)
        guard access(path, F_OK) == 0 else { return nil }
        do {
            let file = try DiskFile(path, .reading)
            return try JSONDecoder().decode(type, from: try file.read(at: 0, count: 1 << 20))
        } catch {
            throw PushError(.storageDamaged, "The state of a transfer cannot be read: \(path).", cause: error)
        }
    }

    /// Whether a download has its final name, and only the notification of the server is pending.
    func isNamed(_ state: DownloadState) -> Bool { state.isWhole == true && access(state.part, F_OK) != 0 }

    /// Removes the state first: `sweep()` removes a sealed file without a state.
    func remove(_ kind: Kind, _ id: String) {
        unlink(file(id, kind))
        if kind == .upload { removeSealed(id) }
    }

    func removeSealed(_ id: String) { unlink(sealed(id)) }

    func ids(_ kind: Kind) -> [String] {
        let ending = "." + kind.rawValue
        return names.filter { $0.hasSuffix(ending) }.map { String($0.dropLast(ending.count)) }.sorted()
    }

    /// Removes the files of an interrupted process: sealed files without a state, and drafts.
    func sweep() {
        let uploads = Set(ids(.upload))
        for name in names
        where name.hasSuffix(".new") || name.hasSuffix(".sealed") && !uploads.contains(String(name.dropLast(7))) {
            unlink("\(path)/\(name)")
        }
    }

    private var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] }
}

/// A lock that prevents two processes from transferring the same files.
final class TransferLock: Sendable {
    private let descriptor: Int32

    init(_ directory: String) throws(PushError) {
        descriptor = open(directory + "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw PushError(file: directory, errno) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw PushError(.storageInUse, "Another store of attachments has \(directory) open.")
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }
}
