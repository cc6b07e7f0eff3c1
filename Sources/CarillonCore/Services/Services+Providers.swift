import CarillonBasics
package import CarillonWire

/// Offers of services, and lookups of providers.
extension Services {
    package func offer(_ profile: ServiceProvider.Profile, by device: Device) async throws {
        guard let isChange = try await store.putServiceProfile(profile, of: device.serial) else {
            throw DeviceRegistrar.credentialInvalid
        }
        if isChange { notify(try await peers(of: device)) }
    }

    package func withdraw(by device: Device) async throws {
        let peers = try await peers(of: device)
        if try await store.removeServiceProfile(of: device.serial) { notify(peers) }
    }

    /// Returns the providers that a device can call, connected ones first. Backend devices are ordered by their priority, and
    /// users' devices by the time at which they were last seen, the latest first.
    ///
    /// - Throws: ``Refusal`` with ``ErrorCode/callForbidden`` if a device that can call no provider looks for an app.
    package func providers(for caller: Device, _ query: ServiceQuery) async throws -> [(ServiceProvider, isLive: Bool)] {
        guard let reach = try await store.serviceProviders(for: caller.serial, query, limit: Self.mostProviders) else {
            guard query.app == nil else { throw Self.nobodyMayBeCalled }
            return []
        }
        if query.user != nil, reach.caller != .server {
            throw Refusal(
                .callForbidden,
                "Only a backend device can use the parameter \"user\"; other devices find the devices of their own user.")
        }
        var elsewhere: [DeviceSerial] = []
        for provider in reach.providers where !home.has(provider.device) { elsewhere.append(provider.device) }
        let connected = elsewhere.isEmpty ? [] : await connected(elsewhere)
        return reach.providers.map { provider in
            let isLive = home.isConnected(provider.device) || connected.contains(provider.device)
            return (provider, isLive: isLive, chance: provider.cluster == nil ? 0 : Int.random(in: 0..<Int.max))
        }.sorted { Self.rank($0.0, $0.isLive, $0.chance) < Self.rank($1.0, $1.isLive, $1.chance) }
            .map { ($0.0, isLive: $0.isLive) }
    }

    static let nobodyMayBeCalled = Refusal(
        .callForbidden,
        "The device has no user and is not a backend device, so it cannot call services. Sign in a user, or have an operator make it a backend device."
    )

    private static func rank(_ provider: ServiceProvider, _ isLive: Bool, _ chance: Int) -> (Int, Int, Int64, Int) {
        let away = isLive ? 0 : 1
        guard let cluster = provider.cluster else { return (away, 0, -provider.seenAt.milliseconds, 0) }
        return (away, cluster.priority, 0, chance)
    }

    /// The largest number of providers in one answer.
    package static let mostProviders = 200

    /// - Returns: Nil if there is no icon, or no such provider that the device can call.
    package func icon(of app: AppID, on device: DeviceID, for caller: Device) async throws -> ServiceIcon? {
        let query = ServiceQuery(app: app, device: device)
        guard let found = try await store.serviceProviders(for: caller.serial, query, limit: 1)?.providers.first else {
            return nil
        }
        return try await store.serviceIcon(of: found.device)
    }

    // MARK: Changes

    /// Makes a change after which other devices can find a device or not, and notifies the devices that could find it before.
    ///
    /// - Throws: The error of `work`. Requests that end with the change and cannot be ended now are ended by the sweep.
    package func changing<Value>(_ device: Device, _ work: () async throws -> Value) async throws -> Value {
        let before = try await peers(of: device)
        let value = try await work()
        notify(before)
        await endDueIfPossible()
        return value
    }

    private func peers(of device: Device) async throws -> [DeviceSerial] {
        try await store.servicePeers(of: device.serial, limit: Self.mostProviders)
    }

    // MARK: Settings of operators

    package func realm(of app: AppSerial) async throws -> String? {
        try await documents.value(of: AppDocument.Key(.realm, of: app)) { document -> String? in
            document.map { String(decoding: $0.bytes, as: UTF8.self) }
        }
    }

    package func setRealm(_ realm: String, of app: AppSerial) async throws {
        let key = AppDocument.Key(.realm, of: app)
        guard try await documents.put(Array(realm.utf8), as: key, at: time.now()) != nil else {
            throw Refusal(.appUnknown, "The app does not exist; it may have been deleted.")
        }
    }

    /// Removes the realm of an app, if it has one.
    ///
    /// - Parameter app: Returns the app, and throws if the app does not exist.
    package func removeRealm(of app: () async throws -> AppSerial) async throws {
        let isRemoved = try await documents.remove(AppDocument.Key(.realm, of: try await app()))
        // The app had no realm, or was deleted after it was looked up.
        if !isRemoved { _ = try await app() }
    }

    package func cluster(of app: AppSerial) async throws -> [(device: DeviceID, place: ClusterPlace)] {
        try await store.cluster(of: app)
    }

    /// Makes a device of an app a backend device: all users of the app and its realm can call it, and it can call their devices.
    package func setPlace(_ place: ClusterPlace, of device: DeviceID, app: AppSerial) async throws {
        switch try await store.setClusterPlace(place, of: device, app: app) {
        case true?: return
        case false?: throw Self.deviceUnknown
        case nil:
            throw Refusal(
                .quotaExceeded, "An app can have up to \(ClusterPlace.mostOfApp) backend devices; remove one first.")
        }
    }

    /// Makes a backend device an ordinary device again: requests to it end, and it can call no device any more.
    package func removePlace(of device: DeviceID, app: AppSerial) async throws {
        guard try await store.setClusterPlace(nil, of: device, app: app) == true else {
            throw Refusal(.deviceUnknown, "The device is not a backend device of the app.")
        }
    }

    private static let deviceUnknown = Refusal(.deviceUnknown, "The app has no device with this ID.")
}
