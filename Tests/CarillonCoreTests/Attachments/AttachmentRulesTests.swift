import CarillonCore
import CarillonWire
import Testing

struct AttachmentRulesTests {
    private typealias Usage = AttachmentRules.Usage
    private let limits: AttachmentLimits = {
        var limits = AttachmentLimits()
        (limits.userBytes, limits.appBytes, limits.leastCharge, limits.aheadBytes) = (1000, 4000, 10, 100)
        return limits
    }()

    private func decide(_ length: Int64, received: Int64 = 0, _ usage: Usage) -> AttachmentRules.Decision {
        AttachmentRules.decide(length: length, received: received, usage, limits)
    }

    @Test func `an upload counts the received and the next bytes, and never more than its length`() {
        let none = Usage(user: 0, app: 0, reserved: 0)
        #expect(decide(900, none) == .counts(100))
        #expect(decide(900, received: 300, none) == .counts(400))
        #expect(decide(900, received: 850, none) == .counts(900))
        #expect(decide(50, none) == .counts(50))
        #expect(decide(0, none) == .counts(10), "a file without bytes costs some")
        #expect(AttachmentRules.charge(received: 300, limits) == 300)
        #expect(AttachmentRules.charge(received: 0, limits) == 10)
    }

    @Test func `a whole file counts its length, and never less than before`() {
        #expect(AttachmentRules.charge(ofWhole: 900, charged: 400) == 900)
        #expect(AttachmentRules.charge(ofWhole: 0, charged: 10) == 10)
    }

    @Test func `changes of totals are added up by quota and by app`() {
        let (one, two) = (AppSerial(1), AppSerial(2))
        var totals = AttachmentTotals()
        totals.add(100, to: "s", of: one)
        totals.add(-40, to: "d7", of: one)
        totals.add(-60, to: "d7", of: one)
        totals.add(5, to: "s", of: two)
        totals.add(-5, to: "s", of: two)
        totals.add(0, to: "d8", of: two)
        #expect(totals.changes == [.init(one, "s"): 100, .init(one, "d7"): -100])
    }

    @Test func `the whole length of an upload must fit, regardless of the received bytes`() {
        #expect(decide(900, received: 300, Usage(user: 100, app: 3100, reserved: 0)) == .counts(400))
        #expect(decide(900, received: 300, Usage(user: 101, app: 0, reserved: 0)) == .overUser(limit: 1000))
        #expect(decide(900, received: 300, Usage(user: 0, app: 3101, reserved: 0)) == .overApp(limit: 4000))
        #expect(decide(0, Usage(user: 991, app: 0, reserved: 0)) == .overUser(limit: 1000))
    }

    @Test func `the unfinished uploads of one user reserve a twentieth of the app's quota, and at least one upload`() {
        #expect(limits.reservedOfUser == 200)
        #expect(decide(900, Usage(user: 0, app: 0, reserved: 100)) == .counts(100))
        #expect(decide(900, Usage(user: 0, app: 0, reserved: 101)) == .overReserved(limit: 200))
        #expect(decide(50, Usage(user: 0, app: 0, reserved: 150)) == .counts(50))
        #expect(decide(900, Usage(user: nil, app: 0, reserved: 999)) == .counts(100), "senders have no bound but the app's")
        var small = limits
        small.appBytes = 500
        #expect(small.reservedOfUser == 100)
        #expect(AttachmentLimits().reservedOfUser == (50 << 30) / 20)
    }
}
