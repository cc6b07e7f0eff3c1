import CarillonCore
import TestSupport
import Testing

extension HomeRuntime {
    /// Does work inside of a shard that a move has begun to close. The shard stays at the home.
    func whileClosing<Result>(_ shard: Shard, _ work: () async throws -> Result) async throws -> Result {
        let gate = try #require(self.gate)
        try await gate.enter(shard)
        async let isClosed = gate.close(shard, atMost: .seconds(10))
        try await eventually { !gate.openShards.contains(shard) }
        let result: Swift.Result<Result, any Error>
        do { result = .success(try await work()) } catch { result = .failure(error) }
        gate.leave(shard)
        #expect(await isClosed)
        gate.reopen(shard)
        return try result.get()
    }
}
