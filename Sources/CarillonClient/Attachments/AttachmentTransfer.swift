import Synchronization

/// A file that goes or comes: how far it is, and what it comes to.
///
/// It goes on over cuts and faults of the server, with longer and longer waits, until it is done, refused, paused or given up. What was
/// paused, or was under way when the process ended, is in ``AttachmentStore/uploads()`` or ``AttachmentStore/downloads()``, and goes on with
/// ``resume()``.
public final class AttachmentTransfer<Value: Sendable>: Sendable, Identifiable {
    private struct State {
        var task: Task<Value, any Error>?
        /// What the task came to, without what it answers.
        var end: End?
        var bytes: Int64 = 0
        var listeners: [Int: AsyncStream<Int64>.Continuation] = [:]
        var nextListener = 0
    }

    private enum End {
        case done
        case failed
    }

    /// The library's name for it, the same after a restart.
    public let id: String
    /// Of the sealed file that crosses, in bytes.
    public let length: Int64
    private let state = Mutex(State())
    private let work: @Sendable (@escaping @Sendable (Int64) -> Void) async throws -> Value
    private let giveUp: @Sendable () async throws(PushError) -> Void
    private let forget: @Sendable () -> Void
    private let activity: WakeActivity

    /// - Parameter activity: Hears when the transfer goes on, and when it stops.
    init(
        id: String, length: Int64, activity: WakeActivity = WakeActivity(),
        work: @escaping @Sendable (@escaping @Sendable (Int64) -> Void) async throws -> Value,
        giveUp: @escaping @Sendable () async throws(PushError) -> Void, forget: @escaping @Sendable () -> Void
    ) {
        self.id = id
        self.length = length
        self.activity = activity
        self.work = work
        self.giveUp = giveUp
        self.forget = forget
    }

    deinit { state.withLock { $0.task }?.cancel() }

    /// How many bytes of ``length`` were written to the connection, or came: at once, and as they become more. The server has all bytes of an
    /// upload when ``value`` returns. It ends with the transfer. One number waits for a slow
    /// iteration, the newest: it replaces the number before.
    public var progress: AsyncStream<Int64> {
        let (stream, continuation) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
        _ = running()
        let number = state.withLock { state -> Int? in
            continuation.yield(state.bytes)
            guard state.end == nil else { return nil }
            state.nextListener += 1
            state.listeners[state.nextListener] = continuation
            return state.nextListener
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.listeners[number] = nil } }
        return stream
    }

    /// What it comes to. Whoever is cancelled waits no more, and the transfer goes on.
    ///
    /// - Throws: ``PushError``: for an upload ``PushError/Code/attachmentRefused``; for a download ``PushError/Code/attachmentGone``,
    ///   ``PushError/Code/attachmentDamaged`` or ``PushError/Code/fileExists``; for both one of files and storage, and
    ///   ``PushError/Code/cancelled`` where it was paused or given up.
    public var value: Value {
        get async throws {
            let task = running()
            do {
                return try await task.value
            } catch is CancellationError {
                throw PushError(.cancelled, "The transfer was paused or given up.")
            }
        }
    }

    /// Goes on, also where it failed. What goes on already, or is done, is left.
    public func resume() {
        state.withLock { state in
            if state.end == .failed { (state.task, state.end) = (nil, nil) }
        }
        _ = running()
    }

    /// The task that it has, or a new one where there is none, or it was stopped.
    private func running() -> Task<Value, any Error> {
        state.withLock { state in
            if let task = state.task, !task.isCancelled || state.end == .done { return task }
            let before = state.task
            state.end = nil
            activity.began()
            let task = Task { [weak self, work, activity] in
                var isDone = false
                defer { activity.ended(isEvent: isDone) }
                _ = await before?.result
                self?.state.withLock { $0.end = nil }
                do {
                    let value = try await work { [weak self] bytes in self?.moved(to: bytes) }
                    isDone = true
                    self?.ended(.done)
                    return value
                } catch {
                    self?.ended(.failed)
                    throw error
                }
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

    /// Stops, and forgets it: what was sent is removed from the server, what was received from the disk. If the server cannot be reached, it is
    /// asked again for ten minutes, and in the next run.
    public func cancel() async throws(PushError) {
        await pause()
        try await giveUp()
    }

    fileprivate func confirmed() {
        guard state.withLock({ $0.end == .done }) else { return }
        forget()
    }

    private func moved(to bytes: Int64) {
        let listeners = state.withLock { state in
            state.bytes = bytes
            return state.listeners.values
        }
        for listener in listeners { listener.yield(bytes) }
    }

    private func ended(_ end: End) {
        let listeners = state.withLock { state in
            state.end = end
            defer { state.listeners = [:] }
            return state.listeners.values
        }
        for listener in listeners { listener.finish() }
    }
}

/// An upload; it comes to the manifest that readers need.
public typealias AttachmentUpload = AttachmentTransfer<AttachmentManifest>

extension AttachmentTransfer where Value == AttachmentManifest {
    /// Says that the manifest was sent, or is kept where it will be found again. Until then the upload is in ``AttachmentStore/uploads()``,
    /// after a restart, too, and has its ``value`` at once; without this, until the server keeps the attachment no more. One that
    /// is not done goes on.
    public func confirm() { confirmed() }
}

/// A download; it comes to the path of the file.
public typealias AttachmentDownload = AttachmentTransfer<String>
