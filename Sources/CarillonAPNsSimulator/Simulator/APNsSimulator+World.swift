extension APNsSimulator {
    // MARK: Accounts

    /// Adds or changes a signing key.
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

    /// Revokes a key. Its tokens are invalid from now on, also on open connections. Returns false if there is no such key.
    @discardableResult
    public func revokeKey(_ id: String) -> Bool { hub.withState { $0.service.accounts.revoke(id) } }

    /// Adds or changes an app. A connection knows the apps that existed at its first push.
    public func add(_ app: App) { hub.withState { $0.service.accounts.add(app) } }

    /// The added apps.
    public var apps: [App] {
        hub.withState { $0.service.accounts.apps.values.map(\.app).sorted { $0.bundleID < $1.bundleID } }
    }

    // MARK: Devices

    /// Adds a device to the book, or changes it. A device that becomes online shows its waiting notifications.
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

    /// Changes a device. Returns false if the device is not in the book.
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

    /// Removes a device from the book. Returns false if the device was not there.
    @discardableResult
    public func removeDevice(_ token: String, in environment: Environment = .sandbox) -> Bool {
        hub.withState { $0.service.devices.remove(.init(token: token.lowercased(), environment: environment)) }
    }

    /// All devices in the book.
    public var devices: [Device] { hub.withState { $0.service.devices.devices } }

    /// Returns the results of the pushes to a device; nil if the device is not in the book.
    public func device(_ token: String, in environment: Environment = .sandbox) -> DeviceReport? {
        hub.withState { state in
            let now = hub.now(state)
            return state.service.devices.report(.init(token: token.lowercased(), environment: environment), at: now)
        }
    }

    /// The broadcast channels of all apps, with the payloads that were sent to them.
    public var channels: [BroadcastChannel] { hub.withState { $0.service.channels.all } }

    // MARK: Requests

    /// The newest processed requests, the oldest first; see ``Configuration/recordedRequests``.
    public var requests: [ReceivedRequest] { hub.withState { $0.log.requests } }

    /// The numbers of requests and faults since the start.
    public var totals: Totals { hub.withState { $0.log.totals } }

    /// Removes the recorded requests. The totals are kept.
    public func forgetRequests() { hub.withState { $0.log.removeAll() } }

    /// Returns when the given number of requests was processed since the start.
    /// - Throws: `CancellationError` when the task is cancelled.
    public func waitForRequests(_ count: Int) async throws {
        try await hub.wait { $0.log.totals.requests >= count }
    }

    /// Returns when the given number of faults has happened since the start.
    /// - Throws: `CancellationError` when the task is cancelled.
    public func waitForFaults(_ count: Int) async throws {
        try await hub.wait { $0.log.totals.faults >= count }
    }

    // MARK: Time

    /// The simulator's clock, in milliseconds since 1970.
    public var now: Int64 { hub.withState { hub.now($0).milliseconds } }

    /// Moves the simulator's clock, so that tokens, stored notifications and keys age. Delays of faults and TLS do not follow
    /// it.
    public func advanceClock(by duration: Duration) { hub.withState { $0.clockOffset += duration } }

    // MARK: Behaviour

    /// The rules of the simulated service. A change applies to the next request.
    public var rules: Rules {
        get { hub.withState { $0.service.rules } }
        set { hub.withState { $0.service.rules = newValue } }
    }

    /// The behaviour towards new connections.
    public var conditions: Conditions { hub.withState { $0.conditions } }

    /// Changes the behaviour towards new connections.
    /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/settingInvalid``; nothing is then changed.
    public func setConditions(_ conditions: Conditions) throws(SimulatorError) {
        try Self.check(conditions)
        hub.withState { $0.conditions = conditions }
    }

    /// The fault rules, in the order in which they are tried.
    public var faults: [FaultRule] { hub.withState { $0.plan.rules } }

    /// How often each of the ``faults`` has happened.
    public var faultCounts: [Int] { hub.withState { $0.plan.counts } }

    /// Replaces the fault rules, and resets their counts.
    /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/settingInvalid``; nothing is then changed.
    public func setFaults(_ rules: [FaultRule]) throws(SimulatorError) {
        try Self.check(rules)
        hub.withState { $0.plan.rules = rules }
    }

    /// Adds a fault rule after the others.
    /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/settingInvalid``.
    public func add(_ rule: FaultRule) throws(SimulatorError) {
        try Self.check([rule])
        hub.withState { $0.plan.append(rule) }
    }

    /// Starts or stops rejecting every new request with 503 Shutdown.
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
