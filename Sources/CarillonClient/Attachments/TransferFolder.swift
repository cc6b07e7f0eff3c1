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

/// What is known of transfers that are not done, on disk: a file of state for each, beside the sealed file of an upload.
struct TransferFolder: Sendable {
    struct UploadState: TransferState {
        var key: Data
        var length: Int64
        var digest: Data
        var readers: [String]
        var lifetimeSeconds: Int64
        /// Where the server has it, once it is begun.
        var location: String?
        /// What it came to; the sealed file is there no more.
        var manifest: AttachmentManifest?
        /// Nobody wants it any more, and the server may not know.
        var isGivenUp: Bool?

        func converting(_ convert: (String) -> String) -> UploadState { self }
    }

    struct DownloadState: TransferState {
        var manifest: AttachmentManifest
        var path: String
        /// All of it is there and proved right; whether it has its name is seen on the disk.
        var isWhole: Bool?

        /// The path where the file grows, beside the path that it gets. It is not stored: a bookmark of it would follow the file to its name.
        var part: String { "\(DiskFile.directory(of: path))/.\(manifest.id.suffix(16)).part" }

        func converting(_ convert: (String) -> String) -> DownloadState {
            var state = self
            state.path = convert(path)
            return state
        }
    }

    let path: String
    let paths: StoragePaths

    /// - Parameter storage: The storage directory; without one, the directory of the transfers.
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

    /// The state with its paths as they are stored.
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

    /// Whether a download has its name, and only the server was not notified of it.
    func isNamed(_ state: DownloadState) -> Bool { state.isWhole == true && access(state.part, F_OK) != 0 }

    /// The state goes first: what is left without one is swept away.
    func remove(_ kind: Kind, _ id: String) {
        unlink(file(id, kind))
        if kind == .upload { removeSealed(id) }
    }

    func removeSealed(_ id: String) { unlink(sealed(id)) }

    func ids(_ kind: Kind) -> [String] {
        let ending = "." + kind.rawValue
        return names.filter { $0.hasSuffix(ending) }.map { String($0.dropLast(ending.count)) }.sorted()
    }

    /// Removes what a process left that was killed: sealed files without a state, and drafts.
    func sweep() {
        let uploads = Set(ids(.upload))
        for name in names
        where name.hasSuffix(".new") || name.hasSuffix(".sealed") && !uploads.contains(String(name.dropLast(7))) {
            unlink("\(path)/\(name)")
        }
    }

    private var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] }
}

/// Keeps two processes from moving the same files.
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
