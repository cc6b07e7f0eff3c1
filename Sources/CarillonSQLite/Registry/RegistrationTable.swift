import CarillonCore
import CarillonWire
import GRDB

/// Reads and changes registrations of devices, inside a transaction, as ``RegistrationRules`` decides.
struct RegistrationTable {
    private let db: Database
    private let memory: InboxMemory
    private let reader: RegistrationReader
    private let writer: RegistrationChangeWriter

    init(_ db: Database, memory: InboxMemory) {
        self.db = db
        self.memory = memory
        reader = RegistrationReader(db)
        writer = RegistrationChangeWriter(db)
    }

    /// Returns nil if the device has not reported anything yet.
    func registration(of device: DeviceSerial) throws -> DeviceRegistration? { try reader.registration(of: device) }

    /// Returns the revisions of a device's last reports.
    func reportedRevisions(of device: DeviceSerial) throws -> ReportedRevisions {
        var select = try BoundStatement(
            db,
            """
            SELECT (SELECT said_revision FROM device_profile WHERE device = ?1),
                (SELECT revision FROM service_provider WHERE device = ?1)
            """)
        select.bind(device.rawValue)
        return try select.first { ReportedRevisions(device: $0.text(0), services: $0.text(1)) } ?? .none
    }

    // MARK: Changes

    /// - Parameter inboxes: Ends the envelopes of a former user.
    func insert(
        _ new: NewDevice, limit: Int, _ inboxes: InboxTransaction, at now: Timestamp,
        credential: NewCredential
    ) throws -> InsertedDevice {
        var facts = try reader.facts(of: new)
        while true {
            switch RegistrationRules.insert(new, limit: limit, at: now, knowing: facts, credential: credential) {
            case .needsDevices(let quota): facts.devicesOfAddress = try reader.devices(of: quota)
            case .refused(let result): return result
            case .decided(var device, var changes):
                if let new = changes.new {
                    device.serial = try writer.insert(new)
                    for place in changes.profiles.indices where changes.profiles[place].isOfNewDevice {
                        changes.profiles[place].registration.device = device.serial
                    }
                }
                let changesStatus = changes.profiles.contains(where: \.isStatusChanged)
                guard let ended = try write(changes, inboxes, at: now) else {
                    return .stored(device, changesStatus: changesStatus)
                }
                return .handedOver(device, ended: ended, changesStatus: changesStatus)
            }
        }
    }

    /// - Parameter inboxes: Ends the envelopes of a former user.
    func change(
        _ request: RegistrationRequest, decidedOn basis: DeviceRegistration, _ inboxes: InboxTransaction, at now: Timestamp
    ) throws -> RegistrationWrite {
        guard var facts = try reader.facts(of: basis.device) else { return .deviceGone }
        guard facts.current == basis else { return .outdated(facts.current) }
        while true {
            switch RegistrationRules.change(request, at: now, knowing: facts) {
            case .needsToken(let address, let app): facts.token = try reader.facts(of: address, in: app)
            case .decided(.failure(let refusal)): return .refused(refusal)
            case .decided(.success(var ruling)):
                ruling.decision.ended = try write(ruling.changes, inboxes, at: now) ?? []
                return .decided(ruling.decision)
            }
        }
    }

    /// - Parameter inboxes: Ends the envelopes of a former user.
    /// - Returns: The positions of envelopes that ended with the former user. Nil if the user did not change.
    func write(_ changes: RegistrationChanges, _ inboxes: InboxTransaction, at now: Timestamp) throws -> [Int64]? {
        if let renewed = changes.renewed { try writer.renewCredential(of: renewed) }
        var ended: [Int64]?
        for profile in changes.profiles {
            try write(profile, in: changes.app)
            if let change = profile.userChange {
                ended = try inboxes.changeUser(
                    of: profile.registration, in: changes.app, hadUser: change == .replaced, at: now)
            }
            guard !profile.isOfNewDevice else { continue }
            try WakeTable(db, memory: memory).changed(
                profile.registration, app: changes.app, hasOtherAddress: profile.isAddressChanged, at: now)
        }
        if let released = changes.released { try writer.write(released) }
        try writer.addDevices(changes.devices, to: changes.app)
        return ended
    }

    private func write(_ profile: RegistrationChanges.Profile, in app: AppSerial) throws {
        try writer.write(profile, in: app)
        guard let change = profile.statusChange else { return }
        try SubscriptionTable(db).follow(change, of: profile.registration.device)
    }

    /// Stores the registration of a device that is suspended now.
    func storeSuspended(_ registration: DeviceRegistration, app: AppSerial, at now: Timestamp) throws {
        let profile = RegistrationChanges.Profile(registration: registration, isFirst: false, statusChange: .suspended)
        try write(profile, in: app)
        try WakeTable(db, memory: memory).changed(registration, app: app, at: now)
    }
}
