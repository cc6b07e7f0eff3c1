import CarillonBasics
import CarillonCore
import CarillonWire
import Hummingbird

/// A device's poll: it says what it received, what it did with updates and what it is like, and is given what waits for it.
struct PollRoutes: Sendable {
    let domain: HomeDomain
    let readiness: Readiness

    func add(to routes: Routes) { routes.on(.post, RouterPath(InboxRoutes.path), poll) }

    @Sendable private func poll(_ request: Request, _ context: RouteContext) async throws -> Response {
        let visit = try await visit(request, context)
        let device = visit.device
        let isOnSocket = context.session != nil
        let body = try InboxPollBody(
            try await request.object(of: InboxPollBody.memberNames), max: isOnSocket ? 0 : Limits.defaultPollEnvelopes)
        guard !isOnSocket || body.wait == 0 && body.max == 0 else {
            throw Refusal(.fieldInvalid, "Leave out \"wait\" and \"max\" on a socket: envelopes arrive as frames.")
        }
        let binding: UpdateBinding
        if let found = visit.binding, found.profile == body.profile {
            binding = found
        } else {
            binding = try await domain.updateDelivery.binding(of: device, profile: body.profile)
        }
        let position = try body.position.map { text throws(Refusal) in
            try domain.inboxPositions.open(text, of: device.serial)
        }
        let ruling = try PollRules.rule(
            position, isOnSocket: isOnSocket, binding: binding.serial, receivedTo: binding.receivedTo,
            history: domain.history, epoch: domain.home.epoch)
        if let position = ruling.known {
            if !ruling.isAhead, visit.isEmpty, body.wait == 0, let sealed = body.position,
                position.isOfUpdates == (body.only != nil),
                try await domain.updateDelivery.isUpToDate(
                    body.pollReport(receivedTo: position.receivedTo, offersAgain: false, needsResync: false), by: device,
                    binding)
            {
                return try InboxPoll.empty { _ in
                    others(
                        position: sealed, to: body, revision: binding.parametersRevision, kinds: binding.kinds, ignored: [])
                }
            }
            try await acknowledge(position.receipt(of: body.only), by: device.serial, visit.waiting)
        }
        let taken = try await domain.updateDelivery.take(
            body.pollReport(
                receivedTo: ruling.known?.receivedTo, offersAgain: ruling.offersAgain, needsResync: ruling.needsResync),
            from: device, binding,
            isAnyDue: binding.serial != visit.binding?.serial || visit.isAnyDue)
        let poll = InboxPoll(domain: domain, readiness: readiness)
        let ignored = zip(body.results, taken.answers).compactMap { result, answer in result.ignored(answer) }
        let next = InboxPosition(
            history: domain.history, binding: binding.serial, place: ruling.known?.place ?? 0,
            isOfUpdates: body.only != nil)
        return try await poll.answer(
            .init(device: device.serial, max: body.max, version: CarillonVersion.ofExtension, only: body.only),
            waitSeconds: body.wait, in: context
        ) { [self] last in
            var reached = next
            reached.place = last ?? next.place
            // While this one waited another poll may have said others.
            let revision =
                body.wait > 0
                ? domain.updateDelivery.parametersRevision(of: taken.binding) : taken.binding.parametersRevision
            return others(
                position: try domain.inboxPositions.seal(reached, of: device.serial), to: body, revision: revision,
                kinds: taken.binding.kinds, ignored: ignored)
        }
    }

    /// - Parameters:
    ///   - revision: Of the parameters that the server has.
    ///   - kinds: That it has; a device that says them knows them.
    private func others(
        position: String, to body: InboxPollBody, revision: String?, kinds: Set<String>, ignored: [JSONValue]
    ) -> [JSONValue.Member] {
        var others: [JSONValue.Member] = [
            .init(name: "position", value: .string(position)),
            .init(name: "parametersRevision", value: revision.map { .string($0) } ?? .null),
        ]
        if body.kinds == nil { others.append(.init(name: "kinds", value: .array(kinds.sorted().map { .string($0) }))) }
        if !ignored.isEmpty { others.append(.init(name: "ignored", value: .array(ignored))) }
        if let retryAfter = domain.updateDelivery.retryAfterSeconds {
            others.append(.init(name: "retryAfter", value: .integer(retryAfter)))
        }
        return others
    }

