import NIOCore

/// One connection of a pool, on the pool's loop.
final class Link {
    let id: ConnectionID
    let beganAt: Moment
    /// The pool's number of the push credentials with which the connection was opened.
    let credentialsEpoch: Int
    var machine: ConnectionMachine
    /// Set after TLS is established; before, there is at most a socket.
    var channel: (any NIOCore.Channel)?
    var socket: (any NIOCore.Channel)?
    var tokens = TokenHistory()
    /// The time at which the first push was sent on the connection.
    var firstPushAt: Moment?
    var hasAnswered = false
    /// Whether the pool has processed the first response.
    var wasOfUse = false
    var isTouched = false
    var isDraining = false
    /// Why the socket ended, if this is known more exactly than in the machine.
    var failure: ConnectFailure?
    /// Whether the connection ended and all its events were processed.
    var isFinished = false

    init(_ id: ConnectionID, _ machine: ConnectionMachine, credentialsEpoch: Int, _ now: Moment) {
        self.id = id
        self.machine = machine
        self.credentialsEpoch = credentialsEpoch
        beganAt = now
    }

    /// The number of pushes that can be sent now.
    var room: Int { machine.freeStreams }

    /// Whether the connection knows the APNs topics and keys that existed when a push was submitted, because its first push
    /// was sent after that.
    func isFresh(for submission: Submission) -> Bool {
        guard let firstPushAt else { return true }
        return submission.beganAt <= firstPushAt
    }
}
