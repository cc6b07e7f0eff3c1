import CarillonCore
import Logging

extension HomeDomain {
    /// Writes what only the memory of the home has, when the server stops. A fault is logged, and the next write is tried.
    package func writeRemaining() async {
        await runtime.flush()
        await runtime.writeUnwritten()
        if runtime.hasUnwritten {
            shared.logger.error("cannot store outcomes; delivering their messages again after the start")
        }
        do {
            try await devices.writeSeen()
        } catch {
            shared.logger.warning(
                "cannot store when devices were seen", metadata: ["reason": "\(error)"])
        }
    }
}
