import CarillonWire

/// The limits of the requests of one consumer that are kept.
package struct RequestLimits: Equatable, Sendable {
    /// The largest number of requests without a result.
    package var unfinished: Int
    /// The largest number of ids of requests that were cancelled before delivery.
    package var undelivered: Int

    package init(
        unfinished: Int = ServiceRequest.mostOfConsumer, undelivered: Int = ServiceRequest.undeliveredOfConsumer
    ) {
        self.unfinished = unfinished
        self.undelivered = undelivered
    }
}

/// The reason why all requests of a device and to the device end.
package enum RequestEndReason: CaseIterable, Sendable {
    case userChanged
    case deviceDeleted
    /// The device is not a backend device any more.
    case serverRemoved
}

/// Decides which steps of requests are valid, how requests end that are cancelled or whose devices change, and when finished
/// requests are removed.
///
/// The rules read nothing. They return the facts that they need (``questions(for:)``), receive the facts, and return the changes
/// of rows. The store reads and writes each kind of row for a whole batch, in one transaction.
package struct RequestRules: Sendable {
    private let limits: RequestLimits

    package init(limits: RequestLimits = .init()) { self.limits = limits }

    // MARK: Steps

    package func questions(for steps: [RequestStep]) -> RequestQuestions {
        var questions = RequestQuestions()
        for step in steps {
            switch step {
            case .made(let request, _):
                questions.candidates.insert(RequestQuestions.Candidate(request))
            case .received(let serial), .unwanted(let serial), .finished(let serial, _, _):
                questions.requests.insert(serial)
            }
        }
        return questions
    }

    /// Whether a single step fits the state of its request.
    package func counts(_ step: RequestStep, knowing facts: RequestFacts) -> Bool {
        RequestRuling(limits: limits, facts: facts).counts(step)
    }

    /// Decides steps one after the other. Returns for each whether it is valid.
    package func decide(
        _ steps: [RequestStep], knowing facts: RequestFacts
    ) -> (results: [Bool], changes: RequestChanges) {
        var ruling = RequestRuling(limits: limits, facts: facts)
        let results = steps.map { ruling.perform($0) }
        return (results, ruling.changes)
    }

    // MARK: Ends

    /// Finishes a request that was never delivered.
    ///
    /// - Parameter facts: The request, and the number of undelivered requests of its consumer.
    /// - Returns: Nil if there is no such request, or it was finished before.
    package func cancel(
        _ serial: RequestSerial, at now: Timestamp, knowing facts: RequestFacts
    ) -> RequestChanges? {
        guard let request = facts.requests[serial], request.state != .finished else { return nil }
        var changes = RequestChanges()
        let finish = RequestChanges.Finish(
            replyHash: nil, isUndelivered: true,
            forgottenAt: now.adding(seconds: ServiceRequest.undeliveredSeconds), notesServedTime: false)
        changes.changed[serial] = RequestChanges.Change(
            state: .finished, isUnwanted: request.isUnwanted, finish: finish)
        let excess = facts.undelivered[request.consumer, default: 0] + 1 - limits.undelivered
        if excess > 0 { changes.forgotten[request.consumer] = excess }
        return changes
    }

    /// Ends the requests of a device and the requests to the device.
    package func end(of device: DeviceSerial, because reason: RequestEndReason) -> RequestChanges {
        var changes = RequestChanges()
        switch reason {
        case .userChanged:
            changes.endings = [
                .abandon(of: device, dueAt: Self.atOnce), .fail(to: device, .userMismatch, dueAt: Self.atOnce),
            ]
        case .deviceDeleted, .serverRemoved:
            changes.endings = [.remove(of: device), .fail(to: device, .applicationNotFound, dueAt: Self.atOnce)]
        }
        return changes
    }

    /// A time before each deadline.
    private static let atOnce = Timestamp(milliseconds: 0)

    /// Returns the latest values of a finished request that is removed: the time from which it can be removed, and the counter
    /// when it was finished.
    package func cutoff(by retention: RetentionTime) -> RetentionCutoff {
        RetentionCutoff(
            wall: retention.now, served: retention.cutoff(afterSeconds: ServiceRequest.rememberedSeconds).served)
    }
}
