import CarillonCore
import CarillonWire

/// Updates and attachments.
extension WorkloadTrack {
    func publishUpdate(_ operation: WorkloadOperation) async throws -> String {
        let live = try await store.liveUpdates(of: app.serial)
        let definition = Update.Definition(
            kind: .definitions, payload: Array("{}".utf8), audience: nil, mode: .once, ttlSeconds: 30 * 86_400,
            orderKey: nil, supersedes: operation.choice == 0 ? live.last?.id : nil)
        let key = [UInt8(operation.value % 100)]
        let request = UpdateRequest(
            proposed: UpdateID(operation.id), app: app.serial, key: KeyID(1), definition: definition,
            body: operation.bytes, isIndexed: true,
            idempotency: operation.other == 0 ? (key: key, fingerprint: key) : nil, limits: UpdateLimits(live: 10))
        return text(try await store.publishUpdate(request, at: now))
    }

    func withdrawUpdate(_ operation: WorkloadOperation) async throws -> String {
        let live = try await store.liveUpdates(of: app.serial)
        guard let update = live.first else { return Self.nothing }
        return text(try await store.withdrawUpdate(update, by: KeyID(1), at: now))
    }

    func bind(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        let binding = try await store.binding(of: device.serial, profile: "profile\(operation.choice)", at: now)
        return "bound \(binding?.revision ?? -1)"
    }

    /// Puts an update into the inbox of a device, with its completion.
    func offerUpdate(_ operation: WorkloadOperation) async throws -> String {
        let live = try await store.liveUpdates(of: app.serial)
        guard let device = try await device(operation.slot), !live.isEmpty,
            let binding = try await store.presentBinding(of: device.serial)
        else { return Self.nothing }
        let update = live[Int(operation.value) % live.count]
        let offer = UpdateOffer(
            key: CompletionKey(update: update.serial, binding: binding.serial, entry: 0), revision: binding.revision,
            attempt: 1, orderKey: nil, at: now)
        let copy = Envelope.UpdateCopy(body: update.body, shared: update.content, entry: 0, attempt: 1)
        let envelope = envelope(operation, for: device, from: update.origin, .update(copy))
        let rules = AppendRules(topic: offer.key.topic, effects: [.updateOffered(offer)])
        return text(try await store.commit([.append(envelope, rules)]))
    }

    // MARK: Attachments

    /// The attachments that a track can have.
    static let attachments = 6

    func attachmentID(_ place: Int) -> AttachmentID {
        AttachmentID(Bytes16(high: UInt64(number) + 1, low: UInt64(place)))
    }

    private func attachment(_ operation: WorkloadOperation) async throws -> Attachment? {
        try await store.attachment(attachmentID(Int(operation.value) % Self.attachments))
    }

    func addAttachment(_ operation: WorkloadOperation) async throws -> String {
        guard try await attachment(operation) == nil, let device = try await device(operation.slot) else {
            return Self.nothing
        }
        let owner = AttachmentUser(
            app: app.serial, principal: operation.choice == 0 ? .senders : .device(device.serial))
        let request = AttachmentRequest(
            proposed: attachmentID(Int(operation.value) % Self.attachments), owner: owner, length: 1000,
            digest: operation.bytes, readers: [.senders, .device(device.serial)], lifetimeSeconds: 1_000_000,
            idempotency: nil, limits: AttachmentLimits())
        return text(try await store.addAttachment(request, at: now))
    }

    func changeAttachment(_ operation: WorkloadOperation) async throws -> String {
        guard let attachment = try await attachment(operation) else { return Self.nothing }
        let end = now.adding(seconds: 1_000_000)
        switch operation.slot + operation.other {
        case 0:
            return text(try await store.removeAttachment(attachment.serial))
        case 1:
            return text(try await store.attachmentReceived(attachment.serial, by: .senders))
        case 2:
            return text(try await store.completeAttachment(attachment.serial, expiresAt: end))
        default:
            let offset = min(attachment.synced + 100, attachment.length)
            return text(try await store.noteSynced(attachment.serial, upTo: offset, expiresAt: end))
        }
    }
}
