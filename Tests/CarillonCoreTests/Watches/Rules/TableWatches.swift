import CarillonCore
import CarillonWire

/// A store in memory that reads facts and writes changes for ``WatchRules``, and decides nothing.
struct TableWatches {
    struct CallbackRow {
        var callback: WatchChanges.NewCallback
        var attempts = 0
    }

    struct WorkRow {
        var kind: WorkKind
        var subject: Int64
        var queue: CallbackQueue
        var dueAt: Timestamp
        var lease = StoredLease(fence: 0, isHeld: false)
    }

    private let rules = WatchRules()
    private(set) var watches: [Int64: Watch] = [:]
    private(set) var callbackIDs: [Int64: String] = [:]
    private(set) var callbacks: [Int64: CallbackRow] = [:]
    private(set) var work: [Int64: WorkRow] = [:]
    private(set) var usage: [AppSerial: WatchUsage] = [:]
    private(set) var noted: [Int] = []
    private(set) var dropped = 0
    private var formerUsers: Set<Int64> = []
    private var deletedApps: Set<Int64> = []
    private var serials: Int64 = 0
    private var callbackSerials: Int64 = 0
    private var pings: Int64 = 0

    mutating func commit(_ operation: WatchOperation, at now: Timestamp) -> String {
        switch operation {
        case .put(let request): return put(request, now)
        case .remove(let channel):
            guard let watch = watch(of: channel) else { return "false" }
            remove(watch.serial.rawValue)
            write(rules.removedWatch(of: watch.app, knowing: usage[watch.app] ?? WatchUsage()))
            return "true"
        case .lease(let key):
            guard let number = number(of: key) else { return "none" }
            work[number]?.lease.fence += 1
            work[number]?.lease.isHeld = true
            return "leased"
        case .pinged(let answer, let revision, let machine, let last, let due):
            guard case .ping(let serial) = answer.work else { return "false" }
            let number = number(of: answer.work) ?? 0
            let record = PingRecord(
                end: end(answer, number, AppSerial(1), now), watch: WatchSerial(serial), revision: revision,
                machine: machine, lastPing: last, dueAt: due)
            return "\(write(rules.record(record, knowing: facts(number, WatchSerial(serial)))))"
        case .called(let answer, let step, let attempts):
            guard let number = number(of: answer.work), let row = work[number] else { return "false" }
            let facts = CallbackFacts(lease: row.lease, usage: usage[row.queue.app] ?? WatchUsage())
            let callback = WatchSample.callback(row.subject, attempts: attempts)
            let ruling = rules.record(
                step, of: callback, end: end(answer, number, row.queue.app, now), knowing: facts)
            return "\(write(ruling))"
        case .vouch(let channel):
            let watch = watch(of: channel)
            var facts = facts(0, watch?.serial)
            if let watch { facts.watches[watch.channel] = watch.serial }
            return "\(write(rules.vouch(for: ChannelSerial(channel), knowing: facts)))"
        case .end(let channels):
            end(channels, now)
            return "ended"
        case .setFormerUser(let channel, let isSet):
            if isSet { formerUsers.insert(channel) } else { formerUsers.remove(channel) }
            return "set"
        case .setDeleted(let app, let isSet):
            if isSet { deletedApps.insert(app) } else { deletedApps.remove(app) }
            return "set"
        case .spread:
            let overdue = work.compactMap { number, row -> OverduePing? in
                guard row.kind == .ping, let ping = watches[row.subject]?.ping else { return nil }
                return OverduePing(work: number, intervalSeconds: ping.intervalSeconds, dueAt: row.dueAt)
            }
            write(rules.spread(overdue, at: now))
            return "spread"
        }
    }

    /// The work of something that can be leased.
    func number(of key: WatchOperation.Work) -> Int64? {
        work.first { _, row in
            switch key {
            case .ping(let serial): row.kind == .ping && row.subject == serial
            case .callback(let id): row.kind == .callback && callbacks[row.subject]?.callback.webhookID == id
            }
        }?.key
    }

    private func watch(of channel: Int64) -> Watch? {
        guard var watch = watches.values.first(where: { $0.channel.rawValue == channel }) else { return nil }
        watch.dueAt = number(of: .ping(watch.serial.rawValue)).flatMap { work[$0]?.dueAt }
        return watch
    }

    // MARK: Facts

    private mutating func put(_ request: WatchRequest, _ now: Timestamp) -> String {
        let channel = request.channel.rawValue
        let (device, app) = (WatchScenario.device(of: channel), AppSerial(WatchScenario.app(of: channel)))
        var facts = PutWatchFacts(
            channel: WatchedChannel(
                serial: request.channel, id: Sample.channelID, device: DeviceSerial(device), app: app,
                isOfFormerUser: formerUsers.contains(channel), isAppDeleted: deletedApps.contains(app.rawValue)),
            watch: watch(of: channel))
        while true {
            switch rules.put(request, at: now, knowing: facts) {
            case .needsCounts(let device, let app):
                facts.counts = PutWatchFacts.Counts(
                    ofDevice: watches.values.count { $0.device == device }, ofApp: usage[app] ?? WatchUsage())
            case .refused(.channelGone): return "gone"
            case .refused(.tooManyOfDevice): return "device"
            case .refused(.tooManyOfApp): return "app"
            case .refused(.put): return "a refusal is none"
            case .put(let watch, let isNew, let changes):
                write(changes)
                return isNew ? "new \(serials)" : "changed \(watch.serial.rawValue)"
            }
        }
    }

