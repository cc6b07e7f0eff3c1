import CarillonWire
import Metrics
import Synchronization

/// Evaluates the log of an app for a binding, and puts matching updates into its inbox.
extension UpdateDelivery {
    /// Evaluates the log for a binding, unless this was done before. Updates for which the inbox has no room are evaluated
    /// another time.
    ///
    /// - Returns: Whether a completion of the binding can have become due. False if the log was evaluated before the call, and if
    ///   this call only put updates into the inbox.
    @discardableResult
    func evaluate(_ binding: UpdateBinding, of device: Device) async throws -> Bool {
        if try await isEvaluated(binding, of: device) { return false }
        return try await home.inside(of: device.serial) { try await evaluateInTurn(binding, of: device) }
    }

    private func evaluateInTurn(_ binding: UpdateBinding, of device: Device) async throws -> Bool {
        try await turns.take(binding.serial) {
            var (isWhole, mayBeDue) = (false, false)
            try await untilUnchanged(binding, in: device.app) { state, log in
                let binding = state.binding
                let snapshot = EvaluationSnapshot(binding: binding.serial, revision: binding.revision, log)
                if isEvaluated(binding, snapshot, of: device) { return true }
                evaluationCount.wrappingAdd(1, ordering: .relaxed)
                let facts = logs.facts(binding.counting(at: time.now()), of: device.id, device.appID, by: log.rules)
                let evaluated = try await evaluate(state, log, facts)
                (isWhole, mayBeDue) = (evaluated.isWhole, mayBeDue || evaluated.mayBeDue)
                if isWhole { note(snapshot, facts, of: device) }
                return isWhole
            }
            return !isWhole || mayBeDue
        }
    }

    /// Runs the body with the stored binding and the log. Runs the body again if it returns false and the binding then has
    /// another revision: ``UpdateStore/forgetLocations(in:before:limit:)`` changes bindings, and the log is not evaluated for
    /// them otherwise. Does nothing if the binding ended.
    func untilUnchanged(
        _ binding: UpdateBinding, in app: AppSerial, _ body: (BindingState, UpdateLogs.Log) async throws -> Bool
    ) async throws {
        var revision: Int64?
        for _ in 0..<Self.changesInTurn {
            let log = try await logs.log(of: app)
            guard let state = try await bindingState(of: binding.serial, in: log), state.binding.revision != revision
            else { return }
            if try await body(state, log) { return }
            revision = state.binding.revision
        }
    }

    /// Returns the stored binding with its completions of the next updates; nil if the binding ended.
    private func bindingState(of binding: BindingSerial, in log: UpdateLogs.Log) async throws -> BindingState? {
        let first = log.live.serialsInOrder.first ?? UpdateSerial(.max)
        return try await store.bindingState(of: binding, from: first, under: log.version)
    }

    /// The number of attempts in one turn. The sweep changes a binding once; a poll that changes it evaluates the log afterwards.
    static let changesInTurn = 3

    /// Whether the log and the binding are unchanged since the last evaluation.
    func isEvaluated(_ binding: UpdateBinding, of device: Device) async throws -> Bool {
        let log = try await logs.log(of: device.app)
        return isEvaluated(binding, EvaluationSnapshot(binding: binding.serial, revision: binding.revision, log), of: device)
    }

    private func isEvaluated(_ binding: UpdateBinding, _ snapshot: EvaluationSnapshot, of device: Device) -> Bool {
        !binding.needsResync && lastSnapshot(device) == snapshot
    }

    private static let atOnce = 64

    private struct Evaluated {
        /// Whether all updates had room, and the binding did not change.
        var isWhole: Bool
        /// Whether the call did more than put updates into the inbox.
        var mayBeDue: Bool
    }

    private func evaluate(_ state: BindingState, _ log: UpdateLogs.Log, _ facts: DeviceFacts) async throws -> Evaluated {
        let binding = state.binding
        let missed = try await makeUpForMissed(binding, log, facts)
        var evaluated = try await evaluateAll(state, log, facts)
        switch missed {
        case .nothing: break
        case .noneUpTo(let place): if evaluated.isWhole { try await store.saw(binding.serial, to: place) }
        case .madeUp: evaluated.mayBeDue = true
        }
        return evaluated
    }

