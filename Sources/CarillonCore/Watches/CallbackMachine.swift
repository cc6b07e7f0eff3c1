import CarillonBasics

/// The attempts of one callback. They end when the callback is answered, or when both a day has passed since the end of the
/// channel and the callback was tried ``leastAttempts`` times. So a wall clock that is ahead, or a server that was stopped, does
/// not end them early.
package struct CallbackMachine: Equatable, Sendable {
    package enum Step: Equatable, Sendable {
        /// The backend needs no further call: it answered 2xx, or 410, which means that it does not want the callback.
        case done
        case retry(at: Timestamp)
        case givenUp
        /// The callback cannot be made: see ``CallResult/impossible(reason:)``.
        case lost
    }

    package private(set) var attempts: Int

    package init(attempts: Int = 0) { self.attempts = attempts }

    package static let patienceSeconds: Int64 = 86_400
    /// The number of attempts that are always made. A day has time for more.
    package static let leastAttempts = 20
    private static let backOffMilliseconds = BackOff<Int64>(first: 5000, longest: 3_600_000)

    /// - Parameter chance: A random number.
    package mutating func called(
        _ result: CallResult, endedAt: Timestamp, at now: Timestamp, chance: UInt64
    ) -> Step {
        switch result {
        case .answered(200..<300, _), .answered(410, _):
            return .done
        case .impossible:
            return .lost
        case .notMade:
            return .retry(at: now.adding(milliseconds: 1000 + Int64(chance % UInt64(Self.backOffMilliseconds.first))))
        case .answered, .failed:
            let delay = Self.backOffMilliseconds.delay(doublings: attempts)
            attempts += 1
            let scheduled = now.adding(milliseconds: delay * 3 / 4 + Int64(chance % UInt64(delay / 2 + 1)))
            let wanted = result.wait.map { now.adding(seconds: $0.components.seconds) }
            let next = wanted.map { max($0, scheduled) } ?? scheduled
            let isOver = next >= endedAt.adding(seconds: Self.patienceSeconds) && attempts >= Self.leastAttempts
            return isOver ? .givenUp : .retry(at: next)
        }
    }
}
