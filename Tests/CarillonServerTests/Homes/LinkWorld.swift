import CarillonCore
import CarillonWire
import Synchronization
import TestSupport

@testable import CarillonServer

/// A link to a home that notes its calls.
struct LinkWorld: Sendable {
    /// The delay of each way.
    enum Delay: Sendable {
        case fixed(milliseconds: Int)
        /// From 0 to 20 milliseconds.
        case random(seed: UInt64)

        var source: RandomSource {
            switch self {
            case .fixed(let milliseconds):
                return RandomSource { UInt64(milliseconds) * 1000 }
            case .random(let seed):
                let chance = Chance(seed)
                return RandomSource { chance.next() }
            }
        }

        var longest: Int {
            switch self {
            case .fixed(let milliseconds): milliseconds
            case .random: 20
            }
        }
    }

    private final class Chance: Sendable {
        private let random: Mutex<SeededRandom>

        init(_ seed: UInt64) { random = Mutex(SeededRandom(seed: seed)) }

        func next() -> UInt64 { random.withLock { $0.next() } }
    }

    let home = NotingHome()
    let link: LinkedHome

    init(_ delay: Delay, limits: LinkedHome.Limits = .init()) {
        link = LinkedHome(home, random: delay.source, longestDelay: delay.longest, limits: limits)
    }

    static let load = PageRequest(after: 0, limit: 9, bytes: 10_000)

    static func name(_ device: Int64) -> DeviceName {
        .id(NotingHome.device(device).id, credential: SecretHash(of: [1]))
    }

    static func id(_ position: Int64) -> MessageID { MessageID(position: position, secret: Bytes16(high: 1, low: 2)) }

    static func envelope(_ position: Int64) -> Envelope {
        let now = Timestamp(milliseconds: 1000)
        return Envelope(
            id: id(position), device: DeviceSerial(1), app: AppSerial(1),
            origin: .channel(ChannelSerial(1), ChannelID(Bytes16(high: 3, low: 4))),
            kind: .message(.init(body: [1], coding: nil)), acceptedAt: now, expiresAt: now.adding(seconds: 60))
    }

    func arrive(_ device: Int64, as session: any LiveSession) async throws(HomeFault) -> Arrived {
        try await link.arrive(
            Self.name(device), .credential(SecretHash(of: [1])), Self.load, speaking: 1, as: session)
    }

    func finish(_ position: Int64, of device: Int64) {
        link.finish(EnvelopeAnswer(Self.id(position), .acknowledged), of: DeviceSerial(device))
    }

    func read(_ device: Int64) async throws(HomeFault) {
        _ = try await link.read(Self.load, of: DeviceSerial(device))
    }

    static func request(_ body: HomeBody = .whole([])) -> HomeRequest {
        HomeRequest(method: "GET", path: "/v1/device", fields: [], body: body)
    }

    /// Returns the fault of a call.
    static func fault(_ call: () async throws(HomeFault) -> Void) async -> HomeFault? {
        do throws(HomeFault) {
            try await call()
            return nil
        } catch {
            return error
        }
    }
}
