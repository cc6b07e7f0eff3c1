import CarillonBasics
import CarillonWire
import Metrics
import Synchronization

/// Ends updates, and performs periodic work.
extension UpdateDelivery {
    /// Begins to withdraw a superseded update from the sessions of all devices of the app. Inboxes that are read from now on
    /// do not contain the update.
    func ended(_ update: UpdateSerial, of app: AppSerial) {
        let origin = OriginKey(kind: .update, serial: update.rawValue)
        for device in devicesAfterNote(of: app) {
            home.withdraw(.all(of: origin), from: device) {}
        }
        if logs.isShared { others.hint(UpdateEnded(update: update, app: app)) }
    }

    /// Withdraws an update from all sessions. Returns when no session of any home can receive the update any more.
    ///
    /// - Throws: ``StoreFault`` if another home did not answer: its sessions may still receive the update.
    func withdrew(_ update: Update) async throws {
        await withdraw(update.serial, of: update.app)
        try await withdrawElsewhere(update)
    }

    /// Withdraws an update from the sessions of the other homes, if there are some.
    func withdrawElsewhere(_ update: Update) async throws {
        if logs.isShared { try await others.inform(of: UpdateEnded(update: update.serial, app: update.app)) }
    }

    /// Withdraws an update from the sessions of this home, after it ended in the store. Returns when no session of the home can receive the
    /// update any more. Several sessions are visited at once.
    package func withdraw(_ update: UpdateSerial, of app: AppSerial) async {
        logs.ended(update, of: app)
        let devices = devicesAfterNote(of: app)
        let origin = OriginKey(kind: .update, serial: update.rawValue)
        for start in stride(from: 0, to: devices.count, by: Self.visitedAtOnce) {
            let visited = devices[start..<min(start + Self.visitedAtOnce, devices.count)]
            let visits = ResultCollector<Void>(visited.count)
            for (place, device) in visited.enumerated() {
                home.withdraw(.all(of: origin), from: device) { visits.note(place, ()) }
            }
            _ = await visits.all()
        }
    }

    private static let visitedAtOnce = 1000

    /// Returns the devices whose sessions can have an update of the app. A device that connects during the call has either joined
    /// before the note, or reads its inbox again because of the note.
    private func devicesAfterNote(of app: AppSerial) -> [DeviceSerial] {
        let connected = home.noteWithdrawal(fromAllOf: app)
        // The devices are read after the note.
        return Array(Set(devices(of: app)).union(connected))
    }

    func devices(of app: AppSerial) -> [DeviceSerial] {
        present.withLock { $0[app].map { Array($0.devices.keys) } ?? [] }
    }

    /// Ends expired updates of the whole store, a few at a time. ``sweep()`` then removes them from inboxes.
    package func endExpired() async throws {
        while !Task.isCancelled {
            let expired = try await store.endExpiredUpdates(at: time.now(), limit: Self.dueAtOnce)
            for update in expired { logs.expired(update.update, of: update.app) }
            if expired.count < Self.dueAtOnce { break }
        }
    }

    /// Performs the due work for the devices of the home, a few at a time: sends due updates again, and removes ended updates
    /// from inboxes.
    package func sweep() async throws {
        forgetAbsent()
        try await followClock()
        await notifyWithoutHints()
        await notifyMissed()
        while !Task.isCancelled, try await resendDue() == Self.dueAtOnce {}
        try await findUnfinished()
        while !Task.isCancelled {
            let ended = try await store.unfinishedOfEnded(in: home.shards, limit: Self.dueAtOnce)
            if ended.isEmpty { break }
            try await finish(ended)
        }
        for binding in try await store.bindingsToRelease(in: home.shards, limit: Self.dueAtOnce) {
            let inInbox = try await store.unfinished(of: binding.binding).filter(\.machine.isInInbox)
            try await takeOut(inInbox.map(\.key), of: binding.device, as: .gone)
            while !Task.isCancelled,
                let envelopes = try await store.release(binding.binding, limit: Self.dueAtOnce, at: time.now())
            {
                try await takeOut(envelopes, of: binding.device, as: .gone)
            }
        }
        try await store.forgetLocations(
            in: home.shards, before: time.now().adding(seconds: -UpdateBinding.locationSeconds),
            limit: Self.forgottenAtOnce)
    }

