import NIOCore

/// Repeats requests to a server that is starting.
enum Patience {
    /// Repeats a request until the response is 200.
    static func ask(_ request: ByteBuffer, _ server: some PushServer) async throws {
        let start = ContinuousClock.now
        while ContinuousClock.now - start < .seconds(60), !server.process.hasEnded {
            if let answer = try? await HTTPConnection.exchange(request, server.address), answer.status == 200 { return }
            try await Task.sleep(for: .milliseconds(1))
        }
        await server.process.stop()
        throw NotMeasured("\(server.process.name) did not become ready: \(server.process.printed.suffix(300))")
    }
}
