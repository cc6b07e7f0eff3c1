/// The amounts of the pushes to the simulator.
struct SendingScale: Sendable {
    /// The pushes of the first round of a new process, and of the second round, which is measured as warm.
    var cold = 50_000
    var warm = 200_000
    /// The pushes of both rounds with one push at a time.
    var coldAlone = 2000
    var warmAlone = 20_000
    /// The seconds for which the window is full, before the measurement and during it.
    var windowSeconds = (before: 2.5, measured: 3.0)
    var pools = [1, 2, 4, 8]
    /// The pushes that are offered to a service that has stopped.
    var offered = 1_000_000
    var crowd = 60_000

    static let quick = SendingScale(
        cold: 5000, warm: 10_000, coldAlone: 200, warmAlone: 2000, windowSeconds: (before: 2, measured: 1), pools: [1, 4],
        offered: 50_000, crowd: 51_000)
}

/// One load, which is the same for each sender.
struct SendingLoad: Sendable {
    var connections = 1
    var inFlight = 500
    var isBatch = false
    var payloadBytes = 193
    var cold: Int
    var warm: Int
}

/// The result of one run of one sender.
struct SendingResult: Sendable {
    var perSecond: Double
    /// The CPU time of the sender for each push, in microseconds.
    var cpuMicroseconds: Double
    var simulatorMicroseconds = 0.0
    var headerBlockBytes = 0.0
    /// The time from making the client, or starting the process, until the first response.
    var firstMilliseconds: Double
    var coldPerSecond = 0.0
    var coldMicroseconds = 0.0
    var pushes: Int
}
