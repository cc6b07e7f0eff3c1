package import CarillonWire
import Synchronization

/// Lets one request at a time work on an upload: the newest. A new request takes over the upload from the earlier one, which
/// writes its received bytes to the disk and ends.
package final class UploadTurns: Sendable {
    private let turns = Mutex<[AttachmentID: Turn]>([:])

    package init() {}

    package final class Turn: Sendable {
        fileprivate struct State {
            /// The refusal with which the work must end; nil while the work can continue.
            var refusal: Refusal?
            var hasEnded = false
            var onTakenOver: (@Sendable () -> Void)?
            var next: CheckedContinuation<Void, Never>?
        }

        fileprivate let state = Mutex(State())

        /// The refusal of a request whose upload a newer request took over, or whose upload moves to another home; nil while the request
        /// can work on the upload.
        package var refusal: Refusal? { state.withLock(\.refusal) }

        /// Calls `work` when ``refusal`` is set, or at once if it is set already.
        package func onTakenOver(_ work: @escaping @Sendable () -> Void) {
            let isTakenOver = state.withLock { state in
                state.onTakenOver = work
                return state.refusal != nil
            }
            if isTakenOver { work() }
        }

        fileprivate func takeOver(_ refusal: Refusal) {
            let work = state.withLock { state in
                state.refusal = refusal
                return state.onTakenOver
            }
            work?()
        }

        fileprivate func awaitEnd() async {
            await withCheckedContinuation { continuation in
                let hasEnded = state.withLock { state in
                    if !state.hasEnded { state.next = continuation }
                    return state.hasEnded
                }
                if hasEnded { continuation.resume() }
            }
        }

        fileprivate func end() {
            let next = state.withLock { state in
                state.hasEnded = true
                defer { (state.next, state.onTakenOver) = (nil, nil) }
                return state.next
            }
            next?.resume()
        }
    }

    /// Runs the body when no other request works on the upload any more.
    ///
    /// - Throws: ``Refusal`` if a newer request took the upload over before the body began; and the errors of the body.
    package func take<Value>(_ id: AttachmentID, _ body: (Turn) async throws -> Value) async throws -> Value {
        try await take(id, refusing: .uploadTakenOver, body)
    }

    /// - Parameter refusal: The refusal of the request that works on the upload.
    private func take<Value>(
        _ id: AttachmentID, refusing refusal: Refusal, _ body: (Turn) async throws -> Value
    ) async throws -> Value {
        let turn = Turn()
        let before = turns.withLock { turns in
            defer { turns[id] = turn }
            return turns[id]
        }
        before?.takeOver(refusal)
        await before?.awaitEnd()
        defer {
            turns.withLock { turns in
                if turns[id] === turn { turns[id] = nil }
            }
            turn.end()
        }
        if let refusal = turn.refusal { throw refusal }
        return try await body(turn)
    }

    /// Ends the work on uploads that move to another home, and returns when no request works on these uploads any more.
    ///
    /// - Parameter isEnded: Whether an upload moves.
    package func end(where isEnded: (AttachmentID) -> Bool) async {
        // If a newer request took an upload over meanwhile, that request works on it.
        for id in turns.withLock({ $0.keys.filter(isEnded) }) {
            try? await take(id, refusing: .uploadMoves) { _ in }
        }
    }

    /// The number of uploads that requests work on.
    package var count: Int { turns.withLock(\.count) }
}

extension Refusal {
    package static let uploadTakenOver = Refusal(.uploadTakenOver, "A newer request works on the upload.")
    package static let uploadMoves = Refusal(
        .storageUnavailable, "The attachment moves to another home of the server; send the request again.",
        retryAfterSeconds: 1)
}
