import CarillonBasics
import CarillonWire

/// A message that the client stores until the app has handled it.
struct BufferedMessage: Equatable, Sendable {
    /// The number of the message among all messages that this device received on all channels.
    var position: Int64
    var id: String
    /// The body that the app receives. If the channel has keys, the body is decrypted.
    var body: [UInt8]
    /// The coding of the body. Nil exactly if the body is empty.
    var coding: ContentCoding?
    /// The number of starts of the app's code for the message that ended with the process.
    var starts: Int

    init(position: Int64, id: String, body: [UInt8], coding: ContentCoding?, starts: Int = 0) {
        self.position = position
        self.id = id
        self.body = body
        self.coding = coding
        self.starts = starts
    }

    init(_ frame: NotificationFrame, position: Int64) {
        self.init(position: position, id: frame.version, body: frame.body, coding: frame.coding)
    }
}

extension BufferedMessage: CountedEntry {
    var suspect: SuspectTurns.Entry { .message(position) }
}

/// The use of one channel's buffer, and the time of the next check whether the app reads the channel.
struct BufferUse: Equatable, Sendable {
    var messages = 0
    var bytes = 0
    /// The position of the newest message that was stored for the channel, also if the message was removed since.
    var lastPosition: Int64 = 0
    /// The time of the next check whether the app reads the channel; nil if no message waits.
    var checkAt: ContinuousClock.Instant?
    /// The number of checks. The delay before the next check doubles with each of the first 16.
    var checks = 0
    var isFull = false

    mutating func added(_ message: BufferedMessage) {
        messages += 1
        bytes += message.body.count
        lastPosition = message.position
    }

    mutating func scheduleCheck(from now: ContinuousClock.Instant, _ delay: Duration) {
        let backOff = BackOff(first: delay, longest: delay * 65_536)
        checkAt = messages > 0 ? now + backOff.delay(doublings: checks) : nil
    }

    mutating func removed(bytes size: Int) {
        messages = max(0, messages - 1)
        bytes = max(0, bytes - size)
        isFull = false
        if messages == 0 { checkAt = nil }
    }
}
