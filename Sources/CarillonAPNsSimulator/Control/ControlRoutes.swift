import Foundation

/// The page and the JSON API, without a socket: returns the response to a request.
struct ControlRoutes {
    let simulator: APNsSimulator

    private struct Call {
        var method: String
        var name: String
        var rest: String?
        var query: [String: String]
        var body: [UInt8]
    }

    func answer(_ method: String, _ uri: String, body: [UInt8]) -> ControlAnswer {
        let components = URLComponents(string: uri)
        let path = components?.path ?? uri
        let query = Dictionary(
            (components?.queryItems ?? []).map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { _, last in last })
        let isReading = method == "GET" || method == "HEAD"
        switch path {
        case "/" where isReading: return .text(ControlPage(simulator: simulator).html, type: "text/html; charset=utf-8")
        case "/authority.pem" where isReading: return .text(simulator.trustRoot, type: "application/x-pem-file")
        case "/signing-key.p8" where isReading:
            return .text(simulator.signingKey.privateKey ?? "", type: "application/x-pem-file")
        default: break
        }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard parts.first == "api", (2...3).contains(parts.count) else {
            return .refusal(404, "There is nothing at \(path); docs/apns-simulator.md lists the paths.")
        }
        let call = Call(
            method: method == "HEAD" ? "GET" : method, name: String(parts[2]),
            rest: parts.count == 3 ? String(parts[3]) : nil, query: query, body: body)
        do {
            return try answer(call)
        } catch let refusal as ControlRefusal {
            return .refusal(refusal.status, refusal.sentence)
        } catch let error as SimulatorError {
            return .refusal(400, error.message)
        } catch {
            return .refusal(500, "\(error)")
        }
    }

    private func answer(_ call: Call) throws -> ControlAnswer {
        switch call.name {
        case "status": try only(["GET"], call, .json(simulator.statusDocument))
        case "requests": try requests(call)
        case "devices": try devices(call)
        case "apps": try apps(call)
        case "keys": try keys(call)
        case "certificates": try certificates(call)
        case "provider-token": try providerToken(call)
        case "faults": try faults(call)
        case "conditions": try conditions(call)
        case "rules": try rules(call)
        case "connections": try connections(call)
        case "channels": try only(["GET"], call, .json(simulator.channels.map(\.document)))
        case "clock": try clock(call)
        default: throw ControlRefusal(404, "There is no /api/\(call.name); docs/apns-simulator.md lists the paths.")
        }
    }

    private func only(_ methods: [String], _ call: Call, _ answer: @autoclosure () -> ControlAnswer) throws -> ControlAnswer
    {
        guard methods.contains(call.method) else { throw wrongMethod(call, methods) }
        return answer()
    }

    private func wrongMethod(_ call: Call, _ methods: [String]) -> ControlRefusal {
        ControlRefusal(405, "/api/\(call.name) supports \(methods.joined(separator: ", ")), not \(call.method).")
    }

    // MARK: Requests and connections

    private func requests(_ call: Call) throws -> ControlAnswer {
        switch call.method {
        case "GET":
            let after = call.query["after"].flatMap { Int($0) } ?? 0
            let suffix = call.query["pathSuffix"] ?? ""
            return .json(
                simulator.requests.filter { $0.number > after && (suffix.isEmpty || $0.path.hasSuffix(suffix)) }
                    .map(\.document))
        case "DELETE":
            simulator.forgetRequests()
            return .done
        default: throw wrongMethod(call, ["GET", "DELETE"])
        }
    }

    private func connections(_ call: Call) throws -> ControlAnswer {
        switch call.method {
        case "GET": return .json(simulator.connections.map(\.document))
        case "DELETE":
            simulator.cutConnections()
            return .done
        default: throw wrongMethod(call, ["GET", "DELETE"])
        }
    }

    // MARK: Accounts and devices

    private func devices(_ call: Call) throws -> ControlAnswer {
        guard let token = call.rest?.lowercased() else {
            return try only(["GET"], call, .json(simulator.devices.map(DeviceDocument.init)))
        }
        let environment: Environment = try named(call.query["environment"] ?? "sandbox", "environment")
        let unknown = ControlRefusal(404, "The device is not in the book of the \(environment.rawValue) environment.")
        switch call.method {
        case "GET":
            guard let report = simulator.device(token, in: environment) else { throw unknown }
            return .json(DeviceReportDocument(report))
        case "PUT":
            let document = try DeviceDocument.read(call.body)
            let place: Environment = try document.environment.map { text in try named(text, "environment") } ?? environment
            guard document.token == nil || document.token?.lowercased() == token else {
                throw ControlRefusal(400, "\"token\" must be the token in the path.")
            }
            let known = simulator.device(token, in: place)?.device
            guard let topic = document.topic ?? known?.topic else { throw ControlRefusal(400, "\"topic\" is missing.") }
            var device = known ?? Device(token: token, topic: topic, environment: place)
            try document.applied(to: &device, now: simulator.now)
            try simulator.add(device)
            return .json(DeviceDocument(device), status: known == nil ? 201 : 200)
        case "DELETE":
            guard simulator.removeDevice(token, in: environment) else { throw unknown }
            return .done
        default: throw wrongMethod(call, ["GET", "PUT", "DELETE"])
        }
    }

