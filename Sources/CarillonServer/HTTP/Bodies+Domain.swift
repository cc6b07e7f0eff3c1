import CarillonBasics
package import CarillonCore
package import CarillonWire

// Conversions of core types to bodies of the API.

extension AppBody {
    package init(_ app: App) {
        self.init(id: app.id.text, createdAt: Timestamp3339.text(app.createdAt.milliseconds))
    }
}

extension KeyBody {
    package init(_ key: AccessKey, secret: String? = nil) {
        self.init(
            id: key.id.description, role: key.role.rawValue, app: key.app?.text, name: key.name,
            createdAt: Timestamp3339.text(key.createdAt.milliseconds),
            revokedAt: key.revokedAt.map { Timestamp3339.text($0.milliseconds) }, secret: secret)
    }
}

extension DeviceSummary {
    init(_ device: Device, _ registration: DeviceRegistration) {
        let address = registration.profile.address
        self.init(
            id: device.id.description, app: device.appID.text,
            createdAt: Timestamp3339.text(device.createdAt.milliseconds), status: registration.status.name,
            reason: registration.status.reason?.rawValue, platform: address?.platform.rawValue,
            environment: address?.environment.rawValue, user: registration.user?.text)
    }
}

extension ChannelBody {
    init(_ channel: PushChannel) {
        self.init(
            channelID: channel.id.description, name: channel.name, restricted: channel.vapidKey != nil,
            wake: channel.wake.rawValue)
    }
}

extension DeviceFilter {
    /// - Parameters:
    ///   - status: `registered` or `suspended`.
    ///   - platform: Its name, or `none`.
    ///   - user: The user of the devices.
    package init(status: String?, platform: String?, user: String? = nil) throws(Refusal) {
        self.init()
        if let user {
            guard let known = UserID(user) else {
                throw Refusal(.parameterInvalid, "\"user\" must have 1 to \(UserID.longestBytes) bytes.")
            }
            self.user = known
        }
        switch status {
        case nil: break
        case "registered": isSuspended = false
        case "suspended": isSuspended = true
        default: throw Refusal(.parameterInvalid, "\"status\" must be \"registered\" or \"suspended\".")
        }
        guard let platform else { return }
        if platform == "none" {
            self.platform = Platform.none
        } else if let known = PushPlatform(rawValue: platform) {
            self.platform = .of(known)
        } else {
            let known = PushPlatform.allCases.map(\.rawValue).joined(separator: ", ")
            throw Refusal(.parameterInvalid, "\"platform\" must be one of: \(known), none.")
        }
    }
}

extension HomeDomain {
    package func listDevices(
        of app: AppID, _ filter: DeviceFilter, after: DeviceID?, limit: Int
    ) async throws -> DeviceList {
        let serial = try await shared.serial(of: app)
        let page = try await devices.list(app: app, filter, after: after, limit: limit) { read in
            try await self.shared.listings.take(of: serial, read)
        }
        return DeviceList(
            devices: page.map { DeviceSummary($0.device, $0.registration) },
            next: page.count == limit ? page.last?.device.id.description : nil)
    }

    /// - Parameter registration: The registration of the device, if it was already read.
    package func describe(_ device: Device, _ registration: DeviceRegistration? = nil) async throws -> DeviceBody {
        let registration = if let registration { registration } else { try await devices.registration(of: device) }
        var body = DeviceBody(
            id: device.id.description, app: device.appID.text, status: registration.status.name,
            statusAt: Timestamp3339.text(registration.statusAt.milliseconds),
            createdAt: Timestamp3339.text(device.createdAt.milliseconds),
            waiting: try await home.waitingCount(device: device.serial),
            channels: try await channels.list(device: device.serial).map(ChannelBody.init))
        let profile = registration.profile
        body.reason = registration.status.reason?.rawValue
        body.push = profile.address.map { .init(platform: $0.platform.rawValue, environment: $0.environment.rawValue) }
        body.user = registration.user?.text
        body.appVersion = profile.appVersion
        body.locale = profile.locale
        body.timeZone = profile.timeZone
        body.revision = profile.revision
        body.parameters = profile.parameters == .none ? nil : JSONValue(parsing: profile.parameters.json)
        return body
    }
}
