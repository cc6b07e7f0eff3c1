import CarillonCore
import CarillonWire
import Metrics

/// Limits the memory of answers: the size of all answers that clients have not received yet, and the number of large answers for
/// a device.
///
/// An answer is counted before it is created, or while it waits for one of a few turns. The number of requests therefore cannot
/// increase the memory beyond the limit.
package final class AnswerMemory: Sendable {
    package static let standardBytes = 64 << 20
    /// An answer up to this size is not counted.
    static let uncountedBytes = 4096
    /// The size of the parts in which answers are written. An answer of several parts is large.
    static let partBytes = 65_536
    /// The memory for a part: its envelopes, their text, and the buffer that waits for the peer.
    static let bytesOfPart = 3 * partBytes
    private static let patience = Duration.seconds(5)
    /// The largest number of large answers for a device at a time.
    static let answersOfDevice = 2
    /// The largest number of large answers for an API key at a time.
    static let answersOfKey = 8

    private let memory: WeightedSemaphore
    /// The answers that are created and wait for memory.
    private let made: WeightedSemaphore
    private let lists: WeightedSemaphore
    private let receipts: WeightedSemaphore
    private let parts: WeightedSemaphore
    private let addresses: Quota<NetworkAddress>
    private let devices = Quota<DeviceSerial>(limit: AnswerMemory.answersOfDevice, of: "answers_of_device")
    private let keys = Quota<Int>(limit: AnswerMemory.answersOfKey, of: "answers_of_key")
    private let refused = ServerMetric.answersRefused.counter()

    /// - Parameter bytes: The limit for all answers together. The limit for one address is a quarter of it.
    init(bytes: Int, scheduler: Scheduler) {
        let gauge = ServerMetric.answerBytes.gauge()
        memory = WeightedSemaphore(bytes, mostWaiting: 256, scheduler: scheduler) { gauge.record($0) }
        made = WeightedSemaphore(32, mostWaiting: 0, scheduler: scheduler)
        lists = WeightedSemaphore(4, mostWaiting: 20_000, scheduler: scheduler)
        receipts = WeightedSemaphore(8, mostWaiting: 20_000, scheduler: scheduler)
        parts = WeightedSemaphore(64, mostWaiting: 20_000, scheduler: scheduler)
        addresses = Quota(limit: max(bytes / 4, Self.bytesOfPart), of: "answers_of_address")
    }

    /// The number of bytes in use.
    package var used: Int { memory.used }

    /// Returns the number of large answers that a device has.
    func largeAnswers(of device: DeviceSerial) -> Int { devices.count(of: device) }

    /// Reserves memory for an answer.
    ///
    /// - Parameters:
    ///   - bearer: The secret of the request, if no device sent it.
    ///   - address: The client's; nil if the address is not limited.
    /// - Returns: Nil for an answer that is too small to be counted.
    /// - Throws: ``ErrorCode/overloaded`` or ``ErrorCode/rateLimited``.
    func place(
        for bytes: Int, of device: DeviceSerial?, or bearer: String?, from address: NetworkAddress?
    ) async throws(Refusal) -> AnswerReservation? {
        guard bytes > Self.uncountedBytes else { return nil }
        let place: AnswerReservation
        if let free = try takeAtOnce(bytes, for: address) {
            place = free
        } else {
            guard let waits = made.takeAtOnce(1) else { throw overloaded }
            defer { waits.release() }
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

    /// Reads a part of an answer, and reserves memory for it if necessary.
    ///
    /// - Parameters:
    ///   - bytes: Returns the memory for the part.
    ///   - read: Called again after a wait for memory. The part that it returned before the wait is discarded.
    func part<Part: Sendable>(
        for address: NetworkAddress?, bytes: (Part) -> Int, _ read: () async throws -> Part?
    ) async throws -> (Part, AnswerReservation?)? {
        do {
            let turn = try await turn(of: parts)
            defer { turn.release() }
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

    /// Counts an answer as a large answer of the device.
    ///
    /// - Throws: ``ErrorCode/rateLimited``.
    func admitLarge(_ place: AnswerReservation, of device: DeviceSerial) throws(Refusal) {
        guard devices.take(device) else {
            throw Refusal(
                .rateLimited,
                "A device can have up to \(Self.answersOfDevice) large answers at a time. Read them before you send another request.",
                retryAfterSeconds: 2)
        }
        place.onRelease { [devices] in devices.release(device) }
    }

    private func admitLarge(_ place: AnswerReservation, ofKey bearer: String) throws(Refusal) {
        // Only the hash of the secret is stored.
        let key = bearer.hashValue
        guard keys.take(key) else {
            throw Refusal(
                .rateLimited,
                "An API key can have up to \(Self.answersOfKey) large answers at a time. Read them before you send another request.",
                retryAfterSeconds: 2)
        }
        place.onRelease { [keys] in keys.release(key) }
    }

    /// Creates a list, while only a few others are created at the same time.
    func list<List>(_ make: () async throws -> List) async throws -> List { try await inTurn(of: lists, make) }

    /// Reads an inbox in order to acknowledge received envelopes, while only a few others are read at the same time.
    func receipt<Value>(_ work: () async throws -> Value) async throws -> Value { try await inTurn(of: receipts, work) }

    private func inTurn<Value>(of turns: WeightedSemaphore, _ work: () async throws -> Value) async throws -> Value {
        let turn = try await turn(of: turns)
        defer { turn.release() }
        return try await work()
    }

    private func turn(of turns: WeightedSemaphore) async throws(Refusal) -> WeightedSemaphore.Permit {
        guard let turn = await turns.take(1, within: Self.patience) else { throw overloaded }
        return turn
    }

    /// - Returns: Nil if there is not enough memory now.
    private func takeAtOnce(_ bytes: Int, for address: NetworkAddress?) throws(Refusal) -> AnswerReservation? {
        let release = try takeQuota(bytes, of: address)
        guard let place = memory.takeAtOnce(bytes) else {
            release(bytes)
            return nil
        }
        return AnswerReservation(place, bytes: bytes, onShrink: release)
    }

    private func take(_ bytes: Int, for address: NetworkAddress?) async throws(Refusal) -> AnswerReservation {
        let release = try takeQuota(bytes, of: address)
        guard let place = await memory.take(bytes, within: Self.patience) else {
            release(bytes)
            throw overloaded
        }
        return AnswerReservation(place, bytes: bytes, onShrink: release)
    }

    /// - Returns: A function that releases bytes.
    private func takeQuota(_ bytes: Int, of address: NetworkAddress?) throws(Refusal) -> @Sendable (Int) -> Void {
        guard let address, !address.isLoopback else { return { _ in } }
        let owner = address.owner
        // An answer that is larger than the limit of the address uses all of it.
        guard addresses.take(owner, min(bytes, addresses.limit)) else {
            throw Refusal(
                .rateLimited,
                "The answers to one address can have up to \(addresses.limit) bytes together. Read them before you send another request.",
                retryAfterSeconds: 2)
        }
        return { [addresses] freed in addresses.release(owner, freed) }
    }

    private var overloaded: Refusal {
        refused.increment()
        return Refusal(
            .overloaded, "Too many answers are waiting for clients to read them; retry later.", retryAfterSeconds: 5)
    }
}
