import CarillonWire
import Testing

@testable import CarillonClient

/// Ids that an app has before it sends.
struct RequestIDsTests {
    @Test func `an id can be cancelled until it is used, and is for one request`() {
        let ids = RequestIDs()
        let (one, two) = (ids.make(), ids.make())
        #expect(one != two && ServiceRequestID(one)?.description == one)
        #expect(ids.use(one) == .fresh)
        #expect(ids.use(one) == .unknown)
        #expect(!ids.cancel(one), "it is in use")
        #expect(ids.cancel(two))
        #expect(ids.cancel(two))
        #expect(ids.use(two) == .cancelled)
        #expect(ids.use(two) == .unknown)
        #expect(!ids.cancel("another"))
    }

    @Test func `the newest thousand are remembered`() {
        let ids = RequestIDs()
        let made = (0...RequestIDs.most).map { _ in ids.make() }
        #expect(RequestIDs.most == 1000)
        #expect(!ids.cancel(made[0]))
        #expect(ids.cancel(made[1]))
        #expect(ids.use(made[0]) == .unknown)
    }
}
