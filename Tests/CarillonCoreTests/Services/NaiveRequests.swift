import CarillonCore
import CarillonWire

/// A request as a store keeps it.
struct RequestRow: Equatable {
    var request: ServiceRequest
    var dueAt: Timestamp
    var isUndelivered = false
    /// The counter of served seconds when the request was finished.
    var finishedServed: Int64 = 0

    init(_ request: ServiceRequest) {
        self.request = request
        dueAt = request.expiresAt
    }
}

/// The rules according to docs/services.md and docs/guarantees.md: one operation after the other, over all rows.
struct NaiveRequests {
    let mostUnfinished: Int
    let mostUndelivered: Int
    private(set) var rows: [RequestRow] = []
    var users: [RequestPair: RequestUsers] = [:]
    var served: Int64 = 0

    init(unfinished: Int, undelivered: Int) {
        mostUnfinished = unfinished
        mostUndelivered = undelivered
    }

    mutating func perform(_ step: RequestStep) -> Bool {
        guard case .made(let request, let between) = step else { return advance(step) }
        if rows.contains(where: { $0.request.id == request.id }) { return false }
        if users[RequestPair(consumer: request.consumer, provider: request.provider)] != between { return false }
        let open = rows.filter {
            $0.request.consumer == request.consumer && $0.request.state != .finished && !$0.request.isAbandoned
        }
        if open.count >= mostUnfinished { return false }
        rows.append(RequestRow(request))
        return true
    }

    private mutating func advance(_ step: RequestStep) -> Bool {
        guard let place = rows.firstIndex(where: { $0.request.serial == step.serial }) else { return false }
        var row = rows[place]
        if row.request.state == .finished { return false }
        let isEnding = row.request.isAbandoned || row.request.fault != nil
        switch step {
        case .made:
            return false
        case .received:
            if isEnding || row.request.state == .received { return false }
            row.request.state = .received
        case .unwanted:
            if isEnding || row.request.isUnwanted { return false }
            row.request.isUnwanted = true
        case .finished(_, let hash, let now):
            if isEnding, hash != nil { return false }
            row.request.state = .finished
            row.request.replyHash = hash
            row.dueAt = now.adding(seconds: 86_400)
            if row.request.expiresAt > row.dueAt { row.dueAt = row.request.expiresAt }
            row.finishedServed = served
        }
        rows[place] = row
        return true
    }

    mutating func cancel(_ serial: RequestSerial, at now: Timestamp) -> Bool {
        guard let place = rows.firstIndex(where: { $0.request.serial == serial && $0.request.state != .finished }) else {
            return false
        }
        rows[place].request.state = .finished
        rows[place].isUndelivered = true
        rows[place].dueAt = now.adding(seconds: 600)
        let consumer = rows[place].request.consumer
        let remembered = rows.filter { $0.isUndelivered && $0.request.consumer == consumer }
            .sorted { ($0.dueAt, $0.request.serial.rawValue) < ($1.dueAt, $1.request.serial.rawValue) }
        for row in remembered.dropLast(mostUndelivered) { rows.removeAll { $0.request.serial == row.request.serial } }
        return true
    }

    mutating func end(_ device: DeviceSerial, because reason: RequestEndReason) {
        if reason != .userChanged {
            rows.removeAll { $0.request.consumer == device && $0.request.state != .finished }
        }
        for place in rows.indices where rows[place].request.state != .finished {
            if rows[place].request.consumer == device {
                rows[place].request.isAbandoned = true
                rows[place].dueAt = Timestamp(milliseconds: 0)
            }
            if rows[place].request.provider == device {
                rows[place].request.fault = reason == .userChanged ? .userMismatch : .applicationNotFound
                rows[place].dueAt = Timestamp(milliseconds: 0)
            }
        }
    }

    /// Returns how many were forgotten.
    mutating func forget(at now: Timestamp) -> Int {
        let count = rows.count
        let passed = served
        rows.removeAll {
            // The counter in a row may be two minutes old.
            $0.request.state == .finished && $0.dueAt <= now && passed - $0.finishedServed >= 86_400 + 120
        }
        return count - rows.count
    }
}
