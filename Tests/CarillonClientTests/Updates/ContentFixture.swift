import Foundation
import Synchronization
import Testing

@testable import CarillonClient

/// An app's content, as far as updates see it, which a test can have killed at any of its actions.
final class ContentFixture: ContentStore {
    struct Content: Equatable {
        var mode = SyncMode.automatic
        var edits = 0
        var revision: Int64 = 1
        /// In the order in which they were made.
        var effects: [String] = []
        var applied: [PushUpdate.Content] = []
        var definitions = 1
        var commits = 0
        var cancellations = 0
    }

    enum Kill: Equatable {
        case before(Int)
        case after(Int)
    }

    struct State {
        var content = Content()
        var commit = CommitOutcome.committed
        var fault: (any Error)?
        var kill: Kill?
        var actions = 0
        /// Edits that are made while definitions are being replaced.
        var editsMeanwhile = 0
        var downloads: [PushUpdate.Attachment: Result<Void, ContentFault>] = [:]
        var downloadsEnded: [PushUpdate.Attachment: Int] = [:]
        var forgotten: [String] = []
        var beforeChanges: (@Sendable () async -> Void)?
        var beforeMode: (@Sendable () async -> Void)?
        var beforeApply: (@Sendable () async -> Void)?
        var beforeDownload: (@Sendable () async -> Void)?
        var die: (@Sendable () -> Void)?
    }

    struct Killed: Error {}

    let state = Mutex(State())
    private let stream: AsyncStream<ContentEvent>
    let tell: AsyncStream<ContentEvent>.Continuation

    init(_ mode: SyncMode = .automatic, edits: Int = 0) {
        (stream, tell) = AsyncStream.makeStream()
        state.withLock {
            $0.content.mode = mode
            $0.content.edits = edits
        }
    }

    var content: Content { state.withLock { $0.content } }

    /// One action on the content: all of it, or nothing.
    private func act<Value: Sendable>(_ body: @Sendable (inout State) throws -> Value) throws -> Value {
        let (result, die) = state.withLock { state -> (Result<Value, any Error>, (@Sendable () -> Void)?) in
            let number = state.actions
            state.actions += 1
            if state.kill == .before(number) { return (.failure(Killed()), state.die) }
            let result = Result { () throws -> Value in
                if let fault = state.fault { throw fault }
                return try body(&state)
            }
            return state.kill == .after(number) ? (.failure(Killed()), state.die) : (result, nil)
        }
        die?()
        return try result.get()
    }

    func mode() async throws -> SyncMode { content.mode }

    func setMode(_ mode: SyncMode) async throws {
        await state.withLock { $0.beforeMode }?()
        try act { $0.content.mode = mode }
    }

    func uncommittedChanges() async throws -> UncommittedChanges {
        await state.withLock { $0.beforeChanges }?()
        let content = content
        return UncommittedChanges(isEmpty: content.edits == 0, revision: content.revision)
    }

    func commit() async -> CommitOutcome {
        let outcome = try? act { state -> CommitOutcome in
            if state.commit == .committed {
                state.content.commits += state.content.edits
                state.content.edits = 0
                state.content.revision += 1
            }
            return state.commit
        }
        return outcome ?? .unknown
    }

    func hasApplied(_ effect: UpdateEffect) async throws -> Bool { content.effects.contains(effect.name) }

    func apply(_ change: PushUpdate.Content, as effect: UpdateEffect) async throws {
        await state.withLock { $0.beforeApply }?()
        try act { state in
            #expect(!state.content.effects.contains(effect.name), "twice")
            state.content.effects.append(effect.name)
            state.content.applied.append(change)
        }
    }

    func replaceDefinitions(unlessEditedSince revision: Int64, as effect: UpdateEffect) async throws -> DefinitionsOutcome {
        try act { state in
            if state.editsMeanwhile > 0 {
                state.editsMeanwhile -= 1
                state.content.edits += 1
                state.content.revision += 1
            }
            guard state.content.revision == revision else { return .dirtied }
            state.content.effects.append(effect.name)
            state.content.definitions += 1
            return .replaced
        }
    }

    func cancelPreparing() async throws {
        try act { state in
            state.content.cancellations += 1
            state.content.mode = .manual
        }
    }

    func download(_ attachment: PushUpdate.Attachment, progress: @escaping @Sendable (Double) -> Void) async throws {
        defer { state.withLock { $0.downloadsEnded[attachment, default: 0] += 1 } }
        await state.withLock { $0.beforeDownload }?()
        progress(0.5)
        while true {
            if let result = state.withLock({ $0.downloads[attachment] }) { return try result.get() }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    func forget(_ effects: [UpdateEffect]) async { state.withLock { $0.forgotten += effects.map(\.name) } }

    func events() -> AsyncStream<ContentEvent> { stream }
}

/// A user interface that stores its calls.
final class PresenterFixture: UpdatePresenter {
    struct State {
        var received: [[String: Int]] = []
        var failures: [UpdateFailure] = []
        var conflicts: [String] = []
        var notified: [PushUpdate.Popup] = []
        var shown: PopupDialog?
        var all: [PopupDialog] = []
        var dismissed = 0
        var opened: [PushUpdate.Attachment] = []
        var questions: [String] = []
        var crashed: [String] = []
        var beforeShow: (@Sendable () async -> Void)?
        var beforeQuestion: (@Sendable () async -> Void)?
        /// Nil: no answer.
        var consent: CommitConsent? = .unanswered
    }

    let state = Mutex(State())

    var seen: State { state.withLock { $0 } }

    func received(_ counts: [String: Int]) async { state.withLock { $0.received.append(counts) } }
    func failed(_ failure: UpdateFailure) async { state.withLock { $0.failures.append(failure) } }
    func conflict(_ update: PushUpdate) async { state.withLock { $0.conflicts.append(update.id) } }

    func mayCommit(before update: PushUpdate, deadline: Date) async -> CommitConsent {
        await state.withLock { $0.beforeQuestion }?()
        state.withLock { $0.questions.append(update.id) }
        while !Task.isCancelled {
            if let consent = state.withLock({ $0.consent }) { return consent }
            try? await Task.sleep(for: .milliseconds(2))
        }
        return .unanswered
    }

    func notify(_ popup: PushUpdate.Popup) async { state.withLock { $0.notified.append(popup) } }

    func show(_ dialog: PopupDialog) async {
        await state.withLock { $0.beforeShow }?()
        state.withLock { state in
            state.shown = dialog
            state.all.append(dialog)
        }
    }

    func dismiss(_ dialog: PopupDialog.ID) async {
        state.withLock { state in
            state.dismissed += 1
            if state.shown?.id == dialog { state.shown = nil }
        }
    }

    func open(_ attachment: PushUpdate.Attachment) async { state.withLock { $0.opened.append(attachment) } }

    func crashed(_ update: PushUpdate) async { state.withLock { $0.crashed.append(update.id) } }
}
