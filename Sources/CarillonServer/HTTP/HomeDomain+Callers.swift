package import CarillonCore
import CarillonWire
import Hummingbird

extension HomeDomain {
    /// Returns the device that sent a request: the device of the socket, or the owner of the credential.
    ///
    /// - Throws: ``ErrorCode/rateLimited`` if the device has reached its limit of connections. ``HomeFault/moved(to:)`` if the
    ///   device is in another shard than the request.
    func device(_ request: Request, _ context: RouteContext) async throws -> Device {
        if let session = context.session { return session.device }
        let device = try await devices.authenticate(bearer: request.bearer, in: context.shard)
        try context.usage?.claim(device.serial)
        return device
    }

    /// Returns the device that sent a request which does not concern the device itself. The device can belong to any home.
    func deviceOfAnyHome(_ request: Request, _ context: RouteContext) async throws -> Device {
        if let session = context.session { return session.device }
        let device = try await devices.authenticateOfAnyHome(bearer: request.bearer)
        try context.usage?.claim(device.serial)
        return device
    }

    /// With several homes, checks that a device is in the shard of the request, if the device exists.
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

/// Finds the app of a request.
extension HomeDomain {
    /// Returns the app in the path, for an operator.
    func app(_ request: Request, _ context: RouteContext) async throws -> AppID {
        _ = try await keys.authorize(bearer: request.bearer, as: [.admin])
        return try AppID.checked(try context.parameters.require("app"))
    }

    /// Returns the serial number of the app in the path, which must exist.
    func appSerial(_ request: Request, _ context: RouteContext) async throws -> AppSerial {
        try await serial(of: try await app(request, context))
    }

    /// Returns the app of a sender key, or the app that an operator's request names.
    func appOfSender(_ request: Request) async throws -> (serial: AppSerial, id: AppID, key: KeyID) {
        try await shared.appOfSender(request)
    }

    /// Returns the serial number of an app by its name, which can be invalid.
    package func serial(ofApp name: String) async throws -> AppSerial { try await serial(of: try AppID.checked(name)) }

    private func serial(of app: AppID) async throws -> AppSerial { try await shared.serial(of: app) }
}
