import CarillonCore

/// The columns of the table `subscription` with the state of a machine.
extension SubscriptionMachine {
    static let columns = "policy, cool_down, status, subscription.status_at, subscription.revision, fired_at"

    init(_ columns: StatementColumns, from place: Int32, isPaused: Bool) {
        self.init(
            Policy(number: columns.integer(place), coolDownSeconds: columns.integer(place + 1)),
            columns.integer(place + 2) == Status.triggered.number ? .triggered : .subscribed,
            at: columns.timestamp(place + 3), revision: columns.integer(place + 4),
            lastFiredAt: columns.integerIfAny(place + 5).map(Timestamp.init(milliseconds:)), isPaused: isPaused)
    }
}

extension SubscriptionMachine.Status {
    var number: Int64 {
        switch self {
        case .subscribed: 0
        case .triggered: 1
        }
    }
}

extension SubscriptionMachine.Policy {
    var number: Int64 {
        switch self {
        case .once: 0
        case .everyCrossing: 1
        case .every: 2
        }
    }

    var coolDownSeconds: Int64 {
        if case .every(let seconds) = self { seconds } else { 0 }
    }

    init(number: Int64, coolDownSeconds: Int64) {
        switch number {
        case 0: self = .once
        case 1: self = .everyCrossing
        default: self = .every(coolDownSeconds: coolDownSeconds)
        }
    }
}
