import CarillonCore
import CarillonWire
import TestSupport

/// One change of watches, as the input of a store and a naive model.
enum WatchOperation {
    /// The ping of a watch, or the callback with a name: the work that can be leased.
    enum Work: Hashable {
        case ping(Int64)
        case callback(String)
    }

    /// How a lease was answered for. `noted` is the number of failures that is noted of the peer.
    struct Answer {
        var work: Work
        var fence: Int64
        var noted: Int
    }

    case put(WatchRequest)
    case remove(channel: Int64)
    case lease(Work)
    case pinged(Answer, revision: Int64, PingMachine, last: Watch.LastPing?, due: Timestamp)
    case called(Answer, CallbackMachine.Step, attempts: Int)
    case vouch(channel: Int64)
    case end([Int64])
    case setFormerUser(channel: Int64, Bool)
    case setDeleted(app: Int64, Bool)
    case spread
}

/// Random changes of the watches of six channels. Channels 1 to 3 are of device 1, and 4 and 5 of device 2, both of app 1; channel 6 is of
/// device 3, of app 2.
struct WatchScenario {
    var random: SeededRandom
    private(set) var now = Sample.now
    /// A lease: the fence and the revision.
    var leases: [(work: WatchOperation.Work, fence: Int64, revision: Int64)] = []
    private var numbers = 0

    static let channels: [Int64] = [1, 2, 3, 4, 5, 6]
    static let callbacks = CallbackLimits(perApp: 4, perPeer: 2)

    init(_ random: SeededRandom) { self.random = random }

    static func device(of channel: Int64) -> Int64 { channel <= 3 ? 1 : channel <= 5 ? 2 : 3 }
    static func app(of channel: Int64) -> Int64 { channel <= 5 ? 1 : 2 }

    /// - Parameter work: The work that can be leased.
    mutating func next(_ work: [WatchOperation.Work]) throws -> WatchOperation {
        now = now.adding(milliseconds: number(0...20_000))
        numbers += 1
        let channel = number(1...6)
        switch number(0...99) {
        case 0..<35: return .put(try request(channel))
        case 35..<40: return .remove(channel: channel)
        case 40..<60:
            guard let chosen = work.randomElement(using: &random) else { return .spread }
            return .lease(chosen)
        case 60..<80: return answer() ?? .vouch(channel: channel)
        case 80..<86: return .vouch(channel: channel)
        case 86..<94:
            let device = Self.device(of: channel)
            return .end(chance(3) ? Self.channels.filter { Self.device(of: $0) == device } : [channel])
        case 94..<96: return .setFormerUser(channel: channel, chance(8))
        case 96..<98: return .setDeleted(app: Self.app(of: channel), chance(12))
        default: return .spread
        }
    }

    private mutating func request(_ channel: Int64) throws -> WatchRequest {
        let pings: [String?] = [nil, "http://one.example/a", "http://one.example/b", "http://two.example"]
        let ping: String? = pings.randomElement(using: &random) ?? nil
        let ends: [String?] = [
            nil, "http://one.example", "http://two.example", "http://two.example/b", "http://six.example",
        ]
        let gone: String? = ends.randomElement(using: &random) ?? nil
        let interval = Int(number(15...400))
        return WatchRequest(
            channel: ChannelSerial(channel),
            ping: try ping.map { Watch.Ping(address: try CallAddress($0), intervalSeconds: interval) },
            firstDueAt: chance(5) ? nil : now.adding(milliseconds: number(0...60_000)),
            disconnectAddress: try gone.map { try CallAddress($0) },
            sealed: Watch.Sealed(secret: [UInt8(number(0...255))], token: [UInt8(number(0...255))]),
            callbackID: "msg_\(numbers)", renewsSecret: chance(4),
            limits: WatchLimits(perDevice: Int(number(1...4)), perApp: Int(number(2...6))))
    }

    private mutating func answer() -> WatchOperation? {
        guard let lease = leases.suffix(2).randomElement(using: &random) else { return nil }
        let answer = WatchOperation.Answer(work: lease.work, fence: lease.fence, noted: numbers)
        let due = now.adding(milliseconds: number(0...60_000))
        let failures: [PingFailure?] = [nil, .noConnection, .tokenLost]
        let failure: PingFailure? = failures.randomElement(using: &random) ?? nil
        switch lease.work {
        case .ping:
            let last = chance(4) ? nil : Watch.LastPing(at: now, failure: failure, detail: failure.map { "\($0)" })
            let machine = PingMachine(notified: failure, failures: Int(number(0...5)))
            return .pinged(answer, revision: lease.revision, machine, last: last, due: due)
        case .callback:
            let steps: [CallbackMachine.Step] = [.done, .givenUp, .lost, .retry(at: due)]
            let step = steps.randomElement(using: &random) ?? .done
            return .called(answer, step, attempts: Int(number(0...9)))
        }
    }

    private mutating func number(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &random) }
    private mutating func chance(_ one: Int64) -> Bool { number(1...one) == 1 }
}
