import CarillonCore
import Logging

extension Domain {
    /// Writes the data that only the memory of the process contains, when the server stops. A fault is logged.
    package func writeRemaining() async {
        do {
            try await served.writeLast()
        } catch {
            logger.warning("cannot write the served time of the last minute", metadata: ["reason": "\(error)"])
        }
    }
}
