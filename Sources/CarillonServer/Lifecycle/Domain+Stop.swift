import CarillonCore
import Logging

extension Domain {
    /// Writes what is in memory only, when the server stops. A fault is logged, and the next write is tried.
    package func writeRemaining() async {
        for home in homes.here {
            await home.flush()
            await home.writeUnwritten()
            if home.hasUnwritten { logger.error("outcomes cannot be written and are lost; their messages come again") }
        }
        do {
            try await devices.writeSeen()
        } catch {
            logger.warning("cannot write which devices were seen in the last second", metadata: ["reason": "\(error)"])
        }
        do {
            try await served.writeLast()
        } catch {
            logger.warning("cannot write the served time of the last minute", metadata: ["reason": "\(error)"])
        }
    }
}
