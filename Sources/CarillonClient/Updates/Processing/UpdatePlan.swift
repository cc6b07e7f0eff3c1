import CarillonWire

/// What is to be done with an update, and what follows.
struct UpdatePlan: Equatable, Sendable {
    enum Step: Equatable, Sendable {
        case cancelPreparing
        /// Fetches or removes content.
        case apply(ContentChange)
        /// Ends the plan where something was edited meanwhile: another is made.
        case replaceDefinitions
        case setMode(SyncMode)
        /// Remembers the mode and goes offline when it begins, if it did not.
        case enterMaintenance(from: Int64?, until: Int64?)
        case leaveMaintenance
        case notifyConflict
        case notify(Popup)
    }

    enum End: Equatable, Sendable {
        /// Commits what is not committed, then plans again with the outcome.
        case commit
        /// Asks the user whether to, then plans again with the answer.
        case ask
        /// Plans again with what there is then.
        case lookAgain
        case finish(UpdateOutcome)
        /// The dialog decides.
        case show(Popup)
        /// The app's own code decides.
        case handOver
    }

    var steps: [Step]
    var end: End

    init(_ steps: [Step] = [], _ end: End) {
        self.steps = steps
        self.end = end
    }
}

/// What a device did with an update.
enum UpdateOutcome: Equatable, Sendable {
    /// - Parameter code: What was not as it should be.
    case done(code: String? = nil)
    case deferred(until: DeferralCondition, reason: String)
    case failed(isPermanent: Bool, reason: String)
    case unsupported
}

/// What must happen at the device before an update is looked at again.
enum DeferralCondition: String, CaseIterable, Sendable {
    /// Changes are committed, or discarded.
    case committed
    /// Another mode.
    case mode
    case maintenanceOver
    /// The user's answer.
    case answer
}

/// What an update meets at the device.
struct UpdateSituation: Equatable, Sendable {
    var mode: SyncMode
    var isDirty: Bool
    /// A maintenance was announced, and has begun.
    var isInMaintenance: Bool
    /// A maintenance was announced.
    var isMaintenanceKnown: Bool
    /// The maintenance that the update announces is over.
    var isOver: Bool
    /// Nil: not asked yet.
    var consent: CommitConsent?
    /// Nil: not tried yet.
    var commit: CommitOutcome?
    var settings: Settings

    struct Settings: Equatable, Sendable {
        /// A conflict is a failure, and no reason to wait.
        var failsConflicts = false
    }

    init(
        mode: SyncMode, isDirty: Bool, isInMaintenance: Bool = false, isMaintenanceKnown: Bool? = nil, isOver: Bool = false,
        consent: CommitConsent? = nil, commit: CommitOutcome? = nil, settings: Settings = Settings()
    ) {
        self.mode = mode
        self.isDirty = isDirty
        self.isInMaintenance = isInMaintenance
        self.isMaintenanceKnown = isMaintenanceKnown ?? isInMaintenance
        self.isOver = isOver
        self.consent = consent
        self.commit = commit
        self.settings = settings
    }
}

extension UpdatePlan {
    /// The whole of what updates do.
    init(for payload: UpdatePayload, in situation: UpdateSituation) {
        switch payload {
        case .content(let change): self = Self.content(change, situation)
        case .definitions: self = Self.definitions(situation)
        case .status(.maintenance(let from, let until)): self = Self.maintenance(from, until, situation)
        case .status(.over):
            self.init(situation.isMaintenanceKnown ? [.leaveMaintenance] : [], .finish(.done()))
        case .popup(let popup):
            self =
                popup.style == .notification
                ? .init([.notify(popup)], .finish(.done())) : .init([], .show(popup))
        case .open: self.init([], .handOver)
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
            // What is dirty now was edited since, or the store did not say so at once.
            case .committed, .unknown: return .init([], .lookAgain)
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
        if situation.mode == .preparing { return .init([.cancelPreparing], .lookAgain) }
        let enter = Step.enterMaintenance(from: from, until: until)
        guard situation.isDirty else { return .init([enter], .finish(.done())) }
        if situation.mode != .automatic {
            switch situation.consent {
            case nil: return .init([enter], .ask)
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
