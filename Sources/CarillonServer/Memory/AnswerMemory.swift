import CarillonCore
import CarillonWire
import Metrics

/// The memory of answers: how much all of them may take until their clients have read them, and how many large ones a device
/// may have at a time.
///
/// An answer is counted before it is made, or while it waits for one of few turns, so that no number of requests takes more.
package final class AnswerMemory: Sendable {
    package static let standardBytes = 64 << 20
    /// An answer up to this size is not counted.
    static let uncountedBytes = 4096
    /// Answers are written in parts of this size. One that has several is large.
    static let partBytes = 65_536
    /// What a part takes in all: its envelopes, their text, and the buffer that waits for the peer.
    static let bytesOfPart = 3 * partBytes
    private static let patience = Duration.seconds(5)
    /// Large answers, which have several parts, that a device may have at a time.
    static let answersOfDevice = 2
    /// The same of an access key.
    static let answersOfKey = 8

    private let room: Room
    /// Answers that are made and wait for room.
    private let made: Room
    private let lists: Room
    private let receipts: Room
    private let looks: Room
    private let addresses: Shares<NetworkAddress>
    private let devices = Shares<DeviceSerial>(limit: AnswerMemory.answersOfDevice, of: "answers_of_device")
    private let keys = Shares<Int>(limit: AnswerMemory.answersOfKey, of: "answers_of_key")
    private let refused = ServerMetric.answersRefused.counter()

    /// - Parameter bytes: What all answers may take together; those of one address, a quarter of it.
    init(bytes: Int, scheduler: Scheduler) {
        let gauge = ServerMetric.answerBytes.gauge()
        room = Room(bytes, mostWaiting: 256, scheduler: scheduler) { gauge.record($0) }
        made = Room(32, mostWaiting: 0, scheduler: scheduler)
        lists = Room(4, mostWaiting: 20_000, scheduler: scheduler)
        receipts = Room(8, mostWaiting: 20_000, scheduler: scheduler)
        looks = Room(64, mostWaiting: 20_000, scheduler: scheduler)
        addresses = Shares(limit: max(bytes / 4, Self.bytesOfPart), of: "answers_of_address")
    }

    /// Bytes that are counted now.
    package var used: Int { room.used }

    /// How many large answers a device has.
    func largeAnswers(of device: DeviceSerial) -> Int { devices.count(of: device) }

    /// Takes room for an answer that is made.
    ///
    /// - Parameters:
    ///   - bearer: The secret of the request, where it is no device's.
    ///   - address: The client's, nil if it has no share.
    /// - Returns: Nil for one that is too small to be counted.
    /// - Throws: ``ErrorCode/overloaded`` or ``ErrorCode/rateLimited``.
    func place(
        for bytes: Int, of device: DeviceSerial?, or bearer: String?, from address: NetworkAddress?
    ) async throws(Refusal) -> AnswerPlace? {
        guard bytes > Self.uncountedBytes else { return nil }
        let place: AnswerPlace
        if let free = try takeAtOnce(bytes, for: address) {
            place = free
        } else {
            guard let waits = made.takeAtOnce(1) else { throw overloaded }
            defer { waits.giveBack() }
            place = try await take(bytes, for: address)
        }
        guard bytes > Self.partBytes else { return place }
        if let device {
            try admitLarge(place, of: device)
        } else if let bearer {
            try admitLarge(place, ofKey: bearer)
        }
        return place
    }

    /// Reads a part of something, and takes room for it where it needs some.
    ///
    /// - Parameters:
    ///   - bytes: What the part takes.
    ///   - read: Is called again when it had to wait for room: what it returned before was forgotten meanwhile.
    func part<Part: Sendable>(
        for address: NetworkAddress?, bytes: (Part) -> Int, _ read: () async throws -> Part?
    ) async throws -> (Part, AnswerPlace?)? {
        do {
            let turn = try await turn(of: looks)
            defer { turn.giveBack() }
            guard let part = try await read() else { return nil }
            let needed = bytes(part)
            if needed <= Self.uncountedBytes { return (part, nil) }
            if let place = try takeAtOnce(needed, for: address) { return (part, place) }
        }
        let place = try await take(Self.bytesOfPart, for: address)
        guard let part = try await read() else { return nil }
        place.shrink(to: bytes(part))
        return (part, place)
    }

    /// Makes an answer of the answer's place a large one of the device.
    ///
    /// - Throws: ``ErrorCode/rateLimited``.
    func admitLarge(_ place: AnswerPlace, of device: DeviceSerial) throws(Refusal) {
        guard devices.take(device) else {
            throw Refusal(
                .rateLimited,
                "A device can have up to \(Self.answersOfDevice) large answers at a time. Read them before you send another request.",
                retryAfterSeconds: 2)
        }
        place.onGiveBack { [devices] in devices.giveBack(device) }
    }

    private func admitLarge(_ place: AnswerPlace, ofKey bearer: String) throws(Refusal) {
        // The secret itself is not kept.
        let key = bearer.hashValue
        guard keys.take(key) else {
            throw Refusal(
                .rateLimited,
                "An API key can have up to \(Self.answersOfKey) large answers at a time. Read them before you send another request.",
                retryAfterSeconds: 2)
        }
        place.onGiveBack { [keys] in keys.giveBack(key) }
    }

    /// Makes a list while few others are made.
    func list<List>(_ make: () async throws -> List) async throws -> List { try await inTurn(of: lists, make) }

    /// Reads an inbox to settle what was received of it, while few others are read.
    func receipt<Value>(_ work: () async throws -> Value) async throws -> Value { try await inTurn(of: receipts, work) }

    private func inTurn<Value>(of turns: Room, _ work: () async throws -> Value) async throws -> Value {
        let turn = try await turn(of: turns)
        defer { turn.giveBack() }
        return try await work()
    }

    private func turn(of turns: Room) async throws(Refusal) -> Room.Place {
        guard let turn = await turns.take(1, within: Self.patience) else { throw overloaded }
        return turn
    }

    /// - Returns: Nil where there is no room now.
    private func takeAtOnce(_ bytes: Int, for address: NetworkAddress?) throws(Refusal) -> AnswerPlace? {
        let share = try takeShare(bytes, of: address)
        guard let place = room.takeAtOnce(bytes) else {
            share(bytes)
            return nil
        }
        return AnswerPlace(place, bytes: bytes, onShrink: share)
    }

    private func take(_ bytes: Int, for address: NetworkAddress?) async throws(Refusal) -> AnswerPlace {
        let share = try takeShare(bytes, of: address)
        guard let place = await room.take(bytes, within: Self.patience) else {
            share(bytes)
            throw overloaded
        }
        return AnswerPlace(place, bytes: bytes, onShrink: share)
    }

    /// - Returns: What gives bytes back.
    private func takeShare(_ bytes: Int, of address: NetworkAddress?) throws(Refusal) -> @Sendable (Int) -> Void {
        guard let address, !address.isLoopback else { return { _ in } }
        let owner = address.owner
        // An answer that is larger than the share takes all of it.
        guard addresses.take(owner, min(bytes, addresses.limit)) else {
            throw Refusal(
                .rateLimited,
                "The answers to one address can have up to \(addresses.limit) bytes together. Read them before you send another request.",
                retryAfterSeconds: 2)
        }
        return { [addresses] freed in addresses.giveBack(owner, freed) }
    }

    private var overloaded: Refusal {
        refused.increment()
        return Refusal(
            .overloaded, "Too many answers are waiting for clients to read them; retry later.", retryAfterSeconds: 5)
    }
}
