import Logging
import Synchronization

/// Counts the transferred bytes of the files of one message, and notifies the app.
final class ProgressMeter: Sendable {
    private let pace: Mutex<ProgressPace>
    private let notify: @Sendable (_ bytes: Int64, _ total: Int64) -> Void

    init(total: Int64, notify: @escaping @Sendable (_ bytes: Int64, _ total: Int64) -> Void) {
        pace = Mutex(ProgressPace(total: total))
        self.notify = notify
    }

    /// Counts the bytes of the present file, until the task is cancelled or the transfer ends.
    func count(_ progress: AsyncStream<Int64>) -> Task<Void, Never> {
        let part = pace.withLock { $0.part }
        return Task {
            for await bytes in progress { moved(part, to: bytes) }
        }
    }

    private func moved(_ part: Int, to bytes: Int64) {
        // The app is notified under the lock, so that the order is kept.
        pace.withLock { pace in
            if let bytes = pace.moved(part, to: bytes, at: .now) { notify(bytes, pace.total) }
        }
    }

    /// Records that the present file was transferred.
    func finished(_ bytes: Int64) {
        pace.withLock { pace in
            if let bytes = pace.finished(bytes, at: .now) { notify(bytes, pace.total) }
        }
    }
}

/// The streams of the progress of requests.
final class ProgressWatchers: Sendable {
    private struct State {
        var streams: [String: [Int: AsyncStream<ServiceProgress>.Continuation]] = [:]
        var next = 0
    }

    private let state = Mutex(State())

    func stream(of id: String) -> AsyncStream<ServiceProgress> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ServiceProgress.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.next += 1
            state.streams[id, default: [:]][state.next] = continuation
            return state.next
        }
        continuation.onTermination = { [weak self] _ in self?.remove(number, of: id) }
        return stream
    }

    private func remove(_ number: Int, of id: String) {
        // The removed value is returned from the closure, so that it is not released inside the lock.
        _ = state.withLock { state in
            let removed = state.streams[id]?.removeValue(forKey: number)
            if state.streams[id]?.isEmpty == true { state.streams[id] = nil }
            return removed
        }
    }

    func notify(_ progress: ServiceProgress, of id: String) {
        let streams = state.withLock { $0.streams[id] ?? [:] }
        for stream in streams.values { stream.yield(progress) }
    }

    /// Ends the streams of a request that has ended.
    func ended(_ id: String) {
        let streams = state.withLock { $0.streams.removeValue(forKey: id) ?? [:] }
        for stream in streams.values { stream.finish() }
    }

    /// Ends the streams of all requests except the spared ones.
    func allEnded(but spared: Set<String> = []) {
        let streams = state.withLock { state in
            let ended = state.streams.filter { !spared.contains($0.key) }
            state.streams = state.streams.filter { spared.contains($0.key) }
            return ended
        }
        for stream in streams.values.flatMap(\.values) { stream.finish() }
    }
}

extension ServiceEngine {
    /// The progress of a request of this device. The stream of an unknown or ended request ends at once.
    nonisolated func watchConsumerProgress(of id: String) -> AsyncStream<ServiceProgress> {
        let stream = clientProgress.stream(of: id)
        // The task ends with one read of the storage.
        Task { [weak self] in await self?.endConsumerProgressIfUnknown(of: id) }
        return stream
    }

    private func endConsumerProgressIfUnknown(of id: String) async {
        guard !hasRequest(id) else { return }
        do {
            guard try await call(id) == nil, !hasRequest(id) else { return }
            clientProgress.ended(id)
        } catch {
            logger.info("cannot look for a request; its progress ends with it", metadata: ["reason": "\(error)"])
        }
    }

    private func hasRequest(_ id: String) -> Bool {
        requestIDs.isOpen(id) || outgoing.underWay[id] != nil || ownCache.calls[id] != nil
    }

    /// The progress of a request of another device. The stream of an unknown or ended request ends at once.
    nonisolated func watchProviderProgress(of id: String) -> AsyncStream<ServiceProgress> {
        let stream = providerProgress.stream(of: id)
        // The task ends with one check.
        Task { [weak self] in await self?.endProviderProgressIfUnknown(of: id) }
        return stream
    }

    private func endProviderProgressIfUnknown(of id: String) {
        if incoming[id] == nil { providerProgress.ended(id) }
    }

    /// Measures the files of a request of this device, or of its reply.
    func consumerMeter(_ direction: ServiceProgress.Direction, of id: String, _ total: Int64) -> ProgressMeter {
        ProgressMeter(total: total) { [clientListeners, clientProgress] bytes, total in
            clientProgress.notify(ServiceProgress(direction, completedBytes: bytes, totalBytes: total), of: id)
            switch direction {
            case .sending: clientListeners.notifyProgress(.sending(id: id, bytesSent: bytes, of: total))
            case .receiving: clientListeners.notifyProgress(.receiving(id: id, bytesReceived: bytes, of: total))
            }
        }
    }

    /// Measures the files of a request of another device, or of the reply to it.
    func providerMeter(_ direction: ServiceProgress.Direction, of id: String, _ total: Int64) -> ProgressMeter {
        ProgressMeter(total: total) { [providerListeners, providerProgress] bytes, total in
            providerProgress.notify(ServiceProgress(direction, completedBytes: bytes, totalBytes: total), of: id)
            switch direction {
            case .sending: providerListeners.notifyProgress(.sending(id: id, bytesSent: bytes, of: total))
            case .receiving: providerListeners.notifyProgress(.receiving(id: id, bytesReceived: bytes, of: total))
            }
        }
    }
}
