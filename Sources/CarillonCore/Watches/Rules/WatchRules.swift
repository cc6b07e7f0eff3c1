/// Decides what a call changes in watches and in their pings and callbacks: which watches are accepted, which results count,
/// which callbacks are made when a channel ends, and which callbacks are dropped.
///
/// The rules read no store. They receive facts and return changes of rows. If they need more facts, they return the missing ones.
package struct WatchRules: Sendable {
    package enum PutVerdict: Equatable, Sendable {
        /// Read the counts of the device and the app as well, and decide again.
        case needsCounts(DeviceSerial, AppSerial)
        case refused(PutWatchResult)
        /// The store assigns the serial number of a new watch.
        case put(Watch, isNew: Bool, WatchChanges)
    }

    package enum EndVerdict: Equatable, Sendable {
        /// Read these facts as well, and decide again.
        case needs(ChannelEndQuestions)
        case decided(WatchChanges)
    }

    /// Whether a result or an effect counts. There can be changes even if it does not.
    package struct Ruling: Equatable, Sendable {
        package var counts: Bool
        package var changes: WatchChanges

        package init(counts: Bool, changes: WatchChanges = WatchChanges()) {
            self.counts = counts
            self.changes = changes
        }
    }

    package init() {}

    // MARK: Watches

    package func put(_ request: WatchRequest, at now: Timestamp, knowing facts: PutWatchFacts) -> PutVerdict {
        guard let channel = facts.channel, !channel.isOfFormerUser, !channel.isAppDeleted else {
            return .refused(.channelGone)
        }
        var changes = WatchChanges()
        let watch: Watch
        if let earlier = facts.watch {
            watch = earlier.changed(by: request, at: now)
        } else {
            guard let counts = facts.counts else { return .needsCounts(channel.device, channel.app) }
            guard counts.ofDevice < request.limits.perDevice else { return .refused(.tooManyOfDevice) }
            guard counts.ofApp.watches < request.limits.perApp else { return .refused(.tooManyOfApp) }
            watch = Watch(request, on: channel, at: now)
            changes.usage[channel.app] = .added(WatchUsage(watches: 1))
        }
        changes.put = WatchChanges.Put(
            watch: watch, isNew: facts.watch == nil, callbackID: request.callbackID,
            ping: Self.pingWork(of: watch, after: facts.watch), at: now)
        return .put(watch, isNew: facts.watch == nil, changes)
    }

    private static func pingWork(of watch: Watch, after earlier: Watch?) -> WatchChanges.PingWork {
        let wasDue = earlier?.dueAt != nil
        guard let peer = watch.ping?.address.peer, let dueAt = watch.dueAt else { return wasDue ? .removed : .none }
        return wasDue ? .moved(peer: peer, dueAt: dueAt) : .added(peer: peer, dueAt: dueAt)
    }

    /// A watch of the app was removed.
    package func removedWatch(of app: AppSerial, knowing usage: WatchUsage) -> WatchChanges {
        var changes = WatchChanges()
        changes.usage[app] = usage.changed(watches: -1)
        return changes
    }

    // MARK: Results

    /// A ping has a result.
    package func record(_ record: PingRecord, knowing facts: WatchFacts) -> Ruling {
        guard isInForce(record.end.lease, facts) else { return Ruling(counts: false) }
        guard let state = facts.states[record.watch], state.revision == record.revision, state.isPinged else {
            return Ruling(counts: false, changes: giveUp(record, knowing: facts))
        }
        var changes = WatchChanges()
        changes.leases = [WatchChanges.LeaseEnd(record.end, .due(record.dueAt))]
        changes.states = [
            WatchChanges.State(
                watch: record.watch, revision: record.revision, machine: record.machine, lastPing: record.lastPing)
        ]
        return Ruling(counts: true, changes: changes)
    }

    /// The result of the ping is not stored, only the reliability of its peer.
    package func giveUp(_ record: PingRecord, knowing facts: WatchFacts) -> WatchChanges {
        var changes = WatchChanges()
        if isInForce(record.end.lease, facts) { changes.leases = [WatchChanges.LeaseEnd(record.end, .stays)] }
        return changes
    }

    /// The backend of a channel sent a request. This counts if the channel was notified of a failure of the backend.
    package func vouch(for channel: ChannelSerial, knowing facts: WatchFacts) -> Ruling {
        guard let watch = facts.watches[channel], let state = facts.states[watch], state.machine.notified != nil else {
            return Ruling(counts: false)
        }
        var changes = WatchChanges()
        changes.states = [
            WatchChanges.State(watch: watch, revision: state.revision + 1, machine: PingMachine(), lastPing: nil)
        ]
        return Ruling(counts: true, changes: changes)
    }

    /// A callback has a result.
    package func record(
        _ step: CallbackMachine.Step, of callback: DisconnectCallback, end: WorkEnd, knowing facts: CallbackFacts
    ) -> Ruling {
        guard let lease = facts.lease, lease.isInForce(end.lease) else { return Ruling(counts: false) }
        var changes = WatchChanges()
        switch step {
        case .done, .givenUp, .lost:
            changes.leases = [WatchChanges.LeaseEnd(end, .removed)]
            changes.removedCallbacks = [callback.serial]
            changes.usage[end.app] = facts.usage.changed(callbacks: -1)
        case .retry(let moment):
            changes.leases = [WatchChanges.LeaseEnd(end, .due(moment))]
            changes.attempts[callback.serial] = callback.machine.attempts
        }
        return Ruling(counts: true, changes: changes)
    }

    private func isInForce(_ lease: WorkLease, _ facts: WatchFacts) -> Bool {
        facts.leases[lease.work]?.isInForce(lease) ?? false
    }

    // MARK: Ends of channels

    /// Channels end together with their watches. A watch with a disconnect address causes a callback.
    package func channelsEnd(
        because reason: DisconnectReason, at now: Timestamp, limits: CallbackLimits, knowing facts: ChannelEndFacts
    ) -> EndVerdict {
        let watches = facts.watches.sorted { $0.channel.rawValue < $1.channel.rawValue }
        let callbacks = watches.compactMap { watch in
            watch.disconnectAddress.map { WatchChanges.NewCallback(watch, $0, because: reason, at: now) }
        }
        let missing = questions(for: callbacks, limits, facts)
        guard missing.isEmpty else { return .needs(missing) }
        var queues = CallbackQueues(facts, limits)
        for (place, callback) in callbacks.enumerated() { queues.enter(place, callback.queue) }
        var changes = WatchChanges()
        changes.removedWatches = watches.map(\.serial)
        changes.callbacks = callbacks.enumerated().filter { !queues.removedNew.contains($0.offset) }.map { $0.element }
        changes.removedCallbacks = queues.removed
        changes.dropped = queues.removed.count + queues.removedNew.count
        for (app, usage) in facts.usage {
            let left = watches.count { $0.app == app }
            let entered = changes.callbacks.count { $0.app == app }
            let removed = queues.removedOfApps[app, default: 0]
            if left > 0 { changes.usage[app] = usage.changed(watches: -left, callbacks: entered - removed) }
        }
        return .decided(changes)
    }

    private func questions(
        for callbacks: [WatchChanges.NewCallback], _ limits: CallbackLimits, _ facts: ChannelEndFacts
    ) -> ChannelEndQuestions {
        // Each callback that enters can cause up to two callbacks to be dropped.
        let most = 2 * callbacks.count
        var questions = ChannelEndQuestions()
        for (queue, entering) in Dictionary(grouping: callbacks, by: \.queue) {
            guard let waiting = facts.waiting[queue] else {
                questions.queues.insert(queue)
                continue
            }
            if waiting + entering.count > limits.perPeer, facts.oldestOfQueues[queue] == nil {
                questions.oldestOfQueues[queue] = most
            }
        }
        for (app, entering) in Dictionary(grouping: callbacks, by: \.app) {
            let waiting = facts.usage[app]?.callbacks ?? 0
            if waiting + entering.count > limits.perApp, facts.oldestOfApps[app] == nil {
                questions.oldestOfApps[app] = most
            }
        }
        return questions
    }

    // MARK: Overdue pings

    /// Spreads overdue pings over the time in which first pings are made, by the numbers of their work.
    package func spread(_ pings: [OverduePing], at now: Timestamp) -> WatchChanges {
        var changes = WatchChanges()
        changes.movedPings = pings.filter { $0.dueAt < now }.map { ping in
            let span = Int64(max(1, min(ping.intervalSeconds, PingMachine.firstWithinSeconds))) * 1000
            let delay = ping.work % span * Self.spreadingFactor % span
            return WatchChanges.MovedPing(work: ping.work, dueAt: now.adding(milliseconds: delay), at: now)
        }
        return changes
    }

    /// A prime number, so that consecutive numbers are far apart.
    private static let spreadingFactor: Int64 = 7919
}