    private func visit(_ request: Request, _ context: RouteContext) async throws -> PollVisit {
        if let session = context.session { return PollVisit(device: session.device) }
        let credential = try DeviceRegistrar.credential(request.bearer)
        let hash = credential.hash
        let name = DeviceName.id(credential.device, credential: hash)
        let visit = try await domain.updateDelivery.visit(of: name) { device in device.credentialHash.matches(hash) }
        guard let visit else { throw DeviceRegistrar.credentialInvalid }
        try domain.home.checkHas(visit.device.serial, in: context.shard)
        domain.devices.sawRegistered(visit.device)
        try context.usage?.claim(visit.device.serial)
        return visit
    }

    /// - Parameter waiting: What waits in its inbox, where that is known.
    private func acknowledge(_ receipt: InboxReceipt, by device: DeviceSerial, _ waiting: [WaitingName]?) async throws {
        guard receipt.place > 0 else { return }
        let home = domain.home
        if let waiting {
            return try await home.finish(receipt.received(of: waiting).map { .init($0, .acknowledged) }, device: device)
        }
        try await domain.answers.receipt {
            var after: Int64? = 0
            while let place = after {
                let load = PageRequest(after: place, limit: Limits.pollEnvelopes, bytes: Self.receiptBytes)
                guard case .page(let page) = try await home.waiting(device: device, load) else { return }
                let (received, next) = receipt.received(of: page)
                try await home.finish(received.map { .init($0, .acknowledged) }, device: device)
                after = next
            }
        }
    }

    private static let receiptBytes = 1 << 20
}

/// What a poll says.
struct InboxPollBody {
    static let memberNames: Set = [
        "protocol", "profile", "kinds", "parameters", "position", "results", "wait", "max", "only",
    ]
    /// The version of the poll.
    static let version = 1

    var profile = ""
    /// Nil: as before.
    var kinds: Set<String>?
    var parameters: (revision: String, values: JSONValue)?
    var position: String?
    var results: [ReportedResult] = []
    var wait = 0
    var max: Int
    /// Nil: everything.
    var only: Set<EnvelopeKind>?

    init(_ body: JSONValue, max defaultMax: Int) throws(Refusal) {
        switch body["protocol"] {
        case .integer(Self.version)?: break
        case nil:
            throw Refusal(.fieldMissing, "The field \"protocol\" is missing; this server supports version \(Self.version).")
        default:
            throw Refusal(
                .protocolUnsupported,
                "\"protocol\" must be \(Self.version), the only version of the poll that this server supports.")
        }
        if let profile = try body.textMember("profile") {
            guard profile.utf8.count <= UpdateBinding.longestProfileBytes else {
                throw Refusal(.fieldInvalid, "\"profile\" must have at most \(UpdateBinding.longestProfileBytes) bytes.")
            }
            self.profile = profile
        }
        kinds = try Self.kinds(body["kinds"])
        parameters = try Self.parameters(body["parameters"])
        position = try body.textMember("position")
        results = try Self.results(body["results"])
        wait = try Self.number("wait", in: body, 0...Limits.pollWaitSeconds) ?? 0
        max = try Self.number("max", in: body, 0...Limits.pollEnvelopes) ?? defaultMax
        switch try body.textMember("only") {
        case nil: only = nil
        case "updates"?: only = EnvelopeKind.updates
        default: throw Refusal(.fieldInvalid, "\"only\" must be \"updates\", or be left out.")
        }
    }

    func pollReport(receivedTo place: ReceivedTo?, offersAgain: Bool, needsResync: Bool) -> UpdateDelivery.PollReport {
        .init(
            profile: profile, kinds: kinds, parameters: parameters, results: results, receivedTo: place,
            offersAgain: offersAgain, needsResync: needsResync)
    }

    private static func kinds(_ json: JSONValue?) throws(Refusal) -> Set<String>? {
        let refusal = Refusal(
            .fieldInvalid,
            "\"kinds\" must list at most \(UpdateKind.mostAnnounced) kinds of updates that the client processes.")
        switch json {
        case nil, .null?: return nil
        case .array(let values)? where values.count <= UpdateKind.mostAnnounced:
            var kinds: Set<String> = []
            for value in values {
                guard case .string(let name) = value, UpdateKind(name) != nil else { throw refusal }
                kinds.insert(name)
            }
            return kinds
        default: throw refusal
        }
    }

