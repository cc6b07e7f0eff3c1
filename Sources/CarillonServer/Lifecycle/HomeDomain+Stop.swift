import CarillonCore
import Logging

extension HomeDomain {
    /// Writes what only the memory of the home has, when the server stops. A fault is logged, and the next write is tried.
    package func writeRemaining() async {
        await runtime.flush()
        await runtime.writeUnwritten()
        if runtime.hasUnwritten {
            shared.logger.error("outcomes cannot be written and are lost; their messages come again")
        }
        do {
            try await devices.writeSeen()
        } catch {
            shared.logger.warning(
                "cannot write which devices were seen", metadata: ["reason": "\(error)"])
        }
    }
}
