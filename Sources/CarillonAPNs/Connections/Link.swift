import NIOCore

/// One connection of a pool, on the pool's loop.
final class Link {
    let id: ConnectionID
    let beganAt: Moment
    var machine: ConnectionMachine
    /// Set when TLS stands; before, there is at most a socket.
    var channel: (any NIOCore.Channel)?
    var socket: (any NIOCore.Channel)?
    var tokens = TokenHistory()
    var hasAnswered = false
    /// Its first answer was seen.
    var wasOfUse = false
    var isTouched = false
    var isDraining = false
    /// Why the socket ended, when it is known better than the machine can.
    var failure: ConnectFailure?
    /// Ended, with everything said of its pushes.
    var isFinished = false

    init(_ id: ConnectionID, _ machine: ConnectionMachine, _ now: Moment) {
        self.id = id
        self.machine = machine
        beganAt = now
    }

    /// How many pushes it can be given now.
    var room: Int { machine.freeStreams }
}
