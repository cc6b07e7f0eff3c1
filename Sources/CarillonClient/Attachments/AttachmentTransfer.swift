import Synchronization

/// A file that goes or comes: how far it is, and what it comes to.
///
/// It goes on over cuts and faults of the server, with longer and longer waits, until it is done, refused, paused or given up. What was
/// paused, or was under way when the process ended, is in ``AttachmentStore/uploads()`` or ``AttachmentStore/downloads()``, and goes on with
/// ``resume()``.
public final class AttachmentTransfer<Value: Sendable>: Sendable, Identifiable {
    private struct State {
        var task: Task<Value, any Error>?
        var bytes: Int64 = 0
        var listeners: [Int: AsyncStream<Int64>.Continuation] = [:]
        var nextListener = 0
    }

    /// The library's name for it, the same after a restart.
    public let id: String
    /// Of the sealed file that crosses, in bytes.
    public let length: Int64
    private let state = Mutex(State())
    private let work: @Sendable (@escaping @Sendable (Int64) -> Void) async throws -> Value
    private let giveUp: @Sendable () async throws(PushError) -> Void

    init(
        id: String, length: Int64, work: @escaping @Sendable (@escaping @Sendable (Int64) -> Void) async throws -> Value,
        giveUp: @escaping @Sendable () async throws(PushError) -> Void
    ) {
        self.id = id
        self.length = length
        self.work = work
        self.giveUp = giveUp
    }

    deinit { state.withLock { $0.task }?.cancel() }

    /// How many bytes of ``length`` are there: at once, and as they become more; the latest only, for whoever is slow. It ends with the
    /// transfer.
    public var progress: AsyncStream<Int64> {
        let (stream, continuation) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { state in
            let number = state.nextListener
            state.nextListener += 1
            state.listeners[number] = continuation
            continuation.yield(state.bytes)
        }
        resume()
        return stream
    }

    /// What it comes to. Whoever is cancelled waits no more, and the transfer goes on.
    ///
    /// - Throws: ``PushError``: for an upload ``PushError/Code/attachmentRefused``; for a download ``PushError/Code/attachmentGone``,
    ///   ``PushError/Code/attachmentDamaged`` or ``PushError/Code/fileExists``; for both one of files and storage, and
    ///   ``PushError/Code/cancelled`` where it was paused or given up.
    public var value: Value {
        get async throws {
            let task = resume()
            do {
                return try await task.value
            } catch is CancellationError {
                throw PushError(.cancelled, "The transfer was paused or given up.")
            }
        }
    }

    /// Goes on. What goes on already, or is done, is left.
    @discardableResult
    public func resume() -> Task<Value, any Error> {
        state.withLock { state in
            if let task = state.task, !task.isCancelled { return task }
            let before = state.task
            let task = Task { [weak self, work] in
                _ = await before?.result
                defer { self?.ended() }
                return try await work { [weak self] bytes in self?.moved(to: bytes) }
            }
            state.task = task
            return task
        }
    }

    /// Stops here, until ``resume()``.
    public func pause() async {
        let task = state.withLock { $0.task }
        task?.cancel()
        _ = await task?.result
    }

    /// Stops, and forgets it: what was sent is removed from the server, what was received from the disk.
    public func cancel() async throws(PushError) {
        await pause()
        try await giveUp()
    }

    private func moved(to bytes: Int64) {
        state.withLock { state in
            state.bytes = bytes
            for listener in state.listeners.values { listener.yield(bytes) }
        }
    }

    private func ended() {
        state.withLock { state in
            for listener in state.listeners.values { listener.finish() }
            state.listeners = [:]
        }
    }
}

/// An upload; it comes to the manifest that readers need.
public typealias AttachmentUpload = AttachmentTransfer<AttachmentManifest>
/// A download; it comes to the path of the file.
public typealias AttachmentDownload = AttachmentTransfer<String>
