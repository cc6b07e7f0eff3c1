import CarillonCore
import CarillonWire

/// The state of a track in its store.
extension WorkloadTrack {
    /// Reads everything of the track.
    ///
    /// - Parameter operations: The operations whose messages and requests are read, present or not.
    package func facts(of operations: [WorkloadOperation]) async throws -> [String: String] {
        var facts = WorkloadFacts()
        try await readApp(&facts)
        try await readItems(&facts)
        for (place, found) in try await devices().enumerated() {
            facts.note("device \(place)", found.device)
            facts.note("device \(place) registration", found.registration)
            try await readDevice(found.device, "device \(place)", &facts)
        }
        for place in 0..<Self.attachments {
            facts.note("attachment \(place)", try await store.attachment(attachmentID(place)))
        }
        facts.note("work", try await dueWork())
        for operation in operations { try await readTraces(of: operation, &facts) }
        return facts.all
    }

    private func readApp(_ facts: inout WorkloadFacts) async throws {
        for choice in 0..<3 { facts.note("app \(choice)", try await store.app(extraApp(choice))) }
        facts.note("keys", try await liveKeys())
        facts.note("revoked keys", try await store.keys().count { $0.app == app.id && $0.revokedAt != nil })
        for key in documents {
            facts.note("document \(key.kind)", try await store.document(key))
            facts.note("listed by \(key.kind)", try await store.apps(with: key.kind).contains { $0.id == app.id })
        }
        facts.note("rules applied", try await !store.appsWithUnappliedRules().contains(app.serial))
        facts.note("cluster", try await store.cluster(of: app.serial))
        facts.note("updates", try await store.updates(of: app.serial, .all, before: nil, limit: 20))
        let audit = try await store.audit(of: app.serial, before: nil, limit: 10)
        facts.note("audit", audit.map { "\($0.action) \($0.update) \($0.at)" })
    }

    private func readItems(_ facts: inout WorkloadFacts) async throws {
        facts.note("hand-overs", try await handOvers().map { "\($0.kind) \($0.shard.number)" }.sorted())
        facts.note("items", try await store.items(of: app.serial, prefix: "", after: "", limit: 10))
        for choice in 0..<3 {
            let key = try item(choice)
            if let stored = try await store.item(key) {
                let prices = [stored.state.fields["price"], stored.state.previous?["price"]]
                facts.note("item \(choice)", prices.map { $0?.text ?? "none" })
            }
            let next = try await store.nextFiring(of: key)
            if case .readable(let firing)? = next {
                let price = firing.firing.state.fields["price"]?.text ?? "none"
                facts.note("next firing of \(choice)", [price, "\(firing.firing.targets.count)", "\(firing.done)"])
            }
            facts.note("firings of \(choice)", try await store.firingNumbers(of: key).count)
            let armed = try await store.armed(on: key, after: SubscriptionSerial(0), limit: 20)
            facts.note(
                "armed on \(choice)",
                armed.map { "\($0.isArmed) \($0.target.revision) \($0.since) \($0.hasFired) \($0.coolDownSeconds)" })
        }
    }

    private func readDevice(_ device: Device, _ name: String, _ facts: inout WorkloadFacts) async throws {
        facts.note("\(name) with its credential", try await store.device(withCredential: device.credentialHash)?.id)
        for channel in try await store.channels(device: device.serial) {
            facts.note("\(name) channel \(channel.id)", channel)
            facts.note("\(name) watch \(channel.id)", try await store.watch(of: channel.serial))
        }
        let waiting = try await waiting(device)
        facts.note("\(name) inbox", waiting)
        facts.note("\(name) waiting", try await store.waitingCount(device: device.serial, at: now))
        for envelope in waiting.suffix(4) {
            let pushes = try await store.pushes(for: envelope.id, of: device.serial, at: now)
            // The store draws the names of pushes.
            facts.note(
                "\(name) pushes for \(envelope.position)",
                pushes.map { "\($0.kind) \($0.standing) \($0.at) \($0.reason ?? "")" })
        }
        let subscriptions = try await store.subscriptions(
            of: device.serial, SubscriptionFilter(), after: SubscriptionSerial(0), limit: 20)
        facts.note("\(name) subscriptions", subscriptions)
        facts.note(
            "\(name) ended subscriptions", try await store.endedSubscriptions(of: device.serial, in: .all, limit: 20).count)
        if let binding = try await store.presentBinding(of: device.serial) {
            let completions = try await store.unfinished(of: binding.serial)
            facts.note("\(name) binding", [binding.profile, "\(binding.revision)"])
            facts.note("\(name) completions", completions.map { text($0.machine) }.sorted())
        }
        facts.note(
            "\(name) finds", try await store.serviceProviders(for: device.serial, ServiceQuery(), limit: 10))
        facts.note("\(name) requests", try await store.unfinishedRequestCount(of: device.serial))
    }

    /// Reads the data that an operation may have stored, and its result.
    private func readTraces(of operation: WorkloadOperation, _ facts: inout WorkloadFacts) async throws {
        switch operation.kind {
        case .messages, .notifyFiring:
            for place in 0..<WorkloadOperation.mostMessages {
                let id = operation.message(place)
                guard let record = try await store.record(of: id, at: now) else { continue }
                facts.note("message \(id.position)", record)
            }
        case .request:
            guard let request = try await store.serviceRequest(requestID(operation)) else { return }
            facts.note("request \(operation.number)", request)
        default:
            return
        }
    }
}
