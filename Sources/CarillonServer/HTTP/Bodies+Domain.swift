import CarillonBasics
package import CarillonCore
package import CarillonWire

// How the core's values are written in the bodies of the API.

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
    init(_ device: Device) {
        self.init(
            id: device.id.description, app: device.appID.text,
            createdAt: Timestamp3339.text(device.createdAt.milliseconds))
    }
}

extension ChannelBody {
    init(_ channel: PushChannel) {
        self.init(channelID: channel.id.description, name: channel.name, restricted: channel.vapidKey != nil)
    }
}

extension Domain {
    func describe(_ device: Device) async throws -> DeviceBody {
        let registration = try await devices.registration(of: device)
        var body = DeviceBody(
            id: device.id.description, app: device.appID.text, status: registration.status.name,
            statusAt: Timestamp3339.text(registration.statusAt.milliseconds),
            createdAt: Timestamp3339.text(device.createdAt.milliseconds),
            waiting: try await homes.home(of: device.serial).inbox.waitingCount(device: device.serial),
            channels: try await channels.list(device: device.serial).map(ChannelBody.init))
        let profile = registration.profile
        body.reason = registration.status.reason?.rawValue
        body.push = profile.address.map { .init(platform: $0.platform.rawValue, environment: $0.environment.rawValue) }
        body.appVersion = profile.appVersion
        body.locale = profile.locale
        body.timeZone = profile.timeZone
        body.parameters = profile.parameters == .none ? nil : JSONValue(parsing: profile.parameters.json)
        return body
    }
}

extension DeviceStatus {
    var name: String { self == .registered ? "registered" : "suspended" }
}
