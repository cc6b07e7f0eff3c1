import Testing

@testable import CarillonServer

struct ConnectionWheelTests {
    private final class Member: WheelMember {
        var place: ConnectionWheel.Place?
        var calls: [Int] = []
        var next: [Int?]

        init(next: [Int?]) { self.next = next }

        func wheelTurned(at second: Int) -> Int? {
            calls.append(second)
            return next.isEmpty ? nil : next.removeFirst()
        }
    }

    private func turn(_ wheel: ConnectionWheel, _ times: Int) {
        for _ in 0..<times { wheel.turn() }
    }

    /// The first turn can follow the insertion at once, and does not count as a second.
    @Test func `a member is called when its time has passed and not before, and then at its next time`() {
        let wheel = ConnectionWheel(slots: 8)
        let member = Member(next: [3, nil])
        wheel.insert(member, afterSeconds: 2)
        turn(wheel, 2)
        #expect(member.calls == [])
        turn(wheel, 20)
        #expect(member.calls == [3, 6])
        #expect(member.place == nil)
    }

    @Test func `an event within a second is dated with the end of the second`() {
        let wheel = ConnectionWheel(slots: 8)
        #expect(wheel.now == 1)
        turn(wheel, 4)
        #expect(wheel.now == 5)
    }

    @Test func `a member that was taken out is not called, and its neighbours are`() {
        let wheel = ConnectionWheel(slots: 8)
        let members = (0..<5).map { _ in Member(next: []) }
        for member in members { wheel.insert(member, afterSeconds: 3) }
        wheel.remove(members[1])
        wheel.remove(members[4])
        wheel.remove(members[1])
        turn(wheel, 8)
        #expect(members.map(\.calls.count) == [1, 0, 1, 1, 0])
    }

    @Test(arguments: [1, 2, 3, 4, 5, 8, 9, 100])
    func `a time of any length is reported after it has passed, with any size of the wheel`(seconds: Int) {
        let wheel = ConnectionWheel(slots: 4)
        turn(wheel, 2)
        let member = Member(next: [seconds, nil])
        wheel.insert(member, afterSeconds: seconds)
        turn(wheel, 300)
        #expect(member.calls == [3 + seconds, 3 + 2 * seconds])
    }

    @Test func `members of one slot whose times differ by whole turns keep their places`() {
        let wheel = ConnectionWheel(slots: 4)
        let members = (0..<6).map { _ in Member(next: []) }
        for (index, member) in members.enumerated() { wheel.insert(member, afterSeconds: 2 + index % 3 * 4) }
        turn(wheel, 3)
        wheel.remove(members[2])
        wheel.remove(members[1])
        turn(wheel, 12)
        #expect(members.map(\.calls) == [[3], [], [], [3], [7], [11]])
        #expect(members.allSatisfy { $0.place == nil })
    }
}
