/// How an app's content and the server's come together.
public enum SyncMode: String, CaseIterable, Sendable {
    /// Fetched and committed by itself.
    case automatic
    /// Fetched by itself, committed when the user says so.
    case manual
    /// Both when the user says so.
    case offline
    /// Branches are being downloaded before the app goes offline.
    case preparing
}

/// What the user changed and did not commit yet.
public struct UncommittedChanges: Hashable, Sendable {
    /// Whether there are none.
    public var isEmpty: Bool
    /// Another with each edit, commit or discarding, so that an edit between a look and a change is seen.
    public var revision: Int64

    /// Makes a value.
    public init(isEmpty: Bool, revision: Int64) {
        self.isEmpty = isEmpty
        self.revision = revision
    }
}

/// What came of a commit.
public enum CommitOutcome: Hashable, Sendable {
    case committed
    /// The server will not have the changes as they are, for a reason of at most 256 bytes of UTF-8.
    case refused(String)
    /// The server was not reached; nothing was committed.
    case unreachable
    /// Nobody knows: the edits are looked at again.
    case unknown
}

/// What came of replacing the definitions.
public enum DefinitionsOutcome: Hashable, Sendable {
    case replaced
    /// The user edited something since the revision that was given: nothing was replaced.
    case dirtied
}

/// Why a ``ContentStore`` could not do something. Any other error counts as one that may pass.
public enum ContentFault: Error, Hashable {
    /// It may work later.
    case retryable(String)
    /// It will never work.
    case permanent(String)
}

/// What happened in the content without an update.
public enum ContentEvent: Hashable, Sendable {
    /// The user's changes were committed, or discarded.
    case committed
    /// The mode is another one: the user chose it, or a preparation ended.
    case modeChanged(SyncMode)
}

/// The app's content, as updates need it. The library calls one method at a time, but for ``download(_:progress:)``.
///
/// What makes an effect writes ``UpdateEffect/name`` down in the same transaction, and is not called again with an effect that it
/// ``hasApplied(_:)``. A method that throws has changed nothing.
public protocol ContentStore: Sendable {
    /// The present mode.
    func mode() async throws -> SyncMode
    /// Changes the mode. A ``ContentEvent/modeChanged(_:)`` need not be notified of it.
    func setMode(_ mode: SyncMode) async throws
    /// What is not committed.
    func uncommittedChanges() async throws -> UncommittedChanges
    /// Commits everything.
    func commit() async -> CommitOutcome
    /// Whether an effect was made before.
    func hasApplied(_ effect: UpdateEffect) async throws -> Bool
    /// Fetches or removes content, and keeps every uncommitted edit: committable after it as before. An object that is removed and
    /// has edits is kept, and marked as removed.
    func apply(_ content: PushUpdate.Content, as effect: UpdateEffect) async throws
    /// Replaces all meta definitions at once or not at all, unless something was edited since a revision.
    func replaceDefinitions(unlessEditedSince revision: Int64, as effect: UpdateEffect) async throws -> DefinitionsOutcome
    /// Ends a preparation that is under way; the mode is another one then.
    func cancelPreparing() async throws
    /// Downloads what a popup brings along. To `progress` it reports the part that is there, from 0 to 1.
    func download(_ attachment: PushUpdate.Attachment, progress: @escaping @Sendable (Double) -> Void) async throws
    /// These effects are not asked for any more, and may be forgotten.
    func forget(_ effects: [UpdateEffect]) async
    /// What happens without the library, from now on. It is asked for once in each run.
    ///
    /// How many events wait in the stream is the app's decision. The library takes them one after the other and drops none. If the stream has
    /// a limit, it must keep the newest event of each kind.
    func events() async -> AsyncStream<ContentEvent>
}

extension ContentStore {
    /// Keeps them.
    public func forget(_ effects: [UpdateEffect]) async {}
}
