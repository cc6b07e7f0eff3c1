import CarillonWire

// The insertion of a device. The rules read nothing: their caller passes facts, and the rules return which facts are missing.
extension RegistrationRules {
    package enum Insertion: Sendable {
        /// Read the number of devices of the address, and decide again.
        case needsDevices(of: AddressQuota)
        case refused(InsertedDevice)
        /// The store assigns the serial of a new device.
        case decided(Device, RegistrationChanges)
    }

    /// Stores a device, or finds the device that the same registration made before.
    ///
    /// - Parameter limit: The number of devices that an app may have.
    package static func insert(
        _ new: NewDevice, limit: Int, at now: Timestamp, knowing facts: NewDeviceFacts,
        credential: NewCredential
    ) -> Insertion {
        guard let app = facts.app, new.key == nil || app.isKeyInForce else { return .refused(.notAllowed) }
        guard facts.known != nil || app.devices < limit else {
            return .refused(.refused(Refusal(.devicesTooMany, "The app has reached its limit of \(limit) devices.")))
        }
        if let quota = new.quota, facts.known == nil {
            guard let count = facts.devicesOfAddress else { return .needsDevices(of: quota) }
            guard count < quota.limit else { return .refused(.addressFull) }
        }
        var decision: Decision?
        if new.profile != nil || new.user != nil {
            let current =
                facts.stored
                ?? DeviceRegistration(device: facts.known?.serial ?? DeviceSerial(0), at: facts.known?.createdAt ?? now)
            do throws(Refusal) {
                decision = try register(
                    new.profile ?? current.profile, confirms: new.profile != nil, over: current, facts.token,
                    user: new.user, at: now)
            } catch {
                return .refused(.refused(error))
            }
        }
        var changes = RegistrationChanges(in: app.serial)
        if let decision {
            changes = Self.changes(
                of: decision, in: app.serial, after: facts.stored, facts.token, isNew: facts.known == nil)
        }
        var device =
            facts.known
            ?? Device(
                serial: DeviceSerial(0), id: new.proposed, app: app.serial, appID: new.app,
                credentialHash: credential.hash(for: new.proposed), createdAt: now,
                isAnonymous: new.isAnonymous, seenAt: now)
        if facts.known == nil {
            changes.new = RegistrationChanges.NewRow(
                device: device, key: new.key, registration: new.registration, address: new.quota?.address)
            changes.devices = 1
        } else {
            device.credentialHash = credential.hash(for: device.id)
            changes.renewed = device
        }
        return .decided(device, changes)
    }
}
