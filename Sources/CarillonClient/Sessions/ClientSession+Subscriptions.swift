import CarillonWire

extension ClientSession {
    /// Asks something on the live session. What is lost with it is asked again by whoever wants it.
    func asked(_ request: ClientFrame.Request) -> [SessionAction] { phase == .live ? [.send(.request(request))] : [] }

    /// Subscriptions are made for whom the device belongs to, once that is known.
    mutating func resumeSubscriptions() -> [SessionAction] {
        guard phase == .live, user == nil else { return [] }
        defer { mayHaveLostSubscriptions = false }
        return [.tellSubscriptions(.connected(version: liveVersion, isRestored: mayHaveLostSubscriptions))]
            + (takesServices ? [.openAsks] : [])
    }

    /// There is to be a device: the app has subscriptions for it.
    mutating func deviceWanted() -> [SessionAction] {
        guard awaitsDemand else { return [] }
        awaitsDemand = false
        return phase == .resting ? goOn() : []
    }

    /// - Parameters:
    ///   - answered: What the server was told of it before, when it came before.
    ///   - starts: The starts of the app's code for it that ended with the process.
    func firedReceived(_ frame: FiredFrame, answered: Int?, starts: Int) -> [SessionAction] {
        if let answered { return [.send(MessageAnswer(id: frame.version, code: answered).frame)] }
        guard let firing = SubscriptionFiring(frame) else {
            // One of a later version.
            let answer = MessageAnswer(id: frame.version, code: ResultCode.other)
            return [.send(answer.frame)]
        }
        guard !HandlerStarts.isCrashing(starts) else {
            let answer = MessageAnswer(id: firing.id, code: ResultCode.handlerFailed)
            return [
                .write(.saveAnswer(answer)), .write(.saveFiringStarts(id: firing.id, 0)), .send(answer.frame),
                .noteCrashingFiring(firing, starts: starts),
            ]
        }
        return [.tellSubscriptions(.fired(firing, starts: starts))]
    }

    /// The app is done with one.
    func firingHandled(_ firing: SubscriptionFiring) -> [SessionAction] {
        let answer = MessageAnswer(id: firing.id, code: ResultCode.delivered)
        return [.write(.saveAnswer(answer)), .write(.saveFiringStarts(id: firing.id, 0))]
            + (phase == .live ? [.send(answer.frame)] : [])
    }
}
