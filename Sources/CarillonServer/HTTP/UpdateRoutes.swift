import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird

/// The routes of audience updates. Senders publish updates and read their results, and operators declare the parameters that
/// devices can report.
struct UpdateRoutes: Sendable {
    let domain: HomeDomain

    func add(to routes: Routes) {
        routes.on(.post, "/v1/updates", query: ["app", "validate"], publish)
        routes.on(.get, "/v1/updates", query: ["app", "before", "limit", "status"], list)
        routes.on(.post, "/v1/updates/explain", query: ["app"], explain)
        routes.on(.get, "/v1/updates/:update", query: ["app"], show)
        routes.on(.delete, "/v1/updates/:update", query: ["app"], withdraw)
        routes.on(.get, "/v1/updates/:update/devices", query: ["after", "app", "limit", "state"], devices)
        routes.on(.post, "/v1/updates/:update/requeue", query: ["app"], requeue)
        routes.on(.post, "/v1/updates/:update/resume", query: ["app"], resume)
        routes.on(.get, "/v1/apps/:app/audit", query: ["before", "limit"], audit)
        routes.on(.get, "/v1/apps/:app/parameters", rules)
        routes.on(.put, "/v1/apps/:app/parameters", setRules)
    }

    private func id(_ context: RouteContext) throws -> UpdateID {
        guard let id = UpdateID(try context.parameters.require("update")) else {
            throw Refusal(.updateUnknown, "An update ID must be 32 hexadecimal digits.")
        }
        return id
    }

    // MARK: Senders

    /// - Throws: ``HomeFault/moved(to:)`` if another home has the updates of the app.
    private func sender(_ request: Request) async throws -> (serial: AppSerial, id: AppID, key: KeyID) {
        let sender = try await domain.appOfSender(request)
        try domain.home.checkHas(Shard(of: sender.serial))
        return sender
    }

    @Sendable private func publish(_ request: Request, _ context: RouteContext) async throws -> Response {
        let (app, appID, key) = try await sender(request)
        let definition = try Update.Definition(try await request.object(of: Update.Definition.memberNames))
        switch request.uri.queryParameters["validate"] {
        case "true"?:
            let report = try await domain.updates.report(definition, of: app, appID)
            return Response(status: .ok, text: JSONValue.object(report.counts).bytes, type: "application/json")
        case nil, "false"?: break
        case .some: throw Refusal(.parameterInvalid, "\"validate\" must be true or false.")
        }
        let (update, isNew) = try await domain.updates.publish(
            definition, of: app, by: key, idempotencyKey: try request.idempotencyKey())
        return Response(status: isNew ? .created : .ok, text: update.json().bytes, type: "application/json")
    }

    /// Explains for how many devices an audience, or the audience of an update, holds, and why not for others.
    @Sendable private func explain(_ request: Request, _ context: RouteContext) async throws -> Response {
        let (app, appID, _) = try await sender(request)
        let body = try await request.object(of: ["audience", "update", "device"])
        var audience = try body.textMember("audience")
        if let text = try body.textMember("update") {
            guard audience == nil, let id = UpdateID(text) else {
                throw Refusal(
                    .fieldInvalid, "Set either \"update\" to an update ID of 32 hexadecimal digits, or \"audience\".")
            }
            audience = try await domain.updates.update(id, of: app).audience
        }
        guard audience?.utf8.count ?? 0 <= UpdateLimits.audienceBytes else {
            throw Refusal(.fieldInvalid, "\"audience\" must have at most \(UpdateLimits.audienceBytes) bytes.")
        }
        let json: JSONValue
        if let text = try body.textMember("device") {
            let device = try await domain.devices.find(try DeviceID.checked(text)) { $0.app == app }
            json = DeviceReport.json(try await domain.updates.report(audience: audience, for: device))
        } else {
            let report = try await domain.updates.report(audience: audience, of: app, appID)
            json = .object(report.counts + report.reasons)
        }
        return Response(status: .ok, text: json.bytes, type: "application/json")
    }

    @Sendable private func list(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await sender(request).serial
        let limit = try request.number("limit", in: 1...500, default: 100)
        let status = request.uri.queryParameters["status"].map(String.init)
        guard let filter = status.map({ UpdateFilter(rawValue: $0) }) ?? .all else {
            throw Refusal(.parameterInvalid, "\"status\" must be one of: all, live, paused.")
        }
        var before: UpdateSerial?
        if let text = request.uri.queryParameters["before"] {
            guard let id = UpdateID(text) else {
                throw Refusal(.parameterInvalid, "\"before\" must be a \"next\" value from an earlier page.")
            }
            before = try await domain.updates.update(id, of: app).serial
        }
        var updates: [JSONValue] = []
        var bytes = 0
        var next: String?
        while updates.count < limit, bytes < Self.listBytes {
            // Updates are read a few at a time, because each can have much content.
            let count = min(limit - updates.count, Self.listedAtOnce)
            let some = try await domain.updates.list(of: app, filter, before: before, limit: count)
            for update in some where bytes < Self.listBytes {
                let json = update.json()
                bytes += json.bytes.count
                updates.append(json)
                (before, next) = (update.serial, update.id.description)
            }
            guard some.count == count else {
                if before == some.last?.serial || some.isEmpty { next = nil }
                break
            }
        }
        return Self.page("updates", updates, next)
    }

