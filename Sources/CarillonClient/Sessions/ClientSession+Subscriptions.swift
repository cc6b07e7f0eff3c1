import CarillonWire

extension ClientSession {
    /// Sends a request on the live session. The caller repeats a request that is lost with the session.
    func requested(_ request: ClientFrame.Request) -> [SessionAction] { phase == .live ? [.send(.request(request))] : [] }

    /// Subscriptions are made for the user of the device, once the server has answered about the user.
    mutating func resumeSubscriptions() -> [SessionAction] {
        guard phase == .live, user.pending == nil else { return [] }
        defer { knownServer.mayHaveLostSubscriptions = false }
        let isRestored = knownServer.mayHaveLostSubscriptions
        return [.notifySubscriptions(.connected(version: connection.version, isRestored: isRestored))]
            + (connection.supportsServices ? [.openRequests] : [])
    }

    /// The app has subscriptions, and needs a device for them.
    mutating func deviceRequested() -> [SessionAction] {
        guard registration.awaitsDemand else { return [] }
        registration.awaitsDemand = false
        return phase == .resting ? proceed() : []
    }

    /// - Parameters:
    ///   - answered: The code that the server received for the firing before; nil for a new firing.
    ///   - starts: The starts of the app's code for the firing that ended with the process.
    func firedReceived(_ frame: FiredFrame, answered: Int?, starts: Int) -> [SessionAction] {
        if let answered { return [.send(MessageAnswer(id: frame.version, code: answered).frame)] }
        guard let firing = SubscriptionFiring(frame) else {
            // A later version of the server sent it.
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
        return [.notifySubscriptions(.fired(firing, starts: starts))]
    }

    /// The app finished handling a firing.
    func firingHandled(_ firing: SubscriptionFiring) -> [SessionAction] {
        let answer = MessageAnswer(id: firing.id, code: ResultCode.delivered)
        return [.write(.saveAnswer(answer)), .write(.saveFiringStarts(id: firing.id, 0))]
            + (phase == .live ? [.send(answer.frame)] : [])
    }
}