    private func facts(_ number: Int64, _ watch: WatchSerial?) -> WatchFacts {
        var facts = WatchFacts()
        facts.leases[number] = work[number]?.lease
        if let watch, let row = watches[watch.rawValue] {
            facts.states[watch] = WatchState(revision: row.revision, isPinged: row.ping != nil, machine: row.machine)
        }
        return facts
    }

    private func end(
        _ answer: WatchOperation.Answer, _ number: Int64, _ app: AppSerial, _ now: Timestamp
    ) -> WorkEnd {
        WatchSample.end(number, fence: answer.fence, app: app, failures: answer.noted, at: now)
    }

    private mutating func end(_ channels: [Int64], _ now: Timestamp) {
        var facts = ChannelEndFacts()
        for watch in watches.values where channels.contains(watch.channel.rawValue) {
            facts.watches.append(
                EndingWatch(
                    serial: watch.serial, channel: watch.channel, device: watch.device, app: watch.app,
                    disconnectAddress: watch.disconnectAddress, callbackID: callbackIDs[watch.serial.rawValue] ?? "",
                    sealed: watch.sealed))
            facts.usage[watch.app] = usage[watch.app] ?? WatchUsage()
        }
        while true {
            let verdict = rules.channelsEnd(
                because: .revoked, at: now, limits: WatchScenario.callbacks, knowing: facts)
            switch verdict {
            case .needs(let questions): answer(questions, into: &facts)
            case .decided(let changes):
                write(changes)
                return
            }
        }
    }

    private func answer(_ questions: ChannelEndQuestions, into facts: inout ChannelEndFacts) {
        let waiting = work.values.filter { $0.kind == .callback }.sorted { $0.subject < $1.subject }
        for queue in questions.queues { facts.waiting[queue] = waiting.count { $0.queue == queue } }
        for (queue, limit) in questions.oldestOfQueues {
            facts.oldestOfQueues[queue] = waiting.filter { $0.queue == queue }.prefix(limit).map(\.subject)
        }
        for (app, limit) in questions.oldestOfApps {
            facts.oldestOfApps[app] = waiting.filter { $0.queue.app == app }.prefix(limit).map {
                WaitingCallback(serial: $0.subject, queue: $0.queue)
            }
        }
    }

    // MARK: Changes

    private mutating func write(_ ruling: WatchRules.Ruling) -> Bool {
        write(ruling.changes)
        return ruling.counts
    }

    private mutating func write(_ changes: WatchChanges) {
        for end in changes.leases {
            let number = end.end.lease.work
            work[number]?.lease.isHeld = false
            if case .due(let moment) = end.work { work[number]?.dueAt = moment }
            noted.append(end.end.health.failures)
        }
        if let put = changes.put { write(put) }
        for state in changes.states {
            let serial = state.watch.rawValue
            watches[serial]?.revision = state.revision
            watches[serial]?.machine = state.machine
            if let last = state.lastPing { watches[serial]?.lastPing = last }
        }
        for ping in changes.movedPings { work[ping.work]?.dueAt = ping.dueAt }
        for callback in changes.callbacks {
            callbackSerials += 1
            callbacks[callbackSerials] = CallbackRow(callback: callback)
            work[2 * callbackSerials + 1] = WorkRow(
                kind: .callback, subject: callbackSerials, queue: CallbackQueue(callback.app, callback.address.peer),
                dueAt: callback.endedAt)
        }
        for (callback, attempts) in changes.attempts { callbacks[callback]?.attempts = attempts }
        for callback in changes.removedCallbacks {
            callbacks[callback] = nil
            work[2 * callback + 1] = nil
        }
        for watch in changes.removedWatches { remove(watch.rawValue) }
        for (app, change) in changes.usage {
            switch change {
            case .added(let added), .emptied(let added):
                usage[app, default: WatchUsage()].watches += added.watches
                usage[app, default: WatchUsage()].callbacks += added.callbacks
            }
            if case .emptied = change, usage[app] == WatchUsage() { usage[app] = nil }
        }
        dropped += changes.dropped
    }

    private mutating func write(_ put: WatchChanges.Put) {
        var watch = put.watch
        if put.isNew {
            serials += 1
            watch.serial = WatchSerial(serials)
            callbackIDs[serials] = put.callbackID
        }
        let serial = watch.serial.rawValue
        watches[serial] = watch
        switch put.ping {
        case .none: break
        case .added(let peer, let dueAt):
            pings += 1
            work[2 * pings] = WorkRow(
                kind: .ping, subject: serial, queue: CallbackQueue(watch.app, peer), dueAt: dueAt)
        case .moved(let peer, let dueAt):
            guard let number = number(of: .ping(serial)) else { return }
            work[number]?.queue.peer = peer
            work[number]?.dueAt = dueAt
        case .removed: removePing(of: serial)
        }
    }

    private mutating func remove(_ watch: Int64) {
        watches[watch] = nil
        callbackIDs[watch] = nil
        removePing(of: watch)
    }

    private mutating func removePing(of watch: Int64) {
        if let number = number(of: .ping(watch)) { work[number] = nil }
    }
}
