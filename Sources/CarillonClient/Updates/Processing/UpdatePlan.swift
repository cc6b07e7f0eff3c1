import CarillonWire

/// The steps for an update, and the action that follows them.
struct UpdatePlan: Equatable, Sendable {
    enum Step: Equatable, Sendable {
        case cancelPreparing
        /// Fetches or removes content.
        case apply(ContentChange)
        /// Ends the plan if the user made an edit meanwhile: another plan is made.
        case replaceDefinitions
        case setMode(SyncMode)
        /// Stores the mode and goes offline when the maintenance begins, unless it has begun.
        case enterMaintenance(from: Int64?, until: Int64?)
        case finishMaintenance
        case notifyConflict
        case notify(Popup)
    }

    enum End: Equatable, Sendable {
        /// Commits the uncommitted changes, then makes a new plan with the outcome.
        case commit
        /// Asks the user whether to commit, then makes a new plan with the answer.
        case askUser
        /// Makes a new plan with the state at that time.
        case recheck
        case finish(UpdateOutcome)
        /// Shows a dialog, which decides the result.
        case show(Popup)
        /// Calls the app's own code, which decides the result.
        case callHandler
    }

    var steps: [Step]
    var end: End

    init(_ steps: [Step] = [], _ end: End) {
        self.steps = steps
        self.end = end
    }
}

/// The result of an update at a device.
enum UpdateOutcome: Equatable, Sendable {
    /// - Parameter code: The problem that occurred; nil if no problem occurred.
    case done(code: String? = nil)
    case deferred(until: DeferralCondition, reason: String)
    case failed(isPermanent: Bool, reason: String)
    case unsupported
}

/// The condition at the device for which an update waits.
enum DeferralCondition: String, CaseIterable, Sendable {
    /// Changes were committed, or discarded.
    case committed
    /// The mode changed.
    case mode
    case maintenanceOver
    /// The user answered.
    case answer
}

/// The state of the device when an update is processed.
struct UpdateSituation: Equatable, Sendable {
    var mode: SyncMode
    var isDirty: Bool
    /// Whether an announced maintenance has begun.
    var isInMaintenance: Bool
    /// Whether a maintenance was announced.
    var isMaintenanceAnnounced: Bool
    /// Whether the maintenance that the update announces is over.
    var isOver: Bool
    /// The user's answer; nil if the user was not asked yet.
    var consent: CommitConsent?
    /// The outcome of the commit; nil if no commit was tried yet.
    var commit: CommitOutcome?
    var settings: Settings

    struct Settings: Equatable, Sendable {
        /// Whether a conflict fails the update instead of deferring it.
        var failsConflicts = false
    }

    init(
        mode: SyncMode, isDirty: Bool, isInMaintenance: Bool = false, isMaintenanceAnnounced: Bool? = nil,
        isOver: Bool = false,
        consent: CommitConsent? = nil, commit: CommitOutcome? = nil, settings: Settings = Settings()
    ) {
        self.mode = mode
        self.isDirty = isDirty
        self.isInMaintenance = isInMaintenance
        self.isMaintenanceAnnounced = isMaintenanceAnnounced ?? isInMaintenance
        self.isOver = isOver
        self.consent = consent
        self.commit = commit
        self.settings = settings
    }
}

extension UpdatePlan {
    /// Makes the plan for an update.
    init(for payload: UpdatePayload, in situation: UpdateSituation) {
        switch payload {
        case .content(let change): self = Self.content(change, situation)
        case .definitions: self = Self.definitions(situation)
        case .status(.maintenance(let from, let until)): self = Self.maintenance(from, until, situation)
        case .status(.over):
            self.init(situation.isMaintenanceAnnounced ? [.finishMaintenance] : [], .finish(.done()))
        case .popup(let popup):
            self =
                popup.style == .notification
                ? .init([.notify(popup)], .finish(.done())) : .init([], .show(popup))
        case .open: self.init([], .callHandler)
        }
    }

    private static func content(_ change: ContentChange, _ situation: UpdateSituation) -> UpdatePlan {
        if situation.mode == .preparing { return .init([], .finish(.deferred(until: .mode, reason: "preparing"))) }
        return .init([.apply(change)], .finish(.done()))
    }

    private static func definitions(_ situation: UpdateSituation) -> UpdatePlan {
        if situation.isInMaintenance {
            return .init([], .finish(.deferred(until: .maintenanceOver, reason: "maintenance")))
        }
        switch (situation.mode, situation.isDirty) {
        case (.preparing, _): return .init([], .finish(.deferred(until: .mode, reason: "preparing")))
        case (_, false):
            return .init(
                [.replaceDefinitions, .apply(.roots), .apply(.infrastructures), .setMode(.automatic)], .finish(.done()))
        case (.automatic, true):
            switch situation.commit {
            case nil: return .init([], .commit)
            // The user made an edit since the commit, or the store reports the commit with a delay.
            case .committed, .unknown: return .init([], .recheck)
            case .refused: return .init([], .finish(.deferred(until: .committed, reason: "commit refused")))
            case .unreachable:
                return .init([], .finish(.failed(isPermanent: false, reason: "the changes cannot be committed now")))
            }
        case (.manual, true), (.offline, true):
            let end: UpdateOutcome =
                situation.settings.failsConflicts
                ? .failed(isPermanent: false, reason: "uncommitted changes")
                : .deferred(until: .committed, reason: "uncommitted changes")
            return .init([.notifyConflict], .finish(end))
        }
    }

    private static func maintenance(_ from: Int64?, _ until: Int64?, _ situation: UpdateSituation) -> UpdatePlan {
        if situation.isOver { return .init([], .finish(.done())) }
        if situation.mode == .preparing { return .init([.cancelPreparing], .recheck) }
        let enter = Step.enterMaintenance(from: from, until: until)
        guard situation.isDirty else { return .init([enter], .finish(.done())) }
        if situation.mode != .automatic {
            switch situation.consent {
            case nil: return .init([enter], .askUser)
            case .declined, .unanswered:
                return .init([enter], .finish(.done(code: situation.consent.map { "commit \($0.rawValue)" })))
            case .given: break
            }
        }
        switch situation.commit {
        case nil: return .init([], .commit)
        case .committed: return .init([enter], .finish(.done()))
        case .refused: return .init([enter], .finish(.done(code: "commit refused")))
        case .unreachable: return .init([enter], .finish(.done(code: "commit unreachable")))
        case .unknown: return .init([enter], .finish(.done(code: "commit unknown")))
        }
    }
}

extension UpdatePayload {
    /// - Parameter now: In milliseconds since 1970.
    func isOver(at now: Int64) -> Bool {
        if case .status(.maintenance(_, let until?)) = self { until <= now } else { false }
    }
}
