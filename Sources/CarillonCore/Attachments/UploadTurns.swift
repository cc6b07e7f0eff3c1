package import CarillonWire
import Synchronization

/// Lets one at a time work on an upload: the newest. Whoever comes takes the upload over from the one before, who brings what he has to the
/// disk and leaves.
package final class UploadTurns: Sendable {
    private let turns = Mutex<[AttachmentID: Turn]>([:])

    package init() {}

    package final class Turn: Sendable {
        fileprivate struct State {
            var isTakenOver = false
            var hasEnded = false
            var onTakenOver: (@Sendable () -> Void)?
            var next: CheckedContinuation<Void, Never>?
        }

        fileprivate let state = Mutex(State())

        /// Somebody newer is there.
        package var isTakenOver: Bool { state.withLock(\.isTakenOver) }

        /// Calls it when somebody newer comes, or at once when he has.
        package func onTakenOver(_ work: @escaping @Sendable () -> Void) {
            let isTakenOver = state.withLock { state in
                state.onTakenOver = work
                return state.isTakenOver
            }
            if isTakenOver { work() }
        }

        fileprivate func takeOver() {
            let work = state.withLock { state in
                state.isTakenOver = true
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

    /// Runs the body when nobody else works on the upload any more.
    ///
    /// - Throws: ``Refusal`` where somebody newer came before it began; and what the body throws.
    package func take<Value>(_ id: AttachmentID, _ body: (Turn) async throws -> Value) async throws -> Value {
        let turn = Turn()
        let before = turns.withLock { turns in
            defer { turns[id] = turn }
            return turns[id]
        }
        before?.takeOver()
        await before?.awaitEnd()
        defer {
            turns.withLock { turns in
                if turns[id] === turn { turns[id] = nil }
            }
            turn.end()
        }
        if turn.isTakenOver { throw Refusal.uploadTakenOver }
        return try await body(turn)
    }

    /// Takes over the uploads that meet a condition, as a newer request does, and returns when no request works on these uploads
    /// any more.
    package func end(where isEnded: (AttachmentID) -> Bool) async {
        // If a newer request took an upload over meanwhile, that request works on it.
        for id in turns.withLock({ $0.keys.filter(isEnded) }) { try? await take(id) { _ in } }
    }

    /// How many uploads are being worked on.
    package var count: Int { turns.withLock(\.count) }
}

extension Refusal {
    package static let uploadTakenOver = Refusal(.uploadTakenOver, "A newer request works on the upload.")
}
