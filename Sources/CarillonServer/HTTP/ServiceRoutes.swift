import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import HTTPTypes
import Hummingbird

/// Services between apps: what a device offers, whom it may call, and requests with their results; all with its credential. The content
/// of requests is sealed from device to device.
struct ServiceRoutes: Sendable {
    let domain: Domain
    let clientAddress: ClientAddress

    func add(to routes: Routes) {
        routes.on(.put, "/v1/device/services", offer)
        routes.on(.delete, "/v1/device/services", withdraw)
        routes.on(.get, "/v1/services", find)
        routes.on(.post, "/v1/services/requests", ask)
        routes.on(.delete, "/v1/services/requests", cancelAll)
        routes.on(.delete, "/v1/services/requests/:request", cancel)
        routes.on(.post, "/v1/services/requests/:request/received", received)
        routes.on(.post, "/v1/services/requests/:request/reply", reply)
        routes.on(.get, "/v1/apps/:app/realm", showRealm)
        routes.on(.put, "/v1/apps/:app/realm", setRealm)
        routes.on(.delete, "/v1/apps/:app/realm", removeRealm)
    }

    private var services: Services { domain.services }

    private func device(_ request: Request, _ context: RouteContext) async throws -> Device {
        if let session = context.session { return session.device }
        return try await domain.devices.authenticate(bearer: request.bearer)
    }

    private func id(_ context: RouteContext) throws -> ServiceRequestID {
        guard let id = ServiceRequestID(try context.parameters.require("request")) else {
            throw Refusal(.requestUnknown, "A request is named by 32 hexadecimal digits.")
        }
        return id
    }

    // MARK: Providers

    @Sendable private func offer(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        try domain.allowances.takeRegistration(
            of: device.serial, from: context.session?.address ?? clientAddress.of(context.connection, request.headers))
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
        let known: Set = ["service", "version", "app", "device"]
        if let unknown = parameters.map({ String($0.key) }).first(where: { !known.contains($0) }) {
            throw Refusal(
                .parameterInvalid,
                "There is no parameter \"\(unknown.prefix(60))\"; known are: \(known.sorted().joined(separator: ", ")).")
        }
        var query = ServiceQuery()
        query.service = try parameters["service"].map { try ServiceID.checked(String($0)) }
        query.version = try parameters["version"].map { try ServiceVersion.checked(String($0)) }
        query.app = try parameters["app"].map { try AppID.checked(String($0)) }
        query.device = try parameters["device"].map { try DeviceID.checked(String($0)) }
        if query.version != nil, query.service == nil {
            throw Refusal(.parameterInvalid, "A version is of a service: say which.")
        }
        let providers = try await services.providers(for: device, query)
        return Response(
            status: .ok,
            text: JSONValue.object([
                .init(name: "providers", value: .array(providers.map { $0.json(isLive: $1) }))
            ]).bytes, type: "application/json")
    }

    // MARK: Requests

    @Sendable private func ask(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let bytes = try await request.bytes(upTo: Limits.apiBodyBytes)
        let body = try StrictJSON.object(
            bytes, known: RequestHeader.memberNames.union(SealedContent.memberNames).union(["app", "device"]))
        guard let app = try body.textMember("app"), let provider = try body.textMember("device") else {
            throw Refusal(.fieldMissing, "The fields \"app\" and \"device\" say whom the request is for.")
        }
        let header = try RequestHeader(body)
        let expiresAt = try await services.ask(
            .init(
                header: header, app: try AppID.checked(app), device: try DeviceID.checked(provider),
                content: try SealedContent(body), fingerprint: Array(SHA256.hash(data: bytes))), by: device)
        return Response(
            status: .created,
            json: JSONValue.object([
                .init(name: "id", value: .string(header.id.description)),
                .init(name: "expiresAt", value: .string(Timestamp3339.text(expiresAt.milliseconds))),
            ]))
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
            throw Refusal(.parameterInvalid, "The parameters \"app\" and \"device\" say to whom.")
        }
        let ids = try await services.cancelAll(
            by: device, to: try DeviceID.checked(String(provider)), of: try AppID.checked(String(app)))
        return Response(status: .ok, json: ["cancelled": ids.map(\.description)])
    }

    // MARK: Realms

    private static let realmBytes = 1...128

    private func app(_ request: Request, _ context: RouteContext) async throws -> AppSerial {
        let app = try await domain.app(request, context)
        guard let serial = try await domain.apps.serial(of: app) else {
            throw Refusal(.appUnknown, "There is no app \(app).")
        }
        return serial
    }

    @Sendable private func showRealm(_ request: Request, _ context: RouteContext) async throws -> Response {
        let realm = try await services.realm(of: try await app(request, context))
        return Response(status: .ok, json: RealmBody(realm: realm))
    }

    @Sendable private func setRealm(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await app(request, context)
        guard let realm = try await request.object(of: ["realm"]).textMember("realm"),
            Self.realmBytes.contains(realm.utf8.count)
        else { throw Refusal(.fieldInvalid, "The field \"realm\" must be a name of 1 to 128 bytes.") }
        try await services.setRealm(realm, of: app)
        return Response(status: .ok, json: RealmBody(realm: realm))
    }

    @Sendable private func removeRealm(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await services.setRealm(nil, of: try await app(request, context))
        return Response(status: .noContent)
    }
}

extension ServiceProvider.Profile {
    static let memberNames: Set = ["name", "version", "services", "keys"]

    init(_ body: JSONValue) throws(Refusal) {
        func text(_ name: String, _ most: Int) throws(Refusal) -> String {
            guard let text = try body.textMember(name), (1...most).contains(text.utf8.count),
                !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
            else { throw Refusal(.fieldInvalid, "The field \"\(name)\" must be a text of 1 to \(most) bytes.") }
            return text
        }
        guard case .array(let services)? = body["services"], services.count <= Self.mostOffers else {
            throw Refusal(.fieldInvalid, "The field \"services\" must be an array of up to \(Self.mostOffers) services.")
        }
        var offers: [ServiceOffer] = []
        for service in services {
            guard service.names == ["id", "version"], let id = try service.textMember("id"),
                let version = try service.textMember("version")
            else { throw Refusal(.fieldInvalid, "Each of \"services\" is an object with \"id\" and \"version\".") }
            offers.append(ServiceOffer(try ServiceID.checked(id), try ServiceVersion.checked(version)))
        }
        guard let keys = body["keys"].flatMap(KeyBundle.init) else {
            throw Refusal(.fieldInvalid, "The field \"keys\" must be a signed key.")
        }
        self.init(
            name: try text("name", Self.nameBytes), version: try text("version", Self.versionBytes), offers: offers,
            keys: keys)
    }
}

extension ServiceProvider {
    fileprivate func json(isLive: Bool) -> JSONValue {
        .object([
            .init(name: "app", value: .string(appID.text)), .init(name: "device", value: .string(id.description)),
            .init(name: "name", value: .string(profile.name)), .init(name: "version", value: .string(profile.version)),
            .init(name: "live", value: .bool(isLive)),
            .init(
                name: "services",
                value: .array(
                    profile.offers.map { offer in
                        .object([
                            .init(name: "id", value: .string(offer.service.text)),
                            .init(name: "version", value: .string(offer.version.text)),
                        ])
                    })), .init(name: "keys", value: profile.keys.json),
        ])
    }
}