    private func apps(_ call: Call) throws -> ControlAnswer {
        guard let bundleID = call.rest else {
            let apps = simulator.apps.map { AppDocument(bundleID: $0.bundleID, team: $0.teamID, broadcast: $0.hasBroadcast) }
            return try only(["GET"], call, .json(apps))
        }
        guard call.method == "PUT" else { throw wrongMethod(call, ["PUT"]) }
        let document = try AppDocument.read(call.body)
        simulator.add(App(bundleID: bundleID, teamID: document.team, hasBroadcast: document.broadcast ?? true))
        return .done
    }

    private func keys(_ call: Call) throws -> ControlAnswer {
        guard let id = call.rest else { throw ControlRefusal(404, "Name a key in the path: /api/keys/KEYID.") }
        switch call.method {
        case "PUT":
            let document = try KeyDocument.read(call.body)
            try simulator.add(
                SigningKey(
                    id: id, teamID: document.team, privateKey: document.privateKey, publicKey: document.publicKey,
                    environments: try environments(document.environments), topics: document.topics.map(Set.init),
                    relatedKeyID: document.relatedKey))
            return .done
        case "DELETE":
            guard simulator.revokeKey(id) else { throw ControlRefusal(404, "There is no key \(id).") }
            return .done
        default: throw wrongMethod(call, ["PUT", "DELETE"])
        }
    }

    private func environments(_ names: [String]?) throws(ControlRefusal) -> Set<Environment> {
        guard let names else { return [.sandbox, .production] }
        var environments: Set<Environment> = []
        for name in names { environments.insert(try named(name, "environments")) }
        return environments
    }

    private func certificates(_ call: Call) throws -> ControlAnswer {
        guard call.method == "POST" else { throw wrongMethod(call, ["POST"]) }
        let document = try CertificateDocument.read(call.body)
        guard (-3650...3650).contains(document.days ?? 365) else {
            throw ControlRefusal(400, "\"days\" must be from -3650 to 3650.")
        }
        guard let keyType = APNsSimulator.KeyType(rawValue: document.keyType ?? "p256") else {
            throw ControlRefusal(400, "\"keyType\" must be p256 or rsa, not \"\(document.keyType ?? "")\".")
        }
        let identity = try simulator.makeClientIdentity(
            topics: document.topics, environments: environments(document.environments), days: document.days ?? 365,
            keyType: keyType)
        return .json(["certificate": identity.certificate, "privateKey": identity.privateKey], status: 201)
    }

    private func providerToken(_ call: Call) throws -> ControlAnswer {
        guard call.method == "GET" else { throw wrongMethod(call, ["GET"]) }
        let age = call.query["age"].flatMap { Int64($0) } ?? 0
        guard (-1_000_000...1_000_000).contains(age) else {
            throw ControlRefusal(400, "\"age\" must be a number of seconds, at most 1000000.")
        }
        return .text(try simulator.signingKey.makeProviderToken(issuedAt: simulator.now / 1000 - age))
    }

    private func clock(_ call: Call) throws -> ControlAnswer {
        guard call.method == "POST" else { throw wrongMethod(call, ["POST"]) }
        let seconds = try ClockDocument.read(call.body).advanceSeconds
        guard (-10_000_000_000...10_000_000_000).contains(seconds) else {
            throw ControlRefusal(400, "\"advanceSeconds\" must be at most 10000000000.")
        }
        simulator.advanceClock(by: .seconds(seconds))
        return .json(["now": simulator.now])
    }

    // MARK: Behaviour

    private func faults(_ call: Call) throws -> ControlAnswer {
        switch call.method {
        case "GET": break
        case "POST": try simulator.add(try FaultDocument.read(call.body).rule())
        case "DELETE": try simulator.setFaults([])
        default: throw wrongMethod(call, ["GET", "POST", "DELETE"])
        }
        let faults = zip(simulator.faults, simulator.faultCounts).map(FaultDocument.init)
        return .json(faults, status: call.method == "POST" ? 201 : 200)
    }

    private func conditions(_ call: Call) throws -> ControlAnswer {
        switch call.method {
        case "GET": break
        case "PATCH":
            try simulator.setConditions(try ConditionsDocument.read(call.body).applied(to: simulator.conditions))
        case "DELETE": try simulator.setConditions(Conditions())
        default: throw wrongMethod(call, ["GET", "PATCH", "DELETE"])
        }
        return .json(ConditionsDocument(simulator.conditions))
    }

    private func rules(_ call: Call) throws -> ControlAnswer {
        switch call.method {
        case "GET": break
        case "PATCH":
            let document = try RulesDocument.read(call.body)
            simulator.rules = try document.applied(to: simulator.rules)
            if let isShuttingDown = document.shuttingDown { simulator.setShuttingDown(isShuttingDown) }
        default: throw wrongMethod(call, ["GET", "PATCH"])
        }
        return .json(RulesDocument(simulator.rules, isShuttingDown: simulator.hub.withState { $0.service.isShuttingDown }))
    }
}
