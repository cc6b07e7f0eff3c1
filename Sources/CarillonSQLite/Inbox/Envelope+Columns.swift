import CarillonCore
import CarillonWire

extension Envelope {
    /// The columns of the table of envelopes that ``init(_:)`` reads.
    static let columns = """
        position, secret, device, app, origin_kind, origin, origin_id, kind, code, accepted_at, expires_at, coding, encryption,
        crypto_key, urgency, content, body, (SELECT body FROM shared_content WHERE serial = content)
        """

    static func expiry(_ columns: StatementColumns) -> Timestamp { columns.timestamp(10) }

    init(_ columns: StatementColumns) throws {
        guard let origin = Origin.Kind(rawValue: Int(columns.integer(4))),
            let number = EnvelopeKind(rawValue: Int(columns.integer(7)))
        else { throw StoreFault(.unavailable, "an envelope's kind is unknown") }
        let code = columns.integerIfAny(8).map(Int.init)
        let kind: Kind
        switch number {
        case .message: kind = .message(Content(columns))
        case .channelClosed: kind = .channelClosed
        case .channelError: kind = .channelError(code: code ?? ChannelErrorCode.server.lowerBound)
        case .pingFailed: kind = .pingFailed(code.flatMap(PingFailure.init) ?? .invalidAnswer)
        case .recovered: kind = .recovered
        case .fired: kind = .fired(body: columns.bytes(16) ?? [], countsBadge: code == 1)
        case .update:
            let shared = columns.integerIfAny(15).map(SharedContentID.init)
            kind = .update(
                UpdateCopy(
                    body: columns.bytes(shared == nil ? 16 : 17) ?? [], shared: shared,
                    entry: (code ?? 0) >> UpdateCopy.attemptBits, attempt: (code ?? 0) & (1 << UpdateCopy.attemptBits - 1)))
        case .retraction: kind = .retraction(entry: code ?? 0)
        case .serviceRequest: kind = .service(.request, body: columns.bytes(16) ?? [])
        case .serviceReply: kind = .service(.reply, body: columns.bytes(16) ?? [])
        case .serviceNotice: kind = .service(.notice, body: columns.bytes(16) ?? [])
        case .deviceStatus:
            kind = .deviceStatus(code.flatMap(SuspensionReason.init).map { .suspended($0) } ?? .registered)
        }
        self.init(
            id: MessageID(position: columns.integer(0), secret: try columns.bytes16(1)),
            device: DeviceSerial(columns.integer(2)), app: AppSerial(columns.integer(3)),
            origin: Origin(origin, serial: columns.integer(5), id: try columns.bytes16(6)), kind: kind,
            acceptedAt: columns.timestamp(9), expiresAt: Self.expiry(columns),
            urgency: Urgency(number: Int(columns.integer(14))) ?? .normal)
    }
}

extension Envelope.UpdateCopy {
    /// The number of bits of the attempt in an envelope's code. The entry is in the higher bits.
    static let attemptBits = 20
}

extension Envelope.Content {
    fileprivate init(_ columns: StatementColumns) {
        let name = columns.text(11).flatMap(ContentCoding.Name.init(rawValue:))
        let coding = name.map { ContentCoding($0, encryption: columns.text(12), cryptoKey: columns.text(13)) }
        let shared = columns.integerIfAny(15).map(SharedContentID.init)
        self.init(body: columns.bytes(shared == nil ? 16 : 17) ?? [], coding: coding, shared: shared)
    }
}
