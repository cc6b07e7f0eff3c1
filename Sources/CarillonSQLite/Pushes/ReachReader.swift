import CarillonCore
import CarillonWire
import GRDB

/// Reads the facts of devices that ``WakeRules`` needs, inside a transaction. Cached facts are not read.
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

    /// - Parameter app: The app of the device.
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

    /// Reads the reach of a device from the tables. The reach is not cached.
    func read(_ device: DeviceSerial) throws -> PushReach {
        var select = try BoundStatement(db, Self.selectReach)
        select.bind(device.rawValue)
        return try select.first { PushReach($0, from: 0) } ?? PushReach()
    }

    /// Reads the reach of a device and the positions of its envelopes by one statement, for a message to a device that is not in
    /// the cache. The reach is cached.
    func readWithInbox(of device: DeviceSerial) throws -> [InboxIndex.Slot] {
        var select = try BoundStatement(db, Self.selectReachAndInbox)
        select.bind(device.rawValue)
        var reach: PushReach?
        var inTable: [InboxIndex.Slot] = []
        try select.forEachRow { columns in
            reach = reach ?? PushReach(columns, from: 2)
            if let position = columns.integerIfAny(0) {
                inTable.append(.init(position: position, size: Int(columns.integer(1))))
            }
            return true
        }
        let slots = InboxIndex.merged(inTable, try memory.index.slots(of: InboxIndex.Key(device, isFinal: false)))
        var known = reach ?? PushReach()
        if slots.isEmpty { known.quietBefore = .max }
        memory.pushes[device] = known
        return slots
    }

    /// Selects one row for each envelope in the table, and one row if the device has no envelopes.
    private static let selectReachAndInbox = """
        SELECT slot.position, slot.size, reach.*
        FROM (SELECT 1) AS asked
        LEFT JOIN (\(selectReach)) AS reach
        LEFT JOIN inbox_index AS slot ON slot.device = ?1 AND slot.is_final = 0
        ORDER BY slot.position
        """

    /// Selects a row if pushes can be sent to the device. The end of a lease is not a due time, and does not delay the next
    /// alert.
    private static let selectReach = """
        SELECT profile.app, profile.environment, wake.device, \(DeviceWake.columns),
            count(push.serial),
            count(CASE WHEN \(isInOutbox) AND push.kind = \(PushKind.alert.rawValue) THEN 1 END),
            count(CASE WHEN \(isInOutbox) AND push.kind NOT IN (\(PushKind.alert.rawValue), \(PushKind.wake.rawValue))
                THEN 1 END),
            max(CASE WHEN push.state = \(PushState.scheduled.rawValue) AND push.kind = \(PushKind.alert.rawValue)
                THEN push.due_at END)
        FROM device_profile AS profile
        LEFT JOIN wake ON wake.device = profile.device
        LEFT JOIN push ON push.device = profile.device
        WHERE profile.device = ?1 AND profile.token NOT NULL AND profile.reason IS NULL
        GROUP BY profile.device
        """

    private static let isInOutbox = "push.state IN (\(PushState.scheduled.rawValue), \(PushState.leased.rawValue))"

    func wake(of device: DeviceSerial) throws -> DeviceWake? {
        var select = try BoundStatement(db, "SELECT \(DeviceWake.columns) FROM wake WHERE wake.device = ?")
        select.bind(device.rawValue)
        return try select.first { DeviceWake($0, from: 0) }
    }
}

extension DeviceWake {
    fileprivate static let columns = "wake.due_at, wake.push, wake.unanswered, wake.pushed_at"

    /// - Parameter place: The index of the first of the columns.
    fileprivate init(_ columns: StatementColumns, from place: Int32) {
        self.init(
            dueAt: columns.integerIfAny(place).map(Timestamp.init(milliseconds:)),
            isUnderWay: columns.integerIfAny(place + 1) != nil,
            pace: WakePace(
                unanswered: Int(columns.integer(place + 2)),
                pushedAt: columns.integerIfAny(place + 3).map(Timestamp.init(milliseconds:))))
    }
}

extension PushReach {
    /// - Parameter place: The index of the first of the columns of `selectReach`. All are null if no push can be sent to the
    ///   device.
    fileprivate init(_ columns: StatementColumns, from place: Int32) {
        self.init()
        guard let environment = columns.text(place + 1).flatMap(PushEnvironment.init) else { return }
        queue = PushQueue(app: AppSerial(columns.integer(place)), environment: environment)
        if columns.integerIfAny(place + 2) != nil { wake = DeviceWake(columns, from: place + 3) }
        kept = Int(columns.integer(place + 7))
        alerts = Int(columns.integer(place + 8))
        triggers = Int(columns.integer(place + 9))
        lastAlertAt = columns.integerIfAny(place + 10).map(Timestamp.init(milliseconds:))
    }
}
