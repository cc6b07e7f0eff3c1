import CarillonCore
import CarillonWire
import TestSupport

/// One operation of a workload. The seed and the number alone decide its work.
package struct WorkloadOperation: Sendable {
    package enum Kind: CaseIterable, Sendable {
        case app, key, document, maintain
        case register, renewCredential, changeProfile, deleteDevice
        case openChannel, closeChannel
        case messages, leasePushes, endPushes, requeuePushes
        case putWatch, removeWatch, leaseWork, endWork
        case putItem, deleteItem, subscribe, unsubscribe, removeSubscriptions, applyHandOvers, notifyFiring, advanceFiring
        case publishUpdate, withdrawUpdate, bind, offerUpdate
        case putService, removeService, clusterPlace, request, requestStep, cancelRequest
        case addAttachment, changeAttachment
    }

    /// Tracks run concurrently. Each has an app of its own, and no operation of a track changes data that another track reads.
    package static let tracks = 3
    static let start = Timestamp(milliseconds: 1_700_000_000_000)
    private static let numbersOfRun: Int64 = 1_000_000
    /// Leases of a run have ended at the next one.
    private static let secondsOfRun: Int64 = 120

    /// How often each kind is drawn.
    private static let kinds: [Kind] = {
        var kinds = Kind.allCases
        kinds += Array(repeating: Kind.messages, count: 10)
        kinds += Array(repeating: Kind.register, count: 3)
        kinds += Array(repeating: Kind.openChannel, count: 3)
        let twice: [Kind] = [.changeProfile, .putService, .subscribe, .putItem, .request, .requestStep]
        return kinds + twice
    }()

    package let number: Int64
    package let kind: Kind
    /// Which device, from 0 to 2; and which other one.
    let slot: Int
    let other: Int
    /// Which form of the operation, from 0 to 2.
    let choice: Int
    let value: UInt64

    package init(seed: UInt64, number: Int64) {
        var random = SeededRandom(seed: seed &+ UInt64(bitPattern: number) &* 0xD134_2543_DE82_EF95)
        self.number = number
        kind = Self.kinds[Int(random.next() % UInt64(Self.kinds.count))]
        slot = Int(random.next() % 3)
        other = Int(random.next() % 3)
        choice = Int(random.next() % 3)
        value = random.next() % 1_000_000
    }

    /// The operations of a track in a run, in their order.
    package static func all(of track: Int, run: Int64, seed: UInt64) -> some Sequence<WorkloadOperation> {
        let first = run * numbersOfRun
        return stride(from: first + Int64(track), to: first + numbersOfRun, by: tracks).lazy.map {
            WorkloadOperation(seed: seed, number: $0)
        }
    }

    package var track: Int { Int(number % Self.numbersOfRun % Int64(Self.tracks)) }

    /// The time of a run: one moment for all of its operations, as tracks do not advance together.
    static func time(of run: Int64) -> Timestamp { start.adding(seconds: run * secondsOfRun) }

    /// Whether the operation stores something that its number finds later, also if the operation's device is removed.
    package var leavesTraces: Bool { kind == .messages || kind == .notifyFiring || kind == .request }

    var bytes: [UInt8] { number.bigEndianBytes }
    /// An identifier of the object that the operation creates.
    var id: Bytes16 { Bytes16(high: UInt64(track) + 1, low: UInt64(bitPattern: number) + 1) }

    /// The envelopes that the operation may store.
    static let mostMessages = 4

    func message(_ place: Int) -> MessageID {
        let position = number * Int64(Self.mostMessages) + Int64(place) + 1
        return MessageID(position: position, secret: Bytes16(high: 5, low: UInt64(bitPattern: position)))
    }
}
