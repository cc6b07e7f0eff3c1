import CarillonCore
import CarillonWire
import Testing

struct PollRulesTests {
    private static let history: Int64 = 7
    private static let binding = BindingSerial(3)

    private static func position(
        _ place: Int64, isOfUpdates: Bool = false, history: Int64 = history, binding: BindingSerial = binding
    ) -> InboxPosition {
        InboxPosition(history: history, binding: binding, place: place, isOfUpdates: isOfUpdates)
    }

    private static func rule(
        _ position: InboxPosition?, isOnSocket: Bool = false, receivedTo: ReceivedTo = ReceivedTo(all: 10, updates: 20)
    ) throws(Refusal) -> PollRuling {
        try PollRules.rule(
            position, isOnSocket: isOnSocket, binding: binding, receivedTo: receivedTo, history: history, epoch: 0)
    }

    // MARK: Positions

    @Test(arguments: [false, true])
    func `a poll without a position begins anew, unless envelopes are sent as frames`(isOnSocket: Bool) throws {
        let ruling = try Self.rule(nil, isOnSocket: isOnSocket)
        #expect(ruling == PollRuling(known: nil, isAhead: false, needsResync: false, offersAgain: !isOnSocket))
    }

    @Test(arguments: [(Int64(10), false), (11, false), (20, true), (21, true)])
    func `a position that is not behind the last one offers nothing again`(place: Int64, isOfUpdates: Bool) throws {
        let position = Self.position(place, isOfUpdates: isOfUpdates)
        let ruling = try Self.rule(position)
        #expect(ruling == PollRuling(known: position, isAhead: false, needsResync: false, offersAgain: false))
    }

    @Test(arguments: [false, true])
    func `a position behind the last one is of a device that was restored`(isOnSocket: Bool) throws {
        for position in [Self.position(9), Self.position(19, isOfUpdates: true)] {
            let ruling = try Self.rule(position, isOnSocket: isOnSocket)
            #expect(ruling == PollRuling(known: position, isAhead: true, needsResync: true, offersAgain: true))
        }
    }

    @Test func `positions of updates and of everything are compared apart`() throws {
        #expect(try !Self.rule(Self.position(15)).isAhead)
        #expect(try Self.rule(Self.position(15, isOfUpdates: true)).isAhead)
    }

    @Test func `a position of another history of the server is unknown, with any binding`() throws {
        let other = Self.position(5, history: 8, binding: BindingSerial(4))
        let later = Self.position(1 << 62, binding: BindingSerial(4))
        try #require(PositionSource.epoch(of: later.place) > 0)
        for position in [other, later] {
            let ruling = try Self.rule(position)
            #expect(ruling == PollRuling(known: nil, isAhead: false, needsResync: true, offersAgain: true))
        }
    }

    @Test func `a position of another binding is refused`() {
        let refusal = #expect(throws: Refusal.self) {
            try Self.rule(Self.position(5, binding: BindingSerial(4)))
        }
        #expect(refusal?.code == .positionInvalid)
    }

    // MARK: Receipts

    @Test func `a position of updates confirms only updates, and a position of everything confirms all polled kinds`() {
        #expect(Self.position(5).receivedTo == ReceivedTo(all: 5, updates: 0))
        #expect(Self.position(5, isOfUpdates: true).receivedTo == ReceivedTo(all: 0, updates: 5))
        #expect(Self.position(5).receipt(of: nil) == InboxReceipt(upTo: 5, of: nil))
        #expect(Self.position(5, isOfUpdates: true).receipt(of: nil) == InboxReceipt(upTo: 5, of: [.update, .retraction]))
        #expect(Self.position(5).receipt(of: [.update]) == InboxReceipt(upTo: 5, of: [.update]))
    }

    @Test func `envelopes up to the position are received, of the kinds of the receipt`() {
        let waiting: [WaitingName] = [
            .init(id: Sample.id(1), kind: .message), .init(id: Sample.id(2), kind: .update),
            .init(id: Sample.id(3), kind: .retraction), .init(id: Sample.id(4), kind: .update),
        ]
        #expect(InboxReceipt(upTo: 3, of: nil).received(of: waiting) == [1, 2, 3].map(Sample.id))
        #expect(InboxReceipt(upTo: 3, of: EnvelopeKind.updates).received(of: waiting) == [2, 3].map(Sample.id))
        #expect(InboxReceipt(upTo: 0, of: nil).received(of: waiting).isEmpty)
    }

    private static func page(_ positions: ClosedRange<Int64>, isComplete: Bool) -> InboxPage {
        let envelopes = positions.map { Sample.envelope($0, kind: $0 % 2 == 0 ? nil : .recovered) }
        return InboxPage(envelopes: envelopes, isComplete: isComplete)
    }

    @Test func `pages are read until one has an envelope that was not received`() {
        let all = InboxReceipt(upTo: 10, of: nil)
        let first = all.received(of: Self.page(1...4, isComplete: false))
        #expect(first.ids == (1...4).map(Sample.id) && first.next == 4)
        let last = all.received(of: Self.page(9...12, isComplete: false))
        #expect(last.ids == [9, 10].map(Sample.id) && last.next == nil)
        let whole = all.received(of: Self.page(1...4, isComplete: true))
        #expect(whole.ids.count == 4 && whole.next == nil)
        let none = all.received(of: InboxPage(envelopes: [], isComplete: true))
        #expect(none.ids.isEmpty && none.next == nil)
    }

    @Test func `a page of other kinds is passed over`() {
        let messages = InboxReceipt(upTo: 10, of: [.message])
        let some = messages.received(of: Self.page(1...4, isComplete: false))
        #expect(some.ids == [2, 4].map(Sample.id) && some.next == 4)
        let updates = InboxReceipt(upTo: 10, of: EnvelopeKind.updates)
        let none = updates.received(of: Self.page(1...4, isComplete: false))
        #expect(none.ids.isEmpty && none.next == 4)
    }
}
