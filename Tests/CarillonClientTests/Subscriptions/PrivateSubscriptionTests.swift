import CarillonBasics
import CarillonMessages
import CarillonWire
import TestSupport
import Testing

@testable import CarillonClient

/// Encrypted formats, as an app writes them.
struct PrivateSubscriptionTests {
    private func subscriptions(_ folder: SharedFolder?) -> NotificationSubscriptions {
        let subscriptions = NotificationSubscriptions(shared: folder) { _ in
        } notify: { _ in
        }
        subscriptions.connected(version: 3)
        return subscriptions
    }

    private func alert(_ title: String = "secret", key: String? = "k") -> NotificationSubscription {
        var format = NotificationFormat(title: title)
        format.isPrivate = true
        return NotificationSubscription(items: ["stock.ACME"], fields: ["price"], format: format, key: key)
    }

    @Test func `the device's keys go with a private format, the same each time`() throws {
        let folder = SharedFolder(path: try TemporaryDirectory.make())
        let (first, second) = (alert(), alert("other", key: nil))
        try subscriptions(folder).declare([first])
        try subscriptions(folder).subscribe(second)
        let keys = try folder.loadOrCreateKeys()
        let expected = PrivateKeys(publicKey: keys.publicKey, authSecret: keys.authSecret)
        for subscription in [first, second] {
            let format = subscription.notificationFormat
            #expect(format.isPrivate && PrivateKeys(format.json["private"]) == expected)
        }
        // A new value with the same content, as at the next launch, is the same for the server.
        let again = alert()
        try subscriptions(folder).declare([again])
        #expect(again.present.definition.hash == first.present.definition.hash)
        var open = first.notificationFormat
        open.isPrivate = false
        #expect(open.json["private"] == nil)
    }

    @Test func `a change to a private format has the keys, also before it is active`() throws {
        let folder = SharedFolder(path: try TemporaryDirectory.make())
        let all = subscriptions(folder)
        let subscription = NotificationSubscription(items: ["a"], fields: ["x"], format: NotificationFormat(title: "open"))
        var format = NotificationFormat(title: "closed")
        format.isPrivate = true
        try all.change(subscription, format: format)
        #expect(PrivateKeys(subscription.notificationFormat.json["private"]) != nil)
    }

    @Test func `without a folder that the extension reads nothing is private`() throws {
        let all = subscriptions(nil)
        #expect(throws: PushError.self) { try all.subscribe(alert()) }
        #expect(throws: PushError.self) { try all.declare([alert()]) }
        #expect(all.all().isEmpty)
        let format = NotificationFormat(title: "open")
        try all.subscribe(NotificationSubscription(items: ["a"], fields: ["x"], format: format))
    }

    @Test(arguments: [(0.0, nil), (-1, nil), (1001, nil), (.nan, nil), (1, 0), (1, 101), (nil, 5)] as [(Double?, Int?)])
    func `a pace that the server would refuse is refused at once`(frequency: Double?, buffer: Int?) throws {
        let all = subscriptions(nil)
        let format = NotificationFormat(title: "x")
        #expect(throws: PushError.self) {
            try all.subscribe(
                NotificationSubscription(
                    items: ["a"], fields: ["x"], format: format, policy: .every(coolDown: .zero),
                    requestedMaxFrequency: frequency, requestedBufferSize: buffer))
        }
        let good = NotificationSubscription(
            items: ["a"], fields: ["x"], format: format, requestedMaxFrequency: 0.5, requestedBufferSize: 7)
        try all.subscribe(good)
        let json = good.present.definition.json
        #expect(json["maxFrequency"] == .number(0.5) && json["bufferSize"] == .integer(7))
        #expect(good.requestedMaxFrequency == 0.5 && good.requestedBufferSize == 7)
    }
}
