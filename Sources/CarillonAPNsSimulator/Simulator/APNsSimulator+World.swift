extension APNsSimulator {
    // MARK: Accounts

    /// Makes a key known to the service, or changes one.
    public func add(_ key: SigningKey) throws(SimulatorError) {
        let result: Result<Void, SimulatorError> = hub.withState { state in
            do throws(SimulatorError) {
                return .success(try state.service.accounts.add(key))
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    /// Revokes a key: its tokens are invalid from now on, also on open connections. False when there is no such key.
    @discardableResult
    public func revokeKey(_ id: String) -> Bool { hub.withState { $0.service.accounts.revoke(id) } }

    /// Registers an app, or changes one. A connection knows the apps that existed at its first push.
    public func add(_ app: App) { hub.withState { $0.service.accounts.add(app) } }

    /// The apps that were registered.
    public var apps: [App] {
        hub.withState { $0.service.accounts.apps.values.map(\.app).sorted { $0.bundleID < $1.bundleID } }
    }

    // MARK: Devices

    /// Adds a device to the book, or changes one: a device that comes online shows what has waited for it.
    /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/identifierInvalid``.
    public func add(_ device: Device) throws(SimulatorError) {
        guard Identifiers.isDeviceToken(device.token[...]) else {
            throw SimulatorError(
                .identifierInvalid, "The device token \"\(device.token)\" must be an even number of hexadecimal digits.")
        }
        guard Identifiers.isTopic(device.topic) else {
            throw SimulatorError(.identifierInvalid, "\"\(device.topic)\" is not a topic such as com.example.app.")
        }
        hub.withState { state in
            let now = hub.now(state)
            state.service.devices.put(device, at: now)
        }
    }

    /// Changes a device; false when it is not in the book.
    @discardableResult
    public func changeDevice(
        _ token: String, in environment: Environment = .sandbox, _ change: (inout Device) -> Void
    ) -> Bool {
        hub.withState { state in
            let now = hub.now(state)
            guard var device = state.service.devices[.init(token: token.lowercased(), environment: environment)] else {
                return false
            }
            change(&device)
            state.service.devices.put(device, at: now)
            return true
        }
    }

    /// Takes a device off the book; false when it was not there.
    @discardableResult
    public func removeDevice(_ token: String, in environment: Environment = .sandbox) -> Bool {
        hub.withState { $0.service.devices.remove(.init(token: token.lowercased(), environment: environment)) }
    }

    /// All devices in the book.
    public var devices: [Device] { hub.withState { $0.service.devices.devices } }

    /// What became of the pushes to a device; nil when it is not in the book.
    public func device(_ token: String, in environment: Environment = .sandbox) -> DeviceReport? {
        hub.withState { state in
            let now = hub.now(state)
            return state.service.devices.report(.init(token: token.lowercased(), environment: environment), at: now)
        }
    }

    /// The broadcast channels of all apps, with what was sent to them.
    public var channels: [BroadcastChannel] { hub.withState { $0.service.channels.all } }

    // MARK: Requests

    /// The newest requests that were processed, the oldest first; see ``Configuration/recordedRequests``.
    public var requests: [ReceivedRequest] { hub.withState { $0.log.requests } }

    /// How many requests there were since the start.
    public var totals: Totals { hub.withState { $0.log.totals } }

    /// Forgets the recorded requests. The totals go on.
    public func forgetRequests() { hub.withState { $0.log.removeAll() } }

    /// Returns when so many requests were processed since the start.
    /// - Throws: `CancellationError`.
    public func waitForRequests(_ count: Int) async throws {
        try await hub.wait { $0.log.totals.requests >= count }
    }

    /// Returns when so many faults have happened since the start.
    /// - Throws: `CancellationError`.
    public func waitForFaults(_ count: Int) async throws {
        try await hub.wait { $0.log.totals.faults >= count }
    }

    // MARK: Time

    /// The simulator's clock, in milliseconds since 1970.
    public var now: Int64 { hub.withState { hub.now($0).milliseconds } }

    /// Moves the simulator's clock, so that tokens, storage and keys grow old. Delays of faults and TLS do not follow it.
    public func advanceClock(by duration: Duration) { hub.withState { $0.clockOffset += duration } }

    // MARK: Behaviour

    /// How strict the service is, from the next request on.
    public var rules: Rules {
        get { hub.withState { $0.service.rules } }
        set { hub.withState { $0.service.rules = newValue } }
    }

    /// How connections are treated that come from now on.
    public var conditions: Conditions { hub.withState { $0.conditions } }

    /// Changes how connections are treated that come from now on.
    /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/settingInvalid``; nothing is changed then.
    public func setConditions(_ conditions: Conditions) throws(SimulatorError) {
        try Self.check(conditions)
        hub.withState { $0.conditions = conditions }
    }

    /// The faults that are in force, in the order in which they are tried.
    public var faults: [FaultRule] { hub.withState { $0.plan.rules } }

    /// How often each of the ``faults`` has happened.
    public var faultCounts: [Int] { hub.withState { $0.plan.counts } }

    /// Replaces the faults, and begins to count anew.
    /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/settingInvalid``; nothing is changed then.
    public func setFaults(_ rules: [FaultRule]) throws(SimulatorError) {
        try Self.check(rules)
        hub.withState { $0.plan.rules = rules }
    }

    /// Adds a fault after the others.
    /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/settingInvalid``.
    public func add(_ rule: FaultRule) throws(SimulatorError) {
        try Self.check([rule])
        hub.withState { $0.plan.append(rule) }
    }

    /// Answers every new request with 503 Shutdown, or stops doing so.
    public func setShuttingDown(_ isShuttingDown: Bool) {
        hub.withState { $0.service.isShuttingDown = isShuttingDown }
    }

    static func check(_ conditions: Conditions) throws(SimulatorError) {
        let windows = 0...Int(Int32.max)
        guard windows.contains(conditions.streamWindow), (0...65_535).contains(conditions.connectionWindow),
            (0...Int(Int32.max)).contains(conditions.streams), (0...Int(Int32.max)).contains(conditions.firstStreams)
        else {
            throw SimulatorError(
                .settingInvalid,
                "Windows and streams must not be negative; the connection's window must be at most 65535, the others at most 2147483647."
            )
        }
        guard conditions.roundTrip >= .zero, conditions.idleTimeout.map({ $0 > .zero }) ?? true,
            conditions.badDeviceTokens.map({ $0 > 0 }) ?? true
        else {
            throw SimulatorError(
                .settingInvalid, "The round trip, the idle timeout and badDeviceTokens must not be negative.")
        }
    }

    static func check(_ rules: [FaultRule]) throws(SimulatorError) {
        for rule in rules {
            guard (0...1).contains(rule.rate), rule.skip >= 0, rule.times.map({ $0 >= 0 }) ?? true else {
                throw SimulatorError(
                    .settingInvalid, "A fault's rate must be from 0 to 1; skip and times must not be negative.")
            }
            let isPossible =
                switch rule.fault {
                case .answer(let status, .huge(let bytes)): (200...599).contains(status) && (0...100_000_000).contains(bytes)
                case .answer(let status, _): (200...599).contains(status)
                case .delay(let duration): duration >= .zero
                case .streamLimit(let number), .streamWindow(let number): (0...Int(Int32.max)).contains(number)
                default: true
                }
            guard isPossible else {
                throw SimulatorError(
                    .settingInvalid,
                    "A fault's status must be from 200 to 599, a huge body must have at most 100000000 bytes, and no number must be negative."
                )
            }
        }
    }
}