    private func evaluateAll(
        _ state: BindingState, _ log: UpdateLogs.Log, _ facts: DeviceFacts
    ) async throws -> Evaluated {
        let binding = state.binding
        var known = state.completions
        var evaluated = Evaluated(isWhole: false, mayBeDue: false)
        var place = binding.place(in: log)
        if place.rawValue == 0, try await follow(binding, known, facts, log) {
            evaluated.mayBeDue = true
            guard let state = try await self.bindingState(of: binding.serial, in: log),
                state.binding.revision == binding.revision
            else { return evaluated }
            known = state.completions
        }
        let rows = Dictionary(known.map { ($0.key.update, $0) }) { $1 }
        while log.live.last > place {
            let matching = log.live.candidates(for: facts, after: place).filter { serial in
                log.live[serial].map { log.holds($0, for: facts) ?? false } ?? false
            }
            // It is safe to evaluate these updates again.
            if matching.isEmpty, place.rawValue != 0 { break }
            let page = Array(matching.prefix(Self.atOnce))
            let end = page.count < matching.count ? page[page.count - 1] : log.live.last
            let offered = try await offer(page, to: binding, rows, until: end, log)
            if !offered.adding.isEmpty || !offered.coalesced.isEmpty { evaluated.mayBeDue = true }
            if !offered.isNoted {
                guard
                    try await store.evaluated(
                        binding.serial, revision: binding.revision,
                        to: AudienceCursor(offered.reached ?? end, rules: log.version),
                        isFull: offered.reached != nil, adding: offered.adding, at: time.now())
                else { return evaluated }
            }
            if !offered.coalesced.isEmpty {
                coalesced.increment(by: offered.coalesced.count)
                await home.flush(binding.device)
                await withdraw(try await store.coalesce(offered.coalesced, at: time.now()), from: binding.device)
            }
            if offered.reached != nil { return evaluated }
            place = end
        }
        evaluated.isWhole = true
        return evaluated
    }

    private struct Offered {
        /// The last update before one for which the inbox had no room; nil if all had room.
        var reached: UpdateSerial?
        /// Completions without an envelope.
        var adding: [Completion] = []
        /// Earlier completions that are coalesced into these updates.
        var coalesced: [(CompletionKey, by: UpdateSerial)] = []
        /// Whether the place of the binding was written with the offer.
        var isNoted = false
    }

    /// Puts updates into the binding's inbox.
    ///
    /// - Parameters:
    ///   - rows: The last completions of updates after the place of the binding.
    ///   - end: The place of the binding after these updates.
    private func offer(
        _ page: [UpdateSerial], to binding: UpdateBinding, _ rows: [UpdateSerial: Completion], until end: UpdateSerial,
        _ log: UpdateLogs.Log
    ) async throws -> Offered {
        let updates = page.compactMap { log.live[$0]?.update }.filter { update in
            rows[update.serial].map { update.mode == .standing && $0.hasLeftAudience } ?? true
        }
        let coalescing = try await coalescing(updates, binding, log)
        var busy: Set<String> = []
        if updates.contains(where: { $0.orderKey != nil }) {
            busy = Set(try await store.unfinished(of: binding.serial).filter(\.machine.blocksOthers).compactMap(\.orderKey))
        }
        let now = time.now()
        var adding: [Completion] = []
        var offers: [(update: Update, offer: UpdateOffer)] = []
        for update in updates {
            let entry = (rows[update.serial]?.key.entry ?? 0) + 1
            let key = CompletionKey(update: update.serial, binding: binding.serial, entry: entry)
            if let coalescer = coalescing.amongThem[update.serial] {
                var machine = CompletionMachine()
                _ = machine.coalesced()
                adding.append(
                    Completion(
                        key: key, machine: machine, changedAt: now, orderKey: update.orderKey, coalescedBy: coalescer))
            } else if !binding.kinds.contains(update.kind.name) {
                adding.append(
                    Completion(
                        key: key, machine: CompletionMachine(.unsupported), changedAt: now, orderKey: update.orderKey))
            } else if let orderKey = update.orderKey, !busy.insert(orderKey).inserted {
                adding.append(Completion(key: key, machine: CompletionMachine(), changedAt: now, orderKey: orderKey))
            } else {
                let offer = UpdateOffer(
                    key: key, revision: binding.revision, attempt: 1, orderKey: update.orderKey, at: now)
                offers.append((update, offer))
            }
        }
        // The place of a single update is written in the commit of its offer.
        let isNoted = offers.count == 1 && adding.isEmpty
        if isNoted { offers[0].offer.cursor = AudienceCursor(end, rules: log.version) }
        let results = await deliver(offers.map { ($0.update, $0.offer, binding.device) })
        for (place, result) in results.enumerated() {
            switch result {
            case .stored, .answered, .sent: offered.increment()
            // The update ended, or another call evaluated the log at the same time.
            case .originGone where !coalescing.isCoalescer(offers[place].update.serial),
                .dropped where !coalescing.isCoalescer(offers[place].update.serial):
                break
            case .failed(let fault): throw fault
            default:
                if result == .full { full.increment() }
                var missed = offers[place].update.serial
                // Updates that are coalesced into the missing update are not delivered either.
                for earlier in adding.reversed() where earlier.coalescedBy.map({ $0 >= missed }) ?? false {
                    missed = min(missed, earlier.key.update)
                }
                let reached = page.last { $0 < missed } ?? UpdateSerial(0)
                return Offered(
                    reached: max(reached, binding.place(in: log)), adding: adding.filter { $0.key.update < missed },
                    coalesced: coalescing.before.filter { $0.by < missed })
            }
        }
        return Offered(adding: adding, coalesced: coalescing.before, isNoted: isNoted && results.allSatisfy(\.isStored))
    }

