import CarillonCore
import CarillonWire
import Foundation

/// What a request names, as far as its home follows from it.
struct RequestNames: Sendable {
    /// The parameters of the path, as the path has them.
    var path: [String: String] = [:]
    /// The channel token in `X-Good-GNP-Token`.
    var token: String?
    /// The secret of `Authorization: Bearer …`.
    var bearer: String?
    /// The app of the path, or else of the sender key or the query. Nil if there is none.
    var app: AppSerial?
    /// The app of a client key, and the hash of the secret in the body of a registration. Nil without such a secret.
    var registration: (app: AppID, secret: SecretHash)?
}

/// Finds the home that runs a request, from what the request names.
///
/// The finder authenticates nothing and asks no store: the home does both. A name that cannot be read decides nothing, because each home
/// rejects it with the same error.
struct HomeFinder: Sendable {
    enum Place: Equatable, Sendable {
        /// The process that accepted the request.
        case here
        case home(of: Shard)
        /// All homes, each for its shards.
        case eachHome
        /// The homes of the parts of the body. The shard of a part is ``HomeFinder/shard(ofToken:)`` for a Matrix notification, and that of
        /// the item for updates of items.
        case homesOfParts
    }

    let tokens: TokenSealer

    /// - Parameter home: The case of the request's route in ``RouteHome/table``.
    func place(of request: RequestNames, by home: RouteHome) -> Place {
        switch home {
        case .process, .registry, .store, .newAttachment: return .here
        case .eachHome: return .eachHome
        case .parts: return .homesOfParts
        case .tokenInPath: return place(request.path["token"].flatMap { token in shard(ofToken: token) })
        case .tokenInField: return place(request.token.flatMap { token in shard(ofToken: token) })
        case .message:
            let id = request.path["id"].flatMap { text in MessageID(text) }
            return place(id.map { id in Shard(of: id.position) })
        case .newDevice: return place(request.registration.map { new in Shard(of: new.app, registration: new.secret) })
        case .credential:
            let credential = request.bearer.flatMap { text in DeviceCredential(parsing: text) }
            return place(credential.map { credential in Shard(of: credential.device) })
        case .device:
            let id = request.path["device"].flatMap { text in DeviceID(text) }
            return place(id.map { id in Shard(of: id) })
        case .item: return place(shard(ofItem: request.path["item"], of: request.app))
        case .appInPath, .appOfSender: return place(request.app.map { app in Shard(of: app) })
        case .attachment:
            let id = request.path["attachment"].flatMap { text in AttachmentID(text) }
            return place(id.map { id in Shard(of: id) })
        }
    }

    /// Returns the shard of the device whose channel the token is for; nil if this server did not seal the token.
    func shard(ofToken token: String) -> Shard? {
        guard let contents = tokens.open(token) else { return nil }
        return Shard(of: contents.device)
    }

    private func shard(ofItem text: String?, of app: AppSerial?) -> Shard? {
        guard let app, let text = text?.removingPercentEncoding, let name = ItemName(text) else { return nil }
        return Shard(of: app, item: name.text)
    }

    private func place(_ shard: Shard?) -> Place {
        guard let shard else { return .here }
        return .home(of: shard)
    }
}
