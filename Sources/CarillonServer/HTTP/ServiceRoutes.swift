import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import HTTPTypes
import Hummingbird

/// The routes for services between apps: offers of a device, providers that it can call, and requests with their results. All
/// require a device credential. The content of requests is sealed from device to device.
struct ServiceRoutes: Sendable {
    let domain: HomeDomain
    let clientAddress: ClientAddress

    func add(to routes: Routes) {
        routes.on(.put, "/v1/device/services", offer)
        routes.on(.delete, "/v1/device/services", withdraw)
        routes.list("/v1/services", query: ["app", "device", "service", "type", "user", "version"], find)
        routes.list("/v1/services/icon", query: ["app", "device"], icon)
        routes.on(.post, "/v1/services/requests", ask)
        routes.on(.delete, "/v1/services/requests", query: ["app", "device"], cancelAll)
        routes.on(.delete, "/v1/services/requests/:request", cancel)
        routes.on(.post, "/v1/services/requests/:request/received", received)
        routes.on(.post, "/v1/services/requests/:request/reply", reply)
    }

    private var services: Services { domain.services }

    private func device(_ request: Request, _ context: RouteContext) async throws -> Device {
        try await domain.device(request, context)
    }

    private func id(_ context: RouteContext) throws -> ServiceRequestID {
        guard let id = ServiceRequestID(try context.parameters.require("request")) else {
            throw Refusal(.requestUnknown, "The ID of a request must be 32 hexadecimal digits.")
        }
        return id
    }

    // MARK: Providers

    @Sendable private func offer(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        try domain.rateLimits.takeRegistration(
            of: device.serial, from: context.session?.address ?? clientAddress.of(context.origin, request.headers))
        let body = try await request.object(of: ServiceProvider.Profile.memberNames)
        try await services.offer(try ServiceProvider.Profile(body), by: device)
        return Response(status: .noContent)
    }

    @Sendable private func withdraw(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await services.withdraw(by: try await device(request, context))
        return Response(status: .noContent)
    }

    @Sendable private func find(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let parameters = request.uri.queryParameters
        func parameter(_ name: Substring) -> String? { parameters[name].map { String($0) } }
        var query = ServiceQuery()
        query.service = try parameter("service").map { try ServiceID.checked($0) }
        query.version = try parameter("version").map { try ServiceVersion.checked($0) }
        query.app = try parameter("app").map { try AppID.checked($0) }
        query.device = try parameter("device").map { try DeviceID.checked($0) }
        query.kind = try parameter("type").map { type in
            guard let kind = ServiceProvider.Kind(rawValue: type) else {
                throw Refusal(.parameterInvalid, "The parameter \"type\" must be \"application\" or \"server\".")
            }
            return kind
        }
        query.user = try parameter("user").map { user in
            guard let user = UserID(user) else {
                throw Refusal(.parameterInvalid, "The parameter \"user\" must be the name of a user.")
            }
            return user
        }
        if query.version != nil, query.service == nil {
            throw Refusal(.parameterInvalid, "The parameter \"version\" needs the parameter \"service\".")
        }
        let providers = try await services.providers(for: device, query)
        let body: JSONValue = ["providers": .array(providers.map { $0.json(isLive: $1) })]
        return Response(status: .ok, text: body.bytes, type: "application/json")
    }

    @Sendable private func icon(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let parameters = request.uri.queryParameters
        guard let app = parameters["app"], let provider = parameters["device"] else {
            throw Refusal(.parameterInvalid, "The parameters \"app\" and \"device\" must name the provider.")
        }
        let icon = try await services.icon(
            of: try AppID.checked(String(app)), on: try DeviceID.checked(String(provider)), for: device)
        guard let icon else { throw Refusal(.applicationNotFound, "There is no such provider, or it has no icon.") }
        return Response(status: .ok, text: icon.bytes, type: "image/png")
    }

    // MARK: Requests

    @Sendable private func ask(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let bytes = try await request.bytes(upTo: Limits.apiBodyBytes)
        let body = try StrictJSON.object(
            bytes, known: RequestHeader.memberNames.union(SealedContent.memberNames).union(["app", "device"]))
        guard let app = try body.textMember("app"), let provider = try body.textMember("device") else {
            throw Refusal(.fieldMissing, "The fields \"app\" and \"device\" must name the provider of the request.")
        }
        let header = try RequestHeader(body)
        let expiresAt = try await services.ask(
            .init(
                header: header, app: try AppID.checked(app), device: try DeviceID.checked(provider),
                content: try SealedContent(body), fingerprint: Array(SHA256.hash(data: bytes))), by: device)
        return Response(
            status: .created,
            json: ["id": header.id.description, "expiresAt": Timestamp3339.text(expiresAt.milliseconds)])
    }

    @Sendable private func received(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await services.received(try id(context), by: try await device(request, context))
        return Response(status: .noContent)
    }

    @Sendable private func reply(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let bytes = try await request.bytes(upTo: Limits.apiBodyBytes)
        let body = try StrictJSON.object(bytes, known: SealedContent.memberNames)
        try await services.reply(
            try SealedContent(body), hash: Array(SHA256.hash(data: bytes)), to: try id(context), by: device)
        return Response(status: .noContent)
    }

    @Sendable private func cancel(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await services.cancel(try id(context), by: try await device(request, context))
        return Response(status: .noContent)
    }

    @Sendable private func cancelAll(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let parameters = request.uri.queryParameters
        guard let app = parameters["app"], let provider = parameters["device"] else {
            throw Refusal(.parameterInvalid, "The parameters \"app\" and \"device\" must name the provider of the requests.")
        }
        let ids = try await services.cancelAll(
            by: device, to: try DeviceID.checked(String(provider)), of: try AppID.checked(String(app)))
        return Response(status: .ok, json: ["cancelled": ids.map(\.description)])
    }
}
