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
    /// Large answers that a device may have at a time.
    static let answersOfDevice = 2
    /// The same of an access key.
    static let answersOfKey = 8

    private let room: Room
    private let lists: Room
    private let looks: Room
    private let devices = Shares<DeviceSerial>(limit: AnswerMemory.answersOfDevice, of: "answers_of_device")
    private let keys = Shares<Int>(limit: AnswerMemory.answersOfKey, of: "answers_of_key")
    private let refused = ServerMetric.answersRefused.counter()

    /// - Parameter bytes: What all answers may take together.
    init(bytes: Int, scheduler: Scheduler) {
        let gauge = ServerMetric.answerBytes.gauge()
        room = Room(bytes, mostWaiting: 256, scheduler: scheduler) { gauge.record($0) }
        lists = Room(4, mostWaiting: 20_000, scheduler: scheduler)
        looks = Room(64, mostWaiting: 20_000, scheduler: scheduler)
    }

    /// Bytes that are counted now.
    package var used: Int { room.used }

    /// How many large answers a device has.
    func largeAnswers(of device: DeviceSerial) -> Int { devices.count(of: device) }

    /// Takes room for an answer that is there.
    ///
    /// - Parameter bearer: The secret of the request, where it is no device's.
    /// - Returns: Nil for one that is too small to be counted.
    /// - Throws: ``ErrorCode/overloaded`` or ``ErrorCode/rateLimited``.
    func place(for bytes: Int, of device: DeviceSerial?, or bearer: String?) async throws(Refusal) -> AnswerPlace? {
        guard bytes > Self.uncountedBytes else { return nil }
        let place = AnswerPlace(try await take(bytes))
        guard bytes > Self.partBytes else { return place }
        if let device {
            try admitLarge(place, of: device)
        } else if let bearer {
            try admitLarge(place, ofKey: bearer)
        }
        return place
    }

    /// Reads a part of something, and takes room for it unless it is empty.
    ///
    /// - Parameter read: Is called again when it had to wait for room: what it returned before was forgotten meanwhile.
    func part<Part: Sendable>(
        _ read: () async throws -> Part?
    ) async throws -> (Part, AnswerPlace)? {
        do {
            let turn = try await turn(of: looks)
            defer { turn.giveBack() }
            guard let part = try await read() else { return nil }
            if let place = room.takeAtOnce(Self.bytesOfPart) { return (part, AnswerPlace(place)) }
        }
        let place = AnswerPlace(try await take(Self.bytesOfPart))
        guard let part = try await read() else { return nil }
        return (part, place)
    }

    /// Makes an answer of the answer's place a large one of the device.
    ///
    /// - Throws: ``ErrorCode/rateLimited``.
    func admitLarge(_ place: AnswerPlace, of device: DeviceSerial) throws(Refusal) {
        guard devices.take(device) else {
            throw Refusal(
                .rateLimited,
                "A device can have \(Self.answersOfDevice) large answers at a time. Read them before you ask for another one.",
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
                "A key can have \(Self.answersOfKey) large answers at a time. Read them before you ask for another one.",
                retryAfterSeconds: 2)
        }
        place.onGiveBack { [keys] in keys.giveBack(key) }
    }

    /// Makes a list while few others are made.
    func list<List>(_ make: () async throws -> List) async throws -> List {
        let turn = try await turn(of: lists)
        defer { turn.giveBack() }
        return try await make()
    }

    private func turn(of turns: Room) async throws(Refusal) -> Room.Place {
        guard let turn = await turns.take(1, within: Self.patience) else { throw overloaded }
        return turn
    }

    private func take(_ bytes: Int) async throws(Refusal) -> Room.Place {
        guard let place = await room.take(bytes, within: Self.patience) else { throw overloaded }
        return place
    }

    private var overloaded: Refusal {
        refused.increment()
        return Refusal(.overloaded, "Too many answers wait for their clients.", retryAfterSeconds: 5)
    }
}
