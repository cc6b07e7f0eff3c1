import CarillonCore
import CarillonWire
import Hummingbird

/// Finds the app of a request.
extension Domain {
    /// Returns the app of a sender key, or the app that an operator's request names.
    func appOfSender(_ request: Request) async throws -> (serial: AppSerial, id: AppID, key: KeyID) {
        let key = try await keys.authorize(bearer: request.bearer, as: [.sender, .admin])
        let named = try request.uri.queryParameters["app"].map { try AppID.checked(String($0)) }
        guard let id = key.app ?? named else {
            throw Refusal(.parameterInvalid, "An admin key belongs to no app; name the app in the parameter \"app\".")
        }
        if let app = key.app, let named, app != named {
            throw Refusal(.roleForbidden, "The API key belongs to the app \(app) and is not valid for another app.")
        }
        return (try await serial(of: id), id, key.id)
    }

    /// - Throws: ``Refusal`` if there is no such app.
    func serial(of app: AppID) async throws -> AppSerial {
        guard let serial = try await apps.serial(of: app) else { throw Refusal.noApp(app) }
        return serial
    }
}
