import NIOCore

/// Measures how fast many idle subscribers connect, and how much memory of the server each one uses.
struct ConnectionMeasurement: Sendable {
    let scale: Scale

    struct Result: Sendable {
        var connectsPerSecond: Double
        var memoryKiB: Double
        var loadShare: Double
    }

    func measure(_ server: some PushServer) async throws -> Result {
        try OpenFiles.check(room: scale.connections)
        let scale = scale
        // Memory that the first connections of the process allocate is not counted for a connection.
        let warmUp = SubscriberHerd(server.address) { server.subscription($0) }
        try await LoadLoop.run { warmUp.connect(32, inFlight: 32).flatMap { warmUp.close() } }
        try await Task.sleep(for: .seconds(1))

        let before = try server.usage()
        let herd = SubscriberHerd(server.address) { server.subscription($0) }
        let ownCPU = try ProcessUsage.ownMicroseconds()
        let start = nanoseconds()
        try await LoadLoop.run { herd.connect(scale.connections, inFlight: scale.connectsInFlight) }
        let seconds = Double(nanoseconds() - start) / 1e9
        let loadShare = (try ProcessUsage.ownMicroseconds() - ownCPU) / (seconds * 1e6)
        try await Task.sleep(for: scale.settle)
        let after = try server.usage()
        // Fails if a subscriber was disconnected, because the memory figure would be too small.
        try await LoadLoop.run { herd.receive(0) }
        try await LoadLoop.run { herd.close() }
        return Result(
            connectsPerSecond: Double(scale.connections) / seconds,
            memoryKiB: (after.memoryKiB - before.memoryKiB) / Double(scale.connections), loadShare: loadShare)
    }
}
