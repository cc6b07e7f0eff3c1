import Logging
import NIOCore

/// Runs the machines of one host's connections on one event loop.
///
/// Tasks add requests to the inbox, from any thread. The loop is woken once for all requests that arrive together. All other
/// state is used only on the loop. A turn starts with received bytes, requests from the inbox, or a tick, which are the
/// inputs of the machines. At the end of a turn, the pool assigns waiting pushes, writes once for each connection, and
/// resumes the tasks whose responses arrived.
///
/// `@unchecked Sendable`: every stored variable is read and written only on `loop`, which each turn asserts. All other
/// properties are immutable.
final class ConnectionPool: @unchecked Sendable {
    struct Options: Sendable {
        var pool: PoolMachine.Options
        var connection: ConnectionMachine.Options
        var queueLimit: Int
        var policy: APNsRetryPolicy
    }

    private typealias WarmUp = (ticket: WarmUpTicket, continuation: WarmUpTicket.Continuation, failuresBefore: Int)

    let loop: any EventLoop
    let time: APNsTimeSource
    let metrics: PoolMetrics
    let logger: Logger
    private let inbox: PoolInbox
    private let queueLimit: Int

    private(set) var options: Options
    var opener: ConnectionOpener
    var tokens: ProviderTokens?
    /// How often the push credentials were replaced.
    private(set) var credentialsEpoch = 0
    var machine: PoolMachine
    var links: [Link] = []
    var pushes = PendingPushes()
    /// Pushes that were returned in this turn.
    var returned: [PushID] = []
    /// Why the last attempt to connect failed; nil after a response on a connection.
    var connectFailure: ConnectFailure?
    /// The number of failed attempts to connect.
    var failedAttempts = 0
    var lastReplacement: Moment?
    var freshness = FreshnessLedger()
    var tokenFreshness = FreshnessLedger()
    var refusals = SharedRefusals()
    private(set) var isShutDown = false
    private var finished: [Submission] = []
    private var warmUps: [WarmUp] = []
    private var closings: [UnsafeContinuation<Void, Never>] = []
    private var tick: Scheduled<Void>?
    private var ticksFast = false
    private var isInTurn = false

    init(
        loop: any EventLoop, options: Options, time: APNsTimeSource, opener: ConnectionOpener,
        tokens: ProviderTokens?, metrics: PoolMetrics, logger: Logger
    ) {
        self.loop = loop
        self.options = options
        queueLimit = options.queueLimit
        inbox = PoolInbox(limit: options.queueLimit)
        self.time = time
        self.opener = opener
        self.tokens = tokens
        self.metrics = metrics
        self.logger = logger
        machine = PoolMachine(options: options.pool)
    }

    static let cancelledError = APNsError(.cancelled, "The sending task was cancelled.")
    static let shutDownError = APNsError(.shutDown, "The client was shut down.")

    // MARK: Calls from any thread

    /// Accepts a request.
    /// - Returns: False if the request was rejected. Its waiter was resumed with an error.
    func submit(_ submission: Submission) -> Bool {
        switch inbox.submit(submission) {
        case .taken(let wakes):
            if wakes { wake() }
            return true
        case .full:
            let sentence = "\(queueLimit) pushes are already waiting; send more slowly, or send many tokens in one call."
            submission.end(.failure(APNsError(.queueFull, sentence)))
        case .shutDown: submission.end(.failure(Self.shutDownError))
        }
        return false
    }

    /// Accepts the requests of one batch.
    func submit(_ submissions: [Submission]) {
        if case .taken(let wakes) = inbox.submit(submissions) {
            if wakes { wake() }
        } else {
            for submission in submissions { submission.end(.failure(Self.shutDownError)) }
        }
    }

    /// Withdraws a request. Its waiter is resumed with an error.
    func cancel(_ submission: Submission) { if inbox.cancel(submission) { wake() } }

    func command(_ command: PoolInbox.Command) { if inbox.command(command) { wake() } }

    private func wake() { loop.execute { self.emptyInbox() } }

    // MARK: Pushes

    private func emptyInbox() {
        digestTouched(time.now())
        let contents = inbox.takeAll()
        if !contents.submissions.isEmpty {
            let now = time.now()
            for submission in contents.submissions {
                machine.enqueued(pushes.add(submission, now))
            }
        }
        for submission in contents.cancellations {
            if let push = submission.push { giveUp(push, Self.cancelledError) }
        }
        for command in contents.commands { obey(command) }
        endTurn()
        if !ticksFast, pushes.count > 0 || !links.isEmpty { scheduleTick() }
    }

