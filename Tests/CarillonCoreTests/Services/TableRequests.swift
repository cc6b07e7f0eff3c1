import CarillonCore

/// A store of requests that reads the facts that ``RequestRules`` request and writes their changes.
struct TableRequests {
    private let rules: RequestRules
    private(set) var rows: [RequestSerial: RequestRow] = [:]
    var users: [RequestPair: RequestUsers] = [:]
    var served: Int64 = 0

    init(unfinished: Int, undelivered: Int) {
        rules = RequestRules(limits: RequestLimits(unfinished: unfinished, undelivered: undelivered))
    }

    mutating func perform(_ steps: [RequestStep]) -> [Bool] {
        let facts = answers(to: rules.questions(for: steps))
        let (results, changes) = rules.decide(steps, knowing: facts)
        write(changes)
        return results
    }

    mutating func cancel(_ serial: RequestSerial, at now: Timestamp) -> Bool {
        var facts = RequestFacts()
        if let row = rows[serial] {
            let consumer = row.request.consumer
            facts.requests[serial] = row.request
            facts.undelivered[consumer] = rows.values.filter { $0.request.consumer == consumer && $0.isUndelivered }.count
        }
        guard let changes = rules.cancel(serial, at: now, knowing: facts) else { return false }
        write(changes)
        return true
    }

    mutating func end(_ device: DeviceSerial, because reason: RequestEndReason) {
        write(rules.end(of: device, because: reason))
    }

    mutating func forget(at now: Timestamp) -> Int {
        let cutoff = rules.cutoff(by: RetentionTime(now: now, served: served))
        let count = rows.count
        rows = rows.filter { _, row in
            row.request.state != .finished || row.dueAt > cutoff.wall || row.finishedServed > cutoff.served
        }
        return count - rows.count
    }

    private func answers(to questions: RequestQuestions) -> RequestFacts {
        var facts = RequestFacts()
        for serial in questions.requests { facts.requests[serial] = rows[serial]?.request }
        for candidate in questions.candidates {
            if rows.values.contains(where: { $0.request.id == candidate.id }) { facts.usedIDs.insert(candidate.id) }
            facts.users[candidate.pair] = users[candidate.pair]
            facts.unfinished[candidate.pair.consumer] =
                rows.values.filter { row in
                    row.request.consumer == candidate.pair.consumer && row.request.state != .finished
                        && !row.request.isAbandoned
                }.count
        }
        return facts
    }

    private mutating func write(_ changes: RequestChanges) {
        for request in changes.made { rows[request.serial] = RequestRow(request) }
        for (serial, change) in changes.changed { write(change, of: serial) }
        for ending in changes.endings { write(ending) }
        for (consumer, count) in changes.forgotten {
            let undelivered = rows.values.filter { $0.request.consumer == consumer && $0.isUndelivered }
                .sorted { ($0.dueAt, $0.request.serial.rawValue) < ($1.dueAt, $1.request.serial.rawValue) }
            for row in undelivered.prefix(count) { rows[row.request.serial] = nil }
        }
    }

    private mutating func write(_ change: RequestChanges.Change, of serial: RequestSerial) {
        guard var row = rows[serial] else { return }
        row.request.state = change.state
        row.request.isUnwanted = change.isUnwanted
        if let finish = change.finish {
            row.request.replyHash = finish.replyHash
            row.isUndelivered = finish.isUndelivered
            row.dueAt = finish.forgottenAt
            if finish.notesServedTime { row.finishedServed = served }
        }
        rows[serial] = row
    }

    private mutating func write(_ ending: RequestChanges.Ending) {
        for (serial, var row) in rows where row.request.state != .finished {
            switch ending {
            case .remove(let consumer):
                if row.request.consumer == consumer { rows[serial] = nil }
                continue
            case .abandon(let consumer, let dueAt):
                guard row.request.consumer == consumer else { continue }
                row.request.isAbandoned = true
                row.dueAt = dueAt
            case .fail(let provider, let fault, let dueAt):
                guard row.request.provider == provider else { continue }
                row.request.fault = fault
                row.dueAt = dueAt
            }
            rows[serial] = row
        }
    }
}
