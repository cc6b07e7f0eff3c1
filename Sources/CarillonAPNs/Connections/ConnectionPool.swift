import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Runs the machines of one host's connections on one event loop.
///
/// Tasks put requests into the inbox, from any thread; the loop is woken once for all that come together. Everything else
/// is touched on the loop alone. One turn (bytes read, inbox emptied, a tick) feeds the machines, and at its end assigns
/// waiting pushes, writes once for each connection and wakes those whose answers came.
///
/// `@unchecked Sendable`: every stored variable but the inbox, which is a mutex, is read and written on `loop` only.
final class ConnectionPool: @unchecked Sendable {
    struct Options: Sendable {
        var pool: PoolMachine.Options
        var connection: ConnectionMachine.Options
        var queueLimit: Int
        var policy: APNsRetryPolicy
    }

    private struct Inbox {
        var submissions: [Submission] = []
        var cancellations: [CancellationTicket] = []
        var commands: [Command] = []
        /// Single requests that are not over.
        var outstanding = 0
        var isWakePending = false
        var isShutDown = false
    }

    enum Command: Sendable {
        case warmUp(WarmUpTicket, WarmUpTicket.Continuation)
        case withdrawWarmUp(WarmUpTicket)
        case credentials(ConnectionOpener, ProviderTokenSource?)
        case shutDown(drains: Bool, UnsafeContinuation<Void, Never>?)
        case withdraw(BatchBox)
    }

    /// A request that the pool holds.
    struct Pending {
        enum Place {
            case queued
            case delayed
            case stream(Link, UInt32)
        }

        let submission: Submission
        let beganAt: Moment
        var deadline: Moment
        var place = Place.queued
        var answers = 0
        var returns = 0
        var resets = 0
        var lostCount = 0
        /// The refusal after which it waits to be sent again.
        var refusal: RawAnswer?
        var renewals = 0
        var moves = 0
        var waited = Duration.zero
        var token: ProviderToken?
    }

    /// One connection.
    final class Link {
        let id: ConnectionID
        var machine: ConnectionMachine
        /// Set when TLS stands; before, there is at most a socket.
        var channel: (any NIOCore.Channel)?
        var socket: (any NIOCore.Channel)?
        var beganAt = Moment(nanoseconds: 0)
        var hasAnswered = false
        var isTouched = false
        var isDraining = false
        /// Its first answer was seen.
        var wasOfUse = false
        /// Ended, with everything said of its pushes.
        var isFinished = false

        init(_ id: ConnectionID, _ machine: ConnectionMachine) {
            self.id = id
            self.machine = machine
        }
    }

    let loop: any EventLoop
    private let queueLimit: Int
    private(set) var options: Options
    let time: APNsTimeSource
    let metrics: PoolMetrics
    let logger: Logger
    var opener: ConnectionOpener
    var tokens: ProviderTokenSource?

    private let inbox = Mutex(Inbox())
    var machine: PoolMachine
    var links: [Link] = []
    var slots: [Pending?] = []
    var generations: [UInt32] = []
    var freeSlots: [UInt32] = []
    var pendingCount = 0
    var returned: [PushID] = []
    private var finished: [(Completion, SubmissionResult)] = []
    private var warmUps: [(ticket: WarmUpTicket, continuation: WarmUpTicket.Continuation)] = []
    /// Pushes that wait to be queued again, and until when.
    private var delayed: [(push: PushID, until: Moment)] = []
    private var closings: [UnsafeContinuation<Void, Never>] = []
    private var tick: Scheduled<Void>?
    private var ticksFast = false
    var connectFault: APNsError?
    /// Whether the fault is one that another attempt will meet too.
    var isConnectFaultLasting = false
    var lastReplacement: Moment?
    private(set) var isShutDown = false
    private var isInTurn = false

    init(
        loop: any EventLoop, options: Options, time: APNsTimeSource, opener: ConnectionOpener,
        tokens: ProviderTokenSource?, metrics: PoolMetrics, logger: Logger
    ) {
        self.loop = loop
        self.options = options
        queueLimit = options.queueLimit
        self.time = time
        self.opener = opener
        self.tokens = tokens
        self.metrics = metrics
        self.logger = logger
        machine = PoolMachine(options: options.pool)
    }

    // MARK: From any thread

