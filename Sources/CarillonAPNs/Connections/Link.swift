import NIOCore

/// One connection of a pool, on the pool's loop.
final class Link {
    let id: ConnectionID
    let beganAt: Moment
    /// The pool's epoch of the credentials that the connection was opened with.
    let credentialsEpoch: Int
    var machine: ConnectionMachine
    /// Set when TLS stands; before, there is at most a socket.
    var channel: (any NIOCore.Channel)?
    var socket: (any NIOCore.Channel)?
    var tokens = TokenHistory()
    /// When the first push was given to the connection.
    var firstPushAt: Moment?
    var hasAnswered = false
    /// Its first answer was seen.
    var wasOfUse = false
    var isTouched = false
    var isDraining = false
    /// Why the socket ended, when it is known better than the machine can.
    var failure: ConnectFailure?
    /// Ended, with everything said of its pushes.
    var isFinished = false

    init(_ id: ConnectionID, _ machine: ConnectionMachine, credentialsEpoch: Int, _ now: Moment) {
        self.id = id
        self.machine = machine
        self.credentialsEpoch = credentialsEpoch
        beganAt = now
    }

    /// How many pushes it can be given now.
    var room: Int { machine.freeStreams }

    /// Whether the connection knows the topics and keys that there were when a push was submitted: the first push of the
    /// connection was sent after that.
    func isFresh(for submission: Submission) -> Bool {
        guard let firstPushAt else { return true }
        return submission.beganAt <= firstPushAt
    }
}
