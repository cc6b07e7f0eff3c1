import CarillonBasics
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Processes the updates of one owner, one after the other, as plans have it. What waits for the user, or for the app's own code, waits beside.
actor UpdateWorker {
    /// What the app gave.
    struct App: Sendable {
        var content: any ContentStore
        var presenter: any UpdatePresenter
        var custom: [String: PushUpdates.CustomHandler]
    }

    private let app: App
    private let inbox: UpdateInbox
    private let settings: UpdateSituation.Settings
    private let logger: Logger
    /// The device's own clock, in milliseconds since 1970.
    private let wall: @Sendable () -> Int64
    /// Says that there is something to tell the server.
    private let finished: @Sendable () -> Void
    /// What is done beside, and ends with the owner.
    nonisolated let jobs: AsyncStream<@Sendable () async -> Void>
    private nonisolated let jobsIn: AsyncStream<@Sendable () async -> Void>.Continuation
    /// Says that there may be something to process.
    nonisolated let arrivals = Signal()
    /// Says that the maintenance is another.
    nonisolated let maintenanceChanges = Signal()

    private var popups = PopupQueue()
    /// Updates of which popups are, and what the user was asked of.
    private var waiting: [UpdateKey: WaitingUpdate] = [:]
    private var consents: [UpdateKey: CommitConsent] = [:]
    private var failures = FailureNotes()
    private var ownMode: SyncMode?
    /// Who changes the maintenance.
    private var maintaining: Task<Void, Never>?
    /// How many updates came.
    private(set) var received = 0

    /// How often one update is planned before it is put off.
    private static let mostRounds = 6
    /// How long a question waits for the user.
    private static let patience = 300.0

    init(
        _ app: App, inbox: UpdateInbox, settings: UpdateSituation.Settings, logger: Logger,
        now: @escaping @Sendable () -> Int64 = { Date().milliseconds }, finished: @escaping @Sendable () -> Void
    ) {
        self.app = app
        self.inbox = inbox
        self.settings = settings
        self.logger = logger
        wall = now
        self.finished = finished
        (jobs, jobsIn) = AsyncStream.makeStream()
    }

    /// The time by the server's clock, in milliseconds since 1970, as far as that is known: what the server announces is by that one.
    private func now() async throws(PushError) -> Int64 {
        let time = try await inbox.serverTime()
        let wall = wall()
        return time?.now(wall: wall, uptime: inbox.clock.uptime()) ?? wall
    }

    // MARK: What came

    func arrived(_ arrival: Arrival) async {
        failures.succeeded()
        for key in arrival.retracted {
            waiting[key] = nil
            consents[key] = nil
            await perform(popups.removed(key))
        }
        received += arrival.counts.values.reduce(0, +)
        if !arrival.counts.isEmpty { await app.presenter.received(arrival.counts) }
        arrivals.send()
    }

    func failed(_ failure: UpdateFailure) async {
        let isNew = failures.failed(failure.kind, at: .now)
        logger.log(
            level: isNew ? .warning : .debug, "updates cannot be fetched; retrying",
            metadata: ["reason": "\(failure.message)"])
        if isNew { await app.presenter.failed(failure) }
    }

    /// Something happened in the content.
    func happened(_ event: ContentEvent) async throws(PushError) {
        switch event {
        case .committed: try await inbox.happened(.committed)
        case .modeChanged(let mode):
            try await inbox.happened(.mode)
            // What is uncommitted is committed by itself then.
            if mode == .automatic { try await inbox.happened(.committed) }
            let isChosen = mode != ownMode
            ownMode = nil
            if isChosen { try await modeChosen() }
        }
        arrivals.send()
    }

    /// The owner is not there any more: no dialog of his stays.
    func left() async {
        waiting = [:]
        await perform(popups.removedAll())
    }

    // MARK: Processing

    /// Processes what is there. It ends early when its task is cancelled.
    func processAll() async throws(PushError) {
        while !Task.isCancelled, let update = try await inbox.next() {
            try await process(update)
        }
    }

    private func process(_ update: WaitingUpdate) async throws(PushError) {
        do {
            try await carryOut(update)
        } catch let error as PushError {
            throw error
        } catch {
            // Whoever is cancelled has not failed: it is looked at again.
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

    private static func reason(of error: any Error) -> (isPermanent: Bool, String) {
        switch error as? ContentFault {
        case .permanent(let reason)?: (true, reason)
        case .retryable(let reason)?: (false, reason)
        case nil: (false, "\(type(of: error))")
        }
    }

    private func carryOut(_ update: WaitingUpdate) async throws {
        var commit: CommitOutcome?
        for _ in 0..<Self.mostRounds {
            try Task.checkCancellation()
            let changes = try await app.content.uncommittedChanges()
            let maintenance = try await inbox.maintenance()
            let situation = UpdateSituation(
                mode: try await mode(for: update, in: maintenance), isDirty: !changes.isEmpty,
                isInMaintenance: maintenance?.hasBegun ?? false, isMaintenanceKnown: maintenance != nil,
                isOver: update.payload.isOver(at: try await now()), consent: consents[update.key], commit: commit,
                settings: settings)
            let plan = UpdatePlan(for: update.payload, in: situation)
            guard try await perform(plan.steps, of: update, revision: changes.revision) else {
                commit = nil
                continue
            }
            try Task.checkCancellation()
            switch plan.end {
            case .commit: commit = await app.content.commit()
            case .lookAgain: commit = nil
            case .ask: return try await ask(update)
            case .finish(let outcome): return try await finish(update, outcome)
            case .show(let popup): return try await show(popup, of: update)
            case .handOver: return try await handOver(update)
            }
        }
        try await finish(update, .deferred(until: .committed, reason: "edited meanwhile"))
    }

    /// The user's mode. During a maintenance it is that of before, unless he chose another: what began it may be looked at again after a kill.
    private func mode(for update: WaitingUpdate, in maintenance: UpdateInbox.Maintenance?) async throws -> SyncMode {
        let mode = try await app.content.mode()
        guard case .status = update.payload, mode == .offline, let maintenance, maintenance.hasBegun else { return mode }
        return maintenance.modeBefore ?? mode
    }

    /// Answers false where something was edited meanwhile, and the plan is none any more.
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
            case .enterMaintenance(let from, let until): try await enterMaintenance(from, until)
            case .leaveMaintenance: try await leaveMaintenance()
            case .tellConflict:
                if update.wasTold { continue }
                await app.presenter.conflict(update.update)
                try await inbox.noteTold(update)
            case .notify(let popup):
                if case .popup(let shown) = update.update.kind, popup.style == .notification {
                    await app.presenter.notify(shown)
                }
            }
        }
        return true
    }

    /// The steps that follow definitions are effects of their own.
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

    private func finish(_ update: WaitingUpdate, _ outcome: UpdateOutcome) async throws(PushError) {
        guard try await inbox.finished(update, outcome) else { return }
        consents[update.key] = nil
        finished()
        guard case .done = outcome else { return }
        let effects = Self.effects(of: update)
        if !effects.isEmpty { await app.content.forget(effects) }
    }

    // MARK: Beside

    private func ask(_ update: WaitingUpdate) async throws(PushError) {
        try await inbox.setAway(update)
        let maintenance = try await inbox.maintenance()
        let now = try await now()
        let left = maintenance.map { Double($0.beginsAt - now) / 1000 } ?? 0
        // One that begins at once leaves the server a while yet.
        let patience = left > 0 ? min(left, Self.patience) : Self.patience
        let deadline = Date(milliseconds: wall()) + patience
        let presenter = app.presenter
        jobsIn.yield {
            let consent = await withTaskGroup(of: CommitConsent.self) { group in
                group.addTask { await presenter.mayCommit(before: update.update, deadline: deadline) }
                group.addTask {
                    try? await Task.sleep(for: .seconds(patience))
                    return .unanswered
                }
                defer { group.cancelAll() }
                return await group.next() ?? .unanswered
            }
            if !Task.isCancelled { await self.answered(update, consent) }
        }
    }

    private func answered(_ update: WaitingUpdate, _ consent: CommitConsent) async {
        consents[update.key] = consent
        await storing { try await self.inbox.lookAgain(at: update) }
        arrivals.send()
    }

    private func handOver(_ update: WaitingUpdate) async throws(PushError) {
        guard case .custom(let name, _) = update.update.kind, let handler = app.custom[name] else {
            return try await finish(update, .unsupported)
        }
        try await inbox.setAway(update)
        jobsIn.yield {
            let outcome: UpdateOutcome
            do {
                try await handler(update.update)
                outcome = .done()
            } catch {
                let (isPermanent, reason) = Self.reason(of: error)
                outcome = .failed(isPermanent: isPermanent, reason: reason)
            }
            // Who was cancelled may have done half of it.
            guard !Task.isCancelled else { return }
            await self.storing { try await self.finish(update, outcome) }
        }
    }

    /// What cannot be stored comes again, when the app is started again.
    private func storing(_ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            let message = (error as? PushError)?.message ?? "\(error)"
            await failed(UpdateFailure(.storage, message))
        }
    }

    // MARK: Popups

    private func show(_ popup: Popup, of update: WaitingUpdate) async throws(PushError) {
        try await inbox.setAway(update)
        waiting[update.key] = update
        guard case .popup(let shown) = update.update.kind else { return }
        await perform(popups.added(update.key, shown))
    }

    private nonisolated func press(_ key: UpdateKey) {
        jobsIn.yield { await self.pressed(key) }
    }

    private func pressed(_ key: UpdateKey) async { await perform(popups.pressed(key)) }

    private func perform(_ actions: [PopupQueue.Action]) async {
        for action in actions {
            switch action {
            case .show(let key, let popup, let button):
                await app.presenter.show(
                    PopupDialog(id: .init(key: key), popup: popup, button: button) { [weak self] id in self?.press(id.key) })
            case .dismiss(let key): await app.presenter.dismiss(.init(key: key))
            case .download(let key, let attachment):
                jobsIn.yield { await self.download(attachment, of: key) }
            case .confirm(let key, let attachment):
                guard await settle(key, .done()) else { continue }
                await perform(popups.settled(key))
                if let attachment { await app.presenter.open(attachment) }
            case .giveUp(let key, let errors):
                let reason = errors.joined(separator: "; ")
                guard await settle(key, .failed(isPermanent: false, reason: reason)) else { continue }
                await perform(popups.settled(key))
                await app.presenter.failed(
                    UpdateFailure(.processing, "What a popup brings along could not be downloaded: \(reason)"))
            }
        }
    }

    /// Answers false where it could not be stored.
    private func settle(_ key: UpdateKey, _ outcome: UpdateOutcome) async -> Bool {
        guard let update = waiting[key] else { return true }
        do {
            try await finish(update, outcome)
            waiting[key] = nil
            return true
        } catch {
            popups.unsettled(key)
            await failed(UpdateFailure(.storage, error.message))
            return false
        }
    }

    private func download(_ attachment: PushUpdate.Attachment, of key: UpdateKey) async {
        var errors: [String]?
        let steps = ProgressSteps()
        do {
            try await app.content.download(attachment) { [jobsIn] part in
                guard steps.isNew(part) else { return }
                jobsIn.yield { await self.perform(progress: part, of: key) }
            }
        } catch {
            errors = [Self.reason(of: error).1]
        }
        if Task.isCancelled { return }
        await perform(popups.downloaded(key, errors: errors))
    }

    private func perform(progress part: Double, of key: UpdateKey) async { await perform(popups.progressed(key, to: part)) }

    // MARK: Maintenance

    private func setMode(_ mode: SyncMode) async throws {
        guard try await app.content.mode() != mode else { return }
        ownMode = mode
        try await app.content.setMode(mode)
    }

    /// One change after the other: between a look at the maintenance and a change of it somebody else may come.
    private func maintain<Value: Sendable, Fault: Error>(
        _ body: () async throws(Fault) -> Value
    ) async throws(Fault) -> Value {
        while let maintaining { await maintaining.value }
        let (done, isDone) = AsyncStream.makeStream(of: Never.self)
        // Ends with the body.
        maintaining = Task { for await _ in done {} }
        defer {
            maintaining = nil
            isDone.finish()
        }
        return try await body()
    }

    private func enterMaintenance(_ from: Int64?, _ until: Int64?) async throws {
        let now = try await now()
        if let until, until <= now { return }
        try await maintain { () async throws in
            var maintenance = try await inbox.maintenance() ?? .init(beginsAt: from ?? now)
            maintenance.beginsAt = from ?? now
            maintenance.endsAt = until
            try await inbox.setMaintenance(maintenance)
            _ = try await doWhatIsDue(maintenance)
        }
        maintenanceChanges.send()
    }

    private func leaveMaintenance() async throws {
        try await maintain { () async throws in
            guard var maintenance = try await inbox.maintenance() else { return }
            // What is killed from here on goes on leaving it.
            maintenance.endsAt = try await now()
            try await inbox.setMaintenance(maintenance)
            _ = try await doWhatIsDue(maintenance)
        }
        maintenanceChanges.send()
    }

    /// The user chose a mode: it is not changed at the end of a maintenance.
    private func modeChosen() async throws(PushError) {
        try await maintain { () async throws(PushError) in
            guard var maintenance = try await inbox.maintenance(), maintenance.hasBegun else { return }
            maintenance.modeBefore = nil
            try await inbox.setMaintenance(maintenance)
        }
    }

    /// How long it is until a moment by the server's clock.
    func seconds(until moment: Int64) async throws(PushError) -> Double { Double(moment - (try await now())) / 1000 }

    /// Does what is due, and answers when something will be: by the server's clock, in milliseconds since 1970.
    func tendMaintenance() async throws -> Int64? {
        try await maintain { () async throws -> Int64? in
            guard let maintenance = try await inbox.maintenance() else { return nil }
            return try await doWhatIsDue(maintenance)
        }
    }

    private func doWhatIsDue(_ known: UpdateInbox.Maintenance) async throws -> Int64? {
        var maintenance = known
        let now = try await now()
        if let end = maintenance.endsAt, end <= now {
            if maintenance.hasBegun, let mode = maintenance.modeBefore, try await app.content.mode() == .offline {
                try await setMode(mode)
            }
            try await inbox.setMaintenance(nil)
            failures.maintenanceEnded(at: .now)
            try await inbox.happened(.maintenanceOver)
            arrivals.send()
            return nil
        }
        if !maintenance.hasBegun {
            guard maintenance.beginsAt <= now else { return maintenance.beginsAt }
            if try await app.content.mode() == .preparing { try await app.content.cancelPreparing() }
            maintenance.hasBegun = true
            maintenance.modeBefore = try await app.content.mode()
            try await inbox.setMaintenance(maintenance)
        }
        failures.maintenanceBegan()
        // Until the user chooses another: after a kill it may not have come to that.
        if maintenance.modeBefore != nil { try await setMode(.offline) }
        return maintenance.endsAt
    }
}
