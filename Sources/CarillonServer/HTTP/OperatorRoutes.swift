import CarillonCore
import CarillonWire
import Hummingbird

/// The operator's routes for apps, API keys and devices. All require an admin key.
struct OperatorRoutes: Sendable {
    let domain: HomeDomain

    func add(to routes: Routes) {
        routes.on(.post, "/v1/apps", createApp)
        routes.list("/v1/apps", listApps)
        routes.on(.delete, "/v1/apps/:app", deleteApp)
        routes.on(.post, "/v1/keys", createKey)
        routes.list("/v1/keys", listKeys)
        routes.on(.delete, "/v1/keys/:key", query: ["devices"], revokeKey)
        routes.on(.post, "/v1/keys/:key/rotate", rotateKey)
        routes.on(.get, "/v1/apps/:app/devices", query: ["after", "limit", "platform", "status", "user"], listDevices)
        routes.on(.get, "/v1/devices/:device", showDevice)
        routes.on(.delete, "/v1/devices/:device", deleteDevice)
        routes.on(.post, "/v1/devices/:device/suspend", suspendDevice)
        routes.on(.post, "/v1/devices/:device/resume", resumeDevice)
        routes.on(.post, "/v1/devices/:device/channels/:channel/revoke", revokeChannel)
    }

    private func authorize(_ request: Request) async throws {
        _ = try await domain.keys.authorize(bearer: request.bearer, as: [.admin])
    }

    // MARK: Apps

    @Sendable private func createApp(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        let app = try await domain.apps.create(try AppID.checked(try await request.decode(CreateApp.self).id))
        return Response(status: .created, json: AppBody(app))
    }

    @Sendable private func listApps(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        return Response(status: .ok, json: ["apps": try await domain.apps.list().map(AppBody.init)])
    }

    @Sendable private func deleteApp(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        let app = try AppID.checked(try context.parameters.require("app"))
        if !domain.homes.isOne, let serial = try await domain.apps.serial(of: app) {
            try domain.home.checkHas(Shard(of: serial))
        }
        try await domain.deleteApp(app)
        return Response(status: .noContent)
    }

    // MARK: Keys

    @Sendable private func createKey(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        let body = try await request.decode(CreateKey.self)
        let (key, secret) = try await domain.keys.createKey(
            role: try KeyRole.checked(body.role), app: try body.app.map(AppID.checked), name: body.name)
        return Response(status: .created, json: KeyBody(key, secret: secret.text))
    }

    @Sendable private func listKeys(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        return Response(status: .ok, json: ["keys": try await domain.keys.list().map { KeyBody($0) }])
    }

    @Sendable private func revokeKey(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        let key = try KeyID.checked(try context.parameters.require("key"))
        switch request.uri.queryParameters["devices"] {
        case nil:
            try await domain.keys.revoke(key)
        case "delete":
            try await domain.devices.deleteAll(registeredWith: domain.keys.ensureRevoked(key))
        case .some:
            throw Refusal(.parameterInvalid, "\"devices\" must be \"delete\", or be left out.")
        }
        return Response(status: .noContent)
    }

    @Sendable private func rotateKey(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        let overlap = try await request.decodeIfPresent(RotateKey.self)?.overlapSeconds ?? 0
        guard (0...31_536_000).contains(overlap) else {
            throw Refusal(.fieldInvalid, "\"overlapSeconds\" must be from 0 to 31536000 (one year).")
        }
        let (key, secret) = try await domain.keys.rotate(
            try KeyID.checked(try context.parameters.require("key")), overlapSeconds: overlap)
        return Response(status: .ok, json: KeyBody(key, secret: secret.text))
    }

    // MARK: Devices

    @Sendable private func listDevices(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        let limit = try request.number("limit", in: 1...1000, default: 100)
        let after = try request.uri.queryParameters["after"].map { try DeviceID.checked(String($0)) }
        let app = try AppID.checked(try context.parameters.require("app"))
        let filter = try DeviceFilter(
            status: request.uri.queryParameters["status"].map(String.init),
            platform: request.uri.queryParameters["platform"].map(String.init),
            user: request.uri.queryParameters["user"].map(String.init))
        return Response(
            status: .ok, json: try await domain.listDevices(of: app, filter, after: after, limit: limit))
    }

    @Sendable private func showDevice(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        return Response(status: .ok, json: try await domain.describe(try await device(context)))
    }

    @Sendable private func deleteDevice(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        try await domain.devices.delete(try await device(context))
        return Response(status: .noContent)
    }

    @Sendable private func suspendDevice(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        let device = try await device(context)
        _ = try await domain.devices.suspend(device)
        return Response(status: .ok, json: try await domain.describe(device))
    }

    @Sendable private func resumeDevice(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        let device = try await device(context)
        _ = try await domain.devices.resume(device)
        return Response(status: .ok, json: try await domain.describe(device))
    }

    @Sendable private func revokeChannel(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await authorize(request)
        let device = try await device(context)
        let channel = try ChannelID.checked(try context.parameters.require("channel"))
        let code = try await request.decodeIfPresent(RevokeChannel.self)?.code
        try await domain.channels.revoke(channel, device: device.serial, code: code)
        return Response(status: .noContent)
    }

    /// - Throws: ``HomeFault/moved(to:)`` if the device is in another shard than the request.
    private func device(_ context: RouteContext) async throws -> Device {
        let device = try await domain.devices.find(try DeviceID.checked(try context.parameters.require("device")))
        try domain.home.checkHas(device.serial, in: context.shard)
        return device
    }
}
