import CarillonClient
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// An app that processes updates for one user, in a process that can be killed.
struct UpdateApp: Codable, Sendable {
    var server: String
    var clientKey: String
    var directory: String
    var user: String
    var token: String
    /// How long the app runs, unless the file at `stopPath` is there earlier.
    var milliseconds: Int
    var isKilled: Bool
    var hasFullDisk: Bool

    var stopPath: String { directory + "/stop" }

    /// Runs the app, which ends with SIGKILL or in an orderly way.
    func run() async throws {
        let client = try PushClient(
            configuration: .init(
                server: server, app: LiveServer.app, clientKey: clientKey, storageDirectory: directory + "/client",
                backOff: .init(initial: .milliseconds(50), maximum: .milliseconds(500))))
        try await client.device.setUser(token)
        client.updates.process(content: AppliedContent(directory: directory, user: user), presenter: SilentPresenter())
        try client.start()
        if hasFullDisk {
            try await wait(milliseconds / 3)
            try await withFullDisk { try await wait(milliseconds / 3) }
            try await wait(milliseconds / 3)
        } else {
            try await wait(milliseconds)
        }
        if isKilled { kill(getpid(), SIGKILL) }
        await client.stop()
    }

    private func wait(_ milliseconds: Int) async throws {
        let end = ContinuousClock.now + .milliseconds(milliseconds)
        while ContinuousClock.now < end, !FileManager.default.fileExists(atPath: stopPath) {
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// No file of this process grows beyond 8 KiB during the work, as if the disk were full.
    private func withFullDisk(_ work: () async throws -> Void) async throws {
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
        #else
            let resource = RLIMIT_FSIZE
        #endif
        // A write beyond the limit is an error then, and does not end the process.
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { throw CocoaError(.fileWriteUnknown) }
        let before = limit.rlim_cur
        limit.rlim_cur = 8192
        guard setrlimit(resource, &limit) == 0 else { throw CocoaError(.fileWriteUnknown) }
        try await work()
        limit.rlim_cur = before
        guard setrlimit(resource, &limit) == 0 else { throw CocoaError(.fileWriteUnknown) }
    }
}

/// Content in a directory with one file for each effect. The file is the content and the note that it was applied.
final class AppliedContent: CarillonClient.ContentStore {
    struct Applied: Equatable {
        var effect: String
        var user: String
        var object: String
    }

    private static let suffix = ".applied"
    private let directory: String
    private let user: String

    init(directory: String, user: String) {
        self.directory = directory
        self.user = user
    }

    /// Returns the applied updates, once for each call of `apply`.
    static func all(in directory: String) throws -> [Applied] {
        try FileManager.default.contentsOfDirectory(atPath: directory).filter { $0.hasSuffix(suffix) }.map { name in
            let text = String(decoding: try Data(contentsOf: URL(filePath: "\(directory)/\(name)")), as: UTF8.self)
            let parts = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 3 else { throw CocoaError(.fileReadCorruptFile) }
            return Applied(effect: parts[0], user: parts[1], object: parts[2])
        }
    }

    func hasApplied(_ effect: UpdateEffect) async throws -> Bool {
        try Self.all(in: directory).contains { $0.effect == effect.name }
    }

    func apply(_ content: PushUpdate.Content, as effect: UpdateEffect) async throws {
        var name = "another"
        if case .refresh(let object, _, _) = content { name = object }
        let path = URL(filePath: "\(directory)/\(UUID().uuidString)\(Self.suffix)")
        try Data("\(effect.name) \(user) \(name)".utf8).write(to: path, options: .atomic)
    }

    func mode() async throws -> SyncMode { .automatic }
    func setMode(_ mode: SyncMode) async throws {}
    func uncommittedChanges() async throws -> UncommittedChanges { UncommittedChanges(isEmpty: true, revision: 0) }
    func commit() async -> CommitOutcome { .committed }
    func replaceDefinitions(unlessEditedSince revision: Int64, as effect: UpdateEffect) async throws -> DefinitionsOutcome {
        .replaced
    }
    func cancelPreparing() async throws {}
    func download(_ attachment: PushUpdate.Attachment, progress: @escaping @Sendable (Double) -> Void) async throws {}
    func events() async -> AsyncStream<ContentEvent> { AsyncStream.makeStream().stream }
}

/// A user interface that shows nothing.
private struct SilentPresenter: UpdatePresenter {
    func received(_ counts: [String: Int]) async {}
    func failed(_ failure: UpdateFailure) async { print("\(failure.kind): \(failure.message)") }
    func conflict(_ update: PushUpdate) async {}
    func mayCommit(before update: PushUpdate, deadline: Date) async -> CommitConsent { .given }
    func notify(_ popup: PushUpdate.Popup) async {}
    func show(_ dialog: PopupDialog) async {}
    func dismiss(_ dialog: PopupDialog.ID) async {}
    func open(_ attachment: PushUpdate.Attachment) async {}
}
