import CarillonWire
import Logging

/// Messages whose handler ends the process.
extension SessionRunner {
    /// Stores that the app is given a message.
    func started(_ message: BufferedMessage) async throws(PushError) {
        starts.began(message)
        do throws(PushError) {
            try await perform(mustReachDisk: false) { session, context throws(PushError) in
                session.messageStarts(message, isStored: try context.isStored(message))
            }
        } catch {
            starts.handled(message)
            throw error
        }
    }

    /// The iteration that was given a message ended before it asked for the next event.
    func startTakenBack(_ position: Int64) {
        if let message = starts.take(position) { takeBack(message) }
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
