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

    @Test func `a member is called when its time has come, and then when it says`() {
        let wheel = ConnectionWheel(slots: 8)
        let member = Member(next: [3, nil])
        wheel.insert(member, afterSeconds: 2)
        turn(wheel, 20)
        #expect(member.calls == [2, 5])
        #expect(member.place == nil)
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

    @Test func `a time beyond the wheel comes at its end`() {
        let wheel = ConnectionWheel(slots: 4)
        let member = Member(next: [])
        wheel.insert(member, afterSeconds: 100)
        turn(wheel, 3)
        #expect(member.calls == [3])
    }
}