extension Watch {
    /// The store assigns the serial number.
    fileprivate init(_ request: WatchRequest, on channel: WatchedChannel, at now: Timestamp) {
        self.init(
            serial: WatchSerial(0), revision: 1, channel: channel.serial, device: channel.device, app: channel.app,
            channelID: channel.id, ping: request.ping, disconnectAddress: request.disconnectAddress, sealed: request.sealed,
            machine: PingMachine(), lastPing: nil, dueAt: request.dueAt(at: now), createdAt: now)
    }

    /// Results of pings of an earlier address are removed. The failure of which the channel was notified is kept.
    fileprivate func changed(by request: WatchRequest, at now: Timestamp) -> Watch {
        var watch = self
        watch.revision += 1
        watch.ping = request.ping
        watch.disconnectAddress = request.disconnectAddress
        watch.sealed.token = request.sealed.token
        if request.renewsSecret { watch.sealed.secret = request.sealed.secret }
        watch.dueAt = request.dueAt(at: now)
        if ping?.address == request.ping?.address {
            if let dueAt, let requested = watch.dueAt { watch.dueAt = min(dueAt, requested) }
        } else {
            watch.machine = PingMachine(notified: machine.notified)
            watch.lastPing = nil
        }
        return watch
    }
}

extension WatchRequest {
    fileprivate func dueAt(at now: Timestamp) -> Timestamp? { ping == nil ? nil : firstDueAt ?? now }
}

extension WatchUsage {
    /// Neither number becomes less than zero, even if the counts do not match the rows.
    fileprivate func changed(watches: Int = 0, callbacks: Int = 0) -> WatchChanges.Usage {
        let change = WatchUsage(watches: max(watches, -self.watches), callbacks: max(callbacks, -self.callbacks))
        guard self.watches + change.watches > 0 || self.callbacks + change.callbacks > 0 else {
            return .emptied(change)
        }
        return .added(change)
    }
}

extension WatchChanges.NewCallback {
    fileprivate var queue: CallbackQueue { CallbackQueue(app, address.peer) }
}
