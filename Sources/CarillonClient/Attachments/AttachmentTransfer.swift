import Synchronization

/// An upload or download of a file, with its progress and its result.
///
/// A transfer continues after lost connections and faults of the server, with increasing waits, until it is done, refused, paused
/// or cancelled. A transfer that was paused, or that was running when the process ended, is in ``AttachmentStore/uploads()`` or
/// ``AttachmentStore/downloads()``, and continues with ``resume()``.
public final class AttachmentTransfer<Value: Sendable>: Sendable, Identifiable {
    private struct State {
        var task: Task<Value, any Error>?
        /// Whether the task succeeded, without its value; nil until it ends.
        var end: End?
        var bytes: Int64 = 0
        var listeners: [Int: AsyncStream<Int64>.Continuation] = [:]
        var nextListener = 0
    }

    private enum End {
        case done
        case failed
    }

    /// The id of the transfer in this library, the same after a restart.
    public let id: String
    /// The length of the sealed file that is transferred, in bytes.
    public let length: Int64
    private let state = Mutex(State())
    private let work: @Sendable (@escaping @Sendable (Int64) -> Void) async throws -> Value
    private let onCancel: @Sendable () async throws(PushError) -> Void
    private let onConfirm: @Sendable () -> Void
    private let activity: WakeActivity

    /// - Parameter activity: Records when the transfer runs, and when it stops.
    init(
        id: String, length: Int64, activity: WakeActivity = WakeActivity(),
        work: @escaping @Sendable (@escaping @Sendable (Int64) -> Void) async throws -> Value,
        onCancel: @escaping @Sendable () async throws(PushError) -> Void, onConfirm: @escaping @Sendable () -> Void
    ) {
        self.id = id
        self.length = length
        self.activity = activity
        self.work = work
        self.onCancel = onCancel
        self.onConfirm = onConfirm
    }

    deinit { state.withLock { $0.task }?.cancel() }

    /// The number of bytes of ``length`` that were written to the connection, or that arrived: the present number first, then
    /// each increase. The server has all bytes of an upload when ``value`` returns. The stream ends with the transfer. Only the
    /// newest number waits for a slow iteration: it replaces the number before.
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

    /// The result of the transfer. If the caller's task is cancelled, the transfer continues, and the call still waits for its
    /// end.
    ///
    /// - Throws: ``PushError``: for an upload ``PushError/Code/attachmentRefused``; for a download
    ///   ``PushError/Code/attachmentGone``, ``PushError/Code/attachmentDamaged`` or ``PushError/Code/fileExists``; for both an
    ///   error of files or storage, and ``PushError/Code/cancelled`` if the transfer was paused or cancelled.
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

    /// Continues the transfer, also after a failure. If it is running or done, nothing changes.
    public func resume() {
        state.withLock { state in
            if state.end == .failed { (state.task, state.end) = (nil, nil) }
        }
        _ = running()
    }

    /// Returns the present task. Starts a new one if there is no task, or if the task was stopped.
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

    /// Stops the transfer until ``resume()``.
    public func pause() async {
        let task = state.withLock { $0.task }
        task?.cancel()
        _ = await task?.result
    }

    /// Stops the transfer and removes its data: an upload from the server, a download from the disk. If the server cannot be
    /// reached, the request is repeated for ten minutes, and in the next run.
    public func cancel() async throws(PushError) {
        await pause()
        try await onCancel()
    }

    fileprivate func confirmed() {
        guard state.withLock({ $0.end == .done }) else { return }
        onConfirm()
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

/// An upload. Its value is the manifest that readers need.
public typealias AttachmentUpload = AttachmentTransfer<AttachmentManifest>

extension AttachmentTransfer where Value == AttachmentManifest {
    /// Confirms that the manifest was sent, or is stored where the app finds it again. Until then the upload is in
    /// ``AttachmentStore/uploads()``, also after a restart, and has its ``value`` at once. Without a confirmation it stays there
    /// until the server removes the attachment. If the upload is not done, nothing changes.
    public func confirm() { confirmed() }
}

/// A download. Its value is the path of the file.
public typealias AttachmentDownload = AttachmentTransfer<String>