    func deliver(_ offers: [(update: Update, offer: UpdateOffer, device: DeviceSerial)]) async -> [InboxResult] {
        let answers = ResultCollector<InboxResult>(offers.count)
        for (place, (update, offer, device)) in offers.enumerated() {
            var rules = AppendRules(topic: offer.key.topic, effects: [.updateOffered(offer)])
            if update.wakes { rules.wake = WakeRequest(.background, dueAt: offer.at) }
            home.deliver(to: device, .kept, rules: rules) { id in
                Envelope(
                    id: id, device: device, app: update.app, origin: update.origin,
                    kind: .update(
                        .init(body: update.body, shared: update.content, entry: offer.key.entry, attempt: offer.attempt)),
                    acceptedAt: offer.at, expiresAt: update.expiresAt)
            } then: { _, delivered in
                answers.note(place, delivered)
            }
        }
        return offers.isEmpty ? [] : await answers.all()
    }

    /// Follows a change of parameters: ends completions of audiences that the binding left, and continues completions of
    /// audiences to which it returned.
    ///
    /// - Returns: Whether there were any such completions.
    private func follow(
        _ binding: UpdateBinding, _ known: [Completion], _ facts: DeviceFacts, _ log: UpdateLogs.Log
    ) async throws -> Bool {
        let left = known.filter { row in
            guard !row.hasLeftAudience, let entry = log.live[row.key.update] else { return false }
            return log.holds(entry, for: facts) != true
        }
        try await leave(left.map(\.key), binding)
        let back = known.filter { row in
            guard row.hasLeftAudience, let entry = log.live[row.key.update], entry.update.mode == .once else { return false }
            return log.holds(entry, for: facts) == true
        }
        if !back.isEmpty {
            try await store.returned(
                back.map(\.key), of: binding.serial, revision: binding.revision, at: time.now())
        }
        return !left.isEmpty || !back.isEmpty
    }

    /// Ends completions of audiences that a binding left, and removes their envelopes from its inbox.
    func leave(_ completions: [CompletionKey], _ binding: UpdateBinding) async throws {
        guard !completions.isEmpty else { return }
        // Envelopes that the device acknowledged must count as received.
        await home.flush(binding.device)
        for start in stride(from: 0, to: completions.count, by: Self.leftAtOnce) {
            let some = Array(completions[start..<min(start + Self.leftAtOnce, completions.count)])
            let takenOut = try await store.leftAudience(
                some, of: binding.serial, revision: binding.revision, at: time.now())
            await withdraw(takenOut, from: binding.device)
        }
    }

    private static let leftAtOnce = 256

    /// Returns when no live connection can deliver the removed envelopes any more.
    func withdraw(_ takenOut: [MessageID], from device: DeviceSerial) async {
        for envelope in takenOut { await home.withdraw(.envelope(envelope.position), from: device) }
    }

    /// Removes the envelopes of completions from the inbox before the completions end with their update or binding. In the
    /// opposite order, a server that is killed in between would later deliver the remaining envelopes. The updates have ended, so
    /// they are not offered again.
    func takeOut(_ completions: [CompletionKey], of device: DeviceSerial, as outcome: Outcome = .cancelled) async throws {
        guard !completions.isEmpty else { return }
        try await takeOut(try await store.envelopes(of: completions), of: device, as: outcome)
    }

    func takeOut(_ envelopes: [MessageID], of device: DeviceSerial, as outcome: Outcome) async throws {
        try await home.takeOut(envelopes, of: device, as: outcome)
    }

