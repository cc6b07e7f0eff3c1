package import CarillonBasics
import CarillonWire
import Metrics
import Synchronization

/// Brings updates to the devices of their audiences: holds an app's log against a binding, puts what matches into its inbox, gives
/// again what failed, and takes back what ended.
///
/// The log is held when a device polls, connects or changes its parameters, and for those that are there when an update is published. What
/// was found is written update by update, each with its envelope in one transaction, and after them how far it is: a stop between is
/// made up for by holding again, as what has a completion is passed over.
package final class UpdateDelivery: Sendable {
    private let store: any UpdateStore
    private let logs: UpdateLogs
    private let homes: Homes
    private let limits: UpdateLimits
    private let time: TimeSource
    private let present = Mutex(Present())

    private let offered = ServerMetric.updatesOffered.counter("first")
    private let offeredAgain = ServerMetric.updatesOffered.counter("again")
    private let full = ServerMetric.updatesOffered.counter("inbox_full")
    private let retracted = ServerMetric.updatesOffered.counter("taken_back")
    private let faults = ServerMetric.updateFaults.counter()
    private let results = ["done", "deferred", "failed", "unsupported", "ignored"].reduce(into: [:]) { counters, result in
        counters[result] = ServerMetric.updateResults.counter(result)
    }

    package init(
        store: any UpdateStore, logs: UpdateLogs, homes: Homes, limits: UpdateLimits, time: TimeSource
    ) {
        self.store = store
        self.logs = logs
        self.homes = homes
        self.limits = limits
        self.time = time
    }

    private static let atOnce = 64

    // MARK: Holding

    /// Holds the log against a binding. What does not fit into its inbox is held another time.
    func hold(_ binding: UpdateBinding, of device: Device) async throws {
        let log = try await logs.log(of: device.app)
        try await hold(
            binding, log, logs.facts(binding.counting(at: time.now()), of: device.id, device.appID, by: log.rules))
    }

    private func hold(_ binding: UpdateBinding, _ log: UpdateLogs.Log, _ facts: DeviceFacts) async throws {
        var place = binding.place(in: log)
        if place.rawValue == 0 { try await leave(binding, facts, log) }
        while log.live.last > place {
            let matching = log.live.candidates(for: facts, after: place).filter { serial in
                log.live[serial].map { log.holds($0, for: facts) ?? false } ?? false
            }
            // Nothing is lost when that is held again.
            if matching.isEmpty, place.rawValue != 0 { return }
            let page = Array(matching.prefix(Self.atOnce))
            let end = page.count < matching.count ? page[page.count - 1] : log.live.last
            let (reached, adding) = try await offer(page, to: binding, log)
            guard
                try await store.held(
                    binding.serial, revision: binding.revision, to: HeldTo(reached ?? end, rules: log.version),
                    adding: adding, at: time.now())
            else { return }
            if reached != nil { return }
            place = end
        }
    }

    /// Puts updates into the binding's inbox. Answers the last before one that had no room, where there is one, and completions that
    /// have no envelope.
    private func offer(
        _ page: [UpdateSerial], to binding: UpdateBinding, _ log: UpdateLogs.Log
    ) async throws -> (reached: UpdateSerial?, adding: [Completion]) {
        let known = try await store.completions(of: binding.serial, page)
        let rows = Dictionary(known.map { ($0.key.update, $0) }) { $1 }
        let updates = page.compactMap { log.live[$0]?.update }
        var busy: Set<String> = []
        if updates.contains(where: { $0.orderKey != nil }) {
            busy = Set(try await store.unfinished(of: binding.serial).filter(\.machine.holdsUpOthers).compactMap(\.orderKey))
        }
        let now = time.now()
        var adding: [Completion] = []
        var offers: [(update: Update, offer: UpdateOffer)] = []
        for update in updates {
            var entry = 1
            if let row = rows[update.serial] {
                guard update.mode == .standing, row.hasLeft else { continue }
                entry = row.key.entry + 1
            }
            let key = CompletionKey(update: update.serial, binding: binding.serial, entry: entry)
            if !binding.kinds.contains(update.kind.name) {
                adding.append(Completion(key: key, machine: CompletionMachine(.unsupported), changedAt: now))
            } else if let orderKey = update.orderKey, !busy.insert(orderKey).inserted {
                adding.append(Completion(key: key, machine: CompletionMachine(), changedAt: now, orderKey: orderKey))
            } else {
                let offer = UpdateOffer(
                    key: key, revision: binding.revision, attempt: 1, orderKey: update.orderKey, at: now)
                offers.append((update, offer))
            }
        }
        let results = await deliver(offers.map { ($0.update, $0.offer, binding.device) })
        for (place, result) in results.enumerated() {
            switch result {
            case .stored, .settled, .given: offered.increment()
            // It ended, or another held the log at the same time.
            case .refused(.originGone), .dropped: break
            case .refused:
                full.increment()
                let missed = offers[place].update.serial
                let reached = page.last { $0 < missed } ?? UpdateSerial(0)
                return (max(reached, binding.place(in: log)), adding.filter { $0.key.update < missed })
            case .failed(let fault): throw fault
            }
        }
        return (nil, adding)
    }

    private func deliver(_ offers: [(update: Update, offer: UpdateOffer, device: DeviceSerial)]) async -> [Inbox.Delivered] {
        let answers = Answers<Inbox.Delivered>(offers.count)
        for (place, (update, offer, device)) in offers.enumerated() {
            var rules = AppendRules(topic: offer.key.topic, effects: [.updateOffered(offer)])
            if update.wakes { rules.wake = WakeWish(.background, dueAt: offer.at) }
            homes.home(of: device).inbox.deliver(to: device, .kept, rules: rules) { id in
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

    /// After a change of parameters: what it belonged to and belongs to no more.
    private func leave(_ binding: UpdateBinding, _ facts: DeviceFacts, _ log: UpdateLogs.Log) async throws {
        let known = try await store.completions(of: binding.serial, log.live.serialsInOrder)
        for row in known where !row.hasLeft {
            guard let entry = log.live[row.key.update], log.holds(entry, for: facts) != true else { continue }
            if let envelope = try await store.left(row.key, at: time.now()) {
                await takeOut([envelope], of: binding.device, as: .cancelled)
            }
        }
    }

    private func takeOut(_ envelopes: [MessageID], of device: DeviceSerial, as outcome: Outcome) async {
        let home = homes.home(of: device)
        for envelope in envelopes {
            home.inbox.settle(envelope, device: device, outcome, code: nil)
            await home.inbox.withdraw(.envelope(envelope.position), from: device)
        }
    }

    // MARK: Giving again

    /// Gives again what is due: of one binding, or of all. Answers how much it was.
    @discardableResult
    func giveAgain(to binding: BindingSerial? = nil) async throws -> Int {
        let now = time.now()
        let due = try await store.dueCompletions(of: binding, at: now, limit: Self.dueAtOnce)
        let offers = due.map { due in
            let completion = due.completion
            return (
                due.update,
                UpdateOffer(
                    key: completion.key, revision: nil, attempt: completion.machine.attempt + 1,
                    orderKey: completion.orderKey, at: now), due.device
            )
        }
        for (place, result) in await deliver(offers).enumerated() {
            switch result {
            case .stored, .settled, .given: offeredAgain.increment()
            case .refused, .dropped:
                if result == .refused(.full) { full.increment() }
                try await store.putOff(due[place].completion.key, until: now.adding(seconds: Self.fullSeconds))
            case .failed(let fault): throw fault
            }
        }
        return due.count
    }

    private static let dueAtOnce = 256
    private static let fullSeconds: Int64 = 60

    // MARK: Waking

    /// Puts updates that wake into the inboxes of devices that sleep and match, some at a time, so that they are woken by what waits there.
    /// Answers whether more are to be looked at.
    ///
    /// - Parameter bindings: The most that are looked at for one update.
    package func wakeSome(bindings limit: Int = 200) async throws -> Bool {
        var (woken, fault): (Int, (any Error)?) = (0, nil)
        for waking in try await store.wakingUpdates(limit: Self.wakingAtOnce) {
            do {
                try await wake(for: waking, limit)
                woken += 1
            } catch {
                // It holds up no other app.
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
            for sleeping in page where sleeping.binding.place(in: log) < waking.update.serial {
                let facts = logs.facts(
                    sleeping.binding.counting(at: time.now()), of: sleeping.device, waking.app, by: log.rules)
                guard log.holds(entry, for: facts) == true else { continue }
                try await hold(sleeping.binding, log, facts)
            }
        }
        try await store.woke(waking.update.serial, to: page.count == limit ? page.last?.binding.serial : nil)
    }

    private static let wakingAtOnce = 100

    // MARK: Polls

    /// What a device says when it comes.
    package struct Word: Sendable {
        package var profile: String
        /// Nil where it said them before, as with parameters.
        package var kinds: Set<String>?
        package var parameters: (revision: String, values: JSONValue)?
        package var results: [ReportedResult]
        /// It lost what it had received.
        package var offersAgain: Bool

        package init(
            profile: String, kinds: Set<String>?, parameters: (revision: String, values: JSONValue)?,
            results: [ReportedResult], offersAgain: Bool
        ) {
            self.profile = profile
            self.kinds = kinds
            self.parameters = parameters
            self.results = results
            self.offersAgain = offersAgain
        }
    }

    /// The binding that a device comes with; nil where it has as many as it may.
    package func binding(of device: Device, profile: String) async throws -> UpdateBinding {
        guard let binding = try await store.binding(of: device.serial, profile: profile, at: time.now()) else {
            throw Refusal(
                .profilesTooMany, "A device may have \(UpdateBinding.mostOfDevice) profiles, counted for each of its users.")
        }
        return binding
    }

    /// Takes what a device says: results first, then parameters; and puts into its inbox what is for it.
    ///
    /// - Returns: What became of each result.
    package func take(_ word: Word, from device: Device, _ binding: UpdateBinding) async throws -> [ReportAnswer] {
        let answers = try await report(word.results, of: binding)
        note(device, word.profile)
        let binding = try await change(binding, word, of: device)
        if word.offersAgain { try await store.offerAgain(to: binding.serial, at: time.now()) }
        try await hold(binding, of: device)
        try await giveAgain(to: binding.serial)
        return answers
    }

    private func report(_ results: [ReportedResult], of binding: UpdateBinding) async throws -> [ReportAnswer] {
        guard !results.isEmpty else { return [] }
        let answers = try await store.report(results, of: binding.serial, at: time.now())
        for (reported, answer) in zip(results, answers) {
            guard case .taken(let envelope) = answer else {
                self.results["ignored"]?.increment()
                continue
            }
            self.results[reported.result.name]?.increment()
            if let envelope { await takeOut([envelope], of: binding.device, as: .acknowledged) }
        }
        return answers
    }

    private func change(_ binding: UpdateBinding, _ word: Word, of device: Device) async throws -> UpdateBinding {
        var present = binding
        for _ in 0..<Self.changeAttempts {
            let wanted = try await changed(present, word, of: device)
            if wanted == present { return present }
            if let changed = try await store.change(wanted, at: time.now()) { return changed }
            present = try await self.binding(of: device, profile: word.profile)
        }
        throw Refusal(.overloaded, "The device's parameters are changed by others at the same time.", retryAfterSeconds: 1)
    }

    private func changed(_ binding: UpdateBinding, _ word: Word, of device: Device) async throws -> UpdateBinding {
        var wanted = binding
        if let kinds = word.kinds { wanted.kinds = kinds }
        if let parameters = word.parameters, parameters.revision != binding.parametersRevision {
            wanted.values = try ParameterValues(parameters.values, by: try await logs.log(of: device.app).rules)
            wanted.parametersRevision = parameters.revision
            wanted.locatedAt = wanted.values.hasLocation ? time.now() : nil
        }
        return wanted
    }

    private static let changeAttempts = 3

    // MARK: Those that are there

    private struct Present {
        var devices: [AppSerial: [DeviceSerial: There]] = [:]
        /// Apps for which something was published that their devices were not told of yet.
        var pending: Set<AppSerial> = []
        var telling: Set<AppSerial> = []
    }

    private struct There {
        var device: Device
        var profile: String
        var since: Timestamp
    }

    /// A device said something: as long as it is connected, or waits, what is published is put into its inbox at once.
    private func note(_ device: Device, _ profile: String) {
        let there = There(device: device, profile: profile, since: time.now())
        present.withLock { $0.devices[device.app, default: [:]][device.serial] = there }
    }

    /// Of how many devices it is known that they were there.
    package var rememberedDevices: Int { present.withLock { $0.devices.values.reduce(0) { $0 + $1.count } } }

    /// Of devices that went nothing is remembered.
    private func forgetAbsent() {
        let before = time.now().adding(seconds: -Self.rememberedSeconds)
        present.withLock { present in
            for (app, devices) in present.devices {
                let there = devices.filter { device, there in
                    let sessions = homes.home(of: device).sessions
                    return there.since > before || sessions.session(of: device) != nil || sessions.hasWaiters(device)
                }
                present.devices[app] = there.isEmpty ? nil : there
            }
        }
    }

    /// Between what it says and the wait for what comes of it a device is neither.
    private static let rememberedSeconds: Int64 = 5

    /// Tells those that are there. A task exists while there is somebody to tell, one an app.
    func published(_ update: Update) {
        let begins = present.withLock { present in
            guard present.devices[update.app] != nil else { return false }
            present.pending.insert(update.app)
            return present.telling.insert(update.app).inserted
        }
        if begins { Task { await self.tell(update.app) } }
    }

    private func tell(_ app: AppSerial) async {
        while true {
            let devices = present.withLock { present -> [There]? in
                guard present.pending.remove(app) != nil else {
                    present.telling.remove(app)
                    return nil
                }
                return present.devices[app].map { Array($0.values) } ?? []
            }
            guard let devices else { return }
            await withTaskGroup(of: Void.self) { group in
                for (place, there) in devices.enumerated() {
                    if place >= Self.devicesAtOnce { await group.next() }
                    group.addTask { await self.tell(there.device, there.profile) }
                }
            }
        }
    }

    private static let devicesAtOnce = 128

    private func tell(_ device: Device, _ profile: String) async {
        do {
            try await hold(try await binding(of: device, profile: profile), of: device)
        } catch {
            // It is held again when the device comes next.
            faults.increment()
        }
    }

    // MARK: What ended

    /// Another took its place.
    func ended(_ update: UpdateSerial, of app: AppSerial) {
        for device in devices(of: app) {
            homes.home(of: device).sessions.withdraw(
                .all(of: OriginKey(kind: .update, serial: update.rawValue)), from: device
            ) {}
        }
    }

    /// Returns when nobody who is there can be given it any more.
    func withdrew(_ update: Update) async {
        for device in devices(of: update.app) {
            await homes.home(of: device).inbox.withdraw(.all(of: update.origin.key), from: device)
        }
    }

    private func devices(of app: AppSerial) -> [DeviceSerial] {
        present.withLock { present in present.devices[app].map { Array($0.keys) } ?? [] }
    }

    /// What time brings, a little at a time: updates expire, what is due is given again, what ended is taken out of inboxes, and what
    /// ended long ago is forgotten.
    package func sweep() async throws {
        forgetAbsent()
        while !Task.isCancelled {
            let expired = try await store.endExpiredUpdates(at: time.now(), limit: Self.dueAtOnce)
            for update in expired { logs.ended(update.update, of: update.app) }
            if expired.count < Self.dueAtOnce { break }
        }
        while !Task.isCancelled, try await giveAgain() == Self.dueAtOnce {}
        while !Task.isCancelled {
            let ended = try await store.unfinishedOfEnded(limit: Self.dueAtOnce)
            if ended.isEmpty { break }
            try await finish(ended)
        }
        for binding in try await store.bindingsToRelease(limit: Self.dueAtOnce) {
            while !Task.isCancelled,
                let envelopes = try await store.release(binding.binding, limit: Self.dueAtOnce, at: time.now())
            {
                await takeOut(envelopes, of: binding.device, as: .gone)
            }
        }
        try await store.forgetLocations(
            before: time.now().adding(seconds: -UpdateBinding.locationSeconds), limit: Self.forgottenAtOnce)
        while !Task.isCancelled {
            if try await store.forgetUpdates(limits, at: time.now(), limit: Self.forgottenAtOnce) { break }
        }
    }

    private static let forgottenAtOnce = 500

    /// Of what a device received it is told; the rest is taken out of its inbox.
    private func finish(_ ended: [EndedCompletion]) async throws {
        let now = time.now()
        var quiet: [EndedCompletion] = []
        var told: [EndedCompletion] = []
        for completion in ended {
            let machine = completion.completion.machine
            let wasReceived = machine.attempt > (machine.isInInbox ? 1 : 0)
            // What expired the device knows itself to be over.
            if wasReceived, completion.status != .expired { told.append(completion) } else { quiet.append(completion) }
        }
        try await store.endCompletions(quiet.map { ($0.completion.key, $0.status.end) }, at: now)
        let answers = Answers<Inbox.Delivered>(told.count)
        for (place, completion) in told.enumerated() {
            let key = completion.completion.key
            let (device, app, origin) = (completion.device, completion.app, completion.origin)
            let rules = AppendRules(effects: [.updateRetracted(key, as: completion.status.end, at: now)])
            homes.home(of: device).inbox.deliver(to: device, .kept, rules: rules) { id in
                Envelope(
                    id: id, device: device, app: app, origin: origin, kind: .retraction(entry: key.entry), acceptedAt: now,
                    expiresAt: now.adding(seconds: Limits.ttlSeconds))
            } then: { _, delivered in
                answers.note(place, delivered)
            }
        }
        if !told.isEmpty {
            for case .failed(let fault) in await answers.all() { throw fault }
            retracted.increment(by: told.count)
        }
        for completion in ended {
            if let envelope = completion.envelope { await takeOut([envelope], of: completion.device, as: .cancelled) }
        }
    }
}

extension UpdateBinding {
    /// Up to where the log need not be held.
    fileprivate func place(in log: UpdateLogs.Log) -> UpdateSerial {
        heldTo.rules == log.version ? heldTo.place : UpdateSerial(0)
    }
}

extension Update.Status {
    /// What becomes of completions that are not final.
    fileprivate var end: CompletionMachine.State {
        switch self {
        case .superseded: .superseded
        case .withdrawn: .withdrawn
        case .expired, .live: .expired
        }
    }
}
