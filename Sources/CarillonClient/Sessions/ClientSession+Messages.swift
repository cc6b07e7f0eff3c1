import CarillonMessages
import CarillonWire

/// Messages: stored when they come, acknowledged then, and kept until the app is done with them.
///
/// The server's window is shared by all channels, so that no channel may hold a message back: what cannot be stored for a
/// channel is refused. A message is answered for in the same words each time that it comes, as the server sends again what
/// it did not hear an answer to; the newest answers are remembered.
extension ClientSession {
    // MARK: Facts from the server

    mutating func notificationReceived(
        _ message: NotificationFrame, answered: Int?, at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        let id = message.version
        if let answered { return [.send(MessageAnswer(id: id, code: answered).frame)] }
        guard let channelID = ChannelID(message.channelID), let identifier = channels.identifiers[channelID],
            let channel = channels[identifier], channel.receivesMessages
        else {
            // Nobody will ever take it, and it must not stop what comes behind it.
            return [.send(MessageAnswer(id: id, code: ResultCode.notDelivered).frame)]
        }
        var stored = BufferedMessage(message, position: messages.lastPosition + 1)
        if let keys = channel.keys, !message.body.isEmpty {
            do {
                stored.body = try keys.decrypt(message.body, message.coding ?? ContentCoding(.identity))
                stored.coding = ContentCoding(.identity)
            } catch {
                let answer = MessageAnswer(id: id, code: ResultCode.undecryptable)
                return [.send(answer.frame), .noteUndecryptable(id: id, identifier, error)]
            }
        }
        return store(stored, of: identifier, at: now)
    }

    private mutating func store(
        _ message: BufferedMessage, of identifier: String, at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        var use = messages.buffers[identifier] ?? BufferUse()
        defer { messages.buffers[identifier] = use }
        guard use.messages < settings.buffer.messages, use.bytes + message.body.count <= settings.buffer.bytes else {
            let answer = MessageAnswer(id: message.id, code: ResultCode.other)
            let isNew = !use.isFull
            use.isFull = true
            return [.write(.saveAnswer(answer)), .send(answer.frame)]
                + (isNew ? [.noteFullBuffer(of: identifier, waiting: use.messages)] : [])
        }
        messages.lastPosition = message.position
        use.added(message)
        if use.checkAt == nil { use.scheduleCheck(from: now, settings.readerDelay) }
        let answer = MessageAnswer(id: message.id, code: ResultCode.delivered)
        return [
            .write(.saveMessage(message, of: identifier)), .write(.saveAnswer(answer)), .send(answer.frame),
            .deliverMessage(message, to: identifier),
        ]
    }

    // MARK: Facts from the app

    /// The app is done with a message, which it could not handle when there is a failure. `isStored` is whether it had
    /// not been done with it before.
    mutating func messageHandled(
        _ message: BufferedMessage, of identifier: String, failure: Int?, isStored: Bool
    ) -> [SessionAction] {
        guard isStored else { return [] }
        messages.buffers[identifier]?.removed(bytes: message.body.count)
        var actions: [SessionAction] = [.write(.removeMessage(position: message.position))]
        guard let failure else { return actions }
        let answer = MessageAnswer(id: message.id, code: failure)
        actions.append(.write(.saveAnswer(answer)))
        if phase == .live {
            actions.append(.send(answer.frame))
        } else if registration.identity != nil {
            messages.report(answer)
            actions.append(.write(.saveReport(answer)))
        }
        return actions
    }

    /// The app is about to be given a message. `isStored` is whether it had not been done with it before.
    func messageStarts(_ message: BufferedMessage, isStored: Bool) -> [SessionAction] {
        isStored ? [.write(.saveStarts(position: message.position, message.starts + 1))] : []
    }

    /// The app was given a message, and did not end the process with it.
    func messageStartRemoved(_ message: BufferedMessage) -> [SessionAction] {
        [.write(.saveStarts(position: message.position, message.starts))]
    }

    // MARK: Time

    /// What has waited long enough for a reader.
    mutating func checkForReaders(at now: ContinuousClock.Instant) -> [SessionAction] {
        let delay = settings.readerDelay
        return messages.buffers.keys.sorted().compactMap { identifier in
            guard let use = messages.buffers[identifier], let checkAt = use.checkAt, checkAt <= now else { return nil }
            messages.buffers[identifier]?.checks += 1
            messages.buffers[identifier]?.scheduleCheck(from: now, delay)
            return .checkForReader(of: identifier, waiting: use.messages)
        }
    }
}
