import CarillonBasics
import Logging

/// The results of pushes.
extension ConnectionPool {
    /// Processes the events of a connection's machine.
    func digest(_ link: Link, _ now: Moment) {
        for event in link.machine.takeEvents() {
            switch event {
            case .opened:
                machine.opened(link.id)
                logger.debug("connected", metadata: ["connection": "\(link.id.number)", "host": "\(opener.address.host)"])
            case .answered(let push, let answer):
                link.hasAnswered = true
                answered(push, timed(answer), link, now)
            case .returned(let push, let isRefused): returned(push, isRefused: isRefused, now)
            case .lost(let push, let mayHaveBeenProcessed, let detail):
                lost(push, mayHaveBeenProcessed: mayHaveBeenProcessed, detail)
            case .draining(let fault, let reason):
                link.isDraining = true
                machine.draining(link.id, now, isRetired: fault.kind == .retired)
                metrics.connectionRetired(fault)
                logger.info(
                    "connection accepts no more pushes",
                    metadata: [
                        "connection": "\(link.id.number)", "why": "\(fault.detail)", "reason": "\(reason?.rawValue ?? "-")",
                    ])
            case .ended(let fault):
                logger.debug("connection ended", metadata: ["connection": "\(link.id.number)", "why": "\(fault.detail)"])
                // The state is reported now, so that no connection is opened before the failure is counted.
                report(link, now)
                machine.ended(link.id, now, isRetired: fault.kind == .retired, random: .random(in: 0...1))
                if !link.isDraining { metrics.connectionRetired(fault) }
                if !link.hasAnswered, fault.kind != .retired {
                    noteConnectFailure(link.failure ?? ConnectFailure(fault, to: opener))
                }
            }
        }
        report(link, now)
    }

    /// Returns the response with the time of the client's wall clock, if the time is needed to decode the response.
    func timed(_ answer: RawAnswer) -> RawAnswer {
        guard answer.retryAfter != nil else { return answer }
        var answer = answer
        // The time is limited to the years 1970 to 10000, so that milliseconds cannot overflow.
        answer.wallSeconds = max(0, min(time.wallSeconds(), 253_402_300_800))
        return answer
    }

    private func answered(_ push: PushID, _ answer: RawAnswer, _ link: Link, _ now: Moment) {
        guard pushes.holds(push) else { return }
        if answer.isSuccess {
            noteToken(of: push, answer, link)
            return succeeded(push, answer)
        }
        pushes[push]?.answers += 1
        guard let pending = pushes[push] else { return }
        let answer = answer.read()
        noteToken(of: push, answer, link)
        let rejection = answer.rejection ?? APNsRejection(answer)
        if isSentAgain(push, pending, after: rejection, on: link, now) { return }
        var shared: SharedRefusal?
        if !isTakenElsewhere(rejection, of: pending, on: link, now) {
            shared = sharedRefusal(rejection, of: pending, on: link, now)
            replaceConnections(for: rejection, now)
        }
        let attempt = APNsRetryPolicy.Attempt(number: pending.answers, rejection: rejection)
        if !isShutDown, let delay = options.policy.delay(attempt), pending.waited + delay <= options.policy.patience {
            let jittered = delay + delay / 10 * Double.random(in: 0...1)
            pushes.postpone(push, until: now + jittered)
            pushes[push]?.waited += delay
            pushes[push]?.deadline = pending.deadline + jittered
            pushes[push]?.refusal = answer
            metrics.retried()
            return
        }
        switch shared {
        case .credentials: refusals.refused(answer, topic: nil)
        case .topic(let topic): refusals.refused(answer, topic: topic)
        case nil: break
        }
        finish(push, .success(answer))
    }

    /// Records the token of a push if the response shows that APNs accepts the token.
    private func noteToken(of push: PushID, _ answer: RawAnswer, _ link: Link) {
        guard let token = pushes[push]?.token, answer.showsThatCredentialsAreTaken else { return }
        link.tokens.wasTaken(token)
    }

    /// Without an ID of APNs, the outcome of the push is unknown.
    private func succeeded(_ push: PushID, _ answer: RawAnswer) {
        let result = pushes[push]?.rule.result(answer) ?? .success(answer)
        guard case .failure(let error) = result else { return finish(push, result) }
        lost(push, error)
    }

    private func returned(_ push: PushID, isRefused: Bool, _ now: Moment) {
        guard pushes.holds(push) else { return }
        if isRefused { pushes[push]?.returns += 1 }
        metrics.returned()
        let returns = pushes[push]?.returns ?? 0
        // A push that is refused again and again is delayed. For a server that ends its connections, the schedule delays new
        // connections.
        guard !isRefused || returns <= 8 else {
            return pushes.postpone(
                push,
                until: now
                    + BackOff<Duration>(first: .milliseconds(25), longest: .milliseconds(3200)).delay(doublings: returns - 8)
            )
        }
        pushes[push]?.place = .queued
        returned.append(push)
    }

    private func lost(_ push: PushID, mayHaveBeenProcessed: Bool, _ detail: String) {
        guard pushes.holds(push), let pending = pushes[push] else { return }
        if !mayHaveBeenProcessed, pending.resets < 3 {
            pushes[push]?.resets += 1
            return again(push)
        }
        let error = APNsError(.connectionLost, detail, mayHaveBeenProcessed: mayHaveBeenProcessed)
        if mayHaveBeenProcessed { lost(push, error) } else { fail(push, error) }
    }

    /// APNs may have processed the push. The policy decides whether the push is sent again.
    private func lost(_ push: PushID, _ error: APNsError) {
        guard let pending = pushes[push], pending.isRepeatable, pending.lostCount < options.policy.resendsOfUnknownFate
        else { return fail(push, error) }
        pushes[push]?.lostCount += 1
        again(push)
    }

    func again(_ push: PushID) {
        pushes[push]?.place = .queued
        returned.append(push)
        metrics.retried()
    }

    /// Sends a push again, but only on a connection with a higher number.
    func again(_ push: PushID, after number: Int) {
        pushes[push]?.place = .queued
        machine.enqueued(push, after: number)
        metrics.retried()
    }
}