    private func obey(_ command: PoolInbox.Command) {
        switch command {
        case .warmUp(let ticket, let continuation):
            guard !ticket.isWithdrawn else { return continuation.resume(returning: .failure(Self.cancelledError)) }
            machine.warmUp()
            warmUps.append((ticket, continuation, failedAttempts))
        case .withdrawWarmUp(let ticket):
            guard let index = warmUps.firstIndex(where: { $0.ticket === ticket }) else { return }
            warmUps.remove(at: index).continuation.resume(returning: .failure(Self.cancelledError))
        case .credentials(let opener, let tokens):
            self.opener = opener
            self.tokens = tokens
            credentialsEpoch += 1
            options.connection.startsWithOneStream = tokens != nil
            connectFailure = nil
            machine.credentialsChanged()
        case .withdraw(let box):
            let ofBatch = pushes.pushes {
                if case .batch(let own) = $0.waiter { own === box } else { false }
            }
            for push in ofBatch { giveUp(push, Self.cancelledError) }
        case .shutDown(let drains, let continuation):
            isShutDown = true
            if let continuation { closings.append(continuation) }
            if drains { finishDelayed() } else { abandonAll() }
        }
    }

    /// Finishes the pushes that wait to be sent again after a rejection. The rejection is their result.
    private func finishDelayed() {
        for push in pushes.pushes(where: { if case .delayed = $0.place { $0.refusal != nil } else { false } }) {
            if let refusal = pushes[push]?.refusal { finish(push, .success(refusal)) }
        }
    }

    private func abandonAll() {
        for push in pushes.pushes(where: { _ in true }) { giveUp(push, Self.shutDownError) }
        machine.shutDown()
        for link in links { link.machine.retire("The client is shut down.") }
    }

    /// Removes a push from its present place, and finishes it with the error.
    func giveUp(_ push: PushID, _ error: APNsError, countsAsTimeout: Bool = false) {
        guard pushes.holds(push), let place = pushes[push]?.place else { return }
        var error = error
        switch place {
        case .queued: machine.removed(push)
        case .delayed: break
        case .stream(let link, let stream):
            let end = countsAsTimeout ? link.machine.timedOut(stream) : link.machine.cancelled(stream)
            touch(link)
            switch end {
            case .answered(let untimed):
                let answer = timed(untimed)
                return finish(push, pushes[push]?.rule.result(answer) ?? .success(answer.read()))
            case .unanswered(let mayHaveBeenProcessed): error.mayHaveBeenProcessed = mayHaveBeenProcessed
            }
        }
        fail(push, error)
    }

    /// Finishes a push with an error, which reports whether the push was sent before and lost.
    func fail(_ push: PushID, _ error: APNsError) {
        var error = error
        if pushes[push]?.lostCount ?? 0 > 0 { error.mayHaveBeenProcessed = true }
        finish(push, .failure(error))
    }

    func finish(_ push: PushID, _ result: SubmissionResult) {
        guard let submission = pushes.remove(push) else { return }
        metrics.finished(result, time.now() - submission.beganAt)
        submission.finish(result)
        finished.append(submission)
    }

    func touch(_ link: Link) { link.isTouched = true }

    // MARK: Turns

    /// Assigns pushes, writes, and resumes the waiters.
    func endTurn() {
        loop.assertInEventLoop()
        guard !isInTurn else { return }
        isInTurn = true
        defer { isInTurn = false }
        let now = time.now()
        repeat {
            digestTouched(now)
            failUnsendable(now)
            machine.timePassed(now)
            for action in machine.takeActions() { perform(action, now) }
            assign(now)
            // The pushes that wait now have found no free stream.
            machine.noteFullness(now)
        } while links.contains { $0.isTouched && !$0.machine.events.isEmpty }
        for link in links where link.isTouched { write(link, now) }
        links.removeAll { $0.isFinished }
        answer()
        answerWarmUps()
        // A write can detect that a socket is closed. The next turn finishes the pushes that waited for it.
        if links.contains(where: { $0.isTouched }) { loop.execute { self.endTurn() } }
        if isShutDown, pushes.count == 0 { closeDown() }
    }

    /// Processes all received responses, before any push is abandoned.
    private func digestTouched(_ now: Moment) {
        for link in links where link.isTouched { digest(link, now) }
        if !returned.isEmpty {
            machine.returned(returned)
            returned.removeAll(keepingCapacity: true)
        }
        endRefused()
    }

