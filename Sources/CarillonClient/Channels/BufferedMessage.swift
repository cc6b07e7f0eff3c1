import CarillonWire

/// A message as the client keeps it until the app is done with it: what the app is shown, and its place in the order.
struct BufferedMessage: Equatable, Sendable {
    /// Counts the messages that this install was sent, over all channels.
    var position: Int64
    var id: String
    /// What the app is shown: decrypted, when the channel has keys.
    var body: [UInt8]
    /// Nil exactly when the body is empty.
    var coding: ContentCoding?
    /// The starts of the app's code for it that ended with the process.
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

/// How full one channel's buffer is, and when to look whether anybody empties it.
struct BufferUse: Equatable, Sendable {
    var messages = 0
    var bytes = 0
    /// The newest message that was stored for the channel, whether it is there still or not.
    var lastPosition: Int64 = 0
    /// When to look whether somebody reads the channel; nil when nothing waits.
    var checkAt: ContinuousClock.Instant?
    /// How often it was looked at; each time it is waited twice as long for the next.
    var checks = 0
    var isFull = false

    mutating func took(_ message: BufferedMessage) {
        messages += 1
        bytes += message.body.count
        lastPosition = message.position
    }

    mutating func scheduleCheck(from now: ContinuousClock.Instant, _ delay: Duration) {
        checkAt = messages > 0 ? now + delay * (1 << min(checks, 16)) : nil
    }

    mutating func gaveUp(bytes size: Int) {
        messages = max(0, messages - 1)
        bytes = max(0, bytes - size)
        isFull = false
        if messages == 0 { checkAt = nil }
    }
}