    // MARK: Waking

    /// Puts updates that wake into the inboxes of some sleeping devices of their audiences. The waiting envelopes then wake the
    /// devices. Returns whether more devices must be checked.
    ///
    /// - Parameter bindings: The largest number of bindings that are checked for one update.
    package func wakeSome(bindings limit: Int = 200) async throws -> Bool {
        var (woken, fault): (Int, (any Error)?) = (0, nil)
        for waking in try await store.wakingUpdates(limit: Self.wakingAtOnce) {
            do {
                try await wake(for: waking, limit)
                woken += 1
            } catch {
                // A fault does not delay other apps.
                faults.increment()
                fault = error
            }
        }
        if woken == 0, let fault { throw fault }
        return woken > 0
    }

    private func wake(for waking: WakingUpdate, _ limit: Int) async throws {
        let log = try await logs.log(of: waking.update.app)
        let page = try await store.bindingsToWake(of: waking.update.app, after: waking.wokenTo, limit: limit)
        if let entry = log.live[waking.update.serial] {
            let matching = page.filter { sleeping in
                guard sleeping.binding.place(in: log) < waking.update.serial else { return false }
                let facts = logs.facts(
                    sleeping.binding.counting(at: time.now()), of: sleeping.device, waking.app, by: log.rules)
                return log.holds(entry, for: facts) == true
            }
            let elsewhere = try await wakeLocal(matching, for: waking)
            // The place of the update is written after a home has woken each device.
            if !elsewhere.isEmpty { try await wakeElsewhere(elsewhere, for: waking) }
        }
        try await store.woke(waking.update.serial, to: page.count == limit ? page.last?.binding.serial : nil)
    }

    /// Puts an update that wakes into the inboxes of the devices of bindings, if they are devices of this home.
    ///
    /// - Returns: The bindings of these devices.
    package func wake(_ bindings: [AppBinding], for waking: WakingUpdate) async throws -> [BindingSerial] {
        let elsewhere = Set(try await wakeLocal(bindings, for: waking).map(\.binding.serial))
        return bindings.map(\.binding.serial).filter { !elsewhere.contains($0) }
    }

    /// - Returns: The bindings of devices of other homes.
    private func wakeLocal(_ bindings: [AppBinding], for waking: WakingUpdate) async throws -> [AppBinding] {
        var elsewhere: [AppBinding] = []
        for sleeping in bindings {
            if home.has(sleeping.binding.device) {
                try await evaluate(sleeping, of: waking)
            } else {
                elsewhere.append(sleeping)
            }
        }
        return elsewhere
    }

    /// - Throws: ``StoreFault`` also if no home had a device when it received the request.
    private func wakeElsewhere(_ bindings: [AppBinding], for waking: WakingUpdate) async throws {
        let answers = try await others.askEach(WakeForUpdate(waking: waking, sleeping: bindings))
        let woken = Set(answers.joined())
        guard bindings.allSatisfy({ woken.contains($0.binding.serial) }) else {
            throw StoreFault(.unreachable, "devices to wake are moving to other homes")
        }
    }

    /// Evaluates the log for a sleeping device if the update still matches. The binding and the rules can change while the device
    /// waits for its turn.
    private func evaluate(_ sleeping: AppBinding, of waking: WakingUpdate) async throws {
        try await home.inside(of: sleeping.binding.device) { try await evaluateInTurn(sleeping, of: waking) }
    }

    private func evaluateInTurn(_ sleeping: AppBinding, of waking: WakingUpdate) async throws {
        try await turns.take(sleeping.binding.serial) {
            try await untilUnchanged(sleeping.binding, in: waking.update.app) { state, log in
                let binding = state.binding
                guard let entry = log.live[waking.update.serial], binding.place(in: log) < waking.update.serial else {
                    return true
                }
                let facts = logs.facts(binding.counting(at: time.now()), of: sleeping.device, waking.app, by: log.rules)
                guard log.holds(entry, for: facts) == true else { return true }
                return try await evaluate(state, log, facts).isWhole
            }
        }
    }

    private static let wakingAtOnce = 100
}

extension UpdateBinding {
    var takesContent: Bool { kinds.contains(UpdateKind.content.name) }

    /// The place up to which the log need not be evaluated.
    fileprivate func place(in log: UpdateLogs.Log) -> UpdateSerial {
        cursor.rules == log.version ? cursor.place : UpdateSerial(0)
    }
}
