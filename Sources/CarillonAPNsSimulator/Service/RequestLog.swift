/// The newest requests, up to a limit, and the totals.
struct RequestLog: Sendable {
    typealias Request = APNsSimulator.ReceivedRequest

    let capacity: Int
    let recordsBodies: Bool
    private(set) var totals = APNsSimulator.Totals()
    private var ring: [Request] = []
    private var oldest = 0

    init(capacity: Int, recordsBodies: Bool) {
        self.capacity = capacity
        self.recordsBodies = recordsBodies
    }

    /// The recorded requests, the oldest first.
    var requests: [Request] { Array(ring[oldest...] + ring[..<oldest]) }

    mutating func faultHappened() { totals.faults += 1 }

    mutating func answered(_ answer: SimulatorAnswer, _ make: (_ number: Int) -> Request) {
        totals.requests += 1
        if answer.isAccepted {
            totals.accepted += 1
        } else if let reason = answer.reason {
            totals.rejected[reason, default: 0] += 1
        }
        guard capacity > 0 else { return }
        let request = make(totals.requests)
        if ring.count < capacity {
            ring.append(request)
        } else {
            ring[oldest] = request
            oldest = (oldest + 1) % capacity
        }
    }

    /// Removes the recorded requests. The totals are kept.
    mutating func removeAll() {
        ring = []
        oldest = 0
    }
}