    private func assign(_ now: Moment) {
        guard machine.queued > 0 else { return }
        var token: ProviderToken?
        if let tokens {
            do throws(APNsError) {
                token = try tokens.current(now)
            } catch {
                for push in machine.takeQueue() { fail(push, error) }
                return
            }
        }
        if let token { retireLinks(thatMayNotCarry: token, now) }
        while let (push, id) = machine.nextAssignment() {
            guard let link = links.first(where: { $0.id == id }), pushes.holds(push) else { continue }
            send(push, on: link, token, now)
        }
    }

    private func send(_ push: PushID, on link: Link, _ token: ProviderToken?, _ now: Moment) {
        guard let submission = pushes[push] else { return }
        let stream = link.machine.send(push, submission.head, token, path: submission.path, body: submission.body)
        submission.place = .stream(link, stream)
        submission.token = token
        submission.wasSent = true
        if let token { link.tokens.carried(token, now) }
        if link.firstPushAt == nil { link.firstPushAt = now }
        link.isTouched = true
        // The flow-control window limits the room as well as the streams.
        machine.assigned(link.id, free: link.room)
    }

    private func write(_ link: Link, _ now: Moment) {
        link.isTouched = false
        flush(link, now)
        guard link.machine.events.isEmpty else { return touch(link) }
        if link.machine.phase == .ended {
            link.isFinished = true
            link.channel?.close(promise: nil)
            // The waiting pushes must not wait for the next tick.
            loop.execute { self.endTurn() }
        } else {
            report(link, now)
        }
    }

    /// Writes as much as the socket accepts. The rest stays in the machine, which limits it.
    private func flush(_ link: Link, _ now: Moment) {
        guard let channel = link.channel else { return }
        if channel.isWritable, let output = link.machine.takeOutput() { channel.writeAndFlush(output, promise: nil) }
        if channel.isWritable { link.machine.outputResumed() } else { link.machine.outputPaused(now) }
    }

    func report(_ link: Link, _ now: Moment) {
        machine.changed(
            link.id, free: link.room, inFlight: link.machine.streams.count,
            isProven: link.machine.isProven || !link.machine.options.startsWithOneStream,
            hasAnswered: link.hasAnswered, now: now)
        if link.hasAnswered, !link.wasOfUse {
            link.wasOfUse = true
            connectFailure = nil
        }
    }

    /// Resumes the waiters of finished requests: once for all requests of a batch.
    private func answer() {
        guard !finished.isEmpty else { return }
        var singles = 0
        var box: BatchBox?
        var ofBox: [Submission] = []
        for submission in finished {
            guard case .batch(let own) = submission.waiter else {
                singles += 1
                continue
            }
            if let box, box !== own {
                box.finished(ofBox)
                ofBox = []
            }
            box = own
            ofBox.append(submission)
        }
        box?.finished(ofBox)
        if singles > 0 {
            // The places are released first, so that a resumed task finds them free.
            inbox.singlesAreOver(singles)
            for submission in finished {
                if case .single = submission.waiter { submission.wake() }
            }
        }
        finished.removeAll(keepingCapacity: true)
    }

    private func answerWarmUps() {
        guard !warmUps.isEmpty else { return }
        let isOpen = machine.connections.count { $0.phase == .open } >= options.pool.minimum
        warmUps.removeAll { _, continuation, failuresBefore in
            if isShutDown {
                continuation.resume(returning: .failure(Self.shutDownError))
            } else if isOpen {
                continuation.resume(returning: .success(()))
            } else if let connectFailure, failedAttempts > failuresBefore {
                continuation.resume(returning: .failure(connectFailure.error))
            } else {
                return false
            }
            return true
        }
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

    // MARK: Ticks

    private func scheduleTick() {
        tick?.cancel()
        guard !isShutDown || pushes.count > 0 else { return }
        ticksFast = pushes.count > 0 || links.contains { $0.channel == nil } || machine.isWaitingToConnect
        tick = loop.scheduleTask(in: ticksFast ? .milliseconds(20) : .seconds(1)) { self.ticked() }
    }

    private func ticked() {
        let now = time.now()
        digestTouched(now)
        for push in pushes.expired(now) { giveUp(push, timeoutError(of: push), countsAsTimeout: true) }
        for push in pushes.takeDue(now) { machine.enqueued(push) }
        for link in links where link.channel != nil {
            link.machine.timePassed(now)
            touch(link)
        }
        expireAttempts(now)
        endTurn()
        metrics.gauge(
            queued: machine.queued, inFlight: pushes.count - machine.queued - pushes.delayedCount,
            connections: links.count)
        ticksFast = false
        if pushes.count > 0 || !links.isEmpty || machine.isWaitingToConnect { scheduleTick() }
    }
}
