package import CarillonCore
import CarillonWire
import Hummingbird

extension HomeDomain {
    /// The device that makes a request: of its socket, or whose credential the request has.
    ///
    /// - Throws: ``ErrorCode/rateLimited`` if it has as many connections as it may.
    func device(_ request: Request, _ context: RouteContext) async throws -> Device {
        if let session = context.session { return session.device }
        let device = try await devices.authenticate(bearer: request.bearer)
        try context.share?.claim(device.serial)
        return device
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
        let key = try await keys.authorize(bearer: request.bearer, as: [.sender, .admin])
        let named = try request.uri.queryParameters["app"].map { try AppID.checked(String($0)) }
        guard let id = key.app ?? named else {
            throw Refusal(.parameterInvalid, "An admin key is of no app: say which is meant with ?app=….")
        }
        if let app = key.app, let named, app != named { throw Refusal(.roleForbidden, "The key is of app \(app).") }
        return (try await serial(of: id), id, key.id)
    }

    /// The same of a name that may be none.
    package func serial(ofApp name: String) async throws -> AppSerial { try await serial(of: try AppID.checked(name)) }

    private func serial(of app: AppID) async throws -> AppSerial {
        guard let serial = try await shared.apps.serial(of: app) else {
            throw Refusal(.appUnknown, "There is no app \"\(app)\".")
        }
        return serial
    }
}
