import CarillonWire
import Logging

/// The starts of the app's code for messages.
extension SessionRunner {
    /// Stores that the app receives a message.
    func started(_ message: BufferedMessage) async throws(PushError) {
        guard starts.began(message) else { return }
        do throws(PushError) {
            try await perform(mustReachDisk: false) { [starts] session, context throws(PushError) in
                // If the client has stopped, no start is stored.
                guard starts.hasStarted(message) else { return [] }
                return session.messageStarts(message, isStored: try context.isStored(message))
            }
        } catch {
            starts.handled(message)
            throw error
        }
    }

    /// The client runs. From now on, starts are stored.
    func resumeStarts() {
        starts.resume()
        firingStarts.resume()
    }

    /// The client stops. Takes back the starts of messages and firings that the app handles. No start is stored until the client
    /// runs again.
    func stopStarts() {
        for message in starts.stop() { removeStart(message) }
        for entry in firingStarts.stop() { removeStart(entry) }
    }

    /// An iteration ended before the app had handled its last message.
    func readerEnded(_ position: Int64) {
        if let message = starts.take(.message(position)) { removeStart(message) }
    }

    func removeStart(_ message: BufferedMessage) {
        begin(mustReachDisk: false, { session, _ in session.messageStartRemoved(message) }) { [logger] result in
            guard case .failure(let error) = result else { return }
            logger.warning("cannot store that a message was not handled", metadata: ["reason": "\(error.message)"])
        }
    }

    /// Reports that a message has failed, because it ended the process too often.
    func rejectMessage(_ message: BufferedMessage, on identifier: String) async throws(PushError) {
        try await handled(message, on: identifier, failure: ResultCode.handlerFailed)
        logger.error(
            "the app ended while it handled a message; it is not shown again",
            metadata: ["channel": "\(identifier)", "id": "\(message.id)", "starts": "\(message.starts)"])
    }
}
