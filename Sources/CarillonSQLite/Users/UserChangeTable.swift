import CarillonCore
import GRDB

/// Ends the data of a device, except its inbox and its pushes, when the device's user changes, inside that transaction.
/// `UserChange` contains the rules.
struct UserChangeTable {
    private let db: Database
    private let callbacks: CallbackLimits
    private let requests: RequestMemory

    init(_ db: Database, callbacks: CallbackLimits, requests: RequestMemory) {
        self.db = db
        self.callbacks = callbacks
        self.requests = requests
    }

    /// - Parameters:
    ///   - registration: The registration after the change.
    ///   - hadUser: Whether the device had a user before.
    func end(of registration: DeviceRegistration, in app: AppSerial, hadUser: Bool, at now: Timestamp) throws {
        let device = registration.device
        try BindingTransaction(db).userChanged(of: device, to: registration.user, at: now)
        _ = try ProviderTable(db).remove(device)
        try RequestTable(db, memory: requests).write(RequestRules().end(of: device, because: .userChanged))
        guard hadUser else { return }
        try closeChannels(of: device, at: now)
        try SubscriptionTable(db).remove("device = ? AND subscription.user IS NOT NULL", [device.rawValue])
        try AttachmentTable(db).userLeaves(device, of: app)
        try db.run("UPDATE device_profile SET badge = 0 WHERE device = ?", [device.rawValue])
    }

    /// Closes the channels of the user. The rows stay until the app was notified.
    private func closeChannels(of device: DeviceSerial, at now: Timestamp) throws {
        let ofUser = "device = ? AND of_user = 1"
        try WatchTransaction(db).channelsEnd(
            ofUser, [device.rawValue], because: .userChanged, at: now, limits: callbacks)
        try db.run("UPDATE channel SET of_user = 2 WHERE \(ofUser)", [device.rawValue])
    }
}
