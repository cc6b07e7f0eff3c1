package import CarillonWire

/// Registers devices, recognises them, and lets them go.
package struct DeviceRegistrar: Sendable {
    private let devices: any DeviceStore
    private let sessions: LiveSessions
    private let directory: ChannelDirectory
    private let time: TimeSource
    private let random: RandomSource

    package init(
        devices: any DeviceStore, sessions: LiveSessions, directory: ChannelDirectory, time: TimeSource,
        random: RandomSource
    ) {
        self.devices = devices
        self.sessions = sessions
        self.directory = directory
        self.time = time
        self.random = random
    }

    /// - Parameter key: The key that allowed it.
    package func register(
        app: AppID, with key: KeyID? = nil
    ) async throws -> (device: Device, credential: DeviceCredential) {
        var random = random
        let credential = DeviceCredential(device: .random(using: &random), random: random)
        let device = try await devices.insertDevice(
            credential.device, app: app, credential: credential.hash, registeredWith: key, at: time.now())
        guard let device else {
            guard key == nil else { throw Refusal(.credentialInvalid, "The key was revoked.") }
            throw unknownApp(app)
        }
        return (device, credential)
    }

    /// Stores a device that came without registration, under the name that it was given at its `hello`.
    package func registerAnonymous(_ userAgent: UserAgentID, app: AppID) async throws -> Device {
        var random = random
        let device = try await devices.insertDevice(
            .random(using: &random), app: app, credential: userAgent.hash, at: time.now())
        guard let device else { throw unknownApp(app) }
        return device
    }

    /// The device that a credential opens.
    package func authenticate(bearer: String?) async throws -> Device {
        guard let bearer else {
            throw Refusal(.credentialMissing, "Send the device's credential as \"Authorization: Bearer …\".")
        }
        guard let credential = DeviceCredential(parsing: bearer), let device = try await devices.device(credential.device),
            device.credentialHash.matches(credential.hash)
        else {
            throw Refusal(.credentialInvalid, "The device's credential is unknown or mistyped; register the device again.")
        }
        return device
    }

    /// The anonymous device of a user agent identifier, if it was stored.
    package func device(of userAgent: UserAgentID) async throws -> Device? {
        try await devices.device(withCredential: userAgent.hash)
    }

    package func newUserAgentID() -> UserAgentID { UserAgentID(random: random) }

    package func find(_ id: DeviceID) async throws -> Device {
        guard let device = try await devices.device(id) else {
            throw Refusal(.deviceUnknown, "There is no device \(id).")
        }
        return device
    }

    package func list(app: AppID, after: DeviceID?, limit: Int) async throws -> [Device] {
        try await devices.devices(app: app, after: after, limit: limit)
    }

    /// Removes the device, its channels and its inbox, and ends its session.
    package func delete(_ device: Device) async throws {
        guard let removed = try await devices.deleteDevice(device.serial, at: time.now()) else {
            throw Refusal(.deviceUnknown, "The device was deleted already.")
        }
        directory.forget(removed.channels)
        sessions.end(removed.devices, because: .deviceGone)
    }

    /// Removes all devices that registered with a key, and ends their sessions. The key must be revoked: what registers
    /// with it meanwhile would stay otherwise.
    package func deleteAll(registeredWith key: KeyID) async throws {
        while true {
            let some = try await devices.devices(registeredWith: key, limit: 100)
            if some.isEmpty { return }
            for device in some {
                guard let removed = try await devices.deleteDevice(device.serial, at: time.now()) else { continue }
                directory.forget(removed.channels)
                sessions.end(removed.devices, because: .deviceGone)
            }
        }
    }

    private func unknownApp(_ app: AppID) -> Refusal {
        Refusal(.appUnknown, "There is no app \"\(app)\"; create it first.")
    }
}
