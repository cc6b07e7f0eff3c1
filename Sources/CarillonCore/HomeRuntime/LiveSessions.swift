import Metrics
import Synchronization

/// The connected devices of this home, with one session for each device: the newest. Also the waiters for the inboxes of devices,
/// such as polls.
///
/// Sessions are called in the order of ``SessionCalls``, and without a lock, so that a session can call the home. If another
/// thread makes a call, a function can return before the call is made.
package final class LiveSessions: Sendable {
    private struct Presence {
        var session: (any LiveSession)?
        /// The app of the session's device; nil if it is not known.
        var app: AppSerial?
        /// The opening time of the session's connection.
        var openedAt = OpeningTime(nanoseconds: .min)
        /// The sessions that ended because of a newer connection, until they leave. Each can still deliver the envelopes that it
        /// has loaded.
        var leaving: [ObjectIdentifier: any LiveSession] = [:]
        var waiters: [ObjectIdentifier: any LiveSession] = [:]
        /// The calls to the sessions. Calls to the waiters are not included.
        var calls = SessionCalls()
        /// The session, and the sessions that are leaving.
        var sessions: [any LiveSession] { [session].compactMap { $0 } + leaving.values }
        var isEmpty: Bool { session == nil && leaving.isEmpty && waiters.isEmpty && calls.isIdle }
    }

    private typealias Presences = Mutex<[DeviceSerial: Presence]>

    /// A part of the presences. The devices of one shard are in the same part.
    private final class ShardBox: Sendable {
        let presences = Presences([:])
        let expected = ExpectedSessions()
    }

    /// The changes of inboxes. A session that joins after its inbox was read compares the read with them.
    package let changes = InboxChangeClock()
    private let shards: [ShardBox]
    private let started = ServerMetric.sessionsStarted.counter()

    package init(shardCount: Int = 64) {
        shards = (0..<shardCount).map { _ in ShardBox() }
    }

    /// Makes this the device's session, and ends the session before it. If the connection of this session was opened before that
    /// of the device's session, this session is ended instead. The session that ends must leave. Until then, withdrawals reach
    /// it.
    ///
    /// - Parameters:
    ///   - app: The app of the device; nil if it is not known.
    ///   - openedAt: The opening time of the connection; nil if it was opened now.
    /// - Returns: Whether this is the device's session now.
    @discardableResult
    package func join(
        _ session: any LiveSession, device: DeviceSerial, of app: AppSerial? = nil, openedAt: OpeningTime? = nil
    ) -> Bool {
        let (other, isJoined) = shard(of: device).presences.withLock { presences -> ((any LiveSession)?, Bool) in
            let other = presences[device]?.session
            let openedAt = openedAt ?? .now()
            if let present = presences[device], let other, other !== session, present.openedAt > openedAt {
                presences[device]?.leaving[ObjectIdentifier(session)] = session
                return (other, false)
            }
            if let other, other !== session { presences[device]?.leaving[ObjectIdentifier(other)] = other }
            if other == nil { presences[device]?.leaving[ObjectIdentifier(session)] = nil }
            presences[device, default: Presence()].session = session
            presences[device]?.app = app
            // A session that joins twice keeps the later of its times.
            let isLater = presences[device].map { $0.openedAt < openedAt } ?? true
            if other !== session || isLater { presences[device]?.openedAt = openedAt }
            return (other, true)
        }
        guard isJoined else {
            call(.end(.replaced), to: session, of: device)
            return false
        }
        started.increment()
        shard(of: device).expected.arrived(device)
        if let other, other !== session { call(.end(.replaced), to: other, of: device) }
        return true
    }

    /// Returns the devices of an app that have a session, including one that is about to leave, and the devices whose app is not
    /// known.
    package func devices(of app: AppSerial) -> [DeviceSerial] {
        shards.flatMap { shard in
            shard.presences.withLock { presences in
                presences.compactMap { device, presence in
                    let isThere = presence.session != nil || !presence.leaving.isEmpty
                    return isThere && (presence.app ?? app) == app ? device : nil
                }
            }
        }
    }

    /// The number of connected devices, and the number of waiters.
    package var population: (sessions: Int, waiters: Int) {
        var population = (sessions: 0, waiters: 0)
        for shard in shards {
            shard.presences.withLock { presences in
                for presence in presences.values {
                    if presence.session != nil { population.sessions += 1 }
                    population.waiters += presence.waiters.count
                }
            }
        }
        return population
    }

    /// Removes a session that ended. A newer session of the device stays.
    package func leave(_ session: any LiveSession, device: DeviceSerial) {
        shard(of: device).presences.withLock { presences in
            guard let presence = presences[device] else { return }
            if presence.session === session {
                presences[device]?.session = nil
            } else if !presence.leaving.isEmpty {
                presences[device]?.leaving[ObjectIdentifier(session)] = nil
            }
            if presences[device]?.isEmpty == true { presences[device] = nil }
        }
    }

    /// Removes a session whose device is not known. All sessions are searched.
    package func leave(_ session: any LiveSession) {
        for shard in shards {
            let devices = shard.presences.withLock { presences in
                presences.compactMap { device, presence in
                    presence.session === session || presence.leaving[ObjectIdentifier(session)] != nil ? device : nil
                }
            }
            for device in devices { leave(session, device: device) }
        }
    }

    /// Calls `work` while nothing else is queued for this device, and then calls its session, if there is one, with the returned
    /// call. Envelopes that get their positions in `work` are offered in the order of positions. The waiters are informed after
    /// that.
    ///
    /// - Parameter work: The function is called with a lock, so it must not call a session. `hasSession`: whether a session gets
    ///   the call. `isAwaited`: whether there are waiters, or a session is expected.
    package func appending<Result>(
        to device: DeviceSerial, _ work: (_ hasSession: Bool, _ isAwaited: Bool) -> (result: Result, call: SessionCall?)
    ) -> Result {
        let (done, session, added, waiters) = shard(of: device).presences.withLock { presences in
            let place = presences.index(forKey: device)
            let session = place.flatMap { presences.values[$0].session }
            let waiters = place.map { Array(presences.values[$0].waiters.values) } ?? []
            let isAwaited = !waiters.isEmpty || session == nil && isExpected(device)
            let done = work(session != nil, isAwaited)
            guard let place, let session, let call = done.call else {
                return (done, session, SessionCalls.Added?.none, waiters)
            }
            return (done, session, presences.values[place].calls.add(call, to: session), waiters)
        }
        if let session, let call = done.call { make(call, to: session, of: device, added) }
        for waiter in waiters { waiter.storedMore() }
        return done.result
    }

    // MARK: Calls to sessions

    /// Calls the device's session, if there is one.
    func call(_ call: SessionCall, ofDevice device: DeviceSerial) {
        if let session = session(of: device) { self.call(call, to: session, of: device) }
    }

    /// Calls a session of the device, after the calls that were added before.
    private func call(_ call: SessionCall, to session: any LiveSession, of device: DeviceSerial) {
        let added = shard(of: device).presences.withLock { $0[device]?.calls.add(call, to: session) }
        make(call, to: session, of: device, added)
    }

    /// - Parameter added: Nil if the device has no presence any more. Then no other call is being made to the session.
    private func make(
        _ call: SessionCall, to session: any LiveSession, of device: DeviceSerial, _ added: SessionCalls.Added?
    ) {
        switch added {
        case nil: call.make(to: session)
        case .waits?: break
        case .refused?: if case .offerVolatile(_, let answer) = call { answer(false) }
        case .begins?:
            call.make(to: session)
            while let calls = nextCalls(of: device) {
                for next in calls { next.call.make(to: next.session) }
            }
        }
    }

    private func nextCalls(of device: DeviceSerial) -> [SessionCalls.Waiting]? {
        shard(of: device).presences.withLock { presences in
            guard let place = presences.index(forKey: device) else { return nil }
            let calls = presences.values[place].calls.next()
            if calls == nil, presences.values[place].isEmpty { presences.remove(at: place) }
            return calls
        }
    }

    package func session(of device: DeviceSerial) -> (any LiveSession)? {
        shard(of: device).presences.withLock { $0[device]?.session }
    }

    /// Whether the device has a session, or a session is expected.
    package func isConnected(_ device: DeviceSerial) -> Bool { session(of: device) != nil || isExpected(device) }

    /// Withdraws envelopes from the device's sessions, and calls `then` when no session of the device can deliver them.
    package func withdraw(
        _ withdrawal: DeliveryMachine.Withdrawal, from device: DeviceSerial, then: @escaping @Sendable () -> Void
    ) {
        changes.note(device)
        let present = shard(of: device).presences.withLock { $0[device].map { ($0.session, $0.leaving) } }
        guard let (session, leaving) = present else { return then() }
        guard !leaving.isEmpty else {
            guard let session else { return then() }
            return call(.withdrew(withdrawal, done: then), to: session, of: device)
        }
        let sessions = Array(leaving.values) + [session].compactMap { $0 }
        let countdown = Countdown(from: sessions.count, then: then)
        for session in sessions { call(.withdrew(withdrawal) { countdown.count() }, to: session, of: device) }
    }

    /// Calls a function at the last of a number of calls.
    private final class Countdown: Sendable {
        private let left: Atomic<Int>
        private let then: @Sendable () -> Void

        init(from count: Int, then: @escaping @Sendable () -> Void) {
            left = Atomic(count)
            self.then = then
        }

        func count() {
            if left.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 { then() }
        }
    }

    /// Informs the waiter of each envelope that is stored for the device from now on, and of the end of the device. The waiter is
    /// registered in addition to the device's session and other waiters. It gets no envelopes itself.
    package func addWaiter(_ waiter: any LiveSession, for device: DeviceSerial) {
        shard(of: device).presences.withLock { $0[device, default: Presence()].waiters[ObjectIdentifier(waiter)] = waiter }
    }

    package func removeWaiter(_ waiter: any LiveSession, for device: DeviceSerial) {
        shard(of: device).presences.withLock { presences in
            presences[device]?.waiters[ObjectIdentifier(waiter)] = nil
            if presences[device]?.isEmpty == true { presences[device] = nil }
        }
    }

    package func hasWaiters(_ device: DeviceSerial) -> Bool {
        shard(of: device).presences.withLock { $0[device]?.waiters.isEmpty == false }
    }

    /// Ends the sessions of these devices, and the waiters for their inboxes.
    package func end(_ devices: [DeviceSerial], because reason: SessionEnd) {
        for device in devices {
            changes.note(device)
            let presence = shard(of: device).presences.withLock { $0[device] }
            if let session = presence?.session { call(.end(reason), to: session, of: device) }
            presence?.waiters.values.forEach { $0.end(because: reason) }
        }
    }

    /// Ends every session and every waiter.
    package func endAll(because reason: SessionEnd) {
        for shard in shards { end(shard.presences.withLock { Array($0.keys) }, because: reason) }
    }

    // MARK: A shard that moves

    /// Expects the sessions of these devices from another home. Until they have joined, or the time is over, the devices count as
    /// connected: they are not woken at once, and not removed. An envelope of TTL 0 that arrives before the session is dropped.
    func expect(_ devices: [DeviceSerial], for time: Duration = .seconds(2)) {
        let end = ContinuousClock.now + time
        for device in devices { shard(of: device).expected.expect(device, until: end) }
    }

    private func isExpected(_ device: DeviceSerial) -> Bool { shard(of: device).expected.contains(device) }

    /// Returns the devices of a shard that have a session.
    func devices(in shard: Shard) -> [DeviceSerial] {
        box(of: shard).presences.withLock { presences in
            presences.filter { Shard(of: $0.key) == shard && $0.value.session != nil }.map(\.key)
        }
    }

    /// Calls `done` when no session of a shard delivers or loads further envelopes. The waiters for inboxes of the shard end.
    func moving(_ shard: Shard, done: @escaping @Sendable () -> Void) {
        let presences = box(of: shard).presences.withLock { $0.filter { Shard(of: $0.key) == shard } }
        for waiter in presences.flatMap(\.value.waiters.values) { waiter.moving {} }
        let sessions = presences.flatMap { device, presence in presence.sessions.map { (device, $0) } }
        guard !sessions.isEmpty else { return done() }
        let countdown = Countdown(from: sessions.count, then: done)
        for (device, session) in sessions { call(.moving { countdown.count() }, to: session, of: device) }
    }

    /// Ends a move. If the shard has another home, its sessions leave with ``MoveEnd/gone``. A link then connects its session at
    /// the new home. A session without a link ends.
    func moved(_ shard: Shard, isReleased: Bool) {
        let presences = box(of: shard).presences.withLock { presences in
            let moved = presences.filter { Shard(of: $0.key) == shard }
            guard isReleased else { return moved }
            for device in moved.keys {
                // The remaining calls are made in their order.
                let calls = presences.removeValue(forKey: device)?.calls
                if let calls, !calls.isIdle { presences[device] = Presence(calls: calls) }
            }
            return moved
        }
        for (device, presence) in presences {
            for session in presence.sessions { call(.moved(isReleased ? .gone : .stays), to: session, of: device) }
            // A waiter can have been added while the shard was closed.
            if isReleased { for waiter in presence.waiters.values { waiter.end(because: .moved) } }
        }
    }

    private func shard(of device: DeviceSerial) -> ShardBox { box(of: Shard(of: device)) }

    private func box(of shard: Shard) -> ShardBox { shards[Int(shard.number) % shards.count] }
}
