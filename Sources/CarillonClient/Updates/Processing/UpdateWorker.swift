import CarillonBasics
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Processes the updates of one owner, one after the other, by their plans. Updates that wait for the user, or for the app's own
/// code, wait beside the others.
actor UpdateWorker {
    /// The implementations of the app.
    struct App: Sendable {
        var content: any ContentStore
        var presenter: any UpdatePresenter
        var custom: [String: PushUpdates.CustomHandler]
    }

    let app: App
    let inbox: UpdateInbox
    private let settings: UpdateSituation.Settings
    let logger: Logger
    /// The device's own clock, in milliseconds since 1970.
    private let wall: @Sendable () -> Int64
    /// Called when a result must be reported to the server.
    private let finished: @Sendable () -> Void
    /// Work beside the updates. It ends when the owner changes.
    nonisolated let jobs: AsyncStream<@Sendable () async -> Void>
    nonisolated let jobsIn: AsyncStream<@Sendable () async -> Void>.Continuation
    /// Signals that updates may be ready for processing.
    nonisolated let arrivals = Signal()
    /// Signals that the maintenance changed.
    nonisolated let maintenanceChanges = Signal()

    var popups = PopupQueue()
    /// The updates of the waiting popups.
    var waiting: [UpdateKey: WaitingUpdate] = [:]
    /// The running question, dialog or handler of an update.
    var sideWork: [UpdateKey: SideWork] = [:]
    private var consents: [UpdateKey: CommitConsent] = [:]
    /// The parts of the app's code that are running for an update.
    var running: [UpdateKey: RunningParts] = [:]
    nonisolated let suspects: SuspectTurns
    /// The number of calls to show or change a dialog.
    var displays = 0
    var failures = FailureNotes()
    var modeSetByWorker: SyncMode?
    /// The running change of the maintenance.
    var maintaining: Task<Void, Never>?
    /// The number of updates that arrived.
    private(set) var received = 0

    /// The most plans for one update before it is postponed.
    private static let mostRounds = 6
    /// The seconds for which a question waits for the user.
    private static let patience = 300.0

    init(
        _ app: App, inbox: UpdateInbox, settings: UpdateSituation.Settings, logger: Logger,
        suspects: SuspectTurns = SuspectTurns(), now: @escaping @Sendable () -> Int64 = { Date().milliseconds },
        finished: @escaping @Sendable () -> Void
    ) {
        self.app = app
        self.inbox = inbox
        self.settings = settings
        self.logger = logger
        self.suspects = suspects
        wall = now
        self.finished = finished
        (jobs, jobsIn) = AsyncStream.makeStream()
    }

    /// Returns the time by the server's clock, as far as it is known, in milliseconds since 1970. The times that the server
    /// announces are by its clock.
    func now() async throws(PushError) -> Int64 {
        let time = try await inbox.serverTime()
        let wall = wall()
        return time?.now(wall: wall, uptime: inbox.clock.uptime()) ?? wall
    }

    // MARK: Arrivals

    func arrived(_ arrival: Arrival) async {
        failures.succeeded()
        for key in arrival.retracted {
            waiting[key] = nil
            endSideWork(of: key)
            await perform(popups.removed(key))
            // The same response may have contained the update again, and its side work may have begun.
            await storing { try await self.inbox.recheck(at: key) }
        }
        received += arrival.counts.values.reduce(0, +)
        if !arrival.counts.isEmpty { await app.presenter.received(arrival.counts) }
        arrivals.send()
    }

    func failed(_ failure: UpdateFailure) async {
        let isNew = failures.isNew(failure, at: .now)
        logger.log(
            level: isNew ? .warning : .debug, "updates cannot be fetched; retrying",
            metadata: ["reason": "\(failure.message)"])
        if failures.failed(failure.kind, at: .now) { await app.presenter.failed(failure) }
    }

    /// A change of the content that no update caused.
    func happened(_ event: ContentEvent) async throws(PushError) {
        switch event {
        case .committed: try await inbox.happened(.committed)
        case .modeChanged(let mode):
            try await inbox.happened(.mode)
            // In this mode the uncommitted changes are committed automatically.
            if mode == .automatic { try await inbox.happened(.committed) }
            let isChosen = mode != modeSetByWorker
            modeSetByWorker = nil
            if isChosen { try await modeChosen() }
        }
        arrivals.send()
    }

    /// Ends the work for a former owner, and dismisses its dialogs.
    func endWork() async {
        waiting = [:]
        for key in sideWork.keys { endSideWork(of: key) }
        await perform(popups.removedAll())
    }

    // MARK: Processing

    /// Processes all updates that are ready. Ends early if its task is cancelled.
    func processAll() async throws(PushError) {
        while !Task.isCancelled, let update = try await inbox.next() {
            try await process(update)
        }
    }

    private func process(_ next: WaitingUpdate) async throws(PushError) {
        let update = withoutPresentStart(next)
        if HandlerStarts.isCrashing(update.starts) { return try await failPermanently(update) }
        guard await begin(update) else { return }
        let result = await withTaskCancellationHandler { () async -> Result<Void, any Error> in
            do {
                try await carryOut(update)
                return .success(())
            } catch {
                return .failure(error)
            }
        } onCancel: {
            removeStart(of: update)
        }
        await end(update)
        do {
            try result.get()
        } catch let error as PushError {
            throw error
        } catch {
            // A cancelled update has not failed, and is processed again.
            if Task.isCancelled { return }
            let (isPermanent, reason) = Self.reason(of: error)
            if update.attempt == 1 {
                await app.presenter.failed(
                    UpdateFailure(.processing, "An update of the kind \(update.kind.name) could not be processed: \(reason)")
                )
            }
            try await finish(update, .failed(isPermanent: isPermanent, reason: reason))
        }
    }

    static func reason(of error: any Error) -> (isPermanent: Bool, String) {
        switch error as? ContentFault {
        case .permanent(let reason)?: (true, reason)
        case .retryable(let reason)?: (false, reason)
        case nil: (false, "\(type(of: error))")
        }
    }

    private func carryOut(_ update: WaitingUpdate) async throws {
        try await endEarlierMaintenance(update)
        var commit: CommitOutcome?
        for _ in 0..<Self.mostRounds {
            try Task.checkCancellation()
            let changes = try await app.content.uncommittedChanges()
            let maintenance = try await inbox.maintenance()
            let situation = UpdateSituation(
                mode: try await mode(for: update, in: maintenance), isDirty: !changes.isEmpty,
                isInMaintenance: maintenance?.hasBegun ?? false, isMaintenanceAnnounced: maintenance != nil,
                isOver: update.payload.isOver(at: try await now()), consent: consents[update.key], commit: commit,
                settings: settings)
            let plan = UpdatePlan(for: update.payload, in: situation)
            // The update may have been withdrawn while the content was read.
            guard try await inbox.contains(update) else { return }
            guard try await perform(plan.steps, of: update, revision: changes.revision) else {
                commit = nil
                continue
            }
            try Task.checkCancellation()
            switch plan.end {
            case .commit:
                commit = await app.content.commit()
                // The update may have been withdrawn meanwhile.
                guard try await inbox.contains(update) else { return }
            case .recheck: commit = nil
            case .askUser: return try await askUser(update)
            case .finish(let outcome):
                try await finish(update, outcome)
                return
            case .show(let popup): return try await show(popup, of: update)
            case .callHandler: return try await callHandler(update)
            }
        }
        try await finish(update, .deferred(until: .committed, reason: "edited meanwhile"))
    }

    /// Returns the user's mode. During a maintenance it is the mode before the maintenance, unless the user chose another. After
    /// the end of a process, the status that began the maintenance may be processed again.
    private func mode(for update: WaitingUpdate, in maintenance: UpdateInbox.Maintenance?) async throws -> SyncMode {
        let mode = try await app.content.mode()
        guard case .status = update.payload, mode == .offline, let maintenance, maintenance.hasBegun else { return mode }
        return maintenance.modeBefore ?? mode
    }

    /// Returns false if the user made an edit meanwhile: the plan is not valid any more.
    private func perform(_ steps: [UpdatePlan.Step], of update: WaitingUpdate, revision: Int64) async throws -> Bool {
        for step in steps {
            try Task.checkCancellation()
            switch step {
            case .apply(let change):
                let effect = UpdateEffect(update.key, Self.name(of: change, in: update))
                if try await app.content.hasApplied(effect) { continue }
                try await app.content.apply(.init(change), as: effect)
            case .replaceDefinitions:
                let effect = UpdateEffect(update.key, "definitions")
                if try await app.content.hasApplied(effect) { continue }
                let outcome = try await app.content.replaceDefinitions(unlessEditedSince: revision, as: effect)
                if outcome == .dirtied { return false }
            case .setMode(let mode): try await setMode(mode)
            case .cancelPreparing: try await app.content.cancelPreparing()
            case .enterMaintenance(let from, let until): try await enterMaintenance(from, until, for: update)
            case .finishMaintenance: try await finishMaintenance()
            case .notifyConflict:
                if update.wasNotified { continue }
                await app.presenter.conflict(update.update)
                try await inbox.noteNotified(update)
            case .notify(let popup):
                if case .popup(let shown) = update.update.kind, popup.style == .notification {
                    await app.presenter.notify(shown)
                }
            }
        }
        return true
    }

    /// The steps that follow the definitions have their own effects.
    private static func name(of change: ContentChange, in update: WaitingUpdate) -> String {
        guard case .definitions = update.payload else { return "content" }
        return change == .roots ? "roots" : "infrastructures"
    }

    private static func effects(of update: WaitingUpdate) -> [UpdateEffect] {
        switch update.payload {
        case .content: [UpdateEffect(update.key, "content")]
        case .definitions: ["definitions", "roots", "infrastructures"].map { UpdateEffect(update.key, $0) }
        case .status, .popup, .open: []
        }
    }

    /// Stores the result of an update. Returns false, and stores nothing, if the update was withdrawn meanwhile.
    @discardableResult
    func finish(_ update: WaitingUpdate, _ outcome: UpdateOutcome) async throws(PushError) -> Bool {
        guard try await inbox.finished(update, outcome) else { return false }
        consents[update.key] = nil
        finished()
        guard case .done = outcome else { return true }
        let effects = Self.effects(of: update)
        if !effects.isEmpty { await app.content.forget(effects) }
        return true
    }

    // MARK: Side work

    /// Begins side work for an update, in place of the running work for it.
    func beginSideWork(of update: WaitingUpdate) -> SideWork {
        let work = SideWork(number: update.number)
        sideWork.updateValue(work, forKey: update.key)?.ended.send()
        return work
    }

    /// Whether side work is running for an update. It continues if the server sends the update again.
    func hasSideWork(_ update: WaitingUpdate) -> Bool { sideWork[update.key]?.number == update.number }

    func endSideWork(of key: UpdateKey) {
        consents[key] = nil
        sideWork.removeValue(forKey: key)?.ended.send()
    }

    /// Finishes the announcements of maintenance that arrived before this status. Later answers to questions about them change
    /// nothing.
    private func endEarlierMaintenance(_ update: WaitingUpdate) async throws {
        guard case .status(let status) = update.payload, !update.payload.isOver(at: try await now()) else { return }
        let ended = try await inbox.endMaintenance(before: update, code: status == .over ? "over" : "replaced")
        for key in ended { endSideWork(of: key) }
        if !ended.isEmpty { finished() }
    }

    private func askUser(_ update: WaitingUpdate) async throws(PushError) {
        guard try await inbox.setAway(update), !hasSideWork(update) else { return }
        let maintenance = try await inbox.maintenance()
        let now = try await now()
        let left = maintenance.map { Double($0.beginsAt - now) / 1000 } ?? 0
        // If the maintenance has begun, the server may stay available for some time: the user has the longest time.
        let patience = left > 0 ? min(left, Self.patience) : Self.patience
        let deadline = Date(milliseconds: wall()) + patience
        let presenter = app.presenter
        let question = beginSideWork(of: update)
        jobsIn.yield {
            guard await self.begin(update, question) else { return }
            let consent = await withTaskCancellationHandler { () async -> CommitConsent? in
                await withTaskGroup(of: CommitConsent?.self) { group -> CommitConsent? in
                    group.addTask { await presenter.mayCommit(before: update.update, deadline: deadline) }
                    group.addTask {
                        try? await Task.sleep(for: .seconds(patience))
                        return .unanswered
                    }
                    group.addTask {
                        await question.ended.wait()
                        return nil
                    }
                    defer { group.cancelAll() }
                    return await group.next().flatMap { $0 }
                }
            } onCancel: {
                self.removeStart(of: update)
            }
            await self.end(update)
            if let consent, !Task.isCancelled { await self.answered(update, question, consent) }
        }
    }

    func answered(_ update: WaitingUpdate, _ question: SideWork, _ consent: CommitConsent) async {
        guard sideWork[update.key] === question else { return }
        sideWork[update.key] = nil
        consents[update.key] = consent
        await storing {
            // The update may have been withdrawn, or delivered again, since the question.
            if try await !self.inbox.recheck(at: update) { self.consents[update.key] = nil }
        }
        arrivals.send()
    }

    private func callHandler(_ update: WaitingUpdate) async throws(PushError) {
        guard case .custom(let name, _) = update.update.kind, let handler = app.custom[name] else {
            try await finish(update, .unsupported)
            return
        }
        guard try await inbox.setAway(update), !hasSideWork(update) else { return }
        let work = beginSideWork(of: update)
        jobsIn.yield {
            guard await self.begin(update, work) else { return }
            let outcome = await withTaskCancellationHandler { () async -> UpdateOutcome in
                do {
                    try await handler(update.update)
                    return .done()
                } catch {
                    let (isPermanent, reason) = Self.reason(of: error)
                    return .failed(isPermanent: isPermanent, reason: reason)
                }
            } onCancel: {
                self.removeStart(of: update)
            }
            await self.end(update)
            // A cancelled handler that threw an error may have processed half of the update. The inbox keeps its owner until all
            // jobs have ended.
            if Task.isCancelled, outcome != .done() { return }
            await self.handled(update, work, outcome)
        }
    }

    private func handled(_ update: WaitingUpdate, _ work: SideWork, _ outcome: UpdateOutcome) async {
        guard sideWork[update.key] === work else { return }
        sideWork[update.key] = nil
        await storing { try await self.finish(update, outcome) }
    }

    /// A change that cannot be stored is repeated when the app is started again.
    func storing(_ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            let message = (error as? PushError)?.message ?? "\(error)"
            await failed(UpdateFailure(.storage, message))
        }
    }
}