    private static func parameters(_ json: JSONValue?) throws(Refusal) -> (revision: String, values: JSONValue)? {
        switch json {
        case nil, .null?: return nil
        case .object?:
            guard let json, json.names.isSubset(of: ["revision", "values"]), let revision = try json.textMember("revision"),
                (1...UpdateBinding.longestRevisionBytes).contains(revision.utf8.count), let values = json["values"]
            else { fallthrough }
            return (revision, values)
        default:
            throw Refusal(
                .fieldInvalid,
                "\"parameters\" must have a \"revision\" of 1 to \(UpdateBinding.longestRevisionBytes) bytes and \"values\"."
            )
        }
    }

    private static func results(_ json: JSONValue?) throws(Refusal) -> [ReportedResult] {
        switch json {
        case nil, .null?: return []
        case .array(let values)? where values.count <= Limits.resultsPerRequest:
            var results: [ReportedResult] = []
            for value in values { results.append(try ReportedResult(value)) }
            return results
        default: throw Refusal(.fieldInvalid, "\"results\" must be a list of at most \(Limits.resultsPerRequest) results.")
        }
    }

    private static func number(_ name: String, in body: JSONValue, _ range: ClosedRange<Int>) throws(Refusal) -> Int? {
        switch body[name] {
        case nil, .null: return nil
        case .integer(let number) where range.contains(number): return number
        default:
            throw Refusal(
                .fieldInvalid, "\"\(name)\" must be a whole number from \(range.lowerBound) to \(range.upperBound).")
        }
    }
}

extension ReportedResult {
    private static let memberNames: Set = ["update", "entry", "attempt", "result", "reason", "delay", "until", "permanent"]
    /// What must happen at the device, which looks at the update again by itself then.
    private static let conditions: Set = ["committed", "mode", "maintenanceOver", "answer"]

    fileprivate init(_ json: JSONValue) throws(Refusal) {
        if let unknown = json.names.subtracting(Self.memberNames).min() {
            throw Refusal(
                .fieldUnknown,
                "The member \"\(unknown.prefix(60))\" of a result is unknown; the known members are: \(Self.memberNames.sorted().joined(separator: ", "))."
            )
        }
        guard let update = try json.textMember("update").flatMap({ UpdateID($0) }), case .integer(let entry)? = json["entry"]
        else { throw Refusal(.fieldInvalid, "A result must have the \"update\" and its \"entry\".") }
        var attempt: Int?
        switch json["attempt"] {
        case nil, .null: break
        case .integer(let number) where number > 0: attempt = number
        default: throw Refusal(.fieldInvalid, "The \"attempt\" of a result must be the \"attempt\" of the received update.")
        }
        let reason = try json.textMember("reason")?.cut(toBytes: Limits.reasonBytes)
        self.init(update: update, entry: entry, attempt: attempt, result: try Self.result(json, reason))
    }

    private static func result(_ json: JSONValue, _ reason: String?) throws(Refusal) -> UpdateResult {
        switch try json.textMember("result") {
        case "done"?: return reason.map { .doneWith(reason: $0) } ?? .done
        case "unsupported"?: return .unsupported
        case "deferred"?:
            let until = try json.textMember("until")
            if let until, !Self.conditions.contains(until) {
                throw Refusal(
                    .fieldInvalid, "\"until\" must be one of: \(Self.conditions.sorted().joined(separator: ", ")).")
            }
            let parts = [until, reason].compactMap { $0 }
            let why = parts.isEmpty ? nil : parts.joined(separator: ": ").cut(toBytes: Limits.reasonBytes)
            switch json["delay"] {
            case nil, .null: return .deferred(seconds: nil, reason: why)
            case .integer(let seconds) where seconds >= 0: return .deferred(seconds: Int64(seconds), reason: why)
            default: throw Refusal(.fieldInvalid, "The \"delay\" of a result must be a number of seconds.")
            }
        case "failed"?:
            switch json["permanent"] {
            case nil, .null, .bool(false): return .failed(isPermanent: false, reason: reason)
            case .bool(true): return .failed(isPermanent: true, reason: reason)
            default: throw Refusal(.fieldInvalid, "\"permanent\" must be true or false.")
            }
        default: throw Refusal(.fieldInvalid, "\"result\" must be one of: done, deferred, failed, unsupported.")
        }
    }

    /// What the device is told of a result that changed nothing; nil of one that did.
    fileprivate func ignored(_ answer: ReportAnswer) -> JSONValue? {
        let why: String
        switch answer {
        case .taken: return nil
        case .late: why = "final"
        case .unknown: why = "unknown"
        }
        return ["update": .string(update.description), "entry": .integer(entry), "why": .string(why)]
    }
}