    /// Takes a request.
    /// - Returns: false when it was refused, and the completion was told.
    func submit(_ submission: Submission) -> Bool {
        enum Verdict {
            case taken(wakes: Bool)
            case full
            case shutDown
        }
        let verdict = inbox.withLock { inbox -> Verdict in
            guard !inbox.isShutDown else { return .shutDown }
            guard inbox.outstanding < queueLimit else { return .full }
            inbox.outstanding += 1
            inbox.submissions.append(submission)
            defer { inbox.isWakePending = true }
            return .taken(wakes: !inbox.isWakePending)
        }
        switch verdict {
        case .taken(let wakes):
            if wakes { wake() }
            return true
        case .full:
            Self.finish(
                submission.completion,
                .failure(
                    APNsError(
                        .queueFull,
                        "\(queueLimit) pushes wait already; send slower, or send many tokens in one call.")))
        case .shutDown:
            Self.finish(submission.completion, .failure(Self.shutDownError))
        }
        return false
    }

    /// Takes many requests of one batch, which bounds itself.
    func submit(_ submissions: [Submission]) {
        let (isTaken, wakes) = inbox.withLock { inbox -> (Bool, Bool) in
            guard !inbox.isShutDown else { return (false, false) }
            inbox.submissions.append(contentsOf: submissions)
            defer { inbox.isWakePending = true }
            return (true, !inbox.isWakePending)
        }
        guard isTaken else {
            for submission in submissions { Self.finish(submission.completion, .failure(Self.shutDownError)) }
            return
        }
        if wakes { wake() }
    }

    /// Takes a request back; its completion is told.
    func cancel(_ ticket: CancellationTicket) {
        let wakes = inbox.withLock { inbox -> Bool in
            inbox.cancellations.append(ticket)
            defer { inbox.isWakePending = true }
            return !inbox.isWakePending
        }
        if wakes { wake() }
    }

    func command(_ command: Command) {
        let wakes = inbox.withLock { inbox -> Bool in
            if case .shutDown = command { inbox.isShutDown = true }
            inbox.commands.append(command)
            defer { inbox.isWakePending = true }
            return !inbox.isWakePending
        }
        if wakes { wake() }
    }

    private func wake() { loop.execute { self.emptyInbox() } }

    static func finish(_ completion: Completion, _ result: SubmissionResult) {
        switch completion {
        case .single(let continuation): continuation.resume(returning: result)
        case .batch(let box, let index): box.finished([(index, result)])
        }
    }

    static let cancelledError = APNsError(.cancelled, "The task that sent was cancelled.")
    static let shutDownError = APNsError(.shutDown, "The client was shut down.")

    // MARK: A turn

    private func emptyInbox() {
        let (submissions, cancellations, commands) = inbox.withLock { inbox in
            defer {
                inbox.submissions = []
                inbox.cancellations = []
                inbox.commands = []
                inbox.isWakePending = false
            }
            return (inbox.submissions, inbox.cancellations, inbox.commands)
        }
        if !submissions.isEmpty {
            let now = time.now()
            for submission in submissions { take(submission, now) }
        }
        for ticket in cancellations {
            if let push = ticket.push { giveUp(push, Self.cancelledError) }
        }
        for command in commands { obey(command) }
        endTurn()
        if !ticksFast, pendingCount > 0 || !links.isEmpty { scheduleTick() }
    }

    private func take(_ submission: Submission, _ now: Moment) {
        let slot: UInt32
        if let free = freeSlots.popLast() {
            slot = free
        } else {
            slot = UInt32(slots.count)
            slots.append(nil)
            generations.append(0)
        }
        slots[Int(slot)] = Pending(submission: submission, beganAt: now, deadline: now + submission.timeout)
        pendingCount += 1
        let push = PushID(slot: slot, generation: generations[Int(slot)])
        submission.ticket?.taken(as: push)
        machine.enqueued(push)
    }

    /// Takes a push from wherever it is, and answers with the error.
    func giveUp(_ push: PushID, _ error: APNsError, countsAsTimeout: Bool = false) {
        let slot = Int(push.slot)
        guard holds(push), let place = slots[slot]?.place else { return }
        var error = error
        switch place {
        case .queued: machine.removed(push)
        case .delayed: break
        case .stream(let link, let stream):
            if countsAsTimeout {
                error.mayHaveBeenProcessed = link.machine.timedOut(stream)
            } else {
                // What is no longer there has an event that was not read yet: then nobody knows.
                error.mayHaveBeenProcessed = link.machine.streams[stream]?.isWhole ?? true
                link.machine.cancelled(stream)
            }
            touch(link)
        }
        if slots[slot]?.lostCount ?? 0 > 0 { error.mayHaveBeenProcessed = true }
        finish(push, .failure(error))
    }

