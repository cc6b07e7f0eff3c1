import CarillonWire
import Logging

/// Messages whose handler ends the process.
extension SessionRunner {
    /// Stores that the app is given a message.
    func started(_ message: BufferedMessage) async throws(PushError) {
        guard starts.began(message) else { return }
        do throws(PushError) {
            try await perform(mustReachDisk: false) { [starts] session, context throws(PushError) in
                // The client may have stopped meanwhile.
                guard starts.hasStarted(message) else { return [] }
                return session.messageStarts(message, isStored: try context.isStored(message))
            }
        } catch {
            starts.handled(message)
            throw error
        }
    }

    /// The client begins to run: starts are stored.
    func resumeStarts() {
        starts.resume()
        firingStarts.resume()
    }

    /// The client stops: takes back the starts of messages and firings that the app handles, and stores none until the client runs again.
    func stopStarts() {
        for message in starts.stop() { takeBack(message) }
        for entry in firingStarts.stop() { takeBack(entry) }
    }

    /// The iteration that was given a message ended before it asked for the next event.
    func startTakenBack(_ position: Int64) {
        if let message = starts.take(.message(position)) { takeBack(message) }
    }

    func takeBack(_ message: BufferedMessage) {
        begin(mustReachDisk: false, { session, _ in session.messageStartTakenBack(message) }) { [logger] result in
            guard case .failure(let error) = result else { return }
            logger.warning("cannot store that a message was not handled", metadata: ["reason": "\(error.message)"])
        }
    }

    /// Reports a message that ended the process too often as failed.
    func gaveUp(_ message: BufferedMessage, on identifier: String) async throws(PushError) {
        try await handled(message, on: identifier, failure: ResultCode.handlerFailed)
        logger.error(
            "the app ended while it handled a message; it is not shown again",
            metadata: ["channel": "\(identifier)", "id": "\(message.id)", "starts": "\(message.starts)"])
    }
}
