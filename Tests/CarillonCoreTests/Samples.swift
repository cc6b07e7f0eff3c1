import CarillonCore
import CarillonWire

/// Values that tests are made of.
enum Sample {
    static let device = DeviceSerial(1)
    static let now = Timestamp(milliseconds: 1_000_000)

    static func id(_ position: Int64) -> MessageID {
        MessageID(position: position, secret: Bytes16(high: 0xABCD, low: UInt64(bitPattern: position)))
    }

    static func envelope(
        _ position: Int64, bytes: Int = 5, device: DeviceSerial = device, ttl: Int64 = 60,
        kind: Envelope.Kind? = nil
    ) -> Envelope {
        Envelope(
            id: id(position), device: device, app: AppSerial(1), origin: .channel(ChannelSerial(1), channelID),
            kind: kind ?? .message(.init(body: Array(repeating: 7, count: bytes), coding: ContentCoding(.identity))),
            acceptedAt: now, expiresAt: now.adding(seconds: ttl))
    }

    static let channelID = ChannelID(Bytes16(high: 0x1111_2222_3333_4444, low: 0x5555_6666_7777_8888))

    static let random = RandomSource { UInt64.random(in: .min ... .max) }
}
