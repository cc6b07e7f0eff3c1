package import CarillonCore
import CarillonWire
import Hummingbird

extension HomeDomain {
    /// The device that makes a request: of its socket, or whose credential the request has.
    ///
    /// - Throws: ``ErrorCode/rateLimited`` if it has as many connections as it may. ``HomeFault/moved(to:)`` if the device is in another shard
    ///   than the request.
    func device(_ request: Request, _ context: RouteContext) async throws -> Device {
        if let session = context.session { return session.device }
        let device = try await devices.authenticate(bearer: request.bearer, in: context.shard)
        try context.share?.claim(device.serial)
        return device
    }

    /// Returns the device that makes a request about something else than the device. It can be a device of any home.
    func deviceOfAnyHome(_ request: Request, _ context: RouteContext) async throws -> Device {
        if let session = context.session { return session.device }
        let device = try await devices.authenticateOfAnyHome(bearer: request.bearer)
        try context.share?.claim(device.serial)
        return device
    }

    /// With several homes, checks that a device is in the shard of the request, if there is such a device.
    ///
    /// - Throws: ``HomeFault/moved(to:)``.
    func checkHas(_ id: DeviceID, _ context: RouteContext) async throws {
        guard !homes.isOne else { return }
        do {
            try home.checkHas(try await devices.find(id).serial, in: context.shard)
        } catch is Refusal {
            // The route handles a device that does not exist.
        }
    }
}

/// Which app a request is about.
extension HomeDomain {
    /// The app of the path, for an operator.
    func app(_ request: Request, _ context: RouteContext) async throws -> AppID {
        _ = try await keys.authorize(bearer: request.bearer, as: [.admin])
        return try AppID.checked(try context.parameters.require("app"))
    }

    /// The same, which must be there.
    func appSerial(_ request: Request, _ context: RouteContext) async throws -> AppSerial {
        try await serial(of: try await app(request, context))
    }

    /// The app of a sender key, or the one that an operator names.
    func appOfSender(_ request: Request) async throws -> (serial: AppSerial, id: AppID, key: KeyID) {
        try await shared.appOfSender(request)
    }

    /// The same of a name that may be none.
    package func serial(ofApp name: String) async throws -> AppSerial { try await serial(of: try AppID.checked(name)) }

    private func serial(of app: AppID) async throws -> AppSerial { try await shared.serial(of: app) }
}
