import CarillonBasics
package import CarillonCore
package import CarillonWire
import Hummingbird

/// The operator's settings for services between apps: the realms of apps, and the backend devices.
struct RealmRoutes: Sendable {
    let domain: HomeDomain

    func add(to routes: Routes) {
        routes.on(.get, "/v1/apps/:app/realm", showRealm)
        routes.on(.put, "/v1/apps/:app/realm", setRealm)
        routes.on(.delete, "/v1/apps/:app/realm", removeRealm)
        routes.list("/v1/apps/:app/servers", servers)
        routes.on(.put, "/v1/apps/:app/servers/:device", setServer)
        routes.on(.delete, "/v1/apps/:app/servers/:device", removeServer)
    }

    private var services: Services { domain.services }

    // MARK: Realms

    private static let realmBytes = 1...128

    @Sendable private func showRealm(_ request: Request, _ context: RouteContext) async throws -> Response {
        let realm = try await services.realm(of: try await domain.appSerial(request, context))
        return Response(status: .ok, json: RealmBody(realm: realm))
    }

    @Sendable private func setRealm(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appSerial(request, context)
        guard let realm = try await request.object(of: ["realm"]).textMember("realm"),
            Self.realmBytes.contains(realm.utf8.count)
        else { throw Refusal(.fieldInvalid, "The field \"realm\" must be a name of 1 to 128 bytes.") }
        try await services.setRealm(realm, of: app)
        return Response(status: .ok, json: RealmBody(realm: realm))
    }

    @Sendable private func removeRealm(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await services.removeRealm { try await domain.appSerial(request, context) }
        return Response(status: .noContent)
    }

    // MARK: Backend devices

    private func device(_ context: RouteContext) throws -> DeviceID {
        try DeviceID.checked(try context.parameters.require("device"))
    }

    @Sendable private func servers(_ request: Request, _ context: RouteContext) async throws -> Response {
        let servers = try await services.cluster(of: try await domain.appSerial(request, context))
        return Response(status: .ok, json: ["servers": servers.map { $1.body(of: $0) }])
    }

    @Sendable private func setServer(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appSerial(request, context)
        let device = try device(context)
        try await domain.checkHas(device, context)
        let place = try ClusterPlace(try await request.object(of: ["host", "port", "priority"], mayBeMissing: true))
        try await services.setPlace(place, of: device, app: app)
        return Response(status: .ok, json: place.body(of: device))
    }

    @Sendable private func removeServer(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try device(context)
        let app = try await domain.appSerial(request, context)
        try await domain.checkHas(device, context)
        try await services.removePlace(of: device, app: app)
        return Response(status: .noContent)
    }
}

extension ClusterPlace {
    package func body(of device: DeviceID) -> ClusterServerBody {
        ClusterServerBody(device: device.description, host: host, port: port, priority: priority)
    }

    private static let hostBytes = 1...253
    private static let ports = 1...65_535

    package static func checked(host: String?, port: Int?, priority: Int?) throws(Refusal) -> ClusterPlace {
        if let host, !hostBytes.contains(host.utf8.count) || !host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) {
            throw Refusal(.fieldInvalid, "The field \"host\" must be a host name or an IP address.")
        }
        if let port, !ports.contains(port) {
            throw Refusal(.fieldInvalid, "The field \"port\" must be a number from 1 to \(ports.upperBound).")
        }
        if let priority, !priorities.contains(priority) {
            throw Refusal(.fieldInvalid, "The field \"priority\" must be a number from 1 to \(priorities.upperBound).")
        }
        return ClusterPlace(host: host, port: port, priority: priority ?? 1)
    }

    fileprivate init(_ body: JSONValue) throws(Refusal) {
        func number(_ name: String) throws(Refusal) -> Int? {
            switch body[name] {
            case nil, .null: return nil
            case .integer(let number): return number
            default: throw Refusal(.fieldInvalid, "The field \"\(name)\" must be a whole number.")
            }
        }
        self = try .checked(
            host: try body.textMember("host"), port: try number("port"), priority: try number("priority"))
    }
}