    private func obey(_ command: Command) {
        switch command {
        case .warmUp(let ticket, let continuation):
            guard !ticket.isWithdrawn else { return continuation.resume(returning: .failure(Self.cancelledError)) }
            machine.warmUp()
            warmUps.append((ticket, continuation))
        case .withdrawWarmUp(let ticket):
            guard let index = warmUps.firstIndex(where: { $0.ticket === ticket }) else { return }
            warmUps.remove(at: index).continuation.resume(returning: .failure(Self.cancelledError))
        case .credentials(let opener, let tokens):
            self.opener = opener
            self.tokens = tokens
            options.connection.startsWithOneStream = tokens != nil
            connectFault = nil
            machine.credentialsChanged()
        case .withdraw(let box):
            for slot in slots.indices {
                guard case .batch(let own, _)? = slots[slot]?.submission.completion, own === box else { continue }
                giveUp(PushID(slot: UInt32(slot), generation: generations[slot]), Self.cancelledError)
            }
        case .shutDown(let drains, let continuation):
            isShutDown = true
            if let continuation { closings.append(continuation) }
            if drains { settleDelayed() } else { abandonAll() }
        }
    }

    /// What would be sent again later has its refusal for an answer.
    private func settleDelayed() {
        for slot in slots.indices {
            guard case .delayed? = slots[slot]?.place, let refusal = slots[slot]?.refusal else { continue }
            finish(PushID(slot: UInt32(slot), generation: generations[slot]), .success(refusal))
        }
    }

    private func abandonAll() {
        for slot in slots.indices where slots[slot] != nil {
            giveUp(PushID(slot: UInt32(slot), generation: generations[slot]), Self.shutDownError)
        }
        machine.shutDown()
        for link in links { link.machine.retire("The client is shut down.") }
    }

    /// Whether the push is not over.
    func holds(_ push: PushID) -> Bool {
        generations[Int(push.slot)] == push.generation && slots[Int(push.slot)] != nil
    }

    func finish(_ push: PushID, _ result: SubmissionResult) {
        let slot = Int(push.slot)
        guard holds(push), let began = slots[slot]?.beganAt, let completion = slots[slot]?.submission.completion else {
            return
        }
        slots[slot] = nil
        generations[slot] &+= 1
        freeSlots.append(push.slot)
        pendingCount -= 1
        metrics.finished(result, time.now() - began)
        finished.append((completion, result))
    }

    /// Lets a push wait before it is queued again.
    func postpone(_ push: PushID, until: Moment) {
        slots[Int(push.slot)]?.place = .delayed
        delayed.append((push, until))
    }

    private func queueDelayed(_ now: Moment) {
        guard !delayed.isEmpty else { return }
        delayed.removeAll { push, until in
            guard holds(push) else { return true }
            guard until <= now else { return false }
            slots[Int(push.slot)]?.place = .queued
            machine.enqueued(push)
            return true
        }
    }

    func touch(_ link: Link) { link.isTouched = true }

    /// Assigns, writes and answers.
    func endTurn() {
        loop.assertInEventLoop()
        guard !isInTurn else { return }
        isInTurn = true
        defer { isInTurn = false }
        let now = time.now()
        repeat {
            for link in links where link.isTouched { digest(link, now) }
            if !returned.isEmpty {
                machine.returned(returned)
                returned.removeAll(keepingCapacity: true)
            }
            failWhatCannotBeSent(now)
            machine.timePassed(now)
            for action in machine.takeActions() { perform(action, now) }
            assign(now)
            // What waits now is what nothing had room for.
            machine.noteFullness(now)
        } while links.contains { $0.isTouched && !$0.machine.events.isEmpty }
        for link in links where link.isTouched { write(link, now) }
        links.removeAll { $0.isFinished }
        answerWaiting()
        // Writing can find out that a socket is closed, and what waited on it is to be told.
        if links.contains(where: { $0.isTouched }) { loop.execute { self.endTurn() } }
        if isShutDown, pendingCount == 0 { closeDown() }
    }

    private func assign(_ now: Moment) {
        guard machine.queued > 0 else { return }
        var token: ProviderToken?
        if let tokens {
            do throws(APNsError) {
                token = try tokens.current(now)
            } catch {
                for push in machine.takeQueue() { finish(push, .failure(error)) }
                return
            }
        }
        while let (push, id) = machine.nextAssignment() {
            guard let link = links.first(where: { $0.id == id }), holds(push) else { continue }
            send(push, on: link, token)
        }
    }

