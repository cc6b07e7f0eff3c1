import CarillonCore

extension UpdateDelivery {
    /// Does everything that the sweepers do of updates, in their order.
    func sweep(forgetting retention: RetentionTime?) async throws {
        try await endExpired()
        try await sweep()
        try await forgetEnded(by: retention)
    }
}