    /// Removes updates of the whole store that ended long ago, and old entries of the audit.
    ///
    /// - Parameter retention: Nil removes nothing because of its age.
    package func forgetEnded(by retention: RetentionTime?) async throws {
        if let retention, isTime(auditTended) {
            wait(Self.auditSeconds, for: auditTended)
            try await store.forgetAudit(
                before: retention.now.adding(seconds: -AuditEntry.keptSeconds), beyond: AuditEntry.mostOfApp,
                limit: Self.auditAtOnce)
        }
        if isTime(endedTended) {
            while !Task.isCancelled {
                if try await store.forgetUpdates(limits, by: retention, limit: Self.forgottenAtOnce) { break }
            }
            wait(Self.endedSeconds, for: endedTended)
        }
    }

    private func isTime(_ moment: borrowing Mutex<Int64?>) -> Bool {
        let now = ticks.now()
        return moment.withLock { $0.map { now >= $0 } ?? true }
    }

    private func wait(_ seconds: Int64, for moment: borrowing Mutex<Int64?>) {
        let next = ticks.now() + seconds * 1_000_000_000
        moment.withLock { $0 = next }
    }

    /// Corrects due times after the clock was set back. At the start, only due times beyond the longest possible wait are
    /// searched, because a search of all later due times takes long. All shards are searched (``LocalHome/shards``).
    private func followClock() async throws {
        let now = time.now()
        try await steps.follow(now) { isFirst in
            let moment = isFirst ? now.adding(seconds: CompletionMachine.mostDelaySeconds) : now
            while !Task.isCancelled {
                let isDone = try await store.bringBackCompletions(
                    in: .all, dueAfter: moment, at: now, limit: Self.broughtBackAtOnce)
                if isDone { break }
            }
        }
    }

    private static let broughtBackAtOnce = 1000

    /// Finds completions that were written after their updates had ended: at the start of the server, and every hour. All shards
    /// are searched (``LocalHome/shards``).
    private func findUnfinished() async throws {
        guard isTime(unfinishedTended) else { return }
        var place = UpdateSerial(0)
        while !Task.isCancelled {
            let end = try await store.findUnfinishedOfEnded(in: .all, after: place, limit: Self.searchedAtOnce)
            guard let next = end else {
                return wait(Self.unfinishedSeconds, for: unfinishedTended)
            }
            place = next
        }
    }

    private static let searchedAtOnce = 1000
    private static let unfinishedSeconds: Int64 = 3600
    private static let forgottenAtOnce = 500
    /// The interval between two cleanings of the audit. Counting its rows reads all of them.
    private static let auditSeconds: Int64 = 3600
    private static let auditAtOnce = 10_000
    /// The interval between two cleanings of ended updates.
    private static let endedSeconds: Int64 = 60

    /// Notifies devices to drop ended updates that they may have, and removes these updates from their inboxes.
    private func finish(_ ended: [EndedCompletion]) async throws {
        let now = time.now()
        for completion in ended {
            if let envelope = completion.envelope {
                try await takeOut([envelope], of: completion.device, as: .cancelled)
            }
        }
        var quiet: [EndedCompletion] = []
        var notified: [EndedCompletion] = []
        for completion in ended {
            // The device may have received an update in its inbox without an acknowledgement. Expired content needs no
            // notification, because the device fetches it anyway.
            let isNotifiedOf =
                completion.completion.machine.attempt > 0 && !(completion.status == .expired && completion.isContent)
            if isNotifiedOf { notified.append(completion) } else { quiet.append(completion) }
        }
        try await store.endCompletions(quiet.map { ($0.completion.key, $0.status.end) }, at: now)
        let answers = ResultCollector<InboxResult>(notified.count)
        for (place, completion) in notified.enumerated() {
            let key = completion.completion.key
            let (device, app, origin) = (completion.device, completion.app, completion.origin)
            let rules = AppendRules(effects: [.updateRetracted(key, as: completion.status.end, at: now)])
            home.deliver(to: device, .kept, rules: rules) { id in
                Envelope(
                    id: id, device: device, app: app, origin: origin, kind: .retraction(entry: key.entry), acceptedAt: now,
                    expiresAt: now.adding(seconds: Limits.ttlSeconds))
            } then: { _, delivered in
                answers.note(place, delivered)
            }
        }
        if !notified.isEmpty {
            for case .failed(let fault) in await answers.all() { throw fault }
            retracted.increment(by: notified.count)
        }
    }
}

extension Update.Status {
    /// The final state of completions of an update with this status.
    fileprivate var end: CompletionMachine.State {
        switch self {
        case .superseded: .superseded
        case .withdrawn: .withdrawn
        case .expired, .live: .expired
        }
    }
}