    private func send(_ push: PushID, on link: Link, _ token: ProviderToken?) {
        let slot = Int(push.slot)
        guard let submission = slots[slot]?.submission else { return }
        let stream = link.machine.send(push, submission.head, token, path: submission.path, body: submission.body)
        slots[slot]?.place = .stream(link, stream)
        slots[slot]?.token = token
        link.isTouched = true
        // The window counts as well as the streams.
        machine.assigned(link.id, free: link.channel?.isWritable == false ? 0 : link.machine.freeStreams)
    }

    private func write(_ link: Link, _ now: Moment) {
        link.isTouched = false
        if let output = link.machine.takeOutput() { link.channel?.writeAndFlush(output, promise: nil) }
        guard link.machine.events.isEmpty else { return touch(link) }
        if link.machine.phase == .ended {
            link.isFinished = true
            link.channel?.close(promise: nil)
            // What waits is not to wait for the next tick.
            loop.execute { self.endTurn() }
        } else {
            report(link, now)
        }
    }

    func report(_ link: Link, _ now: Moment) {
        machine.changed(
            link.id, free: link.channel?.isWritable == false ? 0 : link.machine.freeStreams,
            inFlight: link.machine.streams.count,
            isProven: link.machine.isProven || !link.machine.options.startsWithOneStream,
            hasAnswered: link.hasAnswered, now: now)
        if link.hasAnswered, !link.wasOfUse {
            link.wasOfUse = true
            connectFault = nil
            isConnectFaultLasting = false
        }
    }

    /// Wakes those whose answers came: once for all of a batch.
    private func answerWaiting() {
        if !finished.isEmpty {
            var singles = 0
            var box: BatchBox?
            var results: [(Int, SubmissionResult)] = []
            for (completion, result) in finished {
                switch completion {
                case .single: singles += 1
                case .batch(let own, let index):
                    if let box, box !== own {
                        box.finished(results)
                        results = []
                    }
                    box = own
                    results.append((index, result))
                }
            }
            box?.finished(results)
            if singles > 0 { resumeSingles(singles) }
            finished.removeAll(keepingCapacity: true)
        }
        guard !warmUps.isEmpty else { return }
        let open = machine.connections.count { $0.phase == .open }
        if open >= options.pool.minimum || isShutDown {
            for (_, waiting) in warmUps {
                waiting.resume(returning: isShutDown ? .failure(Self.shutDownError) : .success(()))
            }
            warmUps = []
        } else if let connectFault {
            for (_, waiting) in warmUps { waiting.resume(returning: .failure(connectFault)) }
            warmUps = []
        }
    }

    private func resumeSingles(_ count: Int) {
        // First, so that whoever is woken finds the room.
        inbox.withLock { $0.outstanding -= count }
        for case (.single(let continuation), let result) in finished { continuation.resume(returning: result) }
    }

    private func closeDown() {
        machine.shutDown()
        _ = machine.takeActions()
        for link in links {
            link.machine.retire("The client is shut down.")
            if let output = link.machine.takeOutput() { link.channel?.writeAndFlush(output, promise: nil) }
            (link.channel ?? link.socket)?.close(promise: nil)
        }
        links = []
        metrics.gauge(queued: 0, inFlight: 0, connections: 0)
        tick?.cancel()
        for closing in closings { closing.resume() }
        closings = []
    }

    // MARK: Time

    private func scheduleTick() {
        tick?.cancel()
        guard !isShutDown || pendingCount > 0 else { return }
        ticksFast = pendingCount > 0 || links.contains { $0.channel == nil } || machine.isWaitingToConnect
        tick = loop.scheduleTask(in: ticksFast ? .milliseconds(20) : .seconds(1)) { self.ticked() }
    }

    private func ticked() {
        let now = time.now()
        for slot in slots.indices {
            guard let deadline = slots[slot]?.deadline, deadline <= now, let pending = slots[slot] else { continue }
            giveUp(
                PushID(slot: UInt32(slot), generation: generations[slot]), timeoutError(of: pending), countsAsTimeout: true)
        }
        queueDelayed(now)
        for link in links where link.channel != nil {
            link.machine.timePassed(now)
            touch(link)
        }
        expireAttempts(now)
        endTurn()
        metrics.gauge(
            queued: machine.queued, inFlight: pendingCount - machine.queued - delayed.count, connections: links.count)
        ticksFast = false
        if pendingCount > 0 || !links.isEmpty || machine.isWaitingToConnect { scheduleTick() }
    }
}
