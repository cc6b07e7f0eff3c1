import CarillonCore
import Logging

extension HomeDomain {
    /// Writes the data that only the memory of the home contains, when the server stops. After a fault, which is logged, the next
    /// write is still tried.
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
