import CarillonBasics
import CarillonCore
import CarillonWire
import Hummingbird

/// The routes of a device. It registers, describes and deletes itself, and opens channels without a socket.
struct DeviceRoutes: Sendable {
    let domain: HomeDomain
    let addresses: PublicAddresses
    let clientAddress: ClientAddress

    func add(to routes: Routes) {
        routes.on(.get, "/v1/server", describeServer)
        routes.on(.post, "/v1/devices", register)
        routes.on(.get, "/v1/device", show)
        routes.on(.put, "/v1/device", replace)
        routes.on(.patch, "/v1/device", change)
        routes.on(.delete, "/v1/device", delete)
        routes.list("/v1/device/channels", listChannels)
        routes.on(.put, "/v1/device/credential", renewCredential)
        routes.on(.post, "/v1/device/badge/reset", resetBadge)
        routes.on(.post, "/v1/device/channels", openChannel)
        routes.on(.delete, "/v1/device/channels/:channel", closeChannel)
    }

    @Sendable private func describeServer(_ request: Request, _ context: RouteContext) async throws -> Response {
        Response(
            status: .ok,
            json: ServerBody(
                server: domain.server.description, socket: addresses.socket, endpoints: addresses.endpoint(token: "")))
    }

    @Sendable private func register(_ request: Request, _ context: RouteContext) async throws -> Response {
        let key = try await domain.keys.authorize(bearer: request.bearer, as: [.client])
        guard let app = key.app else {
            throw Refusal(.roleForbidden, "The API key belongs to no app; register the device with a client key of its app.")
        }
        let body = try await request.object(
            of: DeviceProfile.memberNames.union(["app", "registration", UserRules.tokenMember]), mayBeMissing: true)
        if let wanted = try body.textMember("app"), wanted != app.text {
            throw Refusal(
                .roleForbidden, "The API key belongs to the app \(app) and cannot register a device of another app.")
        }
        let registration = try body.textMember("registration")
        let (device, credential) = try await domain.devices.register(
            app: app, registration: registration,
            reporting: body.names.isDisjoint(with: DeviceProfile.memberNames) ? nil : try DeviceProfile(body),
            of: { try await userClaim(in: body, of: app) }, with: key.id,
            from: clientAddress.of(context.origin, request.headers), in: context.shard)
        if body[UserRules.tokenMember] != nil { await domain.services.endDueIfPossible() }
        return Response(
            status: .created,
            json: RegisteredDevice(
                id: device.id.description, credential: credential.text, socket: addresses.socket,
                server: domain.server.description, repeatable: registration == nil ? nil : true))
    }

    @Sendable private func show(_ request: Request, _ context: RouteContext) async throws -> Response {
        Response(status: .ok, json: try await domain.describe(try await device(request, context)))
    }

    /// Replaces the whole description of the device. Members that are left out are cleared.
    @Sendable private func replace(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let body = try await request.object(of: DeviceProfile.memberNames.union([UserRules.tokenMember]))
        let profile = try DeviceProfile(body)
        let address = clientAddress.of(context.origin, request.headers)
        let registration = try await domain.services.changing(device) {
            try await domain.devices.update(
                device, from: address, confirms: true, of: { try await domain.users.claim(in: body, of: device.app) }
            ) { _ in profile }
        }
        return Response(status: .ok, json: try await domain.describe(device, registration))
    }

    @Sendable private func change(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let patch = try await request.object(of: DeviceProfile.memberNames.union([UserRules.tokenMember]))
        let address = clientAddress.of(context.origin, request.headers)
        let confirms = patch["pushToken"] != nil
        let update = {
            try await domain.devices.update(
                device, from: address, confirms: confirms,
                of: { try await domain.users.claim(in: patch, of: device.app) }
            ) { current throws(Refusal) in
                var profile = current
                try profile.merge(patch)
                return profile
            }
        }
        // Only a change of the user affects services. Most changes contain no user token.
        let tellsUser = patch[UserRules.tokenMember] != nil
        let registration =
            tellsUser ? try await domain.services.changing(device, update) : try await update()
        return Response(status: .ok, json: try await domain.describe(device, registration))
    }

    @Sendable private func delete(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        try await domain.services.changing(device) { try await domain.devices.delete(device) }
        return Response(status: .noContent)
    }

    @Sendable private func renewCredential(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        guard let secret = try await request.object(of: ["secret"]).textMember("secret") else {
            throw Refusal(.fieldMissing, "The field \"secret\" is missing.")
        }
        try await domain.devices.renewCredential(
            of: device, secret: secret, from: clientAddress.of(context.origin, request.headers))
        return Response(status: .noContent)
    }

    @Sendable private func resetBadge(_ request: Request, _ context: RouteContext) async throws -> Response {
        let address = clientAddress.of(context.origin, request.headers)
        try await domain.devices.resetBadge(of: try await device(request, context), from: address)
        return Response(status: .noContent)
    }

    @Sendable private func listChannels(_ request: Request, _ context: RouteContext) async throws -> Response {
        let channels = try await domain.channels.list(device: try await device(request, context).serial)
        return Response(status: .ok, json: ["channels": channels.map(ChannelBody.init)])
    }

    @Sendable private func openChannel(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let body = try await request.decode(RegisterChannel.self)
        let registration = try await domain.channels.register(
            try ChannelID.checked(body.channelID), device: device.serial, name: body.name,
            vapidKey: try body.key.map(ChannelRegistrar.parseVapidKey), wake: try body.wake.map(WakeMode.checked),
            from: clientAddress.of(context.origin, request.headers))
        return Response(
            status: .created,
            json: [
                "channelID": registration.channel.id.description,
                "endpoint": addresses.endpoint(token: registration.token), "token": registration.token,
            ])
    }

    @Sendable private func closeChannel(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let id = try ChannelID.checked(try context.parameters.require("channel"))
        guard try await domain.channels.unregister(id, device: device.serial) else {
            throw Refusal(.channelUnknown, "The device has no open channel \(id).")
        }
        return Response(status: .noContent)
    }

    private func userClaim(in body: JSONValue, of app: AppID) async throws -> UserClaim? {
        guard body[UserRules.tokenMember] != nil, let serial = try await domain.apps.serial(of: app) else { return nil }
        return try await domain.users.claim(in: body, of: serial)
    }

    private func device(_ request: Request, _ context: RouteContext) async throws -> Device {
        try await domain.device(request, context)
    }
}
