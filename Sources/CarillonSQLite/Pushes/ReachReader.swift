import CarillonCore
import CarillonWire
import GRDB

/// Reads what ``WakeRules`` must know of devices, inside a transaction. What is remembered is not read.
struct ReachReader {
    private let db: Database
    private let memory: InboxMemory

    init(_ db: Database, memory: InboxMemory) {
        self.db = db
        self.memory = memory
    }

    func reach(of device: DeviceSerial) throws -> PushReach {
        if let known = memory.pushes[device] { return known }
        let reach = try read(device)
        memory.pushes[device] = reach
        return reach
    }

    /// - Parameter app: Of the device.
    func answer(
        _ question: WakeQuestion, about device: DeviceSerial, of app: AppSerial?, at now: Timestamp,
        into facts: inout WakeFacts
    ) throws {
        let waiting = WaitingWakes(db, index: memory.index)
        switch question {
        case .alertText: facts.hasAlertText = try app.map { try hasAlertText($0) } ?? false
        case .waking: facts.isWaking = try waiting.areAny(of: device, &facts.reach, at: now)
        case .span:
            facts.span = try waiting.span(of: device, &facts.reach, at: now)
            facts.isWaking = facts.span != nil
        case .inbox: facts.isInboxEmpty = try waiting.isEmpty(device)
        }
    }

    func hasAlertText(_ app: AppSerial) throws -> Bool {
        if let known = memory.pushes.hasAlertText(app) { return known }
        let select = "SELECT 1 FROM app_document WHERE app = ? AND kind = 'alert_text' AND name = ''"
        let isThere = try Int.first(db, select, [app.rawValue]) != nil
        memory.pushes.noteAlertText(of: app, isThere)
        return isThere
    }

    /// What the tables have.
    func read(_ device: DeviceSerial) throws -> PushReach {
        var reach = PushReach(lane: try lane(of: device))
        guard reach.lane != nil else { return reach }
        reach.wake = try wake(of: device)
        var pushes = try BoundStatement(db, Self.countPushes)
        pushes.bind(device.rawValue)
        try pushes.forEachRow { columns in
            reach.kept = Int(columns.integer(0))
            reach.alerts = Int(columns.integer(1))
            reach.triggers = Int(columns.integer(2))
            reach.lastAlertAt = columns.integerIfAny(3).map(Timestamp.init(milliseconds:))
            return false
        }
        return reach
    }

    /// The end of a lease is not a due time, and does not delay the next alert.
    private static let countPushes = """
        SELECT count(*),
            count(CASE WHEN \(isInOutbox) AND kind = \(PushKind.alert.rawValue) THEN 1 END),
            count(CASE WHEN \(isInOutbox) AND kind NOT IN (\(PushKind.alert.rawValue), \(PushKind.wake.rawValue)) THEN 1 END),
            max(CASE WHEN state = \(PushState.scheduled.rawValue) AND kind = \(PushKind.alert.rawValue) THEN due_at END)
        FROM push WHERE device = ?
        """

    private static let isInOutbox = "state IN (\(PushState.scheduled.rawValue), \(PushState.leased.rawValue))"

    func wake(of device: DeviceSerial) throws -> DeviceWake? {
        var select = try BoundStatement(db, "SELECT due_at, push, unanswered, pushed_at FROM wake WHERE device = ?")
        select.bind(device.rawValue)
        return try select.first { columns in
            DeviceWake(
                dueAt: columns.integerIfAny(0).map(Timestamp.init(milliseconds:)),
                isUnderWay: columns.integerIfAny(1) != nil,
                pace: WakePace(
                    unanswered: Int(columns.integer(2)),
                    pushedAt: columns.integerIfAny(3).map(Timestamp.init(milliseconds:))))
        }
    }

    private func lane(of device: DeviceSerial) throws -> PushLane? {
        var select = try BoundStatement(
            db,
            "SELECT app, environment FROM device_profile WHERE device = ? AND token NOT NULL AND reason IS NULL")
        select.bind(device.rawValue)
        return try select.first { columns in
            columns.text(1).flatMap(PushEnvironment.init).map {
                PushLane(app: AppSerial(columns.integer(0)), environment: $0)
            }
        } ?? nil
    }
}
