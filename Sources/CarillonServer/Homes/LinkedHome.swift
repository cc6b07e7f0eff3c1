package import CarillonCore
import CarillonWire
import Synchronization

/// A home over a link that behaves like a link to another process: calls and answers take a while, and the link can be cut.
///
/// A server with several homes reaches each of them in this way, so that its tests find what relies on one process.
///
/// - **Order.** The calls about one device pass in the order in which they are made, and so do the calls of the home to one session. The
///   home's answer to a call does not hold up the next call. Requests and questions overtake each other and all other calls.
/// - **Delay.** A call, its answer, and a call of the home to a session take up to 20 milliseconds each.
/// - **Cut.** See ``cut()``.
/// - **Limits.** See ``Limits``.
package final class LinkedHome: Home {
    /// What may wait to be sent. Parts of bodies are not counted, because they are read one after the other.
    package struct Limits: Sendable {
        /// The most calls that wait. Beyond it a call fails with ``HomeFault/unreachable``. If ``Home/settle(_:of:)`` finds no room, the sessions
        /// of its device end, so that the envelope comes again. If the device has none, its next arrival fails: the session that arrives can
        /// have given the envelope at another home. As many such devices are remembered.
        package var calls = 10_000
        /// The same in bytes. A question counts as 1,024 bytes.
        package var callBytes = 64 << 20
        /// The most calls of the home that wait for one session. Beyond it the session ends.
        package var sessionCalls = 4096
        /// The same in bytes.
        package var sessionBytes = 8 << 20

        package init() {}
    }

    /// A lane has the calls about one device, in their order. Its name is the first name of the device that a call has.
    private enum LaneName: Hashable {
        case id(DeviceID)
        case credential([UInt8])
        case serial(DeviceSerial)

        init(_ name: DeviceName) {
            switch name {
            case .id(let device, _): self = .id(device)
            case .credential(let hash): self = .credential(hash.bytes)
            }
        }
    }

    private struct Call: Sendable {
        /// Whether the home does it also if the link is cut.
        var isOfHome = false
        var work: @Sendable () async -> Void
    }

    private struct Lane {
        var calls = DelayedQueue<Call>()
        /// Whether a task takes the calls.
        var isBusy = false
        /// The sessions that arrived by this lane, or are about to.
        var sessions: [ObjectIdentifier: LinkedSession] = [:]
        /// The devices of the sessions. Calls with their serial numbers pass by this lane as well.
        var devices: Set<DeviceSerial> = []
    }

    /// A session, with the lane by which it arrived.
    private struct Entry {
        var session: LinkedSession
        var lane: LaneName
    }

    private enum Step {
        case wait(until: ContinuousClock.Instant)
        case call(Call)
        /// The lane is empty. The waiters are those of ``flush()``, if all lanes are empty.
        case done(waiters: [CheckedContinuation<Void, Never>])
    }

    private struct State {
        var isCut = false
        /// How many times the link was cut.
        var cuts = 0
        var lanes: [LaneName: Lane] = [:]
        var busyLanes = 0
        var laneOfDevice: [DeviceSerial: LaneName] = [:]
        /// By the session of the connection. A session that leaves is not in it any more.
        var sessions: [ObjectIdentifier: Entry] = [:]
        /// Devices without a session here whose answers were lost. The sessions that gave the envelopes do not know that.
        var lostAnswers: Set<DeviceSerial> = []
        var waitingCalls = 0
        var waitingBytes = 0
        /// Ends a call whose answer has not arrived, by its caller.
        var failures: [ObjectIdentifier: @Sendable () -> Void] = [:]
        var waiters: [CheckedContinuation<Void, Never>] = []
        weak var homes: Homes?

        /// Takes room for a call.
        mutating func admit(_ bytes: Int, within limits: Limits) -> Bool {
            guard !isCut, waitingCalls < limits.calls, waitingBytes + bytes <= limits.callBytes else { return false }
            waitingCalls += 1
            waitingBytes += bytes
            return true
        }

        mutating func giveBack(_ bytes: Int, calls: Int = 1) {
            waitingCalls -= calls
            waitingBytes -= bytes
        }

        func lane(_ name: LaneName) -> LaneName {
            if case .serial(let device) = name { laneOfDevice[device] ?? name } else { name }
        }

        /// - Returns: Whether a task must begin to take the calls of the lane.
        mutating func append(
            _ call: Call, to name: LaneName, bytes: Int = 0, due: ContinuousClock.Instant
        ) -> Bool {
            lanes[name, default: Lane()].calls.append(call, bytes: bytes, due: due)
            guard lanes[name]?.isBusy == false else { return false }
            lanes[name]?.isBusy = true
            busyLanes += 1
            return true
        }

        /// The next step of the task that takes the calls of a lane.
        mutating func next(in name: LaneName) -> Step {
            if let due = lanes[name]?.calls.due {
                if due > .now { return .wait(until: due) }
                if let (call, bytes) = lanes[name]?.calls.popFirst() {
                    if !call.isOfHome { giveBack(bytes) }
                    return .call(call)
                }
            }
            lanes[name]?.isBusy = false
            busyLanes -= 1
            removeIfUnused(name)
            guard busyLanes == 0 else { return .done(waiters: []) }
            defer { waiters = [] }
            return .done(waiters: waiters)
        }

        mutating func dropCalls() {
            for name in Array(lanes.keys) {
                guard let dropped = lanes[name]?.calls.removeAll(where: { !$0.isOfHome }) else { continue }
                giveBack(dropped.bytes, calls: dropped.count)
            }
        }

        mutating func forget(_ session: LinkedSession, of name: LaneName) {
            remove(session)
            lanes[name]?.sessions[ObjectIdentifier(session)] = nil
            removeIfUnused(name)
        }

        /// The session can have arrived again, as another one.
        mutating func remove(_ session: LinkedSession) {
            let key = ObjectIdentifier(session.session)
            if sessions[key]?.session === session { sessions[key] = nil }
        }

        private mutating func removeIfUnused(_ name: LaneName) {
            guard let lane = lanes[name], !lane.isBusy, lane.sessions.isEmpty else { return }
            for device in lane.devices where laneOfDevice[device] == name { laneOfDevice[device] = nil }
            lanes[name] = nil
        }
    }

    private let home: any Home
    private let delay: LinkDelay
    private let limits: Limits
    private let state = Mutex(State())

    private static let bytesOfArrival = 256
    private static let bytesOfCall = 64
    private static let bytesOfQuestion = 1024

    /// - Parameters:
    ///   - random: Decides the delays.
    ///   - longestDelay: In milliseconds.
    package init(_ home: any Home, random: RandomSource, longestDelay: Int = 20, limits: Limits = Limits()) {
        self.home = home
        self.limits = limits
        delay = LinkDelay(random: random, longest: longestDelay)
    }

    // MARK: The link

    /// Cuts the link.
    ///
    /// - A call that was not sent fails with ``HomeFault/unreachable``, as each call does until ``restore()``.
    /// - A call that was sent and has no answer fails with ``HomeFault/outcomeUnknown``. It can still take effect at the home, and its answer is
    ///   dropped. If its body comes in parts, it is cancelled at the home.
    /// - Each session that arrived over the link, or is about to, ends with ``SessionEnd/linkLost`` and leaves the home.
    package func cut() {
        let (failures, sessions) = state.withLock { state in
            state.isCut = true
            state.cuts += 1
            state.dropCalls()
            defer { state.failures = [:] }
            return (Array(state.failures.values), state.sessions.values.map(\.session))
        }
        for fail in failures { fail() }
        for session in sessions { session.lose() }
    }

    /// Sessions of devices that move find the new homes here. The link does not keep the homes.
    package func connect(_ homes: Homes) { state.withLock { $0.homes = homes } }

    /// The link takes calls again.
    package func restore() { state.withLock { $0.isCut = false } }

    /// The number of calls that were not sent yet.
    var waitingCalls: Int { state.withLock { $0.waitingCalls } }

    /// Waits until the home has taken all calls about devices that were made before.
    package func flush() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.busyLanes > 0 { state.waiters.append(continuation) }
                return state.busyLanes == 0
            }
            if isIdle { continuation.resume() }
        }
    }

    // MARK: Calls about one device

    package func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: InboxLoad, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        let arrival = Arrival(name: name, proof: proof, version: version, openedAt: openedAt)
        return try await connect(session, by: arrival) { [home] (linked) async throws(HomeFault) -> Arrived in
            try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: linked)
        }
    }

    /// What a session arrives with.
    private struct Arrival: Sendable {
        var name: DeviceName
        var proof: DeviceProof
        var version: Int
        var openedAt: OpeningTime
    }

    private func connect(
        _ session: any LiveSession, by arrival: Arrival,
        _ arrive: @escaping @Sendable (LinkedSession) async throws(HomeFault) -> Arrived
    ) async throws(HomeFault) -> Arrived {
        let (name, lane) = (arrival.name, LaneName(arrival.name))
        let linked = LinkedSession(
            session, delay: delay, limits: limits, onLost: { [weak self] in self?.left($0, lane) },
            onMoved: { [weak self] in self?.moved($0, from: lane, arrival) })
        return try await call(by: lane, bytes: Self.bytesOfArrival, as: linked) {
            [self] () async throws(HomeFault) -> Arrived in
            do throws(HomeFault) {
                let arrived = try await arrive(linked)
                if let device = arrived.device?.device.serial {
                    guard connected(linked, to: device, lane) else {
                        home.leave(linked, of: device)
                        throw HomeFault.unreachable
                    }
                } else {
                    state.withLock { $0.forget(linked, of: lane) }
                }
                return arrived
            } catch {
                if error == .outcomeUnknown { home.leave(linked, of: name) }
                state.withLock { $0.forget(linked, of: lane) }
                throw error
            }
        }
    }

    package func read(_ load: InboxLoad, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        try await call(by: .serial(device), bytes: Self.bytesOfCall) {
            [home] () async throws(HomeFault) -> Result<InboxRead, StoreFault> in
            try await home.read(load, of: device)
        }
    }

    package func settle(_ answer: EnvelopeAnswer, of device: DeviceSerial) {
        let call = Call { [home] in home.settle(answer, of: device) }
        guard !add(call, to: .serial(device), bytes: Self.bytesOfCall) else { return }
        let sessions = state.withLock { state in
            let sessions = state.lanes[state.lane(.serial(device))]?.sessions.values.filter { $0.device == device } ?? []
            if sessions.isEmpty, state.lostAnswers.count < limits.calls { state.lostAnswers.insert(device) }
            return sessions
        }
        for session in sessions { session.lose() }
    }

    /// The link finds the device of the session itself: the home would search all its sessions for a name.
    package func leave(_ session: any LiveSession, of name: DeviceName) { leave(session) }

    package func leave(_ session: any LiveSession, of device: DeviceSerial) { leave(session) }

    private func leave(_ session: any LiveSession) {
        let entry = state.withLock { $0.sessions[ObjectIdentifier(session)] }
        if let entry { left(entry.session, entry.lane) }
    }

    /// Removes a session from the home, behind its arrival and the other calls about its device.
    private func left(_ session: LinkedSession, _ lane: LaneName) {
        let call = Call(isOfHome: true) { [self] in
            if let device = session.device { home.leave(session, of: device) }
            state.withLock { $0.forget(session, of: lane) }
        }
        let due = delay.due()
        let begins = state.withLock { state in
            state.remove(session)
            return state.append(call, to: lane, due: due)
        }
        if begins { begin(lane) }
    }

    /// The home gave the device of a session away, and does not have the session any more.
    ///
    /// - Returns: How the session arrives at the new home.
    private func moved(
        _ session: LinkedSession, from lane: LaneName, _ arrival: Arrival
    ) -> @Sendable () async -> ArrivedAgain {
        let homes = state.withLock { state in
            state.forget(session, of: lane)
            return state.homes
        }
        let connection = session.session
        return { [weak homes] in
            guard let homes else { return .failed(StoreFault(.unavailable, "the link knows no other homes")) }
            return await homes.arriveAgain(
                arrival.name, arrival.proof, speaking: arrival.version, openedAt: arrival.openedAt, as: connection)
        }
    }

    /// Returns whether the session can stay. It cannot if an answer of the device was lost.
    private func connected(_ session: LinkedSession, to device: DeviceSerial, _ lane: LaneName) -> Bool {
        session.connected(device)
        return state.withLock { state in
            state.lanes[lane]?.devices.insert(device)
            state.laneOfDevice[device] = lane
            return state.lostAnswers.remove(device) == nil
        }
    }

    // MARK: Requests and questions

    package func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse {
        let cuts = state.withLock { $0.cuts }
        var sent = request
        var hasParts = false
        if case .parts(let parts) = request.body {
            hasParts = true
            sent.body = .parts(linked(parts, since: cuts))
        }
        var response = try await pass(bytes: request.byteCount, endsWithLink: hasParts) {
            [home, sent] () async throws(HomeFault) -> HomeResponse in
            try await home.handle(sent)
        }
        if case .parts(let parts) = response.body { response.body = .parts(linked(parts, since: cuts)) }
        return response
    }

    package func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        try await pass(bytes: Self.bytesOfQuestion) {
            [home] () async throws(HomeFault) -> Result<Question.Answer, any Error> in
            try await home.ask(question)
        }
    }

    private func linked<Parts: AsyncSequence & Sendable>(
        _ parts: Parts, since cuts: Int
    ) -> any AsyncSequence<[UInt8], any Error> & Sendable where Parts.Element == [UInt8], Parts.Failure == any Error {
        LinkedParts(parts: parts) { [self] in state.withLock { $0.cuts != cuts } }
    }

    // MARK: How calls pass

    private typealias Work<Answer> = @Sendable () async throws(HomeFault) -> Answer

    /// Makes a call by a lane.
    ///
    /// - Parameter session: The session that arrives.
    private func call<Answer: Sendable>(
        by lane: LaneName, bytes: Int, as session: LinkedSession? = nil, _ work: @escaping Work<Answer>
    ) async throws(HomeFault) -> Answer {
        let caller = LinkedCaller<Answer>()
        let outcome: LinkedCaller<Answer>.Outcome = await withCheckedContinuation { continuation in
            let call = Call { [delay] in
                guard caller.send() else { return }
                let outcome = await Self.outcome(of: work)
                // The next call does not wait for the answer. Ends after the delay.
                Task {
                    await delay.pass()
                    caller.end(outcome)
                }
            }
            let isTaken = caller.waits(continuation) && add(call, to: lane, bytes: bytes, of: caller, as: session)
            if !isTaken { caller.fail() }
        }
        forget(caller)
        return try outcome.get()
    }

    /// Makes a call that waits for no other call. If the caller is cancelled, so is the call at the home.
    private func pass<Answer: Sendable>(
        bytes: Int, endsWithLink: Bool = false, _ work: @escaping Work<Answer>
    ) async throws(HomeFault) -> Answer {
        let caller = LinkedCaller<Answer>(endsWithLink: endsWithLink)
        let outcome: LinkedCaller<Answer>.Outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard caller.waits(continuation), admit(caller, bytes) else { return caller.fail() }
                // Ends with the answer of the home.
                let task = Task {
                    await delay.pass()
                    state.withLock { $0.giveBack(bytes) }
                    guard caller.send() else { return }
                    let outcome = await Self.outcome(of: work)
                    await delay.pass()
                    caller.end(outcome)
                }
                caller.runs(task)
            }
        } onCancel: {
            caller.cancel()
        }
        forget(caller)
        return try outcome.get()
    }

    private static func outcome<Answer>(of work: Work<Answer>) async -> Result<Answer, HomeFault> {
        do throws(HomeFault) {
            return .success(try await work())
        } catch {
            return .failure(error)
        }
    }

    private func admit<Answer>(_ caller: LinkedCaller<Answer>, _ bytes: Int) -> Bool {
        state.withLock { state in
            guard state.admit(bytes, within: limits) else { return false }
            state.failures[ObjectIdentifier(caller)] = { caller.fail() }
            return true
        }
    }

    private func forget<Answer>(_ caller: LinkedCaller<Answer>) {
        state.withLock { $0.failures[ObjectIdentifier(caller)] = nil }
    }

    private func add(_ call: Call, to name: LaneName, bytes: Int) -> Bool {
        let due = delay.due()
        let added = state.withLock { state -> (lane: LaneName, begins: Bool)? in
            guard state.admit(bytes, within: limits) else { return nil }
            let lane = state.lane(name)
            return (lane, state.append(call, to: lane, bytes: bytes, due: due))
        }
        guard let added else { return false }
        if added.begins { begin(added.lane) }
        return true
    }

    private func add<Answer>(
        _ call: Call, to name: LaneName, bytes: Int, of caller: LinkedCaller<Answer>, as session: LinkedSession?
    ) -> Bool {
        let due = delay.due()
        let added = state.withLock { state -> (lane: LaneName, begins: Bool)? in
            guard state.admit(bytes, within: limits) else { return nil }
            state.failures[ObjectIdentifier(caller)] = { caller.fail() }
            let lane = state.lane(name)
            let begins = state.append(call, to: lane, bytes: bytes, due: due)
            if let session {
                state.sessions[ObjectIdentifier(session.session)] = Entry(session: session, lane: lane)
                state.lanes[lane]?.sessions[ObjectIdentifier(session)] = session
            }
            return (lane, begins)
        }
        guard let added else { return false }
        if added.begins { begin(added.lane) }
        return true
    }

    private func begin(_ lane: LaneName) {
        // Ends when the lane is empty.
        Task { await takeCalls(of: lane) }
    }

    private func takeCalls(of lane: LaneName) async {
        while true {
            switch state.withLock({ $0.next(in: lane) }) {
            case .wait(let due): try? await Task.sleep(until: due, clock: .continuous)
            case .call(let call): await call.work()
            case .done(let waiters):
                for waiter in waiters { waiter.resume() }
                return
            }
        }
    }
}

extension HomeRequest {
    /// The bytes of the request, without a body that comes in parts.
    fileprivate var byteCount: Int {
        let head = method.utf8.count + path.utf8.count
        let fields = fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        if case .whole(let body) = body { return head + fields + body.count }
        return head + fields
    }
}
