/// How the app's content is synchronised with the server.
public enum SyncMode: String, CaseIterable, Sendable {
    /// Fetched and committed automatically.
    case automatic
    /// Fetched automatically, committed when the user requests it.
    case manual
    /// Fetched and committed when the user requests it.
    case offline
    /// Branches are being downloaded before the app goes offline.
    case preparing
}

/// The changes of the user that are not committed yet.
public struct UncommittedChanges: Hashable, Sendable {
    /// Whether there are no uncommitted changes.
    public var isEmpty: Bool
    /// Differs after each edit, commit or discard, so that an edit between a read and a change can be detected.
    public var revision: Int64

    /// Makes a value.
    public init(isEmpty: Bool, revision: Int64) {
        self.isEmpty = isEmpty
        self.revision = revision
    }
}

/// The result of a commit.
public enum CommitOutcome: Hashable, Sendable {
    case committed
    /// The server rejects the changes in their present form, with a reason of up to 256 bytes of UTF-8.
    case refused(String)
    /// The server could not be reached; nothing was committed.
    case unreachable
    /// The result is not known: the edits are examined again.
    case unknown
}

/// The result of replacing the definitions.
public enum DefinitionsOutcome: Hashable, Sendable {
    case replaced
    /// The user made an edit after the given revision: nothing was replaced.
    case dirtied
}

/// Why an operation of a ``ContentStore`` failed. Any other error counts as retryable.
public enum ContentFault: Error, Hashable {
    /// The operation may succeed later.
    case retryable(String)
    /// The operation can never succeed.
    case permanent(String)
}

/// A change of the content that no update caused.
public enum ContentEvent: Hashable, Sendable {
    /// The user's changes were committed, or discarded.
    case committed
    /// The mode changed: the user chose it, or a preparation ended.
    case modeChanged(SyncMode)
}

/// The app's content, with the operations that updates need. The library calls one method at a time, except
/// ``download(_:progress:)``.
///
/// A method that makes an effect stores ``UpdateEffect/name`` in the same transaction. It is not called again with an effect for
/// which ``hasApplied(_:)`` returns true. A method that throws has changed nothing.
public protocol ContentStore: Sendable {
    /// Returns the present mode.
    func mode() async throws -> SyncMode
    /// Changes the mode. No ``ContentEvent/modeChanged(_:)`` need be sent for this change.
    func setMode(_ mode: SyncMode) async throws
    /// Returns the uncommitted changes.
    func uncommittedChanges() async throws -> UncommittedChanges
    /// Commits all changes.
    func commit() async -> CommitOutcome
    /// Whether an effect was made before.
    func hasApplied(_ effect: UpdateEffect) async throws -> Bool
    /// Fetches or removes content, and keeps every uncommitted edit, which can still be committed afterwards. A removed object
    /// with edits is kept, and marked as removed.
    func apply(_ content: PushUpdate.Content, as effect: UpdateEffect) async throws
    /// Replaces all meta definitions, or none if the user made an edit after a revision.
    func replaceDefinitions(unlessEditedSince revision: Int64, as effect: UpdateEffect) async throws -> DefinitionsOutcome
    /// Ends a running preparation, which changes the mode.
    func cancelPreparing() async throws
    /// Downloads the attachment of a popup. Reports the downloaded part to `progress`, from 0 to 1.
    func download(_ attachment: PushUpdate.Attachment, progress: @escaping @Sendable (Double) -> Void) async throws
    /// The library does not query these effects any more, and the app can remove their names.
    func forget(_ effects: [UpdateEffect]) async
    /// Returns the changes of the content from now on that the library did not make. It is called once in each run.
    ///
    /// The app decides how many events wait in the stream. The library takes them one after the other and drops none. If the
    /// stream has a limit, it must keep the newest event of each kind.
    func events() async -> AsyncStream<ContentEvent>
}

extension ContentStore {
    /// Does nothing: the names are kept.
    public func forget(_ effects: [UpdateEffect]) async {}
}
