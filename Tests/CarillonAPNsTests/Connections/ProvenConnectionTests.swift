import Testing

@testable import CarillonAPNs

/// Which answers show that the service accepts the credentials, so that all streams can be used.
struct ProvenConnectionTests {
    typealias Rig = ConnectionMachineTests.Rig

    @Test(arguments: [
        (410, APNsReason.unregistered), (410, .expiredToken), (400, .badDeviceToken), (400, .deviceTokenNotForTopic),
        (413, .payloadTooLarge), (429, .tooManyRequests), (400, APNsReason(rawValue: "SomethingNew")),
    ])
    func `a refusal that has nothing to do with the credentials opens all streams`(status: Int, reason: APNsReason) {
        var rig = Rig(settings: [(3, 100)])
        #expect(rig.send(500) == [1])
        rig.reject(1, status, reason)
        #expect(rig.machine.isProven)
        #expect(rig.machine.freeStreams == 100)
        rig.settings([(3, 1)])
        #expect(rig.machine.freeStreams == 1)
        rig.settings([(3, 200)])
        #expect(rig.machine.freeStreams == 200)
    }

    @Test(arguments: [
        (403, APNsReason.invalidProviderToken), (403, .expiredProviderToken), (403, APNsReason(rawValue: "SomethingNew")),
        (400, .topicDisallowed), (429, .tooManyProviderTokenUpdates), (500, .internalServerError),
        (503, .badDeviceToken), (302, .badDeviceToken),
    ])
    func `a refusal of the credentials and trouble of the service prove nothing`(status: Int, reason: APNsReason) {
        var rig = Rig(settings: [(3, 100)])
        rig.send(1)
        rig.reject(1, status, reason)
        #expect(!rig.machine.isProven)
        #expect(rig.machine.freeStreams == 1)
    }

    @Test(arguments: [200, 400, 410, 429]) func `an answer that is not the service's proves nothing`(status: Int) {
        var rig = Rig(settings: [(3, 100)])
        rig.send(1)
        rig.answer(1, status, hasID: false)
        #expect(!rig.machine.isProven)
        #expect(rig.machine.freeStreams == 1)
    }

    @Test func `a connection that was slowed down recovers with dead tokens as well`() {
        var rig = Rig(settings: [(3, 100)])
        rig.send(1)
        rig.reject(1, 410, .unregistered)
        for id in rig.send(100) { rig.reset(id, .refusedStream) }
        #expect(rig.machine.freeStreams < 10)
        for _ in 0..<20 { for id in rig.send(100) { rig.reject(id, 410, .unregistered) } }
        #expect(rig.machine.freeStreams == 100)
    }
}