    /// A list ends after the entry that reaches this size.
    private static let listBytes = 512 << 10
    private static let listedAtOnce = 20

    @Sendable private func show(_ request: Request, _ context: RouteContext) async throws -> Response {
        let update = try await domain.updates.update(try id(context), of: try await sender(request).serial)
        let counts = try await domain.updates.counts(of: update)
        return Response(status: .ok, text: update.json(counts).bytes, type: "application/json")
    }

    @Sendable private func withdraw(_ request: Request, _ context: RouteContext) async throws -> Response {
        let sender = try await sender(request)
        try await domain.updates.withdraw(try id(context), of: sender.serial, by: sender.key)
        return Response(status: .noContent)
    }

    @Sendable private func devices(_ request: Request, _ context: RouteContext) async throws -> Response {
        let update = try await domain.updates.update(try id(context), of: try await sender(request).serial)
        let limit = try request.number("limit", in: 1...500, default: 100)
        var state: CompletionMachine.State?
        if let name = request.uri.queryParameters["state"] {
            state = CompletionMachine.State.allCases.first { $0.name == name }
            guard state != nil else {
                let known = CompletionMachine.State.allCases.map(\.name).joined(separator: ", ")
                throw Refusal(.parameterInvalid, "\"state\" must be one of: \(known).")
            }
        }
        var after: CompletionKey?
        if let text = request.uri.queryParameters["after"] {
            after = CompletionKey(update.serial, topic: String(text).replacing("-", with: "/"))
            guard after != nil else {
                throw Refusal(.parameterInvalid, "\"after\" must be a \"next\" value from an earlier page.")
            }
        }
        let page = try await domain.updates.completions(of: update, in: state, after: after, limit: limit)
        let next = page.count == limit ? page.last?.completion.key.topic.replacing("/", with: "-") : nil
        return Self.page("devices", page.map(\.json), next)
    }

    @Sendable private func requeue(_ request: Request, _ context: RouteContext) async throws -> Response {
        let sender = try await sender(request)
        let body = try await request.object(of: ["device"], mayBeMissing: true)
        let device = try body.textMember("device").map { try DeviceID.checked($0) }
        let count = try await domain.updates.requeue(
            try id(context), of: sender.serial, device: device, by: sender.key)
        return Response(status: .ok, json: ["count": count])
    }

    @Sendable private func resume(_ request: Request, _ context: RouteContext) async throws -> Response {
        let sender = try await sender(request)
        let update = try await domain.updates.resume(try id(context), of: sender.serial, by: sender.key)
        return Response(status: .ok, text: update.json().bytes, type: "application/json")
    }

    private static func page(_ name: String, _ elements: [JSONValue], _ next: String?) -> Response {
        let page: JSONValue = [name: .array(elements), "next": next.map(JSONValue.string)]
        return Response(status: .ok, text: page.bytes, type: "application/json")
    }

    // MARK: Operators

    @Sendable private func audit(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appSerial(request, context)
        try domain.home.checkHas(Shard(of: app))
        let limit = try request.number("limit", in: 1...500, default: 100)
        let before = try request.uri.queryParameters["before"].map { text throws(Refusal) in
            guard let number = Int64(text) else {
                throw Refusal(.parameterInvalid, "\"before\" must be a \"next\" value from an earlier page.")
            }
            return number
        }
        let entries = try await domain.updates.audit(of: app, before: before, limit: limit)
        let next = entries.count == limit ? entries.last.map { String($0.number) } : nil
        return Self.page("entries", entries.map(\.json), next)
    }

    @Sendable private func rules(_ request: Request, _ context: RouteContext) async throws -> Response {
        let rules = try await domain.updates.rules(of: try await domain.appSerial(request, context))
        return Response(status: .ok, text: rules.json.bytes, type: "application/json")
    }

    @Sendable private func setRules(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appSerial(request, context)
        let rules = try ParameterRules(try await request.object(of: ParameterRules.memberNames))
        try await domain.updates.setRules(rules, of: app)
        return Response(status: .ok, text: rules.json.bytes, type: "application/json")
    }
}
