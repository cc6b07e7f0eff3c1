import Testing

@testable import CarillonClient

/// The limits of the events that wait for a slow iteration.
struct EventBufferTests {
    private typealias Buffer = EventBuffer<ServiceClientEvent>

    private static let address = ServiceApplication(app: "com.example.files")

    private static func result(_ number: Int) -> ServiceClientEvent {
        .didReceive(from: address, .success(.init()), id: "\(number)")
    }

    private static func step(_ number: Int) -> ServiceClientEvent {
        .didStartSending(to: address, filename: "f", id: "\(number)")
    }

    private static func progress(_ number: Int, bytes: Int64) -> ServiceClientEvent {
        .sending(id: "\(number)", bytesSent: bytes, of: 1000)
    }

    private func drain(_ buffer: inout EventBuffer<ServiceClientEvent>) -> [String] {
        var heard: [String] = []
        while let event = buffer.next() { heard.append(event.brief) }
        return heard
    }

    private func fill(_ buffer: inout EventBuffer<ServiceClientEvent>, _ events: [ServiceClientEvent]) {
        for event in events { _ = buffer.append(event) }
    }

    private func brief(_ name: String, _ numbers: Range<Int>) -> [String] { numbers.map { "\(name) \($0)" } }

    @Test func `events within the limit arrive in order, and none is missed`() {
        var buffer = Buffer()
        fill(&buffer, [Self.step(1), Self.progress(1, bytes: 5), Self.result(1)])
        let heard = drain(&buffer)
        #expect(heard == ["step 1", "sending 1: 5", "result 1"])
        #expect(buffer.count == 0)
    }

    @Test func `the newest progress of a transfer replaces the older one, at its own place, and is no drop`() {
        var buffer = Buffer()
        fill(&buffer, [Self.progress(1, bytes: 1), Self.progress(2, bytes: 1), Self.result(1), Self.progress(1, bytes: 2)])
        _ = buffer.append(.receiving(id: "1", bytesReceived: 7, of: 9))
        let heard = drain(&buffer)
        #expect(heard == ["sending 2: 1", "result 1", "sending 1: 2", "receiving 1: 7"])
    }

    @Test func `progress drops nothing but progress`() {
        var buffer = Buffer()
        fill(&buffer, (0..<Buffer.limit).map(Self.step))
        fill(&buffer, (0..<Buffer.transferLimit + 30).map { Self.progress($0, bytes: 1) })
        #expect(buffer.count == Buffer.limit + Buffer.transferLimit)
        let heard = drain(&buffer)
        let expected: [String] = ["missed 30"] + brief("step", 0..<Buffer.limit) + (30..<130).map { "sending \($0): 1" }
        #expect(heard == expected)
    }

    @Test func `a result drops the oldest step, and another result only when no step waits`() {
        var buffer = Buffer()
        fill(&buffer, (0..<60).map(Self.result))
        fill(&buffer, (0..<40).map(Self.step))
        fill(&buffer, (60..<110).map(Self.result))
        let heard = drain(&buffer)
        #expect(heard == ["missed 50"] + brief("result", 10..<110))
    }

    @Test func `a step drops an older step, and never a result`() {
        var buffer = Buffer()
        fill(&buffer, (0..<99).map(Self.result))
        fill(&buffer, [Self.step(1), Self.step(2)])
        let heard = drain(&buffer)
        #expect(heard == ["missed 1"] + brief("result", 0..<99) + ["step 2"])
        fill(&buffer, (0..<100).map(Self.result))
        fill(&buffer, [Self.step(1), Self.step(2)])
        let later = drain(&buffer)
        #expect(later == ["missed 2"] + brief("result", 0..<100))
    }

    @Test func `the count of drops begins again when it was taken`() {
        var buffer = Buffer()
        fill(&buffer, (0..<103).map(Self.result))
        #expect(buffer.next()?.brief == "missed 3")
        #expect(buffer.next()?.brief == "result 3")
        fill(&buffer, (103..<105).map(Self.result))
        let heard = drain(&buffer)
        #expect(heard == ["missed 1"] + brief("result", 5..<105))
    }

    @Test func `events that are removed make room, and are not counted as missed`() {
        var buffer = Buffer()
        fill(&buffer, (0..<Buffer.limit).map(Self.result))
        fill(&buffer, (0..<Buffer.transferLimit).map { Self.progress($0, bytes: 1) })
        let removed = buffer.remove { event in event.brief != "result 7" }
        #expect(removed.count == Buffer.limit + Buffer.transferLimit - 1 && buffer.count == 1 && buffer.bytes > 0)
        fill(&buffer, (0..<Buffer.limit - 1).map(Self.step))
        fill(&buffer, (0..<Buffer.transferLimit).map { Self.progress($0, bytes: 2) })
        let heard = drain(&buffer)
        let sending = (0..<Buffer.transferLimit).map { "sending \($0): 2" }
        let expected: [String] = ["result 7"] + brief("step", 0..<Buffer.limit - 1) + sending
        #expect(heard == expected)
        #expect(buffer.bytes == 0)
    }

    @Test func `each event is delivered or counted, and the number of waiting events is bounded`() {
        var buffer = Buffer()
        var (taken, missed, most) = (0, 0, 0)
        for number in 0..<3000 {
            let event =
                switch number % 3 {
                case 0: Self.result(number)
                case 1: Self.step(number)
                default: Self.progress(number, bytes: 1)
                }
            _ = buffer.append(event)
            most = max(most, buffer.count)
            guard number == 700 || number == 2999 else { continue }
            while let event = buffer.next() {
                if case .missed(let count) = event { missed += count } else { taken += 1 }
            }
        }
        #expect(most == Buffer.limit + Buffer.transferLimit)
        #expect(taken == 2 * most)
        #expect(taken + missed == 3000)
    }
}

extension ServiceClientEvent {
    /// The values that tests compare.
    var brief: String {
        switch self {
        case .missed(let count): "missed \(count)"
        case .didReceive(_, _, let id): "result \(id)"
        case .didStartSending(_, _, let id): "step \(id)"
        case .sending(let id, let bytes, _): "sending \(id): \(bytes)"
        case .receiving(let id, let bytes, _): "receiving \(id): \(bytes)"
        default: "other"
        }
    }
}
