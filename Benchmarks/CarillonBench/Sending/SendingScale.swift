/// How much is sent to the simulator.
struct SendingScale: Sendable {
    /// Pushes of the first round of a new process, and of the one that is measured as warm.
    var cold = 50_000
    var warm = 200_000
    /// The same with one push at a time.
    var coldAlone = 2000
    var warmAlone = 20_000
    /// Seconds for which the window is to be filled, before the measurement and in it.
    var windowSeconds = (before: 2.5, measured: 3.0)
    var pools = [1, 2, 4, 8]
    /// Pushes that are offered to a service that stands still.
    var offered = 1_000_000
    var crowd = 60_000

    static let quick = SendingScale(
        cold: 5000, warm: 10_000, coldAlone: 200, warmAlone: 2000, windowSeconds: (before: 2, measured: 1), pools: [1, 4],
        offered: 50_000, crowd: 51_000)
}

/// One way to send, which each sender is given alike.
struct SendingLoad: Sendable {
    var connections = 1
    var inFlight = 500
    var isBatch = false
    var payloadBytes = 193
    var cold: Int
    var warm: Int
}

/// What one run of one sender gave.
struct SendingResult: Sendable {
    var perSecond: Double
    /// CPU of the sender for each push, in microseconds.
    var cpuMicroseconds: Double
    var simulatorMicroseconds = 0.0
    var headerBlockBytes = 0.0
    /// From making the client, or starting the process, until the first answer.
    var firstMilliseconds: Double
    var coldPerSecond = 0.0
    var coldMicroseconds = 0.0
    var pushes: Int
}
