import CarillonClient
import Testing

@testable import CarillonCommand

/// The fingerprint that `carillon services provide` prints at its start.
@Suite(.timeLimit(.minutes(5)))
struct ProvidingFingerprintTests {
    private func read(_ failures: [any Error]) async -> (fingerprint: String?, reads: Int) {
        var reads = 0
        let fingerprint = await ServiceProvideCommand.fingerprint(retryingAfter: .milliseconds(1)) {
            reads += 1
            if reads <= failures.count { throw failures[reads - 1] }
            return "33e0 9683"
        }
        return (fingerprint, reads)
    }

    @Test func `the fingerprint is read again after a fault of the storage and while the server is away`() async {
        let storage = PushError(.storageUnavailable, "The disk is full.")
        let found = await read([storage, ServiceError(.serverUnavailable, "away"), storage])
        #expect(found.fingerprint == "33e0 9683" && found.reads == 4)
    }

    @Test func `a storage that is damaged ends it`() async {
        let found = await read([PushError(.storageDamaged, "damaged")])
        #expect(found.fingerprint == nil && found.reads == 1)
    }
}
