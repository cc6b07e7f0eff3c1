import CarillonCore
import CarillonWire

/// Performs the operations of one track on a store, one after another.
///
/// An operation reads its facts, and makes at most one call that changes the store: so it is found completely or not at all after
/// a kill. Its answer is the same over each store of the same content.
package struct WorkloadTrack: Sendable {
    struct Missing: Error {}

    let store: any Store
    let number: Int
    let app: App
    let now: Timestamp
    /// The leases of this run that did not end. They are lost with the run.
    var pushes: [LeasedPush] = []
    var calls: [LeasedCall] = []

    /// - Parameter run: All operations of a run have one time.
    package init(_ number: Int, of store: WorkloadStore, run: Int64) async throws {
        guard let app = try await store.store.app(Self.appID(of: number)) else { throw Missing() }
        self.store = store.store
        self.number = number
        self.app = app
        now = WorkloadOperation.time(of: run)
    }

    static func appID(of track: Int) throws -> AppID {
        guard let id = AppID("com.example.lane\(track)") else { throw Missing() }
        return id
    }

    /// Performs an operation, and returns the store's answer.
    package mutating func perform(_ operation: WorkloadOperation) async throws -> String {
        switch operation.kind {
        case .app: return try await changeApp(operation)
        case .key: return try await changeKey(operation)
        case .document: return try await changeDocument(operation)
        case .maintain: return try await maintain(operation)
        case .register: return try await register(operation)
        case .renewCredential: return try await renewCredential(operation)
        case .changeProfile: return try await changeProfile(operation)
        case .deleteDevice: return try await deleteDevice(operation)
        case .openChannel: return try await openChannel(operation)
        case .closeChannel: return try await closeChannel(operation)
        case .messages: return try await commitMessages(operation)
        case .leasePushes: return try await leasePushes(operation)
        case .endPushes: return try await endPushes(operation)
        case .requeuePushes: return text(try await store.requeueParkedPushes(of: app.serial, in: .all, at: now))
        case .putWatch: return try await putWatch(operation)
        case .removeWatch: return try await removeWatch(operation)
        case .leaseWork: return try await leaseWork()
        case .endWork: return try await endWork()
        case .putItem: return try await putItem(operation)
        case .deleteItem: return text(try await store.deleteItem(item(operation), ifIdleSince: nil))
        case .subscribe: return try await subscribe(operation)
        case .unsubscribe: return try await unsubscribe(operation)
        case .removeSubscriptions: return try await removeSubscriptions(operation)
        case .applyHandOvers: return try await applyHandOvers()
        case .notifyFiring: return try await notifyFiring(operation)
        case .advanceFiring: return try await advanceFiring(operation)
        case .publishUpdate: return try await publishUpdate(operation)
        case .withdrawUpdate: return try await withdrawUpdate(operation)
        case .bind: return try await bind(operation)
        case .offerUpdate: return try await offerUpdate(operation)
        case .putService: return try await putService(operation)
        case .removeService: return try await removeService(operation)
        case .clusterPlace: return try await setClusterPlace(operation)
        case .request: return try await makeRequest(operation)
        case .requestStep: return try await continueRequest(operation)
        case .cancelRequest: return try await cancelRequest()
        case .addAttachment: return try await addAttachment(operation)
        case .changeAttachment: return try await changeAttachment(operation)
        }
    }

    /// The answer of an operation that finds nothing to change.
    package static let nothing = "nothing"

    func text<Value>(_ value: Value) -> String { WorkloadFacts.text(of: value) }

    // MARK: Finding

    /// The devices of the track, in the order of their registration.
    func devices() async throws -> [(device: Device, registration: DeviceRegistration)] {
        try await store.devices(app: app.id, .all, after: nil, limit: 100).devices
    }

    func device(_ slot: Int) async throws -> Device? {
        let devices = try await devices()
        return devices.isEmpty ? nil : devices[slot % devices.count].device
    }

    func channel(_ operation: WorkloadOperation, of device: Device) async throws -> PushChannel? {
        let channels = try await store.channels(device: device.serial).sorted { $0.serial.rawValue < $1.serial.rawValue }
        return channels.isEmpty ? nil : channels[Int(operation.value) % channels.count]
    }

    func user(_ operation: WorkloadOperation) throws -> UserID {
        guard let user = UserID(operation.value % 4 == 0 ? "bob" : "ada") else { throw Missing() }
        return user
    }
}
